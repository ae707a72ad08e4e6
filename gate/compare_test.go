package gate

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/splitmix"
	"github.com/enilab/enilab/sim"
)

// changeAfter is when the version changes in results of tests.
const changeAfter = 100

// worked are the figures of a run that has something to show.
func worked() *sim.Figures {
	return &sim.Figures{Flows: 2, Pairs: 3, Pods: []sim.PodLife{{Made: time.Second, Ended: 110 * time.Second, Deleted: true}, {Made: 2 * time.Second}, {Made: 105 * time.Second}}}
}

// played is a result in short: "upgrade: every del ends in success, line 4, b at 300".
func played(seed uint64, text string) Result {
	play, broken, _ := strings.Cut(text, ": ")
	r := Result{Scenario: "s", Play: Play(play), Seed: seed, Status: "held", Judged: 4, Change: changeAfter, Ended: 600, Figures: worked()}
	for b := range strings.SplitSeq(broken, ", ") {
		switch {
		case b == "":
		case strings.HasPrefix(b, "unknown "):
			r.Unknown = b
		case strings.Contains(b, " at "):
			var at float64
			check, when, _ := strings.Cut(b, " at ")
			_, _ = fmt.Sscanf(when, "%g", &at)
			r.Broken = append(r.Broken, Broken{Check: check, At: at, Text: "text of " + check})
		case b == "no pods":
			r.Figures = &sim.Figures{Failed: 9}
		case b == "no pods after":
			r.Figures.Pods = r.Figures.Pods[:2]
		case b == "never began":
			r.Figures = nil
			r.Broken = append(r.Broken, Broken{Check: serves, At: 197, Text: "iptables is not found"})
		case b == "misses":
			r.Missed = []Miss{{Line: 9, Text: "the change did not happen: no daemon has started since"}}
		case strings.HasPrefix(b, "skips "):
			var line int
			_, _ = fmt.Sscanf(b, "skips %d", &line)
			r.Skipped = append(r.Skipped, line)
		case strings.HasSuffix(b, " times"): // "a 7 times"
			var times int
			check, many, _ := strings.Cut(b, " ")
			_, _ = fmt.Sscanf(many, "%d", &times)
			r.Times = map[string]int{check: times}
			r.Broken = append(r.Broken, Broken{Check: check, At: 60, Text: "text of " + check})
		default:
			r.Broken = append(r.Broken, Broken{Check: b, At: 60, Text: "text of " + b})
		}
	}
	return r
}

