package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/runner"
)

// pluginOnly is a description of a plugin without a daemon.
func pluginOnly(name, more string) string {
	return "name: " + name + "\nfiles:\n  - {from: plugin, to: /opt/cni/bin/plugin}\nconflist:\n  name: 10-a.conflist\n  words: '{\"cniVersion\": \"1.0.0\", \"name\": \"a\", \"plugins\": [{\"type\": \"plugin\"}]}'\n" + more
}

// systemsHere makes descriptions, and folders of versions of which each has a program.
func systemsHere(t *testing.T) {
	t.Helper()
	in(t, map[string]string{"calm.scn": calm, "still.scn": "cluster nodes=1\nstart pods web 2 on node-1\nfinally converges within 1m\n", "bad.scn": "cluster nodes=1\nat 0s node-1 restrat\n",
		"stale.yaml": "accepted: [{check: x}]\n", "none.json": "{}\n", "file": ""})
	self, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	for path, data := range map[string][]byte{"systems/a.yaml": []byte(pluginOnly("a", "")), "systems/b.yaml": []byte(pluginOnly("b", "")), "systems/c.yaml": []byte(pluginOnly("c", "upgrade: {replaces: [a]}\n")),
		"one/plugin": self, "two/plugin": append(self[:len(self):len(self)], 'x')} {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	page := gate.Page{Enilab: gate.Format, From: "a 1.0.0", Scenarios: []gate.Scenario{{Name: "calm", Digest: "another"}}}
	other := page
	other.From = "a 0.9.0"
	for name, p := range map[string]gate.Page{"base.json": page, "other.json": other} {
		data, err := json.Marshal(p)
		if err == nil {
			err = os.WriteFile(name, data, 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestGateRefuses: bad input ends with code 2 and what to do, before anything is played.
func TestGateRefuses(t *testing.T) {
	systemsHere(t)
	const pair = "gate --from a@1.0.0=./one --to a@1.1.0=./two "
	for _, c := range []struct{ args, says string }{
		{"gate", "gate compares two versions: expected --from SYSTEM and --to SYSTEM"},
		{"gate --from a@1.0.0=./one", "expected --from SYSTEM and --to SYSTEM"},
		{"gate --from nobodys@1.0.0 --to a@1.0.0=./one", "--from there is no system \"nobodys\""},
		{"gate --from a@1.0.0=./one --to a@1.0.0=./three", "--to a@1.0.0=./three"},
		{"gate --from a@1.0.0=./one --to b@1.0.0=./one", "there is no way from a to b: neither description says that it replaces the other"},
		{"gate --from a@1.0.0=./one --to a@1.0.0=./two", "--from and --to are both called a@1.0.0, and their files differ: give one of them another version, such as a@1.0.0-1=FOLDER"},
		{pair + "--timeout -1m", "--timeout and --limit are durations"},
		{pair + "--plays sideways", "--plays sideways: there are old, new, upgrade-image, "},
		{pair + "--seeds 9-2", "runs backwards"},
		{pair + "--in qemu", "--in: expected "},
		{pair + "--out file/x calm.scn", "--out: "},
		{pair + "--json file/x calm.scn", "--json: the report cannot be written: "},
		{pair + "--json x.json --html ./x.json calm.scn", "--html and --json: both name x.json: name two files"},
		{pair + "--json calm.scn calm.scn", "--json calm.scn: it is one of the scenarios"},
		{pair + "clam.scn", "clam.scn: there is no such file (did you mean calm.scn?)"},
		{pair + "socket-mismach", "socket-mismach: there is no such file (did you mean socket-mismatch, which comes with enilab?)"},
		{pair + "--plays sideways socket-mismatch", "--plays sideways"},
		{pair + "bad.scn", `bad.scn:2:14: node-1 cannot "restrat" (did you mean restart?)`},
		{pair + "still.scn", "nothing happens in it at any instant, so there is no middle to change the version in"},
		{pair + "--allow nowhere.yaml calm.scn", "--allow: open nowhere.yaml"},
		{pair + "--allow stale.yaml calm.scn", "stale.yaml:1:12: an accepted difference needs the key reason"},
		{pair + "--baseline nowhere.json calm.scn", "--baseline: open nowhere.json"},
		{pair + "--baseline none.json calm.scn", "--baseline none.json: expected what enilab gate --json wrote (gate/1)"},
		{pair + "--baseline other.json calm.scn", "--baseline other.json is of a 0.9.0, and --from is a 1.0.0"},
		{pair + "--baseline base.json calm.scn", "--baseline base.json is of another set of scenarios: calm is not in it, or is another text there"},
		{pair + "--in vm=calm.scn calm.scn", "--in: "},
	} {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		if code != 2 || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("%s: exit %d, expected %q in %s%s", c.args, code, c.says, errs, out)
		}
	}
}

// TestResultsOf: whatever a run's document has that broke is in its results.
func TestResultsOf(t *testing.T) {
	d := &runner.Document{Files: []runner.FileDocument{{Status: "violated", Skipped: []runner.SkippedLine{{Line: 4}}, Variants: []runner.VariantDocument{
		{Name: "x=1", All: []runner.BrokenDocument{{At: 61, Node: 1, Invariant: "nothing is leaked", Text: "a"}, {At: 62, Line: 7, Text: "b"}, {At: 63, Text: "c"}}, UnderWay: []string{"d"},
			Figures: &runner.FiguresDocument{Add: 0.1}},
		{Name: "x=2", Error: "the laboratory broke\nhere"},
	}}}}
	list := resultsOf(d)
	if len(list) != 2 || list[1].Unknown != "the laboratory broke" || allKnown(list) {
		t.Fatalf("%+v", list)
	}
	var got []string
	for _, b := range list[0].Broken {
		got = append(got, b.Check)
	}
	if s := strings.Join(got, ", "); s != "nothing is leaked, line 7, "+gate.EndsByItself+", "+gate.Settles || list[0].Skipped[0] != 4 || list[0].Figures.Add.Milliseconds() != 100 {
		t.Errorf("%s, %+v", s, list[0])
	}
}

// TestChangeMissed: a play says that its version did not change, and nothing is concluded from what it did not break.
func TestChangeMissed(t *testing.T) {
	g := &gating{}
	take := func(play gate.Play, missed ...gate.Miss) gate.Result {
		r := gate.Result{Missed: missed, Figures: &sim.Figures{Pods: []sim.PodLife{{}}}}
		return g.take(&came{Results: []gate.Result{r}}, &gateJob{file: &gateFile{short: "s"}, script: &gate.Script{Play: play, Line: 9}, seed: 1})[0]
	}
	v := gate.Compare([]gate.Result{take(gate.Old), take(gate.Upgrade, gate.Miss{Line: 9, Text: "no daemon runs"})})
	if len(v.Unknown) != 1 || !strings.HasSuffix(v.Unknown[0], "line 9 struck nothing: the change did not happen: no daemon runs") {
		t.Errorf("%q", v.Unknown)
	}
}

// TestAgainPlaysThatPlay: the command of a finding plays the same scenario with the same systems and seed, so its key is the same, and nothing else but the
// old version alone.
func TestAgainPlaysThatPlay(t *testing.T) {
	systemsHere(t)
	prepared := func(words ...string) *gating {
		t.Helper()
		g := &gating{cli: &cli{out: io.Discard, err: io.Discard}, f: &gateFlags{}}
		c := &cobra.Command{}
		g.f.flags(c)
		if err := c.ParseFlags(words); err != nil {
			t.Fatal(err)
		}
		if err := g.prepare(c.Flags().Args()); err != nil {
			t.Fatalf("%v: %v", words, err)
		}
		return g
	}
	pair := []string{"--from", "a@1.0.0=./one", "--to", "a@1.1.0=./two"}
	stage := &gateStage{from: "a@1.0.0", to: "a@1.1.0", prints: map[string]string{"a@1.0.0": "1", "a@1.1.0": "2", "a@1.0.0 a@1.1.0": "3"}}
	for _, more := range [][]string{{"--seeds", "1-3", "--html", "x.html", "calm.scn"}, {"--seeds", "2-3"}} {
		g := prepared(append(pair[:len(pair):len(pair)], more...)...)
		for _, j := range g.jobs() {
			if j.file.load {
				continue
			}
			again := strings.Fields(g.again(j.file.short, j.script.Play, j.seed))
			if again[0] != "enilab" || again[1] != "gate" {
				t.Fatalf("%v", again)
			}
			found := false
			for _, x := range prepared(again[2:]...).jobs() {
				found = found || stage.keyOf(&x) == stage.keyOf(&j)
				if x.file.short != j.file.short || x.seed != j.seed || x.script.Play != gate.Old && x.script.Play != j.script.Play {
					t.Errorf("%v plays %s, %s, seed %d too", again, x.file.short, x.script.Play, x.seed)
				}
			}
			if !found {
				t.Errorf("%v does not play %s, %s, seed %d", again, j.file.short, j.script.Play, j.seed)
			}
		}
	}
	code, _, errs := enilab(t, append(append([]string{"gate"}, pair...), "--only", "nobody", "calm.scn")...)
	if code != 2 || !strings.Contains(errs, "--only nobody: nothing of that name would be played: there are calm, load") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestReportOfAGate goes through all outcomes: page and JUnit say what the terminal says, and only what is not red is green or a success.
func TestReportOfAGate(t *testing.T) {
	systemsHere(t)
	old := gate.Result{Scenario: "s", Play: gate.Old, Seed: 1}
	bad := gate.Result{Scenario: "s", Play: gate.Upgrade, Seed: 1, Broken: []gate.Broken{{Check: "nothing is leaked", At: 61, Text: "a rule is left"}}}
	finding := gate.Finding{Kind: gate.Regression, Scenario: "s", Check: "nothing is leaked", Plays: []gate.Play{gate.Upgrade}, Seeds: []uint64{1}, Of: 1, Seed: 1, At: 61, Text: "a rule is left", Again: "enilab gate --plays upgrade"}
	for _, c := range []struct {
		name   string
		page   gate.Page
		banner string // how the page's first part looks
		junit  string // what the whole is in JUnit
	}{
		{"not red", gate.Page{Verdict: &gate.Verdict{}}, "good", "<system-out>"},
		{"red", gate.Page{Verdict: &gate.Verdict{Findings: []gate.Finding{finding}}}, "bad", "<failure "},
		{"not known", gate.Page{Verdict: &gate.Verdict{Unknown: []string{"the old version never serves"}}}, "warn", "<error "},
		{"interrupted", gate.Page{Verdict: &gate.Verdict{}, Interrupted: true}, "warn", "<error "},
	} {
		c.page.From, c.page.To, c.page.Results = "a 1.0.0", "a 1.1.0", []gate.Result{old, bad}
		g := &gating{cli: &cli{}, f: &gateFlags{from: "a@1.0.0", to: "a@1.1.0"}, results: c.page.Results}
		r := g.reportOf(&c.page)
		var html, junit, text bytes.Buffer
		if err := errors.Join(report.HTML(&html, r), report.JUnit(&junit, r), c.page.Write(&text, func(word string, _ gate.Level) string { return word })); err != nil {
			t.Fatal(err)
		}
		line := c.page.Headline()
		if want := `<header class="lead ` + c.banner + `"><p class="what"><span class="badge">` + c.name + `</span>`; !strings.Contains(html.String(), want) {
			t.Errorf("%s: expected %s on the page", c.name, want)
		}
		if !strings.HasPrefix(text.String(), c.name+"  "+line+"\n") {
			t.Errorf("%s: expected %s on the terminal, which says %s", c.name, line, text.String())
		}
		_, whole, _ := strings.Cut(junit.String(), `<testsuite name="gate"`)
		whole, _, _ = strings.Cut(whole, "</testsuite>")
		if !strings.Contains(whole, c.junit) {
			t.Errorf("%s: expected %s in %s", c.name, c.junit, whole)
		}
		for what, where := range map[string]string{"page": html.String(), "JUnit": whole} {
			if !strings.Contains(where, escaped(line)) {
				t.Errorf("%s: the %s does not say %s", c.name, what, line)
			}
			if c.name == "red" && !strings.Contains(where, "again: ") {
				t.Errorf("the %s has no command that plays it again", what)
			}
		}
	}
}

// escaped is a text as HTML and XML have it.
func escaped(s string) string { return strings.ReplaceAll(s, `"`, "&#34;") }

// TestCacheServesEveryOutput: what was played once is taken from the cache whatever is to be written, and --out has it then too.
func TestCacheServesEveryOutput(t *testing.T) {
	dir := t.TempDir()
	stage := &gateStage{from: "a", to: "b", cache: dir, prints: map[string]string{"a": "1"}}
	j := gateJob{&gateFile{name: "s.scn", short: "s"}, &gate.Script{Play: gate.Old, System: "a", Text: "the script"}, 1}
	twin := j
	twin.script = &gate.Script{Play: gate.New, System: "a", Text: "the script"} // the same run
	data, err := json.Marshal(&came{Results: []gate.Result{{Status: "held"}}, Report: "the report"})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, stage.keyOf(&j)+".json"), data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	for i, f := range []gateFlags{{}, {out: t.TempDir()}, {json: "x.json"}, {reports: reports{html: "x.html", junit: "x.xml"}}} {
		g := &gating{cli: &cli{err: io.Discard}, f: &f, stage: stage, runs: map[runKey]*report.Run{}}
		if err := g.play(t.Context(), []gateJob{j, twin}); err != nil {
			t.Fatal(err)
		}
		if _, cached := stage.counts(); cached != i+1 || len(g.results) != 2 {
			t.Errorf("%+v: %d runs were taken from the cache, expected %d", f, cached, i+1)
		}
		for _, name := range []string{"s.old.1.txt", "s.new.1.txt"} {
			if text, err := os.ReadFile(filepath.Join(f.out, name)); f.out != "" && string(text) != "the report" {
				t.Errorf("--out has %q: %v", text, err)
			}
		}
	}
}
