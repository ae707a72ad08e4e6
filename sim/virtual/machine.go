package virtual

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/verb"
)

// machine is a node's models.Kernel: what outlives a daemon. It has the kernel, what its daemon sees of it, and the disks.
type machine struct {
	n        *node
	kern     *kernel.Kernel
	disk     disks
	booted   bool                   // the tmpfs marker exists
	bootedAt time.Duration          // on the world's clock
	seen     *dataplane.Observation // the last one, and the kernel's generation then: observations are not changed once made
	seenGen  uint64
	cutOff   int // observations that will be incomplete
	cutBy    int // the action that asked for that
}

func (m *machine) fork() { m.kern, m.disk = m.kern.Clone(), m.disk.clone() }

func (m *machine) Reboot() {
	n, w := m.n, m.n.w
	n.end(func(*event) fate { return vanishes }) // kubelet does not start the next one: the machine has to boot first
	m.booted, m.bootedAt = false, w.now
	m.disk.store[ipam.RunStore] = store{}
	n.intents = nil
	m.kern.Reboot()
	w.EC2.Reboot(w.now, n.Instance)
	w.Kubelet(&n.Node, &cri.Input{Kind: cri.Reboot})
	n.in(models.BootTime+models.RestartPause, evStart, 0, nil)
}

func (m *machine) InterruptDumps(times, id int) verb.Strike {
	m.cutOff, m.cutBy = times, id
	m.kern.InterruptDumps(times)
	return verb.Wait("the daemon made no dump")
}

// observe dumps the kernel, or hands out the last dump again while nothing has changed.
func (m *machine) observe() *dataplane.Observation {
	if m.cutOff > 0 {
		m.cutOff--
		m.seen = nil
	}
	if g := m.kern.Generation(); m.seen == nil || m.seenGen != g {
		o := m.kern.Observe()
		m.seen, m.seenGen = &o, g
	}
	o := m.seen
	if !o.Complete {
		m.seen = nil
	}
	return o
}

// Interfere tells the daemon what a real kernel tells of.
func (m *machine) Interfere(a kernel.Accident, at cri.Truth) int {
	if a.Netns = at.Netns; at.ID != "" {
		if a.Link = m.kern.VethOf(at.ID); a.Link == "" && (a.What == kernel.ChangeMAC || a.What == kernel.LoseAlias) {
			return 0
		}
	}
	count := m.kern.Suffer(a)
	if a.What == kernel.ChangeMAC && count > 0 ||
		a.What == kernel.FlushRules || a.What == kernel.FlushRoutes || a.What == kernel.FlushNAT {
		m.n.hint()
	}
	return count
}

func (m *machine) AddThirdParty() (lacks []string) {
	defer m.n.hint()
	m.kern.AddForeignRule(kernel.ThirdParty)
	return []string{"anything but a rule: the model of a kernel has nothing else of third parties"}
}

func (m *machine) ThirdParty() (map[string]string, bool) {
	if !m.kern.HasRule(kernel.ThirdParty) {
		return nil, true
	}
	return map[string]string{"rule 30000": "fwmark 0x4000 lookup 4000"}, true
}

// run applies the first ops of a plan and judges what that did (I1).
func (m *machine) run(a *ipam.Apply, ops int) (int, *dataplane.Error) {
	n, w := m.n, m.n.w
	done, err := m.kern.Apply(a.Plan, 0, ops)
	n.Changed = true
	if a.Lane.Kind == ipam.ENILane {
		n.touched(judge.Configures, ec2.ENIID(a.Lane.ENI))
	}
	if a.Lane.Kind != ipam.PodLane {
		return done, err
	}
	w.Auditor.Ran(w.now, int(n.No), a.Lane.Att, a.Plan.Ops[:done], func(addr netip.Addr) judge.Holding {
		h := w.Auditor.Holders(int(n.No), addr, func(node int) int { // here, and on the node that had it before
			if w.nodes[node].Gone {
				return 0
			}
			return w.nodes[node].kern.Holders(addr)
		})
		if m.kern.HasFlow(addr) && h.Count <= 1 { // of a pod that has the address no more; of two that have it I1 speaks
			w.Auditor.Inherited(w.now, int(n.No), a.Lane.Att, addr)
		}
		m.kern.OpenFlow(addr) // what a pod does first
		return h
	})
	return done, err
}
