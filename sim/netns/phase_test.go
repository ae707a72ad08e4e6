package netns

import (
	"strings"
	"testing"

	"github.com/enilab/enilab/sim"
)

// TestPhase: a daemon comes back to where it began on every way, and a phase that cannot follow is refused.
func TestPhase(t *testing.T) {
	for _, way := range [][]phase{
		{starting, started, serving, exited, absent},         // it ends by itself
		{starting, started, serving, ending, exited, absent}, // it is killed
		{starting, started, ending, exited, absent},          // before anything was heard of it
		{starting, aborted, absent},                          // before it had a process
		{starting, absent},                                   // its start came to nothing
		{starting, serving, ending, absent},                  // a system without a daemon
	} {
		p := absent
		for _, next := range way {
			if err := p.to(next); err != nil {
				t.Errorf("%v: %v", way, err)
			}
		}
	}
	for from, next := range map[phase]phase{absent: serving, aborted: started, exited: serving, serving: starting} {
		p := from
		if err := p.to(next); err == nil || p != from || !strings.Contains(err.Error(), "cannot be "+next.String()+" next") {
			t.Errorf("from %v to %v: %v", from, next, err)
		}
	}
}

// TestDaemonRefusesAPhase: a transition that is none breaks the laboratory, with a sentence.
func TestDaemonRefusesAPhase(t *testing.T) {
	w := &World{loop: newLoop(t.Context(), 1)}
	n := &instance{w: w}
	n.nodeDaemon.n, n.No = n, 1
	n.to(exited)
	want := "node-1: its daemon is absent, and cannot be exited next"
	if err := w.Err(); err == nil || err.Error() != want || n.phase != absent {
		t.Errorf("the daemon is %v: %v", n.phase, err)
	}
}

// TestWhatMayNotBeIsTold: the world is asked for what a node disagrees in, and for a daemon that ended by itself.
func TestWhatMayNotBeIsTold(t *testing.T) {
	w := &World{loop: newLoop(t.Context(), 1)}
	n := &instance{w: w}
	n.No = 1
	for range 2 * maxTold {
		n.disagree("replay: %d", 7)
	}
	if got := w.Capabilities().Disagreements(); len(got) != maxTold || !strings.HasSuffix(got[0], "node-1: replay: 7") {
		t.Errorf("found %q", got)
	}
	w.crashes = append(w.crashes, sim.Failure{})
	if len(w.Capabilities().Crashes()) != 1 || w.Unlike() == "" {
		t.Error("a crash is not told")
	}
}