// TestFirst: the seed that a finding names is that of the run which it quotes.
func TestFirst(t *testing.T) {
	v := Compare([]Result{played(1, "old"), played(1, "upgrade"), played(1, "rollback: a"), played(2, "old"), played(2, "upgrade: a"), played(2, "rollback")})
	if len(v.Findings) != 1 || v.Findings[0].Seed != 2 || !slices.Equal(v.Findings[0].Seeds, []uint64{1, 2}) || v.Findings[0].Plays[0] != Upgrade {
		t.Errorf("%+v", v.Findings)
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct {
		name string
		runs []string // of seed 1, then after "2 " of seed 2
		want []string // kind, check, cause's begin
		red  bool
	}{
		{name: "all held", runs: []string{"old", "new", "upgrade-image", "upgrade", "rollback-image", "rollback"}},
		{name: "the new version", runs: []string{"old", "new: a", "upgrade-image: a", "upgrade: a", "rollback-image: a", "rollback: a"},
			want: []string{"regression a the new version itself"}, red: true},
		{name: "the image alone", runs: []string{"old", "new", "upgrade-image: a", "upgrade", "rollback-image", "rollback"},
			want: []string{"regression a the upgrade of the image alone"}, red: true},
		{name: "the upgrade", runs: []string{"old", "new", "upgrade-image: a", "upgrade: a", "rollback-image", "rollback"},
			want: []string{"regression a the upgrade"}, red: true},
		{name: "the way back", runs: []string{"old", "new", "upgrade-image", "upgrade", "rollback-image: a", "rollback: a"},
			want: []string{"regression a the rollback"}, red: true},
		{name: "the way back of the image", runs: []string{"old", "new", "upgrade-image", "upgrade", "rollback-image: a", "rollback"},
			want: []string{"regression a the rollback of the image alone"}, red: true},
		{name: "both ways", runs: []string{"old", "new", "upgrade: a", "rollback: a"}, want: []string{"regression a the change, in both directions"}, red: true},
		{name: "broken before", runs: []string{"old: a", "new: a", "upgrade: a"}, want: []string{"before a the old version alone"}},
		{name: "broken before, and far more often now", runs: []string{"old: a 1 times", "new: a 2 times", "upgrade: a 7 times"},
			want: []string{"regression a the old version alone breaks it once at most, and this at least 7"}, red: true},
		{name: "broken before, and somewhat more often now", runs: []string{"old: a 1 times", "upgrade: a 6 times"}, want: []string{"before a"}},
		{name: "far more often with one seed", runs: []string{"old: a 1 times", "upgrade: a 9 times", "2 old: a 1 times", "2 upgrade"}, want: []string{"before a"}},
		{name: "far more often with one of both", runs: []string{"old: a 1 times", "upgrade: a 6 times", "2 old: a 1 times", "2 upgrade: a 9 times"}, want: []string{"before a"}},
		{name: "broken before as often with another seed", runs: []string{"old: a 2 times", "upgrade: a 9 times", "2 old: a 1 times"}, want: []string{"before a"}},
		{name: "mended", runs: []string{"old: a", "new", "upgrade", "rollback: a"}, want: []string{"mended a"}},
		{name: "mended, and one that is worse", runs: []string{"old: a", "new: b"}, want: []string{"regression b the new version itself", "mended a"}, red: true},
		{name: "broken before with another seed", runs: []string{"old", "upgrade: a", "2 old: a"}, want: []string{"before a"}},
		{name: "held with all seeds before", runs: []string{"old", "upgrade: a", "2 old", "3 old"}, want: []string{"regression a the upgrade"}, red: true},
		{name: "seldom", runs: []string{"old", "new: a", "2 old", "2 new", "3 old", "3 new"}, want: []string{"seldom a the new version itself"}},
		{name: "what cut pods off leaves nothing", runs: []string{"old: every live pod is reachable", "new: nothing is leaked"},
			want: []string{"unsure nothing is leaked", "mended every live pod is reachable"}},
		{name: "what cut pods off loses addresses", runs: []string{"old: every live pod is reachable", "new: no address is in two live namespaces"},
			want: []string{"regression no address is in two live namespaces", "mended every live pod is reachable"}, red: true},
		{name: "leaked", runs: []string{"old", "new: nothing is leaked"}, want: []string{"regression nothing is leaked"}, red: true},
		{name: "with most seeds", runs: []string{"old", "new: a", "2 old", "2 new", "3 old", "3 new: a"}, want: []string{"regression a the new version itself"}, red: true},
		{name: "mended with a seed and broken with another", runs: []string{"old: a", "new", "2 old: a", "2 new: a"}, want: []string{"before a"}},
		{name: "nobody measured it before", runs: []string{"old: skips 4", "new: line 4"}},
		{name: "an expectation", runs: []string{"old", "new: line 4"}, want: []string{"regression line 4"}, red: true},
		{name: "what the old version breaks early hides nothing that comes later", runs: []string{"old: a at 100", "upgrade: a at 90, a at 300"},
			want: []string{"regression a the upgrade; the old version alone breaks it too, but not at that time"}, red: true},
		{name: "it breaks as it did before, a little later", runs: []string{"old: a at 100", "new: a at 140", "upgrade: a at 60"}, want: []string{"before a"}},
		{name: "the old version breaks it then with another seed", runs: []string{"old: a at 100", "upgrade: a at 300", "2 old: a at 290"}, want: []string{"before a"}},
		{name: "the new version dies after the change", runs: []string{"old", "upgrade-image: misses, a daemon ends by itself at 113", "upgrade"},
			want: []string{"regression a daemon ends by itself the upgrade of the image alone"}, red: true},
		{name: "the new version never serves", runs: []string{"old", "new: never began"}, want: []string{"regression a daemon that runs serves the new version itself"}, red: true},
		{name: "the new version starts no pod", runs: []string{"old", "new: no pods"}, want: []string{"regression pods start the new version itself"}, red: true},
		{name: "it starts no pod after the change", runs: []string{"old", "new", "upgrade: no pods after"}, want: []string{"regression pods start the upgrade"}, red: true},
		{name: "a version that never serves mends nothing", runs: []string{"old: a", "new: never began"},
			want: []string{"regression a daemon that runs serves", "before a"}, red: true},
		{name: "a version that starts no pod mends nothing", runs: []string{"old: a", "new: no pods"}, want: []string{"regression pods start", "before a"}, red: true},
		{name: "an old version that never began: unknown", runs: []string{"old: never began", "new: never began"}},
		{name: "an old version that never began, and a new one that breaks: unknown", runs: []string{"old: never began", "new: a"}},
		{name: "an old version that stops to serve: unknown", runs: []string{"old: a daemon that runs serves at 300", "new: a"}},
		{name: "an old version that makes no pod: unknown", runs: []string{"old: no pods", "new: no pods"}},
		{name: "a play in which a line misses: unknown", runs: []string{"old", "upgrade: misses"}},
		{name: "what was not played breaks nothing", runs: []string{"old", "new: unknown x"}},
		{name: "nobody knows what was before", runs: []string{"old: unknown x", "new: a"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []Result
			for _, text := range c.runs {
				seed := uint64(1)
				if _, err := fmt.Sscanf(text, "%d ", &seed); err == nil {
					_, text, _ = strings.Cut(text, " ")
				}
				all = append(all, played(seed, text))
			}
			v := Compare(all)
			var got []string
			for _, f := range v.Findings {
				got = append(got, fmt.Sprintf("%s %s %s", f.Kind, f.Check, f.Cause))
			}
			if len(got) != len(c.want) || v.Red() != c.red {
				t.Fatalf("red %v, %q; expected red %v, %q", v.Red(), got, c.red, c.want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], c.want[i]) {
					t.Errorf("%q, expected %q", got[i], c.want[i])
				}
			}
			for _, text := range append(c.runs, c.name) {
				if strings.Contains(text, "unknown") && len(v.Unknown) == 0 {
					t.Error("what is not known is not told")
				}
			}
			if !strings.Contains(c.name+fmt.Sprint(c.runs), "unknown") && len(v.Unknown) > 0 {
				t.Errorf("not known: %q", v.Unknown)
			}
		})
	}
}

