package draw

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/sim/scn"
)

// Owing is what a scenario asks for, while its lines are gone through in their order: whether it is more than a
// correct CNI owes.
type Owing struct {
	Shape   Shape
	Runtime cri.Runtime
	Loads   []Workload
	Hidden  int
	At      time.Duration   // of the line
	Open    map[string]bool // faults that somebody has to end
	Ends    time.Duration   // of the faults that end by themselves
	Wanted  time.Duration   // when a workload was changed last
	Keys    map[string]bool // of all actions
	Limits  int             // attaches that EC2 refuses as one too many
	Foreign map[int]int     // ENIs that third parties attach, by node
	Errors  []error
}

// Say enters something that is not owed.
func (o *Owing) Say(format string, args ...any) {
	o.Errors = append(o.Errors, fmt.Errorf(format, args...))
}

// Load makes a workload, or scales the one that there is if it is wanted so.
func (o *Owing) Load(w Workload, scales bool) {
	for i := range o.Loads {
		if o.Loads[i].Name == w.Name {
			if scales {
				o.Loads[i].Count = w.Count
			}
			return
		}
	}
	o.Loads = append(o.Loads, w)
}

// Toggle opens or closes a fault of one node or of all.
func (o *Owing) Toggle(what string, on scn.Subject, open bool) {
	if on.Kind == scn.Node {
		o.Set(what+" of "+on.String(), open)
		return
	}
	for n := 1; n <= o.Shape.Nodes; n++ {
		o.Set(what+" of "+scn.Subject{Kind: scn.Node, Node: n}.String(), open)
	}
}

// Set opens or closes a fault.
func (o *Owing) Set(what string, open bool) {
	if open {
		o.Open[what] = true
	} else {
		delete(o.Open, what)
	}
}
