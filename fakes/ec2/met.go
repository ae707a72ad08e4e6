package ec2

import "slices"

// Met is a fault at work: a call, a read or an interface that met it. Faults without an ID are not told of.
type Met struct {
	Fault    int // Fault.ID
	Kind     FaultKind
	Action   Action     // of the call; AnyAction when it was none
	Instance InstanceID // whose call, read or interface; "": no instance's
}

// Met tells what faults with an ID have met since it was asked last, in order. A Lag set by LagIMDS is told of too, as kind 0.
func (c *Cloud) Met() []Met {
	if len(c.met) == 0 {
		return nil
	}
	out := slices.Clone(c.met)
	c.met = c.met[:0]
	return out
}

func (c *Cloud) meets(f *Fault, a Action, i InstanceID) {
	if f.ID != 0 {
		c.met = append(c.met, Met{f.ID, f.Kind, a, i})
	}
}
