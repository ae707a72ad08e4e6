package systems

import (
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestMissingNamesToolExecutorAndPackage: what a machine lacks is a sentence that somebody can act upon, and what it has is none.
func TestMissingNamesToolExecutorAndPackage(t *testing.T) {
	aws := &System{Name: "aws", Version: "1.23.0", Executes: []string{"iptables", "ip6tables"}}
	mine := &System{Name: "mine", Version: "1.0.0", Executes: []string{"magic"}}
	needs := slices.Concat(aws.Needs(), aws.Needs(), mine.Needs())
	for _, c := range []struct{ has, want string }{
		{"iptables ip6tables magic", ""},
		{"iptables magic", "aws 1.23.0 executes ip6tables, which this computer has not: apt-get install iptables"},
		{"magic", "aws 1.23.0 executes ip6tables and iptables, which this computer has not: apt-get install iptables"},
		{"", "aws 1.23.0 executes ip6tables and iptables, and mine 1.0.0 executes magic, which this computer has not: " +
			"apt-get install iptables the package that has magic"},
	} {
		got := Missing(needs, "this computer", func(tool string) bool { return slices.Contains(strings.Fields(c.has), tool) })
		if got != c.want {
			t.Errorf("with %q: expected %q, found %q", c.has, c.want, got)
		}
	}
}

// TestMissingModules: of modules with / between them one will do.
func TestMissingModules(t *testing.T) {
	s := &System{Name: "aws", Version: "1.23.0", Kernel: []string{"nft_compat/ip_tables", "xt_comment"}}
	for has, want := range map[string]string{
		"ip_tables xt_comment": "",
		"ip_tables":            "aws 1.23.0 needs xt_comment of the kernel, which k has neither built in nor as modules: take another kernel (enilab vm kernels)",
		"xt_comment":           "aws 1.23.0 needs nft_compat or ip_tables of the kernel, which k has neither built in nor as modules: take another kernel (enilab vm kernels)",
	} {
		if got := s.MissingModules("k", func(m string) bool { return slices.Contains(strings.Fields(has), m) }); got != want {
			t.Errorf("with %q: expected %q, found %q", has, want, got)
		}
	}
	if got := strings.Join(s.Modules(), " "); got != "nft_compat ip_tables xt_comment" {
		t.Errorf("expected every module by itself, found %s", got)
	}
}

// TestDebianHasEachToolOnce: no two packages are named for one tool.
func TestDebianHasEachToolOnce(t *testing.T) {
	of := map[string]string{}
	for name, tools := range debian {
		for _, tool := range tools {
			if of[tool] != "" {
				t.Errorf("%s is in %s and in %s", tool, of[tool], name)
			}
			of[tool] = name
		}
	}
}

// TestExecutesIsRead: names of programs and modules, and nothing else; a range's list takes the place of the base's.
func TestExecutesIsRead(t *testing.T) {
	const text = "name: x\nexecutes: [iptables]\nkernel: [a/b]\nconflist: {name: 1.conflist, words: '{}'}\nversions:\n" +
		"  - {from: 1.0.0, before: 2.0.0}\n  - {from: 2.0.0, executes: [nft, ip]}\n"
	d := must.Get(Parse("x.yaml", []byte(text)))(t)
	for v, want := range map[string]string{"1.5.0": "iptables", "2.0.0": "ip nft"} {
		s := must.Get(d.Of(v))(t)
		var got []string
		for _, n := range s.Needs() {
			got = append(got, n.Tool)
		}
		if strings.Join(got, " ") != want || strings.Join(s.Kernel, " ") != "a/b" {
			t.Errorf("%s: expected %s and a/b, found %v and %v", v, want, got, s.Kernel)
		}
	}
	for bad, want := range map[string]string{
		"[/usr/sbin/iptables]": "a program's name, such as iptables", "[iptables, iptables]": "twice", "['a b']": "a program's name",
	} {
		if _, err := Parse("x.yaml", []byte(strings.Replace(text, "[iptables]", bad, 1))); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("executes: %s: expected %q, found %v", bad, want, err)
		}
	}
	if _, err := Parse("x.yaml", []byte(strings.Replace(text, "a/b", "a/", 1))); err == nil || !strings.Contains(err.Error(), "kernel module's name") {
		t.Errorf("kernel: [a/]: expected a sentence, found %v", err)
	}
}
