package netns

import (
	"errors"
	"net/netip"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/verb"
)

// Can says what a real kernel cannot do on demand.
func (w *World) Can(l *scn.Line) error {
	if s := w.parts.System; s != nil {
		if err := cannot(s, l); err != nil {
			return err
		}
	}
	if at, ok := l.Stmt.(*scn.At); ok && at.Check != nil {
		return sim.CannotMeasure(w.parts.without(), at.Check)
	}
	return Can(l)
}

// Can says what the world cannot do, whichever scenario asks.
func Can(l *scn.Line) error {
	at, ok := l.Stmt.(*scn.At)
	if !ok || at.Action == nil {
		return nil
	}
	return sim.CannotDo(worldName, at.Action, 0)
}

// Unknown is what a description that lists settings lacks. One that lists none says nothing about them, and excuses nothing.
func (w *World) Unknown(l *scn.Line) (system string, settings []string) {
	s := w.parts.System
	if s == nil || s.Daemon == nil || len(s.Daemon.Settings) == 0 {
		return "", nil
	}
	return s.Name + " " + s.Version, unknownSettings(s, keysOf(l))
}

// Excuse: which rare branches a daemon took, only its recording tells.
func (w *World) Excuse(mark string, _ []*scn.Action) error {
	if w.parts.WithoutBooks {
		return errors.New("only books tell " + mark + ", and there are none")
	}
	return nil
}

// Capabilities of a world whose daemons are processes, in real time, beside the books of their recordings.
func (w *World) Capabilities() sim.Capabilities {
	return sim.Capabilities{Broken: w.Err, Disagreements: w.Disagreements,
		Book: func() *timeline.Book { return w.book }, Incomparable: w.Unlike,
		Crashes: w.Crashes, TooSlow: w.TooSlow, Figures: w.Figures, Survey: w.Survey, Unknown: w.Unknown, Excuse: w.Excuse}
}

var _ sim.World = (*World)(nil)

// worldName is what guards and the table of skips call this world.
const worldName = "netns"

// Do carries out an action, now. A laboratory that is broken does nothing any more.
func (w *World) Do(a *verb.Act) int {
	if w.broken != nil {
		return w.Acts.Begin(actions.Describe(a))
	}
	w.log("scenario: %s", actions.Describe(a))
	id := w.Host.Do(a)
	w.pump()
	return id
}

// EndFaults ends what actions broke.
func (w *World) EndFaults() {
	w.Host.EndFaults()
	w.pump()
}

// heard is an input of a daemon's, which tells what it met.
func (w *World) heard(l *judge.Life, in ipam.Input) {
	n := w.nodes[l.Number()]
	switch in := in.(type) {
	case ipam.Start:
		w.Started(&n.Node, &in)
	case ipam.Seen:
		if in.What == ipam.LookRuntime && in.ID != 0 {
			w.Listed(&n.Node, &in)
		}
	}
}

// Happened: cables and routes come and go, and I4 is judged.
func (w *World) Happened(m *models.Node, e *ec2.Event) {
	var n *instance
	if m != nil {
		n = w.nodes[m.No]
		w.witness.Happened(w.EC2, n.No, e, n.livePod)
	}
	w.fail(machine.Follow(w.network, w.EC2, e))
	switch {
	case n == nil:
	case e.Kind == ec2.LinkPlugged:
		n.plug(e.MAC)
	case e.Kind == ec2.LinkUnplugged:
		delete(n.links, e.MAC)
		n.mirror.Unplug(e.MAC)
		n.stir()
	case e.Kind == ec2.InstanceTerminated && !n.Gone:
		w.Ended(&n.Node)
		n.tell("the instance is terminated")
		n.lost()
		w.fail(n.close(false))
	}
}

// livePod names a pod whose containers run and that has the address; "" is none.
func (n *instance) livePod(a netip.Addr) string {
	for t := range n.CRI.Sandboxes() {
		if t.Running && t.Address == a && t.Netns != 0 {
			return t.Name
		}
	}
	return ""
}

var _ models.Machine = (*instance)(nil)

func (n *instance) LoseRecords() bool {
	had, err := n.box.LoseRecords()
	n.w.fail(err)
	return had
}

// ThirdParty is what the machine has; that of the models is what they have put there.
func (n *instance) ThirdParty() (map[string]string, bool) {
	is, err := n.box.ThirdParty()
	n.w.fail(err)
	return is, err == nil
}

func (n *instance) View() (*ipam.View, bool) {
	if n.witness() == nil {
		return nil, false
	}
	n.life.Node().View(&n.w.view)
	return &n.w.view, true
}

// Busy names what is under way on the node.
func (n *instance) Busy() string {
	if n.life == nil && !n.Down {
		return "it has no daemon"
	}
	if why := n.busy(n.w.now()); why != "" || n.life == nil {
		return why
	}
	if n.w.parts.WithoutBooks {
		if n.held > 0 {
			return "its daemon waits for EC2"
		}
		if len(n.w.EC2.Links(n.Instance)) != len(n.w.EC2.AttachedENIs(n.Instance)) { // it is plugged in already, or still
			return "EC2 attaches an interface, or detaches it"
		}
		return n.settles()
	}
	return n.life.Busy()
}
