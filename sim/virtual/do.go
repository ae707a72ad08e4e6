package virtual

import (
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Do carries out an action, now.
func (w *World) Do(a *verb.Act) int {
	w.mixString(a.Verb)
	return w.Host.Do(a)
}

var _ models.Machine = (*node)(nil)

// Runs and Lives are the same: a daemon starts at once.
func (n *node) Runs() bool  { return n.core != nil }
func (n *node) Lives() bool { return n.core != nil }

// Kill is told by the process that ends.
func (n *node) Kill(_ int, told string) verb.Strike {
	n.w.kill(n)
	return verb.Hit("%s", told)
}

// Restart is a rolled DaemonSet: SIGTERM, what is under way ends or is answered, then a new daemon at once.
func (n *node) Restart() {
	w := n.w
	w.feed(n, ipam.Stop{}) // which may spring a trap: of two starts the second finds a daemon
	down := n.Down
	n.Down = true // crash starts none: it comes below
	w.crash(n, func(*event) fate { return lands })
	n.Down = down
	w.push(event{at: w.now + models.RestartPause, kind: evStart, node: n.No})
}

func (n *node) Start() { n.w.push(event{at: n.w.now, kind: evStart, node: n.No}) }

func (n *node) Reboot() {
	w, down := n.w, n.Down
	n.Down = true // crash starts none: the machine has to boot first
	w.crash(n, func(*event) fate { return vanishes })
	n.Down = down
	n.booted, n.bootedAt = false, w.now
	n.disk[ipam.RunStore] = disk{}
	n.intents = nil
	n.kern.Reboot()
	w.EC2.Reboot(w.now, n.Instance)
	w.Kubelet(&n.Node, &cri.Input{Kind: cri.Reboot})
	w.push(event{at: w.now + models.BootTime + models.RestartPause, kind: evStart, node: n.No})
}

func (n *node) GC(valid []ipam.Attachment, absent bool, id int) {
	n.lastReq++
	n.run = append(n.run, request{req: n.lastReq, by: id})
	n.w.feed(n, ipam.GC{Req: n.lastReq, Network: "aws-cni", Valid: valid, Absent: absent, Deadline: n.w.now + addTimeout})
}

func (n *node) LoseRecords() bool {
	d := &n.disk[ipam.RunStore]
	if len(d.rows) == 0 || d.lost {
		return false
	}
	d.lost = true
	return true
}

// Exchanged and Installed: socket and plugin are looked up when they are used.
func (n *node) Exchanged() {}
func (n *node) Installed() {}

// Exchange is never asked, see Can.
func (n *node) Exchange(string, string, bool) bool { return false }

func (n *node) InterruptDumps(times, id int) verb.Strike {
	n.cutOff, n.cutBy = times, id
	n.kern.InterruptDumps(times)
	return verb.Wait("the daemon made no dump")
}

// Interfere tells the daemon what a real kernel tells of.
func (n *node) Interfere(a kernel.Accident, at cri.Truth) int {
	if a.Netns = at.Netns; at.ID != "" {
		if a.Link = n.kern.VethOf(at.ID); a.Link == "" && (a.What == kernel.ChangeMAC || a.What == kernel.LoseAlias) {
			return 0
		}
	}
	count := n.kern.Suffer(a)
	switch a.What {
	case kernel.FlushRules, kernel.FlushRoutes, kernel.FlushNAT:
		n.hint()
	case kernel.ChangeMAC:
		if count > 0 {
			n.hint()
		}
	}
	return count
}

// thirdParty is what the model has of others than the CNI.
const thirdParty = "rule 30000"

func (n *node) AddThirdParty() (lacks []string) {
	defer n.hint()
	n.kern.AddForeignRule(kernel.ThirdParty)
	return []string{"anything but a rule: the model of a kernel has nothing else of third parties"}
}

func (n *node) ThirdParty() (map[string]string, bool) {
	if !n.kern.HasRule(kernel.ThirdParty) {
		return nil, true
	}
	return map[string]string{thirdParty: "fwmark 0x4000 lookup 4000"}, true
}

// Reach follows packets through the model of the kernel.
func (n *node) Reach(pods []cri.Truth) []bool {
	out := make([]bool, len(pods))
	for i, p := range pods {
		out[i] = n.w.fault(n, p.Address, p.Netns) == ""
	}
	return out
}

func (n *node) View() (*ipam.View, bool) {
	if n.core == nil {
		return nil, false
	}
	n.core.View(&n.w.view)
	return &n.w.view, true
}

// Busy names what is under way on the node.
func (n *node) Busy() string {
	v, ok := n.View()
	switch {
	case !ok && n.Down:
		return ""
	case !ok:
		return "it has no daemon"
	case v.Serving && v.Surveyed && v.Waiting == 0 && v.Intents == 0 && v.Cooling == 0:
		return ""
	case len(v.Reasons) > 0:
		return v.Reasons[0]
	}
	return "an ADD waits, an intent is open or an address cools down"
}

// Can says what this world cannot do: nothing that the catalogue has.
func (w *World) Can(l *scn.Line) error {
	if c, ok := l.Stmt.(*scn.Cluster); ok && slices.ContainsFunc(c.Args, func(kv scn.KV) bool { return strings.HasPrefix(kv.Key, "other-") }) {
		return sim.Cannot("sim", sim.SkipOthers)
	}
	if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil {
		return sim.CannotDo("sim", at.Action, len(w.Nodes)-1)
	}
	return nil
}

// Steady has nothing to wait for: nothing moves while virtual time stands still.
func (w *World) Steady() {}

// Reached says whether the core came through a coverage point since t=0.
func (w *World) Reached(mark string) bool {
	for m := range w.marks {
		if ipam.Point(m).String() == mark {
			return w.marks[m] > 0
		}
	}
	return false
}

// Close has nothing to remove: all of it was memory.
func (w *World) Close() error { return nil }

// Capabilities of virtual time: it only tells what there is.
func (w *World) Capabilities() sim.Capabilities { return sim.Capabilities{Survey: w.Survey} }

var _ sim.World = (*World)(nil)