// TestEvidence: a green rests on what the old version alone shows; a play that lacks any of it is not known, and says what it lacks.
func TestEvidence(t *testing.T) {
	for _, c := range []struct {
		take func(*Result)
		says string
	}{
		{func(r *Result) {}, ""},
		{func(r *Result) { r.Figures.Flows = 0 }, "it holds no flow, and the old version alone has 2"},
		{func(r *Result) { r.Figures.Pairs = 0 }, "it asks no pair of pods, and the old version alone has 3"},
		{func(r *Result) { r.Judged = 0 }, "it judges no expectation, and the old version alone has 4"},
		{func(r *Result) { r.Figures.Pods[0].Deleted = false }, "it deletes no pod after the change, and the old version alone has 1"},
		{func(r *Result) { r.Figures.Pods[0].Made = 103 * time.Second }, "it deletes no pod of before after the change, and the old version alone has 1"},
		{func(r *Result) { r.Missed = []Miss{{3, "x"}} }, "line 3 struck nothing: x"},
		{func(r *Result) { r.Figures = nil }, "no pod was made"},
	} {
		for _, play := range []Play{New, Upgrade, RollbackImage} {
			old, other := played(1, "old"), played(1, string(play))
			c.take(&other)
			v := Compare([]Result{old, other})
			if len(v.Findings) > 0 || (c.says == "") != (len(v.Unknown) == 0) || !strings.Contains(strings.Join(v.Unknown, "\n"), c.says) {
				t.Errorf("%s: %q and %+v, expected %q", play, v.Unknown, v.Findings, c.says)
			}
			p := Page{Verdict: v, Results: []Result{old, other}}
			if want := map[bool]Level{true: Good, false: Warn}[c.says == ""]; p.Outcome().Level != want {
				t.Errorf("%s: %s: %+v, expected %s", play, c.says, p.Outcome(), want)
			}
		}
	}
}

