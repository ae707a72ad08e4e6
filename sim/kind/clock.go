package kind

import (
	"net"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/clock"
)

// The clock of models and daemons leaps over what would only be waited for. Kubelet, the runtime and the API server live
// in real time all the same: nothing leaps while one of them has something to do.
const (
	// leapPeriod is how often it is asked whether the clock may leap.
	leapPeriod = 5 * time.Millisecond
	// longestLeap bounds one leap: after each the nodes are looked at.
	longestLeap = 15 * time.Second
	// stirTime is how long nothing leaps after an action: until kubelet, kernels and the watch of the API server have
	// told of it.
	stirTime = 500 * time.Millisecond
	// lookPeriod is how old the runtimes' own word of what they do may be.
	lookPeriod = 250 * time.Millisecond
)

// pace is whether a World's clock may leap.
type pace struct {
	w       *World
	asides  atomic.Int32 // how much is done to machines while time goes on
	stirred time.Time    // until when nothing leaps, see stirTime
	looked  time.Time    // when the runtimes were asked what they do
	stops   string       // and what that was
}

// stir says that something has just been done.
func (p *pace) stir() { p.stirred, p.looked = time.Now().Add(stirTime), time.Time{} }

// tell tells daemons the time.
func (e *endpoint) tell(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go e.sit(conn)
	}
}

// sit tells a daemon the time and takes what it says of itself, to its end.
func (e *endpoint) sit(conn net.Conn) {
	defer conn.Close()
	w := e.w
	w.mu.Lock()
	seat, err := clock.NewSeat(conn, w.c.Offset())
	if err == nil {
		e.seat, e.report = seat, nil
	}
	w.mu.Unlock()
	for err == nil {
		var r clock.Report
		if r, err = seat.Read(); err == nil {
			w.mu.Lock()
			if e.seat == seat {
				e.report = &r
			}
			w.mu.Unlock()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if e.seat == seat {
		e.seat, e.report = nil, nil
	}
}

// works says what the machine's daemon has to do, "" is nothing, and when it wants to work by itself. Callers hold
// World.mu.
func (e *endpoint) works() (why string, next time.Duration) {
	r := e.report
	switch {
	case e.seat == nil:
		return "", longest
	case r == nil || r.Offset != e.w.c.Offset():
		return "has not said that it waits", 0
	case r.Remote > 0 || r.Requests > 0:
		return "waits for an answer, or owes one", 0
	case e.member != nil && e.member.life != nil && e.member.life.Steps() != r.Steps:
		return "tells what it has done", 0
	case r.Next < 0:
		return "", longest
	}
	return "", r.Next
}

// longest is an instant that no clock comes to.
const longest = 1 << 62

// leap moves the clock on if nothing is waited for in real time: to the next instant of a daemon or a model, and at most
// to instant t of the scenario.
func (p *pace) leap(t time.Duration) (leapt bool) {
	w := p.w
	if time.Now().Before(p.stirred) || p.astir() != "" {
		return false
	}
	w.c.Cloud(func(time.Duration, *ec2.Cloud) {
		w.mu.Lock()
		defer w.mu.Unlock()
		now := w.now()
		to := min(w.witness.Epoch()+t, now+longestLeap, w.c.Due())
		for _, e := range w.endpoints {
			why, next := e.works()
			if why != "" {
				return
			}
			to = min(to, next)
		}
		if to <= now {
			return
		}
		w.c.Leap(to - now)
		for _, e := range w.endpoints {
			if e.seat != nil {
				e.report = nil
				_ = e.seat.Tell(w.c.Offset()) // a daemon that has ended says so by itself
			}
		}
		leapt = true
	})
	return leapt
}

// astir names what somebody other than a daemon or a model has to do; "" is nothing.
func (p *pace) astir() string {
	w := p.w
	if p.asides.Load() > 0 {
		return "something is done to a machine"
	}
	if why := w.pods.unsettled(w.work.want, p.stuck); why != "" {
		return why
	}
	for _, m := range w.members[1:] {
		if why := p.changes(m); why != "" {
			return m.name() + ": " + why
		}
	}
	if time.Since(p.looked) > lookPeriod {
		p.looked, p.stops = time.Now(), ""
		for _, m := range w.members.living() {
			if why := p.stopping(m); why != "" {
				p.stops = m.name() + ": " + why
			}
		}
	}
	return p.stops
}

// changes says that a node's daemon is to start or to end.
func (p *pace) changes(m *member) string {
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	switch {
	case m.node.Ends():
		return "the machine ends"
	case m.gone():
		return ""
	case m.heldBy != 0:
		return "its daemon ends"
	case m.held:
		return ""
	case m.life == nil || m.starters.Pending():
		return "its daemon starts"
	}
	return ""
}

// stopping says that a node's kubelet or runtime takes a sandbox down, or puts one up.
func (p *pace) stopping(m *member) string {
	list, err := m.runtime.sandboxes(p.w.ctx)
	if err != nil {
		return err.Error()
	}
	for i := range list {
		s := &list[i]
		switch {
		case s.Host || m.hung[s.UID] != 0 || s.Namespace != namespaceOfPods:
		case s.Ready && !p.w.pods.knows(s.UID):
			return "a sandbox is left of a pod " + s.Pod + " that is gone"
		case !s.Ready && s.Netns != "" && inodeAt(m.node.Root()+s.Netns) != 0:
			return "the network of a sandbox of " + s.Pod + " is taken down"
		}
	}
	return ""
}

// stuck says whether a pod stays what it is: something keeps it from ending, or its machine is gone.
func (p *pace) stuck(q *pod) bool {
	m := p.w.members.on(q.node)
	return m != nil && (m.gone() || m.hung[q.uid] != 0)
}
