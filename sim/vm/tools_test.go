package vm

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/systems"
)

// kernelWith is a kernel that has these modules, built in.
func kernelWith(t *testing.T, modules ...string) *Kernel {
	dir := t.TempDir()
	var list strings.Builder
	for _, m := range modules {
		list.WriteString("kernel/net/" + m + ".ko\n")
	}
	must.Do(t, os.WriteFile(filepath.Join(dir, "modules.builtin"), []byte(list.String()), 0o644))
	return &Kernel{Version: "6.12.0", Modules: dir}
}

// TestMachineLacks: what systems execute, and what they need of the kernel, is looked for in what a machine will be given, before it starts.
func TestMachineLacks(t *testing.T) {
	old := &systems.System{Name: "mine", Version: "1.0.0", Executes: []string{"sh"}, Kernel: []string{"nft_compat/ip_tables"}}
	newer := &systems.System{Name: "mine", Version: "1.1.0", Executes: []string{"sh", "no-such-tool"}, Kernel: []string{"xt_comment"}}
	lacksTool := "mine 1.1.0 executes no-such-tool, which this computer has not: apt-get install the package that has no-such-tool"
	other := "arm64"
	if runtime.GOARCH == other {
		other = "amd64"
	}
	for _, c := range []struct {
		name    string
		found   []*systems.System
		arch    string
		modules []string
		want    string
	}{
		{"all is there", []*systems.System{old}, runtime.GOARCH, []string{"ip-tables"}, ""},
		{"a tool is not", []*systems.System{old, newer}, runtime.GOARCH, []string{"nft_compat", "xt_comment"}, lacksTool},
		{"a module is not", []*systems.System{old}, runtime.GOARCH, []string{"xt_comment"},
			"mine 1.0.0 needs nft_compat or ip_tables of the kernel, which kernel 6.12.0 has neither built in nor as modules: take another kernel (enilab vm kernels)"},
		{"another architecture has what Busybox is", []*systems.System{{Name: "mine", Version: "1.2.0", Executes: []string{"sed", "iptables"}}}, other, nil,
			"mine 1.2.0 executes iptables, which a virtual machine of " + other + ", which is given Debian's busybox-static, has not: apt-get install iptables"},
	} {
		found := map[string]*systems.System{}
		for _, s := range c.found {
			found[s.Version] = s
		}
		n, err := (&Laboratory{Arch: c.arch, Systems: found}).demands(kernelWith(t, c.modules...))
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if got := n.missing(); got != c.want {
			t.Errorf("%s: expected %q, found %q", c.name, c.want, got)
		}
	}
}

// TestComputerLacks: a run on this computer's own kernel is refused for what a system executes and this computer has
// not.
func TestComputerLacks(t *testing.T) {
	err := Equip(map[string]*systems.System{"mine@1": {Name: "mine", Version: "1.0.0",
		Executes: []string{"no-such-tool"}}})
	if e, ok := err.(*Lacking); !ok || !strings.Contains(e.Error(),
		"mine 1.0.0 executes no-such-tool, which this computer has not") {
		t.Errorf("expected that the tool is lacking, found %v", err)
	}
	if err := Equip(map[string]*systems.System{"mine@1": {Name: "mine", Version: "1.0.0",
		Executes: []string{"sh"}}}); err != nil {
		t.Errorf("a tool that is there: %v", err)
	}
}

// TestGivenToolsHaveVersions: a tool's version is what it says of itself, and its digest where it says nothing.
func TestGivenToolsHaveVersions(t *testing.T) {
	found := map[string]*systems.System{"a": {Executes: []string{"sh", "sleep"}}, "b": {Executes: []string{"sleep"}}}
	give(found, thisComputer)
	got := Given(found)
	if len(got) != 2 || !strings.HasPrefix(got[0], "sh") || !strings.ContainsAny(got[0], "0123456789") || !strings.HasPrefix(got[1], "sleep") ||
		!strings.HasSuffix(got[1], " from this computer") {
		t.Errorf("expected sh and sleep once each, with version or digest, found %q", got)
	}
}
