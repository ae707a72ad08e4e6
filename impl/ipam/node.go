package ipam

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// Node is the state of one daemon. The zero Node is not useful: see New.
type Node struct{ state }

// state is everything that a Node is: its parts. Each points to some of those before it (connect); the rest is plain
// data.
type state struct {
	life
	ledger
	requests
	evidence
	subnets
	enis
	pool
	host
	driver
	survey
	pods
	warm
	recovery
}

// connect points each part to those below it that it knows.
func (n *Node) connect() {
	l, lg, rq, ev, es, p, h := &n.life, &n.ledger, &n.requests, &n.evidence, &n.enis, &n.pool, &n.host
	sn := &n.subnets
	n.ledger.life, n.requests.life = l, l
	n.evidence.life, n.evidence.ledger = l, lg
	n.subnets.life, n.subnets.evidence = l, ev
	n.enis.life, n.enis.ledger, n.enis.evidence, n.enis.subnets = l, lg, ev, sn
	n.pool.life, n.pool.ledger, n.pool.requests, n.pool.evidence, n.pool.enis = l, lg, rq, ev, es
	n.host.life, n.host.ledger, n.host.evidence = l, lg, ev
	n.driver.life, n.driver.ledger, n.driver.evidence, n.driver.enis, n.driver.pool = l, lg, ev, es, p
	n.driver.subnets = sn
	n.survey.life, n.survey.ledger, n.survey.evidence, n.survey.enis, n.survey.pool = l, lg, ev, es, p
	n.survey.driver = &n.driver
	n.pods.life, n.pods.ledger, n.pods.requests, n.pods.evidence, n.pods.enis, n.pods.pool = l, lg, rq, ev, es, p
	n.pods.host = h
	n.warm.life, n.warm.requests, n.warm.evidence, n.warm.enis, n.warm.pool = l, rq, ev, es, p
	n.warm.driver, n.warm.pods, n.warm.subnets = &n.driver, &n.pods, sn
	n.recovery.life, n.recovery.ledger, n.recovery.requests, n.recovery.evidence = l, lg, rq, ev
	n.recovery.enis, n.recovery.pool, n.recovery.host = es, p, h
	n.recovery.driver, n.recovery.survey, n.recovery.pods = &n.driver, &n.survey, &n.pods
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
		n.recovery.born(now, s)
	} else {
		n.Steps++
		n.input(now, in)
	}
	n.tick(now)
	n.ledger.flush()
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
		n.pods.add(now, in)
	case Del:
		n.pods.del(now, in)
	case Check:
		n.pods.check(now, in)
	case GC:
		n.pods.gc(now, in)
	case Gone:
		n.pods.gone(in.Req)
	case Seen:
		n.seen(now, in)
	case Called:
		n.driver.called(now, in)
	case Applied:
		n.applied(now, in)
	case Saved:
		n.saved(now, in)
	case Stop:
		n.requests.stop()
	}
}

// tick does whatever has become possible or due.
func (n *Node) tick(now time.Duration) {
	n.pods.expire(now)
	if n.Phase == recovering {
		n.recovery.tryRecover(now)
	}
	if n.RetryAt <= now {
		n.pods.retryRemovals(now)
	}
	if n.CoolAt <= now {
		n.evidence.want(LookKernel, max(now, n.Looks[LookKernel].At+coolBatch))
		n.CoolAt = never // recomputed when the kernel has been seen
	}
	if n.Phase == serving {
		n.pool.forgetFlows(now)
		n.warm.aim(now)
		n.driver.regroup(now)
	}
	n.driver.driveENIs(now)
	n.survey.look(now)
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
	return c
}

func (n *Node) applied(now time.Duration, in Applied) {
	p, ok := n.ledger.take(in.ID, podPlan, eniPlan, hostPlan, flowPlan)
	if !ok {
		return
	}
	switch p.Kind {
	case podPlan:
		n.pods.podApplied(now, p.Ix, in)
	case eniPlan:
		n.driver.eniApplied(now, p.Ix, in)
	case hostPlan:
		n.host.applied(now, in)
	case flowPlan:
		n.pool.flowsApplied(now, in)
	}
}

