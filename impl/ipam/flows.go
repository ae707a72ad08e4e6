package ipam

import (
	"strconv"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// A DEL does not wait for conntrack: the kernel has no index by address, so forgetting the flows of one is a walk of a table that all
// namespaces of the node share, and takes as long for one address as for fifty. The addresses that cool are served together, one walk at
// a time, shortly before the first of them has cooled: that is one walk in nearly a cool-down, however many pods go, and it also takes
// what third parties' packets have left since.
const (
	flowLead = 5 * time.Second
	// flowShare and maxFlowPause keep a node whose cool-down is short, and whose table is long, from walking all the time: a walk is followed
	// by a pause of four times what it took.
	flowShare    = 4
	maxFlowPause = 2 * time.Second
)

// flowState is when conntrack is to forget, and what it is doing about it.
type flowState struct {
	At    time.Duration // when to see whether a walk is due
	After time.Duration // none before
	Busy  bool
	Began time.Duration
	Tries int  // failures in a row
	Ended bool // a walk of this life has: what was found cooled at its start need not wait for coolBatch, nor does what EC2 gives to pods that wait
}

// cools makes sure that a cooling address is thought of when its flows have to be forgotten, and when it has cooled.
func (p *pool) cools(a *address) {
	if p.flowless(a) {
		p.CoolAt = min(p.CoolAt, p.rested(a))
	} else {
		p.Flows.At = min(p.Flows.At, p.rested(a)-flowLead)
	}
}

// flowless says whether conntrack holds nothing more of an address.
func (p *pool) flowless(a *address) bool {
	return p.policy.Flowless(a.Cooling == forgotten)
}

// forgetFlows has the flows of all addresses forgotten that cool and are out of their pods, once the first of them needs it.
func (p *pool) forgetFlows(now time.Duration) {
	f := &p.Flows
	if f.At > now {
		return
	}
	f.At = never
	if f.Busy { // its end comes back here
		return
	}
	due, ops := never, []dataplane.Op(nil)
	for _, i := range p.Cooling {
		a := &p.Addrs[i]
		if a.State != Cooling || a.Cooling == inKernel || a.Op != noOp || p.flowless(a) {
			continue
		}
		due = min(due, p.rested(a)-flowLead)
	}
	if due == never {
		return
	}
	if due = max(due, f.After); due > now {
		f.At = due
		return
	}
	for _, i := range p.Cooling {
		if a := &p.Addrs[i]; a.State == Cooling && a.Op == noOp && a.Cooling == remembered {
			a.cool(forgetting)
			ops = append(ops, dataplane.Op{Kind: dataplane.FlushConntrack, Addr: a.IP})
		}
	}
	f.Busy, f.Began = true, now
	p.emit(&Apply{ID: p.ledger.await(flowPlan, 0), Lane: Lane{Kind: FlowLane}, Plan: dataplane.Plan{Ops: ops}})
}

// flowsApplied: the addresses that were walked for may be given away once they have cooled. One that was taken out of its pod since is
// not among them.
func (p *pool) flowsApplied(now time.Duration, in Applied) {
	f := &p.Flows
	f.Busy, f.At = false, now
	became, served, awaited := forgotten, 0, false
	if in.Err == nil {
		f.After, f.Tries = now+min(flowShare*(now-f.Began), maxFlowPause), 0
	} else {
		became = remembered
		f.Tries++
		f.After = now + min(removalPause<<min(f.Tries-1, 6), maxRemovalPause)
	}
	for _, i := range p.Cooling {
		if a := &p.Addrs[i]; a.State == Cooling && a.Cooling == forgetting {
			a.cool(became)
			p.cools(a)
			served++
			awaited = awaited || a.Att == (Attachment{}) && p.rested(a) <= now && len(p.requests.Waiting) > 0
		}
	}
	if in.Err == nil {
		p.trouble(troubleFlows, "")
		if !f.Ended || awaited {
			f.Ended = true
			p.evidence.want(LookKernel, now)
		}
		return
	}
	p.note(Note{Point: FlowsKept, Warn: true, Text: in.Err.Error()})
	p.trouble(troubleFlows, "conntrack cannot be made to forget the flows of "+strconv.Itoa(served)+
		" addresses, and they are withheld until it does (is nf_conntrack_netlink loaded?): "+in.Err.Error())
}