func TestDoubtful(t *testing.T) {
	v := Compare([]Result{played(1, "old"), played(1, "new: a"), played(1, "upgrade-image: b"), played(1, "upgrade: a, b"), played(1, "rollback: c")})
	if got := v.Doubtful("s"); !slices.Equal(got, []Play{Old, New, UpgradeImage, Rollback}) {
		t.Errorf("to be played again: %v", got)
	}
	if got := v.Doubtful("another"); got != nil {
		t.Errorf("of a scenario without a regression: %v", got)
	}
}

// TestSameIsNeverRed: whatever a version breaks, it is no regression against itself.
func TestSameIsNeverRed(t *testing.T) {
	for n := range 64 {
		var broken []string
		for bit, check := range []string{"a", "b", "line 3", EndsByItself, Settles, serves} {
			if n>>bit&1 == 1 {
				broken = append(broken, check)
			}
		}
		var all []Result
		for _, p := range Plays() {
			all = append(all, played(1, string(p)+": "+strings.Join(broken, ", ")))
		}
		if v := Compare(all); v.Red() {
			t.Errorf("breaks %v: red: %v", broken, v.Findings)
		}
	}
}

func load(play Play, seed uint64, add time.Duration, calls int64) Result {
	return Result{Scenario: "load", Play: play, Seed: seed, Figures: &sim.Figures{Add: add, Memory: 50e6, Calls: map[string]int64{"DescribeSubnets": calls}}}
}

func TestBands(t *testing.T) {
	for _, c := range []struct {
		name         string
		old, new     [3]time.Duration
		calls, fresh int64
		beyond       []string
	}{
		{"the same", [3]time.Duration{100, 110, 120}, [3]time.Duration{100, 110, 120}, 40, 40, nil},
		{"within", [3]time.Duration{100, 110, 120}, [3]time.Duration{130, 135, 900}, 40, 44, nil},
		{"a slow ADD", [3]time.Duration{100, 110, 120}, [3]time.Duration{100, 138, 140}, 40, 40, []string{"ADD, p50"}},
		{"few calls more", [3]time.Duration{100, 110, 120}, [3]time.Duration{100, 110, 120}, 4, 8, nil},
		{"many calls", [3]time.Duration{100, 110, 120}, [3]time.Duration{100, 110, 120}, 40, 45, []string{"EC2 calls, DescribeSubnets"}},
		{"a new call", [3]time.Duration{100, 110, 120}, [3]time.Duration{100, 110, 120}, 0, 5, []string{"EC2 calls, DescribeSubnets"}},
		{"quicker", [3]time.Duration{100, 110, 120}, [3]time.Duration{10, 10, 10}, 40, 0, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var all []Result
			for i := range c.old {
				all = append(all, load(Old, uint64(i), c.old[i]*time.Millisecond, c.calls), load(New, uint64(i), c.new[i]*time.Millisecond, c.fresh))
			}
			v := &Verdict{Figures: Measure(all)}
			var got []string
			for _, f := range v.Dearer() {
				got = append(got, f.Name)
			}
			if !slices.Equal(got, c.beyond) || v.Red() != (len(c.beyond) > 0) {
				t.Errorf("beyond: %q, expected %q", got, c.beyond)
			}
		})
	}
	stuck := load(New, 1, 1, 1)
	stuck.Broken = []Broken{{Check: "line 11"}}
	if f := Measure([]Result{load(Old, 1, 1, 1), stuck}); f != nil {
		t.Errorf("figures of a version that did not carry the load: %v", f)
	}
	if f := Measure([]Result{load(Old, 1, 1, 1)}); f != nil {
		t.Errorf("figures of one version: %v", f)
	}
}

