package kind

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
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
	p := &runner.Place{Name: worldName, Open: open, Slack: slack}
	if !cfg.Mutants {
		p.Plays = func(m *mutants.Mutant) error { return unasked(m.Name) }
	}
	return p
}

// unasked is why a mutant is not played: each takes a cluster of its own.
func unasked(mutant string) error {
	return fmt.Errorf("--against %s plays it, and --mutants all: on kind that takes a cluster of its own", mutant)
}

// worldName is what guards and the table of skips call this world.
const worldName = "kind"

// Can says what the world cannot do.
func (w *World) Can(l *scn.Line) error {
	switch s := l.Stmt.(type) {
	case *scn.Cluster:
		return canCluster(s)
	case *scn.Against:
		if !w.cfg.Mutants && (w.witness.Mutant == nil || w.witness.Mutant.Name != s.Mutant) {
			return unasked(s.Mutant)
		}
	case *scn.At:
		if s.Action != nil {
			return sim.CannotDo(worldName, s.Action, len(w.members)-1)
		}
	}
	return nil
}

func canCluster(s *scn.Cluster) error {
	for _, kv := range s.Args {
		if kv.Key == "runtime" && kv.Value != "containerd" {
			return sim.Cannot(worldName, sim.SkipOtherRuntime)
		}
		if kv.Key == "other-nodes" || kv.Key == "other-pods" {
			return sim.Cannot(worldName, sim.SkipOthers)
		}
		if kv.Key == "name" {
			return sim.Cannot(worldName, sim.SkipName)
		}
	}
	return nil
}

// Excuse says why a mark was not reached: what would have led there was not done. Any action may have been it.
func (w *World) Excuse(mark string, left []*scn.Action) error {
	if len(left) == 0 {
		return nil
	}
	return fmt.Errorf("the run never came through %s, and line %d, which may lead there, was skipped", mark, left[0].VerbPos.Line)
}
