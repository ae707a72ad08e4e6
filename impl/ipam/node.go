package ipam

import (
	"fmt"
	"time"
)

// Node is the state of one daemon. The zero Node is not useful: see New.
type Node struct{ state }

// state is everything that a Node is. Parts point to those below them (connect); all else is plain data.
type state struct {
	life
	ledger
	requests
	evidence

	enis
	pool
	host

	driver
	survey

	Listed   []Sandbox // kept until recovery ends
	ListedOK bool
	Answered bool          // the runtime has, one way or the other
	Booted   time.Duration // as Start said, where nothing there speaks against a reboot
	Cloud    []ENI         // kept until recovery ends: IMDS's word
}

// connect tells each part of the ones below it.
func (n *Node) connect() {
	n.ledger.life = &n.life
	n.requests.life = &n.life
	n.evidence.life, n.evidence.ledger = &n.life, &n.ledger
	n.enis.life, n.enis.ledger, n.enis.evidence = &n.life, &n.ledger, &n.evidence
	n.pool.life, n.pool.ledger, n.pool.requests, n.pool.evidence, n.pool.enis = &n.life, &n.ledger, &n.requests,
		&n.evidence, &n.enis
	n.host.life, n.host.ledger, n.host.evidence = &n.life, &n.ledger, &n.evidence
	n.driver.life, n.driver.ledger, n.driver.evidence, n.driver.enis, n.driver.pool = &n.life, &n.ledger,
		&n.evidence, &n.enis,
		&n.pool
	n.survey.life, n.survey.ledger, n.survey.evidence, n.survey.enis = &n.life, &n.ledger, &n.evidence, &n.enis
	n.survey.pool, n.survey.driver = &n.pool, &n.driver
}

// New is a Node before its Start. It refuses a policy that leaves a decision out.
func New(p *Policy) (*Node, error) {
	if err := p.valid(); err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	n := &Node{}
	n.connect()
	n.policy, n.due = p, never
	n.index(0)
	for i := range n.Looks {
		n.Looks[i].Want = never
	}
	n.RetryAt, n.CoolAt = never, never
	n.Warm.At, n.Flows.At = never, never
	return n, nil
}

// Step applies one input at time now (CLOCK_BOOTTIME) and returns what to do next. A nil input is the tick that
// Next asked for. The returned slice is good until the next Step.
func (n *Node) Step(now time.Duration, in Input) []Effect {
	clear(n.out)
	n.out = n.out[:0]
	if n.Phase == unborn {
		s, ok := in.(Start)
		if !ok {
			return nil
		}
		n.born(now, s)
	} else {
		n.Steps++
		n.input(now, in)
	}
	n.tick(now)
	n.flush()
	n.calm = n.calm && onlyLooked(in, n.out)
	return n.out
}

// onlyLooked says whether a step was an observation or a tick, and wanted no more than to look.
func onlyLooked(in Input, out []Effect) bool {
	if _, seen := in.(Seen); in != nil && !seen {
		return false
	}
	for _, e := range out {
		if _, look := e.(*Look); !look {
			return false
		}
	}
	return true
}

func (n *Node) input(now time.Duration, in Input) {
	switch in := in.(type) {
	case nil, Start: // a second Start means nothing
	case Set:
		n.settings(now, in.Settings)
	case Add:
		n.add(now, in)
	case Del:
		n.del(now, in)
	case Check:
		n.check(now, in)
	case GC:
		n.gc(now, in)
	case Gone:
		n.gone(in.Req)
	case Seen:
		n.seen(now, in)
	case Called:
		n.called(now, in)
	case Applied:
		n.applied(now, in)
	case Saved:
		n.saved(now, in)
	case Stop:
		n.stop()
	}
}

// tick does whatever has become possible or due.
func (n *Node) tick(now time.Duration) {
	n.expire(now)
	if n.Phase == recovering {
		n.tryRecover(now)
	}
	if n.RetryAt <= now {
		n.retryRemovals(now)
	}
	if n.CoolAt <= now {
		n.want(LookKernel, max(now, n.Looks[LookKernel].At+coolBatch))
		n.CoolAt = never // recomputed when the kernel has been seen
	}
	if n.Phase == serving {
		n.forgetFlows(now)
		n.aim(now)
	}
	n.driveENIs(now)
	n.look(now)
}

// Next is when the Node wants to be stepped again; ok is false when only an input can move it.
func (n *Node) Next() (at time.Duration, ok bool) {
	if n.Phase == stopping { // nothing is begun any more: only requests still have a time
		return n.due, n.due != never
	}
	at = min(n.RetryAt, n.CoolAt, n.Warm.At, n.due)
	if n.Phase == serving {
		at = min(at, n.Flows.At)
	}
	for i := range n.ENIs {
		if e := &n.ENIs[i]; e.Stage != 0 && e.Wait == idle && n.Phase == serving {
			at = min(at, e.Next)
		}
	}
	for i := range n.Looks {
		if n.Looks[i].ID == 0 {
			at = min(at, n.Looks[i].Want)
		}
	}
	return at, at != never
}

// Clone is an independent copy.
func (n *Node) Clone() *Node {
	c := &Node{n.state.clone()}
	c.connect()
	c.reindex()
	c.dueNext()
	return c
}

func (n *Node) applied(now time.Duration, in Applied) {
	p, ok := n.take(in.ID, podPlan, eniPlan, hostPlan, flowPlan)
	if !ok {
		return
	}
	switch p.Kind {
	case podPlan:
		n.podApplied(now, p.Ix, in)
	case eniPlan:
		n.eniApplied(now, p.Ix, in)
	case hostPlan:
		n.hostApplied(now, in)
	case flowPlan:
		n.flowsApplied(now, in)
	}
}
