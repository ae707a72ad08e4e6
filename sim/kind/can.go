package kind

import (
	"errors"
	"fmt"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// cannot says why a verb is not carried out on a kind cluster.
var cannot = map[string]string{
	"upgrade":         "a DaemonSet has one version for all nodes, and the image one plugin: world lab exchanges them node by node",
	"terminate":       "a node container that is removed stays a node of its cluster until somebody deletes the object: world lab terminates instances",
	"gc":              "containerd never calls CNI GC",
	"hide":            "containerd forgets no sandbox on demand",
	"interrupt-dumps": "a real kernel interrupts a dump when it likes (NLM_F_DUMP_INTR), not when it is asked to",
}

// Can says what the world cannot do.
func (w *World) Can(l *scn.Line) error {
	switch s := l.Stmt.(type) {
	case *scn.Cluster:
		return canCluster(s)
	case *scn.Against:
		if w.witness.Mutant == nil || w.witness.Mutant.Name != s.Mutant {
			return unasked(s.Mutant)
		}
	case *scn.At:
		if s.Action != nil {
			return w.canAct(s.Action)
		}
	}
	return nil
}

func canCluster(s *scn.Cluster) error {
	for _, kv := range s.Args {
		if kv.Key == "runtime" && kv.Value != "containerd" {
			return fmt.Errorf("the nodes' runtime is kind's containerd, not %s; the rest of the line holds", kv.Value)
		}
	}
	return nil
}

func (w *World) canAct(a *scn.Action) error {
	if why := cannot[a.Verb]; why != "" {
		return errors.New(why)
	}
	act, e := sim.Bind(a)
	if e != nil {
		return nil // a mistake of the scenario's, said elsewhere
	}
	switch {
	case a.Verb == "restart" && len(act.Keys) > 0 && a.Subject.Kind == scn.Node && len(w.members) > 2:
		return errors.New("a DaemonSet has one environment, and this changes one node's of several: say node-*, or use world lab")
	case a.Verb == "flush-routes" && act.Int("table") == mainTable:
		return errors.New("the machine's own routes are in the main table too, the one to the API server among them, and nobody puts those back")
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

// mainTable is where a machine's own routes are (RT_TABLE_MAIN).
const mainTable = 254
