package ipam

import (
	"fmt"
	"math"
	"net/netip"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/splitmix"
)

// never is an instant that does not come.
const never = time.Duration(math.MaxInt64)

// phase of a daemon's life.
type phase uint8

const (
	unborn phase = iota
	recovering
	serving
	stopping
)

// Node is the state of one daemon. The zero Node is not useful: see New.
type Node struct {
	state
	policy *Policy

	// Rebuilt from state, never encoded.
	byAddress map[netip.Addr]int32
	byID      map[string]int32     // keyed rows by container ID, one of each
	byAtt     map[Attachment]int32 // and those whose container has another one in byID
	due       time.Duration        // when the first of Open has to be answered

	// An observation that left nothing to do, and nothing has changed since: the same one again says nothing new. This saves time and
	// decides nothing, so it is not encoded.
	last *dataplane.Observation
	calm bool

	moved func(from, to Stage) // tests look on; else nil

	// What the current step wants; handed out at its end.
	out  []Effect
	put  [stores][]Row
	drop [stores][]Key
}

// state is everything that a Node is: plain data, so that it can be copied and encoded.
type state struct {
	Phase  phase
	Steps  uint64 // inputs so far; stamps rows and looks (contract 8)
	LastID ID
	Rng    uint64

	Boot     string
	Daemon   string
	Version  int
	Wall     int64
	Cluster  string
	Set      Settings
	Inst     Instance
	Known    bool   // Inst is
	Facts    *Facts // on record; never changed once set
	Deaf     bool   // they are all that is known: metadata has not answered this daemon yet
	Witness  Witnesses
	Unread   string
	Kernel   *dataplane.Observation // kept until recovery ends
	Listed   []Sandbox              // likewise
	ListedOK bool
	Answered bool          // the runtime has, one way or the other
	Recorded time.Duration // since when releases are on record
	Booted   time.Duration // as Start said, where nothing there speaks against a reboot
	Surveyed bool          // EC2 has said which ENIs are attached, and with what: before that nothing is asked of it

	Cloud     []ENI // likewise: IMDS's word
	HostDone  bool
	HostBusy  bool
	HostTries int           // failures in a row
	HostAt    time.Duration // not before, after a failure

	Addrs      []address
	Holes      []int32 // free slots of Addrs
	FreeQueue  []int32 // addresses by how long they are free; entries may be stale
	Cooling    []int32 // entries may be stale
	ENIs       []eni
	Waiting    []Add // for an address, first come first served
	Queued     []queued
	Checks     []checking
	Agains     []again
	Collecting collecting
	Open       []open // requests that await their Reply
	Pending    []pending
	Lanes      [stores]saveLane
	Looks      [looks]look
	Sightings  []sighting
	Departures []departed
	Others     []other  // attached, and not ours
	First      bool     // no daemon has started in this boot before
	Found      []string // ENIs that metadata listed with secondary addresses at the start of the first daemon, where EC2 is not asked

	Count    [Quarantined + 1]int // addresses by state
	Pool     poolState
	Pace     pace
	RetryAt  time.Duration // earliest retry of a removal
	CoolAt   time.Duration // earliest end of a cool-down
	Flows    flowState
	Troubles [troubles]string
}

// New is a Node before its Start. It refuses a policy that leaves a decision out.
func New(p *Policy) (*Node, error) {
	if err := p.valid(); err != nil {
		return nil, fmt.Errorf("new node: %w", err)
	}
	n := &Node{policy: p, due: never}
	n.index(0)
	for i := range n.Looks {
		n.Looks[i].Want = never
	}
	n.RetryAt, n.CoolAt = never, never
	n.Pool.At, n.Flows.At = never, never
	return n, nil
}

func (n *Node) index(size int) {
	n.byAddress = make(map[netip.Addr]int32, size)
	n.byID = make(map[string]int32, size)
	n.byAtt = nil
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
		n.pool(now)
	}
	n.driveENIs(now)
	n.look(now)
}

// Next is when the Node wants to be stepped again; ok is false when only an input can move it.
func (n *Node) Next() (at time.Duration, ok bool) {
	if n.Phase == stopping { // nothing is begun any more: only requests still have a time
		return n.due, n.due != never
	}
	at = min(n.RetryAt, n.CoolAt, n.Pool.At, n.due)
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
	c := &Node{state: n.state.clone(), policy: n.policy}
	c.reindex()
	return c
}

// reindex rebuilds what is not encoded.
func (n *Node) reindex() {
	n.index(len(n.Addrs))
	n.dueNext()
	for i := range n.Addrs {
		a := &n.Addrs[i]
		if a.State == 0 {
			continue
		}
		n.byAddress[a.IP] = int32(i)
		if a.Keyed {
			n.enter(int32(i))
		}
	}
}

// random is from 0 to 1, without 1.
func (n *Node) random() float64 { return float64(splitmix.Next(&n.Rng)>>11) / (1 << 53) }

func (n *Node) id() ID {
	n.LastID++
	return n.LastID
}

func (n *Node) emit(e Effect) { n.out = append(n.out, e) }

func (n *Node) note(e Note) { n.out = append(n.out, &e) }

// kind of a pending effect.
type kind uint8

const (
	podPlan kind = iota + 1
	eniPlan
	hostPlan
	eniCall
	flowPlan
)

// pending is an effect whose outcome has not come.
type pending struct {
	ID   ID
	Kind kind
	Ix   int32 // of Addrs or ENIs
}

func (n *Node) await(k kind, ix int32) ID {
	id := n.id()
	n.Pending = append(n.Pending, pending{id, k, ix})
	return id
}

// take removes a pending effect by its ID; outcomes that nobody awaits, and second ones, are no-ops (contract 7).
func (n *Node) take(id ID, kinds ...kind) (pending, bool) {
	for i := range n.Pending {
		p := n.Pending[i]
		if p.ID != id {
			continue
		}
		for _, k := range kinds {
			if p.Kind == k {
				n.Pending[i] = n.Pending[len(n.Pending)-1]
				n.Pending = n.Pending[:len(n.Pending)-1]
				return p, true
			}
		}
		return p, false // an outcome of another verb than was sent
	}
	return pending{}, false
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

// trouble is a standing reason for bad health (rule J).
type trouble uint8

const (
	troubleRuntime trouble = iota
	troubleKernel
	troubleIMDS
	troubleHost
	troubleEC2
	troubleStore // of RunStore; the next one is LibStore's
	_
	troubleSurvey
	troubleAttach
	troubleFlows
	troubleAdded
	troubles = iota
)

func (n *Node) stop() {
	n.Phase = stopping
	for _, w := range n.Waiting {
		n.fail(w.Req, &Error{CodeTryAgain, "cni add " + w.Pod.String() + ": ipamd is stopping, try again"})
	}
	n.Waiting = n.Waiting[:0]
	for _, q := range n.Queued {
		n.fail(q.req(), &Error{CodeTryAgain, "ipamd is stopping, try again"})
	}
	n.Queued = n.Queued[:0]
	for _, c := range n.Agains {
		n.fail(c.Req, &Error{CodeTryAgain, "cni add " + c.Att.String() + ": ipamd is stopping, try again"})
	}
	n.Agains = nil
}
