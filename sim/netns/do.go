package netns

import (

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
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

var _ models.Machine = (*instance)(nil)

// Runs says whether there is a daemon that is heard of and is not being ended.
func (n *instance) Runs() bool { return n.life != nil && !n.dying }

// Lives says whether a daemon runs or is about to.
func (n *instance) Lives() bool { return (n.life != nil || n.starting) && !n.dying }

// Kill strikes when the process has ended.
func (n *instance) Kill(id int, _ string) verb.Strike {
	n.enders = append(n.enders, id)
	n.w.kill(n)
	return verb.Wait("the daemon's process did not end")
}

func (n *instance) Restart() { n.w.term(n) }

func (n *instance) Start() { n.w.at(n.w.now(), func() { n.w.startDaemon(n) }) }

// Reboot first ends the daemon.
func (n *instance) Reboot() {
	n.rebooting = true
	if n.life == nil && !n.starting {
		n.w.rebooted(n)
		return
	}
	n.w.kill(n)
}

// rebooted: the daemon is dead, and so is everything else.
func (w *World) rebooted(n *instance) {
	n.rebooting, n.booted = false, w.now()
	for op := range n.plugins {
		n.felled[op] = true
	}
	w.fail(n.box.Reboot())
	n.mirror.reboot()
	if w.parts.WithoutBooks {
		w.Auditor.Boots(n.booted, int(n.No)) // not now: making it again has taken a while
	}
	w.enumerate(n)
	w.fail(w.configure(n))
	w.lease(n)
	w.fail(n.addAddress(imdsAddr))
	if n.system != nil {
		w.fail(described{w}.policed(n))
	}
	w.EC2.Reboot(w.now(), n.Instance)
	w.Kubelet(&n.Node, &cri.Input{Kind: cri.Reboot})
	n.stir()
	w.after(models.BootTime+n.pause, func() { w.startDaemon(n) })
}

// enumerate names the ENIs' links as a boot does: in their order, without the gaps that detached ones have left.
func (w *World) enumerate(n *instance) {
	links := n.mirror.Observe().Links
	for _, l := range links { // out of each other's way
		if old := n.links[l.MAC]; old != "" && old != l.Name {
			w.fail(renameLink(n.box.Netns(), old, "boot-"+l.Name))
			n.links[l.MAC] = "boot-" + l.Name
		}
	}
	for _, l := range links {
		old := n.links[l.MAC]
		if old == "" {
			continue
		}
		if old != l.Name {
			w.fail(renameLink(n.box.Netns(), old, l.Name))
			n.links[l.MAC] = l.Name
		}
		w.fail(machine.Booted(n.box.Netns(), l.Name))
	}
}

func (n *instance) LoseRecords() bool {
	had, err := n.box.LoseRecords()
	n.w.fail(err)
	return had
}

// InterruptDumps is never asked, see Can.
func (n *instance) InterruptDumps(int, int) verb.Strike { return verb.Strike{} }

// Interfere is done to the kernel, and to its mirror.
func (n *instance) Interfere(a kernel.Accident, at cri.Truth) int {
	if a.Netns = at.Netns; at.ID != "" {
		a.Link = n.veth(at.ID)
	}
	count, err := n.box.Interfere(a)
	n.w.fail(err)
	a.Netns = n.mirror.inodes[a.Netns]
	n.mirror.Suffer(a)
	if a.What != kernel.LoseGateway { // nothing tells of it
		n.stir()
	}
	return count
}

func (n *instance) AddThirdParty() (lacks []string) {
	lacks, err := n.box.AddThirdParty()
	n.w.fail(err)
	n.mirror.AddForeignRule(kernel.ThirdParty)
	n.stir()
	return lacks
}

func (n *instance) ThirdParty() (map[string]string, bool) {
	is, err := n.box.ThirdParty()
	n.w.fail(err)
	return is, err == nil
}

// veth is the host end of a sandbox's link, "" if there is none.
func (n *instance) veth(containerID string) string {
	if !n.w.parts.WithoutBooks {
		return n.mirror.VethOf(containerID)
	}
	for t := range n.CRI.Sandboxes() {
		if t.ID == containerID {
			return n.linkTo(t.Address)
		}
	}
	return ""
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