func (n *Node) seen(now time.Duration, in Seen) {
	if in.ID == 0 { // a kernel event: a hint
		at := now + hintDelay
		if len(n.Waiting) > 0 && n.enis.awaitsLink() {
			at = max(now, n.Looks[LookKernel].At+hintDelay)
		}
		n.evidence.want(LookKernel, at)
		return
	}
	if in.What == 0 || in.What >= looks || n.Looks[in.What].ID != in.ID {
		return
	}
	l := &n.Looks[in.What]
	l.ID = 0
	whole := n.evidence.whole(&in)
	if whole {
		l.Fails, l.Good = 0, l.Asked
		if p := periods[in.What]; p != 0 {
			n.evidence.want(in.What, now+p)
		}
	} else {
		l.Fails++
		pause := min(time.Second<<min(l.Fails-1, 6), maxLookRetry)
		// The kernel is read in milliseconds, and needs no other party. And while the daemon recovers no pod is served, and
		// nothing that one lacks is put back.
		if in.What == LookKernel || n.Phase == recovering {
			pause = min(pause, maxLocalRetry)
		}
		// every node's first question: a fleet that starts together does not ask together again
		if in.What == LookAttached || in.What == LookSubnets || in.What == LookConfig {
			pause += time.Duration(n.random() * float64(pause))
		}
		n.evidence.want(in.What, now+pause)
	}
	switch in.What {
	case LookKernel:
		n.seenKernel(now, &in, whole, l.Asked)
	case LookRuntime:
		n.seenRuntime(now, &in, whole, l.Asked)
	case LookIMDS:
		n.seenIMDS(now, &in, whole, l.Asked)
	case LookENI:
		n.survey.seenENIs(now, &in, whole, l.ENIs)
	case LookLeaked:
		n.survey.seenLeaked(now, &in, whole)
	case LookPods:
		n.pods.seenPods(now, &in, whole)
	case LookAttached:
		n.survey.seenAttached(now, &in, whole, l.Asked)
	case LookSubnets:
		n.subnets.seen(now, &in, whole, l.Asked, l.At)
	case LookConfig:
		n.subnets.seenConfig(&in, whole, l.At)
	}
}

func (n *Node) saved(now time.Duration, in Saved) {
	if in.Store >= stores {
		return
	}
	l := &n.Lanes[in.Store]
	i := 0
	for i < len(l.Waits) && l.Waits[i].Seq <= in.Seq && in.Seq <= l.Seq {
		i++
	}
	done := append([]saveWait(nil), l.Waits[:i]...)
	l.Waits = append(l.Waits[:0], l.Waits[i:]...)
	ok := in.Err == ""
	if !ok {
		n.note(Note{Point: SaveFailed, Warn: true, Text: in.Err})
	}
	n.trouble(troubleStore+trouble(in.Store), in.Err)
	for _, w := range done {
		switch w.Kind {
		case saveAdd:
			n.pods.addSaved(now, w.Ix, w.Tag, ok)
		case saveRelease:
			n.pods.releaseSaved(now, w.Ix, w.Tag, ok)
		case saveRecord:
			n.pods.recordSaved(now, w.Ix, w.Tag, ok)
		case saveIntent:
			n.driver.intentSaved(now, w.Ix, w.Tag, ok)
		case saveTaken:
			n.driver.takenSaved(now, w.Ix, w.Tag, ok)
		}
	}
}

// settings replaces them; what follows from them follows at the next tick.
func (n *Node) settings(now time.Duration, s Settings) {
	var before [looks]bool
	for w := range before {
		before[w] = n.evidence.configured(What(w))
	}
	alone := n.Set.IMDSOnly
	if s.PrefixDelegation != n.Set.PrefixDelegation {
		n.Warm.bareness = bareness{}
	}
	n.Set = s
	for w := What(1); w < looks; w++ {
		if !before[w] && n.evidence.configured(w) {
			n.evidence.want(w, now)
		}
	}
	switch {
	case s.IMDSOnly && n.Phase != recovering:
		n.Surveyed = true
	case alone:
		n.enis.kick(now)
	}
	n.CoolAt, n.Flows.At = n.pool.nextCool(now), now
	if n.host.Done && !n.host.Busy {
		n.host.apply(dataplane.HostPlan(n.host.spec()))
	}
}
