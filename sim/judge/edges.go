package judge

import (
	"net/netip"
	"strings"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// Started says that a life of the node's daemon begins; its Start is the next Input.
func (a *Auditor) Started(now time.Duration, node int) {
	n := a.node(node)
	n.running = true
	n.contract.Reset()
	n.contract.Slack = a.bounds.Reply
	n.tally.starts++
	if a.Lacks(Books) { // its life begins when it serves
		a.look(I16)
	}
	n.up.start(now)
}

// Died says that the daemon crashed or left: what it had wanted is void, and nothing is heard of it any more.
func (a *Auditor) Died(now time.Duration, node int) {
	n := a.node(node)
	n.running = false
	n.anew(now)
	n.contract.Reset()
	n.up.stop(now)
}

// Input is told of every input before the node is stepped with it; nil is the tick.
func (a *Auditor) Input(now time.Duration, node int, in ipam.Input) {
	n := a.node(node)
	if !n.running {
		return
	}
	switch in := in.(type) {
	case ipam.Start:
		if in.Rebooted {
			n.rebooted()
		}
		n.setCoolDown(in.Settings.CoolDown)
	case ipam.Set:
		n.setCoolDown(in.Settings.CoolDown)
	case ipam.Applied:
		n.flushed(in)
	}
	a.look(I13)
	a.contract(now, node, n.contract.Input(now, in))
}

// Effects is told what the step returned.
func (a *Auditor) Effects(now time.Duration, node int, effs []ipam.Effect) {
	n := a.node(node)
	if !n.running {
		if len(effs) > 0 {
			a.breaks(I13, now, node, "%d effects of a daemon that does not run: expected none", len(effs))
		}
		return
	}
	n.tally.count(effs)
	for _, e := range effs {
		if p, ok := e.(*ipam.Apply); ok {
			n.flushes(p)
		}
	}
	a.look(I13)
	a.contract(now, node, n.contract.Effects(effs))
}

func (a *Auditor) contract(now time.Duration, node int, broken []string) {
	for _, text := range broken {
		a.breaks(I13, now, node, "%s", text)
	}
}

// Configured says that a pod's plan was applied and addr is in its namespace. holders counts the live namespaces
// anywhere that have addr, this one included; otherwise names another one.
func (a *Auditor) Configured(now time.Duration, node int, addr netip.Addr, att ipam.Attachment, holders int, otherwise string) {
	a.look(I1)
	if holders > 1 {
		a.breaks(I1, now, node, "address %v of %v on node-%d is in %d live namespaces, expected 1: also in %s", addr, att, node, holders, otherwise)
	}
	a.take(now, node, att, addr)
}

// Inherited says that an address was configured while the kernel's conntrack still had flows of it.
func (a *Auditor) Inherited(now time.Duration, node int, att ipam.Attachment, addr netip.Addr) {
	a.breaks(I7, now, node, "address %v was given to %v on node-%d while conntrack had flows of it: expected none, an earlier holder's are not its own", addr, att, node)
}

// FlowCut says that a TCP connection from the VPC to a living pod was reset, or has been silent for longer than its client waits (I17).
func (a *Auditor) FlowCut(now time.Duration, node int, att ipam.Attachment, pod string, addr netip.Addr, why string, silent time.Duration) {
	a.look(I17)
	if silent > 0 {
		a.breaks(I17, now, node, "the flow to live pod %s (%v, address %v) on node-%d has had no answer for %v (%s): expected one all the time", pod, att, addr, node, silent, why)
		return
	}
	a.breaks(I17, now, node, "the flow to live pod %s (%v, address %v) on node-%d was cut (%s): expected it to last as long as the pod", pod, att, addr, node, why)
}

// Given says that a successful Reply of an ADD leaves. usedBy names who used the address in the kernel at that moment,
// other than the attachment; empty is nothing.
func (a *Auditor) Given(now time.Duration, node int, att ipam.Attachment, addr netip.Addr, usedBy string) {
	a.look(I2)
	if usedBy != "" {
		a.breaks(I2, now, node, "address %v was given to %v on node-%d while the kernel used it for %s: expected nobody", addr, att, node, usedBy)
	}
	a.take(now, node, att, addr)
}

// Released says that the attachment gave the address up: its live namespace lost it, or its DEL succeeded. The first
// of these after it was taken is the moment from which the cool-down counts; a repeated or stale one changes nothing.
func (a *Auditor) Released(now time.Duration, node int, att ipam.Attachment, addr netip.Addr) {
	a.node(node).release(now, att, addr)
}

// ENIFreed says that an ENI was detached or deleted, by the node's own call or by another caller. livePods counts the
// live pods that have an address on it; example names one.
func (a *Auditor) ENIFreed(now time.Duration, node int, eni string, byUs bool, livePods int, example string) {
	if byUs {
		a.look(I4)
	}
	if byUs && livePods > 0 {
		a.breaks(I4, now, node, "node-%d freed %s with %s on it, as %s: expected none", node, eni, count(livePods, "live pod"), example)
	}
}

// AddressUnassigned says that an address went back to EC2, alone or with its ENI. livePod names the live pod that
// had it; empty is none.
func (a *Auditor) AddressUnassigned(now time.Duration, node int, addr netip.Addr, byUs bool, livePod string) {
	if byUs {
		a.look(I4)
		a.givenBack(now, node, addr)
	}
	if byUs && livePod != "" {
		a.breaks(I4, now, node, "node-%d unassigned %v under live pod %s: expected an address that nobody uses", node, addr, livePod)
	}
	a.node(node).forget(addr)
}

// Touched says that the node's daemon did something to an ENI, or wanted to: by a request, a plan, or an ADD's answer. whose says why the ENI
// is not the node's; empty is that it is.
func (a *Auditor) Touched(now time.Duration, node int, what, eni, whose string) {
	a.look(I14)
	if whose != "" {
		a.breaks(I14, now, node, "node-%d %s %s, which is not its own: %s; expected to leave it alone", node, what, eni, whose)
	}
}

// EC2Call counts one EC2 request of the node, reads included.
func (a *Auditor) EC2Call(now time.Duration, node int) {
	a.calls++
	if a.budget > 0 {
		a.look(I8)
	}
	if a.budget > 0 && a.calls == a.budget+1 {
		a.breaks(I8, now, node, "EC2 call %d of the cluster, made by node-%d: the budget is %d", a.calls, node, a.budget)
	}
}

// DelResult says how a DEL was answered. A failure is forgotten when the attachment's DEL succeeds; what is left at the
// settled cut breaks I6.
func (a *Auditor) DelResult(now time.Duration, node int, att ipam.Attachment, ok bool, text string) {
	a.look(I6)
	n := a.node(node)
	if ok {
		if len(n.failing) > 0 {
			delete(n.failing, att)
		}
		return
	}
	// go-cni (cni.go, Remove) takes an error with these words for success, and the runtime never repeats the DEL.
	if strings.Contains(text, "not found") || strings.Contains(text, "no such file") {
		a.breaks(I6, now, node, "DEL of %v on node-%d failed with %q: go-cni takes these words for success, expected others", att, node, text)
	}
	if n.failing == nil {
		n.failing = map[ipam.Attachment]string{}
	}
	n.failing[att] = text
}
