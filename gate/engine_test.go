package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/runner"
)

// TestResultsOf: whatever a run's document has that broke is in its results.
func TestResultsOf(t *testing.T) {
	d := &runner.Document{Files: []runner.FileDocument{{Status: "violated", Skipped: []runner.SkippedLine{{Line: 4}},
		Variants: []runner.VariantDocument{
			{Name: "x=1", All: []runner.BrokenDocument{{At: 61, Node: 1, Invariant: "nothing is leaked", Text: "a"},
				{At: 62, Line: 7, Text: "b"}, {At: 63, Text: "c"}}, UnderWay: []string{"d"},
				Figures: &runner.FiguresDocument{Add: 0.1}},
			{Name: "x=2", Error: "the laboratory broke\nhere"},
		}}}}
	list := resultsOf(d)
	if len(list) != 2 || list[1].Unknown != "the laboratory broke" || list[0].Unknown != "" {
		t.Fatalf("%+v", list)
	}
	var got []string
	for _, b := range list[0].Broken {
		got = append(got, b.Check)
	}
	if s := strings.Join(got, ", "); s != "nothing is leaked, line 7, "+EndsByItself+", "+Settles ||
		list[0].Skipped[0] != 4 || list[0].Figures.Add.Milliseconds() != 100 {
		t.Errorf("%s, %+v", s, list[0])
	}
}

// TestChangeMissed: a play says that its version did not change, and nothing is concluded from what it did not break.
func TestChangeMissed(t *testing.T) {
	g := &gating{}
	take := func(play Play, missed ...Miss) Result {
		r := Result{Missed: missed, Figures: &sim.Figures{Pods: []sim.PodLife{{}}}}
		return g.take(&came{Results: []Result{r}}, &job{file: &file{short: "s"}, script: &Script{Play: play, Line: 9},
			seed: 1})[0]
	}
	v := Compare([]Result{take(Old), take(Upgrade, Miss{Line: 9, Text: "no daemon runs"})})
	if len(v.Unknown) != 1 || !strings.HasSuffix(v.Unknown[0],
		"line 9 struck nothing: the change did not happen: no daemon runs") {
		t.Errorf("%q", v.Unknown)
	}
}

// TestAgainPlaysThatPlay: the command of a finding plays the same scenario with the same systems and seed, so its key
// is the same, and nothing else but the old version alone.
func TestAgainPlaysThatPlay(t *testing.T) {
	t.Chdir(t.TempDir())
	const plugin = "name: a\nfiles:\n  - {from: plugin, to: /opt/cni/bin/plugin}\n" +
		"conflist:\n  name: 10-a.conflist\n  words: '{\"cniVersion\": \"1.0.0\", \"name\": \"a\", \"plugins\": " +
		"[{\"type\": \"plugin\"}]}'\n"
	self := must.Get(os.ReadFile(os.Args[0]))(t)
	for path, data := range map[string][]byte{"systems/a.yaml": []byte(plugin), "one/plugin": self,
		"two/plugin": append(self[:len(self):len(self)], 'x'),
		"calm.scn":   []byte("cluster nodes=1\nat 2m kube create web 1\nfinally converges within 1m\n")} {
		must.Do(t, errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, data, 0o755)))
	}
	prepared := func(c Config) *gating {
		t.Helper()
		g := &gating{Config: c}
		g.From, g.To, g.Say, g.Read = "a@1.0.0=./one", "a@1.1.0=./two", func(string) {}, os.ReadFile
		if err := g.prepare(t.Context()); err != nil {
			t.Fatalf("%+v: %v", c, err)
		}
		g.stage = &stage{prints: map[string]string{"a@1.0.0": "1", "a@1.1.0": "2"},
			later: map[string]string{"a@1.0.0": "3", "a@1.1.0": "4"}}
		return g
	}
	for _, c := range []Config{{Seeds: "1-3", Scenarios: []string{"calm.scn"}}, {Seeds: "2-3"}} {
		g := prepared(c)
		for _, j := range g.jobs() {
			if j.file.load {
				continue
			}
			command := g.again(j.file.short, j.script.Play, j.seed)
			want := fmt.Sprintf("enilab gate --from a@1.0.0=./one --to a@1.1.0=./two --plays %s --seeds %d --only "+
				"%s --no-doubt", j.script.Play, j.seed, j.file.short)
			if command != strings.Join(append([]string{want}, c.Scenarios...), " ") {
				t.Errorf("again: %s, expected %s", command, want)
			}
			found := false
			x := prepared(Config{Plays: []string{string(j.script.Play)}, Seeds: fmt.Sprint(j.seed),
				Only: []string{j.file.short}, NoDoubt: true, Scenarios: c.Scenarios})
			for _, k := range x.jobs() {
				found = found || x.stage.keyOf(&k) == g.stage.keyOf(&j)
				if k.file.short != j.file.short || k.seed != j.seed || k.script.Play != Old &&
					k.script.Play != j.script.Play {
					t.Errorf("%s plays %s, %s, seed %d too", command, k.file.short, k.script.Play, k.seed)
				}
			}
			if !found {
				t.Errorf("%s does not play %s, %s, seed %d", command, j.file.short, j.script.Play, j.seed)
			}
		}
	}
}

