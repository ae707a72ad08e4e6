package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/campaign"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/runner"
)

// Each release to the next one, and a minor's last to the next minor's first and last, each once; in modes the lasts, and the newest to ours.
func TestPairs(t *testing.T) {
	got := pairs([]string{"1.22.0", "1.19.6", "1.20.0", "1.20.4", "1.21.0", "1.21.2", "1.22.10", "1.22.9", "1.17.1", "1.19.0", "1.21.2"}, "1.21", "1.19")
	want := "1.19.6..1.20.0, 1.19.6..1.20.4, 1.19.6..1.20.4:custom-networking, 1.19.6..1.20.4:prefixes, 1.20.4..1.21.0, 1.20.4..1.21.2, " +
		"1.20.4..1.21.2:custom-networking, 1.20.4..1.21.2:prefixes, 1.21.0..1.21.2, 1.21.2..1.22.0, 1.21.2..1.22.10, 1.21.2..1.22.10:custom-networking, " +
		"1.21.2..1.22.10:prefixes, 1.22.0..1.22.9, 1.22.9..1.22.10, 1.22.10..enilab, 1.22.10..enilab:custom-networking, 1.22.10..enilab:prefixes"
	if list(got) != want {
		t.Errorf("expected %s\nfound %s", want, list(got))
	}
	if args := strings.Join(got[len(got)-1].args(true), " "); args != "gate --from amazon-vpc-cni-k8s@1.22.10 --to enilab --mode prefixes --only change-prefixes" {
		t.Errorf("the last one is gated by %s", args)
	}
	if order := playOrder(got); fmt.Sprint(got[order[0]]) != "1.22.10..enilab:prefixes" {
		t.Errorf("the newest one is not first: %v", order)
	}
}

func TestUpstream(t *testing.T) {
	u := must.Get(readUpstream("upstream.yaml"))(t)
	if _, err := os.Stat(filepath.Join("..", "..", scenario)); err != nil || len(u.Releases) == 0 {
		t.Errorf("%d releases, %v", len(u.Releases), err)
	}
	path := filepath.Join(t.TempDir(), "u.yaml")
	for _, bad := range []string{"tracker: [{pairs: [a..b], checks: [c]}]", "more: 1", "tracker: {"} {
		must.Do(t, os.WriteFile(path, []byte(bad), 0o644))
		if _, err := readUpstream(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: expected an error that names the file, found %v", bad, err)
		}
	}
}

// page is what a gate writes.
func page(t *testing.T, exit int, set func(*gate.Page)) string {
	t.Helper()
	p := &gate.Page{Head: runner.Head{Enilab: gate.Format, Exit: exit}, Red: exit == 1, Verdict: &gate.Verdict{},
		Results: []gate.Result{{Play: gate.Old}}}
	set(p)
	return string(must.Get(json.Marshal(p))(t))
}