// TestSettled: where two seeds settle the figures, no third one changes which are beyond their bands, whatever it gives; and they settle what is
// alike, and what is far apart.
func TestSettled(t *testing.T) {
	times := []time.Duration{100, 110, 130, 139, 200}
	calls := []int64{0, 40, 45}
	beyond := func(all []Result) string { return fmt.Sprint((&Verdict{Figures: Measure(all)}).Dearer()) }
	names := func(all []Result) (out []string) {
		for _, f := range (&Verdict{Figures: Measure(all)}).Dearer() {
			out = append(out, f.Name)
		}
		return out
	}
	settled, open := 0, 0
	draw := uint64(1)
	pick := func(n int) int { return int(splitmix.Next(&draw) % uint64(n)) }
	some := func(play Play, seed uint64) Result {
		return load(play, seed, times[pick(len(times))]*time.Millisecond, calls[pick(len(calls))])
	}
	for range 20_000 {
		two := []Result{some(Old, 1), some(New, 1), some(Old, 2), some(New, 2)}
		if !Settled(two) {
			open++
			continue
		}
		settled++
		three := append(slices.Clone(two), some(Old, 3), some(New, 3))
		if !slices.Equal(names(two), names(three)) {
			t.Fatalf("settled with %s, and then %s", beyond(two), beyond(three))
		}
	}
	if settled == 0 || open == 0 {
		t.Errorf("%d settled, %d not: expected some of each", settled, open)
	}
	stuck := load(New, 2, 100*time.Millisecond, 40)
	stuck.Broken = []Broken{{Check: "line 11"}}
	for _, c := range []struct {
		name string
		all  []Result
		want bool
	}{
		{"alike", []Result{load(Old, 1, 100, 40), load(New, 1, 101, 41), load(Old, 2, 102, 40), load(New, 2, 103, 40)}, true},
		{"far apart", []Result{load(Old, 1, 100, 4), load(New, 1, 100, 80), load(Old, 2, 100, 5), load(New, 2, 100, 82)}, true},
		{"on both sides", []Result{load(Old, 1, 100, 40), load(New, 1, 100, 40), load(Old, 2, 100, 40), load(New, 2, 100, 90)}, false},
		{"one seed", []Result{load(Old, 1, 100, 40), load(New, 1, 100, 40)}, false},
		{"one that did not carry the load", []Result{load(Old, 1, 100, 40), load(New, 1, 100, 40), load(Old, 2, 100, 40), stuck}, false},
	} {
		if got := Settled(c.all); got != c.want {
			t.Errorf("%s: settled is %v", c.name, got)
		}
	}
}

const accepted = `accepted:
  - {check: a, reason: we never roll back, play: rollback}
  - {check: "ADD, p50", reason: it checks more now}
  - {check: b, reason: nobody knows}
`

func TestAllow(t *testing.T) {
	list := must.Get(parseAllow("allow.yaml", []byte(accepted)))(t)
	v := Compare([]Result{played(1, "old"), played(1, "upgrade: a"), played(1, "rollback: a")})
	v.Figures = []Figure{{Name: "ADD, p50", Beyond: true}}
	v.Accept(list, "allow.yaml")
	if !v.Red() || v.Figures[0].Reason == "" || len(v.Findings) != 2 || v.Findings[1].Kind != Accepted {
		t.Errorf("%+v", v)
	}
	if len(v.Stale) != 1 || !strings.Contains(v.Stale[0], `allow.yaml:4: accepts "b"`) {
		t.Errorf("stale: %q", v.Stale)
	}
	for _, bad := range []string{"", "accepted: 1", "accepted:\n  - {check: a}", "accepted:\n  - {check: a, reason: ''}", "accepted:\n  - {check: a, reason: b, play: sideways}", "more: 1"} {
		if _, err := parseAllow("allow.yaml", []byte(bad)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}
