package kind

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
)

// slack is how much later than in the simulator a mutant may show: a real kubelet backs off.
const slack = 3 * time.Minute

// Place is world kind, for runner.Load, on a machine where cluster.Available says nothing.
func Place(cfg Config) *runner.Place {
	open := func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (runner.World, error) {
		w, err := Open(c, seed, m, cfg)
		if err != nil {
			return nil, err // and no World that is nil
		}
		return w, nil
	}
	p := &runner.Place{Name: "kind", Open: open, Slack: slack}
	if !cfg.Mutants {
		p.Plays = func(m *mutants.Mutant) error { return unasked(m.Name) }
	}
	return p
}

// unasked is why a mutant is not played: each takes a cluster of its own.
func unasked(mutant string) error {
	return fmt.Errorf("--against %s plays it, and --mutants all: on kind that takes a cluster of its own", mutant)
}