// TestAtlas gates with an enilab that answers what the files say: a red pair, one that is not, one that is not known, one without an answer, one that is
// not at hand. Then nothing is gated again but what was not played to its end.
func TestAtlas(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ENILAB_SYSTEMS", dir)
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	write := func(name, text string) {
		t.Helper()
		path := filepath.Join(dir, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o755))
	}
	for _, v := range []string{"1.0.0", "1.0.1", "1.1.0", "1.1.1", "1.2.0"} {
		write(filepath.Join(system, v, "aws-cni"), v)
	}
	write("qemu-system-x86_64", "#!/bin/sh\necho QEMU emulator version 7.2\n")
	write("enilab", "#!/bin/sh\n[ $1 = version ] && { echo enilab v1; exit; }\necho \"$@\" >>"+dir+"/calls\nf="+dir+"/answers/$3..$5.json\n[ $6 = --mode ] && f="+dir+"/answers/$3..$5:$7.json\n[ -e $f ] && cat $f || { echo no answer >&2; exit 3; }\n")
	write("ipamd", "")
	write("aws-cni", "")
	write("upstream.yaml", `releases: [1.0.0, 1.2.1]
tracker: [{pairs: [1.0.1..1.1.0], checks: [every live pod is reachable], issues: [641], says: a rule too many}, {pairs: [1.0.0..1.0.1], checks: [gone], says: x}]`)
	name := func(from, to string) string { return fmt.Sprintf("answers/%s@%s..%[1]s@%[3]s.json", system, from, to) }
	write(name("1.0.0", "1.0.1"), page(t, 0, func(p *gate.Page) {
		p.Results = append(p.Results, gate.Result{Play: gate.Rollback, Judged: 7}, gate.Result{Play: gate.Upgrade, Unknown: "not played"})
	}))
	write(name("1.0.1", "1.1.1:prefixes"), page(t, 0, func(p *gate.Page) {}))
	write(name("1.0.1", "1.1.0"), page(t, 1, func(p *gate.Page) {
		p.Verdict.Findings = []gate.Finding{
			{Kind: gate.Regression, Check: "every live pod is reachable", Cause: "the upgrade", Plays: []gate.Play{gate.Upgrade}, Seeds: []uint64{1, 2, 3}, Of: 3, Seed: 1, At: 255, Change: 210, Node: 1, Text: "web-0"},
			{Kind: gate.Regression, Check: gate.EndsByItself, Cause: "the new version itself", Plays: []gate.Play{gate.New}, Seeds: []uint64{1}, Of: 1, Seed: 1, At: 255, Change: 210, Text: "nil pointer"},
			{Kind: gate.Before, Check: "nothing is leaked", Cause: "the old version alone breaks it already"},
		}
		p.Verdict.Figures = []gate.Figure{{Name: "ADD, p50", Unit: "ms", Old: 10, New: 40, Share: 0.25, Slack: 10, Beyond: true}, {Name: "DEL, p50", Unit: "ms"}}
	}))
	write(name("1.1.0", "1.1.1"), page(t, 5, func(p *gate.Page) {
		p.Results = []gate.Result{{Play: gate.Old, Unknown: "not played: the time was over"}}
		p.Verdict.Unknown = []string{"change, seed 1: not played: the time was over"}
	}))
	a := &asked{since: "1.0", minors: "1.0", workers: 2, figures: true, limit: time.Minute, to: filepath.Join(dir, "upgrades.md"), record: filepath.Join(dir, "upstream.yaml"),
		Command: &campaign.Command{Results: filepath.Join(dir, "results"), Program: filepath.Join(dir, "enilab")}}
	err := a.run(t.Context())
	if want := "1.0.0..1.0.1, gone"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("an entry for what is not found: expected %s, found %v", want, err)
	}
	text := func() string {
		t.Helper()
		return string(must.Get(os.ReadFile(a.to))(t))
	}
	for _, want := range []string{
		"| 1.0.0 | 1.0.1 | | [not red](#100-to-101) |  |  |  |",
		`| 1.0.1 | 1.1.0 | | [**red**](#101-to-110) | `, `(and 1 more) | ADD, p50: 40, was 10 ms | #641, not searched yet |`,
		"| 1.1.0 | 1.1.1 | | [not known](#110-to-111) |",
		"| 1.1.1 | 1.2.0 | | exit status 3: no answer |",
		"| 1.1.1 | 1.2.1 | | not at hand: 1.2.1 |", "| 1.1.1 | 1.2.1 | prefixes | not at hand: 1.2.1 |", "| 1.0.1 | 1.1.1 | prefixes | [not red](#101-to-111-in-mode-prefixes) |",
		"4 of 14 pairs were gated",
		`First at 4:15 on node-1, 45s after the change, with seed 1: web-0. Upstream: [#641](https://github.com/aws/amazon-vpc-cni-k8s/issues/641) a rule too many`,
		"It was not played to its end",
		"* not known: change, seed 1: not played: the time was over",
		`* broken before: "nothing is leaked"`,
		"enilab of v1.",
		"* rolled back with the old manifest: 0 pods made before the change and 0 after it, 0 deleted after it (0 of them from before), 0 flows held, 0 pairs asked, 7 expectations",
	} {
		if !strings.Contains(strings.Join(strings.Fields(text()), " "), strings.Join(strings.Fields(want), " ")) {
			t.Errorf("expected %q in\n%s", want, text())
		}
	}
	calls := func() string {
		t.Helper()
		data := must.Get(os.ReadFile(filepath.Join(dir, "calls")))(t)
		write("calls", "")
		return string(data)
	}
	first := calls()
	if n := strings.Count(first, "\n"); n != 7 || !strings.Contains(first, "--to amazon-vpc-cni-k8s@1.1.1 --mode prefixes --only change-prefixes --json - --timeout 1m0s\n") || !strings.Contains(first, "gate --from amazon-vpc-cni-k8s@1.0.0 --to amazon-vpc-cni-k8s@1.0.1 --json - --timeout 1m0s gate/change.scn") {
		t.Errorf("%d calls:\n%s", n, first)
	}
	// Again: what was played to its end stays.
	if err := a.run(t.Context()); err == nil {
		t.Error("the stale entry is forgotten")
	}
	if again := calls(); strings.Contains(again, "1.0.0") || !strings.Contains(again, "--from amazon-vpc-cni-k8s@1.1.0 --to amazon-vpc-cni-k8s@1.1.1") {
		t.Errorf("again:\n%s", again)
	}
	// Only one pair, of which a file is another now.
	write(filepath.Join(system, "1.0.0", "aws-cni"), "another")
	a.only = []string{"1.0.0..1.0.1"}
	if err := a.run(t.Context()); err == nil {
		t.Error("the stale entry is forgotten")
	}
	if again := calls(); strings.Count(again, "\n") != 1 || !strings.Contains(again, "--to amazon-vpc-cni-k8s@1.0.1") {
		t.Errorf("one pair alone:\n%s", again)
	}
	if !strings.Contains(text(), "[**red**](#101-to-110)") || !strings.Contains(text(), "[not known](#110-to-111)") {
		t.Errorf("what was gated before is not told:\n%s", text())
	}
	// Elsewhere there are no results: what is not gated again stays as the file has it, and what is has its new section alone.
	was, sections := text(), func(text string) string { _, s, _ := strings.Cut(text, "\n## 1.0.1 to 1.1.0"); return s }
	a.Results = filepath.Join(dir, "elsewhere")
	if err := a.run(t.Context()); err == nil {
		t.Error("the stale entry is forgotten")
	}
	if now := text(); sections(now) != sections(was) || strings.Count(now, "## 1.0.0 to 1.0.1") != 1 || !strings.Contains(now, "[**red**](#101-to-110)") ||
		!strings.Contains(now, "1 of 14 pairs were gated") || !strings.Contains(now, "and of 3 more the file has what an earlier enilab found") {
		t.Errorf("the file was\n%s\nand is\n%s", was, now)
	}
	a.only = []string{"1.0.0..9.9.9"}
	if err := a.run(t.Context()); err == nil || !strings.Contains(err.Error(), "1.0.0..9.9.9") {
		t.Errorf("a pair that is none: %v", err)
	}
}

// Words fail closed: what is not read as a gate's document is no verdict, and exit code 0 with something unknown is not green.
func TestOutcome(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{page(t, 0, func(*gate.Page) {}), "not red"},
		{page(t, 1, func(p *gate.Page) { p.Verdict.Findings = []gate.Finding{{Kind: gate.Regression}} }), "red"},
		{page(t, 0, func(p *gate.Page) { p.Verdict.Unknown = []string{"x"} }), "not known"},
		{page(t, 5, func(*gate.Page) {}), "not known"},
		{page(t, 0, func(p *gate.Page) { p.Interrupted = true }), "not known"}, // for its exit code is 0
		{page(t, 130, func(p *gate.Page) { p.Interrupted = true }), "interrupted"},
		{"", "cannot be read"}, {"{}", "expected what enilab gate"}, {`{"enilab":"run/1"}`, "expected what enilab gate"},
	} {
		if got := outcomeOf(&campaign.Result{Stdout: []byte(c.text)}).word(); !strings.Contains(got, c.want) || c.want == "red" && got != "red" {
			t.Errorf("%s: expected %s, found %s", c.text, c.want, got)
		}
	}
}
