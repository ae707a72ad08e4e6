package virtual

import (
	"net/netip"
	"slices"
	"strings"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
)

// Do carries out an action, now.
func (w *World) Do(a *sim.Act) int {
	w.mixString(a.Verb)
	return w.Host.Do(a)
}

var _ models.Machine = (*node)(nil)

// Runs and Lives are the same: a daemon starts at once.
func (n *node) Runs() bool  { return n.core != nil }
func (n *node) Lives() bool { return n.core != nil }

// Kill is told by the process that ends.
func (n *node) Kill(_ int, told string) sim.Strike {
	n.w.kill(n)
	return sim.Hit("%s", told)
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

// extraVerbs are those that no kernel but a model carries out.
var extraVerbs = map[string]func(n *node, a *sim.Act, id int) sim.Strike{"interrupt-dumps": (*node).interruptDumps}

func (n *node) Do(a *sim.Act, id int) (sim.Strike, bool) {
	do := extraVerbs[a.Verb]
	if do == nil {
		return sim.Strike{}, false
	}
	return do(n, a, id), true
}

func (n *node) interruptDumps(a *sim.Act, id int) sim.Strike {
	n.cutOff, n.cutBy = a.Int("times"), id
	n.kern.InterruptDumps(n.cutOff)
	return sim.Wait("the daemon made no dump")
}

func (n *node) FlushRules() int {
	defer n.hint()
	return n.kern.FlushRules()
}

func (n *node) FlushRoutes(table int) int {
	defer n.hint()
	return n.kern.RemoveRoutes(table)
}

func (n *node) FlushNAT() bool {
	defer n.hint()
	return n.kern.FlushNAT()
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

func (n *node) LoseGateway(netns uint64) bool { return n.kern.LoseNeighbour(netns) }

func (n *node) ChangeMAC(containerID, mac string) bool {
	veth := n.kern.VethOf(containerID)
	if veth == "" || !n.kern.SetLinkMAC(veth, mac) {
		return false
	}
	n.hint()
	return true
}

func (n *node) LoseAlias(containerID string) bool {
	veth := n.kern.VethOf(containerID)
	return veth != "" && n.kern.SetLinkAlias(veth, "")
}

func (n *node) AddAddresses(netns uint64, more []netip.Addr) int {
	return n.kern.AddAddresses(netns, more)
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
	if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil && sim.Exchanges(at.Action) != "" {
		return sim.Cannot("sim", sim.SkipExchange)
	}
	return nil
}

// Steady has nothing to wait for: nothing moves while virtual time stands still.
func (w *World) Steady() {}

// Settle judges what has to hold once settled.
func (w *World) Settle() (underWay []string) {
	w.judge()
	return w.settle()
}

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

var _ sim.World = (*World)(nil)
