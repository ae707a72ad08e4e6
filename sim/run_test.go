package sim_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/runner"
)

const quiet = `cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 2 on node-1
at 1m   node-1 restart
at 2m   node-1 restart
at 3m   expect node-1 daemon.starts == 3
`

func open(t *testing.T, text string) *sim.Run {
	t.Helper()
	c := must.Get(runner.Load(runner.Sim(), "quiet.scn", []byte(text)))(t)
	r, w, err := c.Variants[0].Open(1, nil)
	must.Do(t, err)
	t.Cleanup(func() { _ = w.Close() })
	return r
}

// TestARunBecomesAnotherFromACallOn: actions that are still to come can be exchanged, and nothing else.
func TestARunBecomesAnotherFromACallOn(t *testing.T) {
	for _, c := range []struct{ what, old, new, err string }{
		{"what is to come", "at 2m   node-1 restart", "at 2m   node-1 kill", ""},
		{"what has been", "at 1m   node-1 restart", "at 1m   node-1 kill", "line 3 is"},
		{"another instant", "at 2m   node-1 restart", "at 2m1s node-1 restart", "line 4 is"},
		{"an expectation", "starts == 3", "starts == 4", "line 5 is"},
		{"a line more", "at 3m", "at 2m  node-1 kill\nat 3m", "has 6 lines, expected 5"},
	} {
		r := open(t, quiet)
		other := open(t, strings.Replace(quiet, c.old, c.new, 1))
		r.Call(90*time.Second, func() error { return r.Become(other.File) })
		r.Finish(nil)
		if err := r.Err(); c.err == "" && err != nil || c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: expected %q, found %v", c.what, c.err, err)
		}
		var last string
		for _, d := range r.Deeds() {
			last = d.Act.Subject.String() + " " + d.Act.Verb
		}
		if want := map[bool]string{true: "node-1 kill", false: "node-1 restart"}[c.err == ""]; last != want {
			t.Errorf("%s: the last deed was %q, expected %q", c.what, last, want)
		}
	}
}

// TestACallComesBeforeTheLinesOfItsInstant, and its error ends the run.
func TestACallComesBeforeTheLinesOfItsInstant(t *testing.T) {
	r := open(t, quiet)
	broken, deeds := errors.New("broken"), -1
	r.Call(2*time.Minute, func() error {
		deeds = len(r.Deeds())
		return broken
	})
	v := r.Finish(nil)
	if deeds != 1 || r.Err() != broken || v.Ended != 2*time.Minute {
		t.Errorf("expected the call at 2m after one deed, and the end there; found %d deeds, %v, the end at %v", deeds, r.Err(), v.Ended)
	}
}
