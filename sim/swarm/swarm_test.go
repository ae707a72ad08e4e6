package swarm_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/swarm"
	"github.com/enilab/enilab/sim/swarm/known"
	"github.com/enilab/enilab/sim/verb"
)

// seeds is how many a test plays: some hundred a second and core.
func seeds(short, long uint64) uint64 {
	if testing.Short() {
		return short
	}
	return long
}

func list(t *testing.T) []swarm.Entry {
	t.Helper()
	return must.Get(known.List())(t)
}

// TestDrawn: a seed gives a scenario that parses, means something and asks for no more than is owed; twice the same text, and the text
// is what the language prints.
func TestDrawn(t *testing.T) {
	for seed := uint64(0); seed < seeds(200, 3000); seed++ {
		text := swarm.Draw(seed)
		if again := swarm.Draw(seed); again != text {
			t.Fatalf("seed %d: twice, and not the same", seed)
		}
		f, c, err := swarm.Read(swarm.Name(seed), []byte(text))
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if err := swarm.Feasible(f, c); err != nil {
			t.Errorf("seed %d: %v\n%s", seed, err, text)
		}
		for _, l := range f.Lines {
			if _, at := l.Stmt.(*scn.At); !at {
				continue
			}
			if printed := (scn.Line{Stmt: l.Stmt}).String(); printed != l.Raw {
				t.Fatalf("seed %d: the language prints %q, drawn is %q", seed, printed, l.Raw)
			}
		}
	}
}

// TestEveryVerbIsDrawnOrDeadly: a new verb is drawn by the swarm, or somebody says why no CNI survives it.
func TestEveryVerbIsDrawnOrDeadly(t *testing.T) {
	drawn := swarm.Drawn()
	var keys []string
	for _, v := range verb.All() {
		keys = append(keys, v.Key())
		if drawn := slices.Contains(drawn, v.Key()); drawn == v.Survives.Never {
			t.Errorf("%s: drawn %v, and no CNI survives it: %v", v.Key(), drawn, v.Survives.Never)
		}
	}
	for _, key := range drawn {
		if !slices.Contains(keys, key) {
			t.Errorf("%s is drawn, and no verb has that key", key)
		}
	}
}

// TestSwarm: nothing breaks that is not in the list, and a batch that is large enough has every verb strike that is drawn.
func TestSwarm(t *testing.T) {
	tally := swarm.NewTally(list(t))
	last := seeds(100, swarm.Enough)
	for seed := uint64(1); seed <= last; seed++ {
		o, err := swarm.Play(swarm.Name(seed), swarm.Draw(seed), seed, nil)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		tally.Add(seed, o)
	}
	found, _ := tally.Findings()
	for _, f := range found {
		t.Errorf("seed %d: %q broke at %v by a cause that is not in the list: %s\nagain: enilab swarm --seeds %d --print",
			f.First, f.Invariant, f.At, f.Text, f.First)
	}
	if last >= swarm.Enough && len(tally.Unstruck()) > 0 {
		t.Errorf("struck in no seed of %d: %v", last, tally.Unstruck())
	}
}

// TestSeedIsARun: the same seed is the same run.
func TestSeedIsARun(t *testing.T) {
	for seed := uint64(1); seed <= seeds(5, 50); seed++ {
		a, _ := swarm.Play(swarm.Name(seed), swarm.Draw(seed), seed, nil)
		b, _ := swarm.Play(swarm.Name(seed), swarm.Draw(seed), seed, nil)
		if a.Hash != b.Hash || a.Events != b.Events {
			t.Errorf("seed %d: %x after %d events, and %x after %d", seed, a.Hash, a.Events, b.Hash, b.Events)
		}
	}
}