// TestReportOfAGate goes through all outcomes: page and JUnit say what the terminal says, and only what is not red is
// green or a success.
func TestReportOfAGate(t *testing.T) {
	old := Result{Scenario: "s", Play: Old, Seed: 1}
	bad := Result{Scenario: "s", Play: Upgrade, Seed: 1,
		Broken: []Broken{{Check: "nothing is leaked", At: 61, Text: "a rule is left"}}}
	finding := Finding{Kind: Regression, Scenario: "s", Check: "nothing is leaked", Plays: []Play{Upgrade},
		Seeds: []uint64{1}, Of: 1, Seed: 1, At: 61, Text: "a rule is left", Again: "enilab gate --plays upgrade"}
	for _, c := range []struct {
		name   string
		page   Page
		banner string // how the page's first part looks
		junit  string // what the whole is in JUnit
	}{
		{"not red", Page{Verdict: &Verdict{}}, "good", "<system-out>"},
		{"red", Page{Verdict: &Verdict{Findings: []Finding{finding}}}, "bad", "<failure "},
		{"not known", Page{Verdict: &Verdict{Unknown: []string{"the old version never serves"}}}, "warn", "<error "},
		{"interrupted", Page{Verdict: &Verdict{}, Interrupted: true}, "warn", "<error "},
	} {
		c.page.From, c.page.To, c.page.Results = "a 1.0.0", "a 1.1.0", []Result{old, bad}
		r := c.page.Report()
		var html, junit, text bytes.Buffer
		must.Do(t, errors.Join(report.HTML(&html, r), report.JUnit(&junit, r),
			c.page.Write(&text, func(word string, _ Level) string { return word })))
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

// TestOtherVersionOfTheSameNameIsPlayedAnew: what a play rests on is the version that comes with the change, too, and the
// old version alone rests on none.
func TestOtherVersionOfTheSameNameIsPlayedAnew(t *testing.T) {
	f := &file{name: "s.scn", short: "s"}
	alone := job{f, &Script{Play: Old, System: "a", Text: "the script"}, 1}
	upgraded := job{f, &Script{Play: Upgrade, System: "a", Later: "b", Text: "the script, upgraded"}, 1}
	one := &stage{prints: map[string]string{"a": "1"}, later: map[string]string{"b": "2"}}
	other := &stage{prints: map[string]string{"a": "1"}, later: map[string]string{"b": "3"}}
	if one.keyOf(&upgraded) == other.keyOf(&upgraded) {
		t.Error("an upgrade to other bytes of the same name has the same key")
	}
	if one.keyOf(&alone) != other.keyOf(&alone) {
		t.Error("the old version alone has another key beside another new version")
	}
}

// escaped is a text as HTML and XML have it.
func escaped(s string) string { return strings.ReplaceAll(s, `"`, "&#34;") }

// TestCacheServesEveryOutput: what was played once is taken from the cache whatever is to be written, and --out has it
// then too.
func TestCacheServesEveryOutput(t *testing.T) {
	dir := t.TempDir()
	s := &stage{prints: map[string]string{"a": "1"}}
	j := job{&file{name: "s.scn", short: "s"}, &Script{Play: Old, System: "a", Text: "the script"}, 1}
	twin := j
	twin.script = &Script{Play: New, System: "a", Text: "the script"} // the same run
	data, err := json.Marshal(&came{Results: []Result{{Status: "held"}}, Report: "the report"})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, s.keyOf(&j)+".json"), data, 0o600)
	}
	must.Do(t, err)
	for i, c := range []Config{{}, {Out: t.TempDir()}, {}} {
		c.Cache, c.Tell = dir, func(Progress) {}
		g := &gating{Config: c, stage: s, runs: map[runKey]*report.Run{}}
		must.Do(t, g.play(t.Context(), []job{j, twin}))
		if s.cached != i+1 || len(g.results) != 2 {
			t.Errorf("--out %q: %d runs were taken from the cache, expected %d", c.Out, s.cached, i+1)
		}
		for _, name := range []string{"s.old.1.txt", "s.new.1.txt"} {
			if text, err := os.ReadFile(filepath.Join(c.Out, name)); c.Out != "" && string(text) != "the report" {
				t.Errorf("--out has %q: %v", text, err)
			}
		}
	}
}
