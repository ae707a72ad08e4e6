package kind

import (
	"fmt"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

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