// TestKnown: everything in the list still breaks as it says, asks for no more than is owed, and every file has a line.
func TestKnown(t *testing.T) {
	entries := list(t)
	for i := range entries {
		e := &entries[i]
		t.Run(e.File, func(t *testing.T) {
			if err := e.Check(); err != nil {
				t.Error(err)
			}
			f, c, err := swarm.Read(e.File, []byte(e.Text))
			must.Do(t, err)
			if err := swarm.Feasible(f, c); err != nil {
				t.Error(err)
			}
			if !strings.HasPrefix(e.Text, "# ") {
				t.Error("it says nothing about the mistake: begin with a comment")
			}
		})
	}
	files := must.Get(filepath.Glob("known/*.scn"))(t)
	for _, f := range files {
		if !slices.ContainsFunc(entries, func(e swarm.Entry) bool { return e.File == filepath.Base(f) }) {
			t.Errorf("%s has no line in known/known.txt", f)
		}
	}
}

// TestKnownThatHolds: an entry whose scenario breaks no more, or otherwise, is told.
func TestKnownThatHolds(t *testing.T) {
	const text = "cluster nodes=1\nstart pods web 2 on node-1\nat 1m node-1 kill\nfinally converges within 20m\n"
	for _, c := range []struct{ entry, text, says string }{
		{"a.scn | 1 | nothing is leaked | x", text, "take the file and its line out"},
		{"a.scn | 1 | nothing is leaked | x", strings.Replace(text, "kill", "flush-routes", 1), "it breaks otherwise"},
		{"a.scn | 1 | nothing is leaked | x", "cluster nodes=1\nat 1m node-1 kil\n", "did you mean kill?"},
	} {
		l, err := swarm.Known("# a comment\n\n"+c.entry+"\n", func(string) ([]byte, error) { return []byte(c.text), nil })
		must.Do(t, err)
		if err := l[0].Check(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("expected %q, found %v", c.says, err)
		}
	}
	for list, says := range map[string]string{
		"a.scn | 1 | nothing is leaked":       "line 1: expected FILE | SEED | INVARIANT | CAUSE, found 3",
		"\na.scn | x | nothing is leaked | x": "line 2: expected a seed, found \"x\"",
		"a.scn | 1 | nothing is leeked | x":   "unknown invariant \"nothing is leeked\"",
		"b.scn | 1 | nothing is leaked | x":   "no such file",
	} {
		_, err := swarm.Known(list, func(file string) ([]byte, error) {
			if file == "b.scn" {
				return nil, os.ErrNotExist
			}
			return nil, nil
		})
		if says == "no such file" {
			says = os.ErrNotExist.Error()
		}
		if err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: expected %q, found %v", list, says, err)
		}
	}
}

// TestTally: what is in the list is known, anything else is new, and the order of the seeds does not matter.
func TestTally(t *testing.T) {
	l := []swarm.Entry{{File: "a.scn", Seed: 1, Invariant: "nothing is leaked", Cause: "node-# leaks"}}
	broke := func(cause string) *swarm.Outcome {
		return &swarm.Outcome{Broken: &swarm.Broken{Invariant: "nothing is leaked", Cause: cause}, Struck: map[string]int{"node kill": 1}}
	}
	tally := swarm.NewTally(l)
	for _, seed := range []uint64{9, 3, 7} {
		tally.Add(seed, broke("node-# leaks"))
	}
	tally.Add(5, broke("something else"))
	tally.Add(6, &swarm.Outcome{Marks: []string{"eni-made"}})
	tally.Add(8, &swarm.Outcome{Cut: true})
	fresh, old := tally.Findings()
	if len(fresh) != 1 || fresh[0].First != 5 || len(old) != 1 || old[0].First != 3 || old[0].Seeds != 3 || old[0].Known.File != "a.scn" {
		t.Errorf("new %+v, known %+v", fresh, old)
	}
	if tally.Runs != 5 || tally.Held != 1 || slices.Contains(tally.Unstruck(), "node kill") || !slices.Contains(tally.Unstruck(), "node hold") ||
		slices.Contains(tally.Unreached(), "eni-made") {
		t.Errorf("%+v, not played %v", tally, tally.Unstruck())
	}
}
