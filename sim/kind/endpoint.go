package kind

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/models"
)

// Where a daemon finds the laboratory: a folder of the machine, mounted into its container at the same path.
const (
	sockets      = "/run/enilab"
	recordSocket = sockets + "/record.sock"
	criSocket    = sockets + "/cri.sock"
	clockSocket  = sockets + "/clock.sock" // it is told the time there
)

// endpoint is what the laboratory serves on a machine: it takes the daemon's recording, and stands where the daemon expects the runtime. A
// machine that restarts loses /run, so it is all made again.
type endpoint struct {
	w      *World
	node   *cluster.Node
	member *member // nil: the machine is no node of the scenario

	mu      sync.Mutex
	pid     int // of the machine for which it listens
	record  net.Listener
	time    net.Listener
	socket  models.Socket
	runtime io.Closer // what listens in the runtime's place
	shut    bool

	// Guarded by World.mu.
	seat   *clock.Seat   // nil: no daemon is connected
	report *clock.Report // the daemon's last word; nil: it has something to do
}

// bootPeriod is how often it is looked whether the machine has restarted: much less than kubelet takes to start a daemon.
const bootPeriod = 200 * time.Millisecond

// follow listens again whenever the machine has restarted.
func (e *endpoint) follow() {
	for e.w.ctx.Err() == nil {
		e.w.sleep(bootPeriod)
		e.mu.Lock()
		moved := !e.shut && e.pid != e.node.PID()
		e.mu.Unlock()
		if !moved {
			continue
		}
		if err := e.listen(); err != nil && e.node.Alive() {
			e.w.fail(err)
		}
	}
}

// listen opens what the endpoint serves on the machine as it runs now.
func (e *endpoint) listen() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.shut {
		return nil
	}
	pid := e.node.PID() // before anything is made: a machine that restarts meanwhile is another one, and follow sees it by the number
	if err := os.MkdirAll(e.node.Root()+sockets, 0o700); err != nil {
		return fmt.Errorf("%s: %w", e.node.Name, err)
	}
	for _, s := range []struct {
		l    *net.Listener
		path string
		take func(net.Listener)
	}{{&e.record, recordSocket, e.take}, {&e.time, clockSocket, e.tell}} {
		if *s.l != nil {
			_ = (*s.l).Close()
		}
		l, err := listenAt(e.node.Root() + s.path)
		if err != nil {
			return fmt.Errorf("%s: listen for the daemon: %w", e.node.Name, err)
		}
		*s.l = l
		go s.take(l)
	}
	if err := e.stand(); err != nil {
		return err
	}
	e.pid = pid
	return nil
}

// listenAt listens on a unix socket, which stays when it is closed: its machine may be another one by then.
func listenAt(path string) (net.Listener, error) {
	if err := os.RemoveAll(path); err != nil {
		return nil, err
	}
	l, err := net.Listen("unix", path)
	if u, ok := l.(*net.UnixListener); ok && err == nil {
		u.SetUnlinkOnClose(false)
	}
	return l, err
}

func (e *endpoint) close() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shut = true
	for _, c := range []io.Closer{e.record, e.time, e.runtime} {
		if c != nil {
			_ = c.Close()
		}
	}
}

// take takes recordings, each to its end, in the order of their daemons.
func (e *endpoint) take(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		if e.member == nil {
			_, _ = io.Copy(io.Discard, c)
		} else {
			e.member.follow(c)
		}
		_ = c.Close()
	}
}

// follow reads a daemon's recording to its end.
func (m *member) follow(c net.Conn) {
	w := m.w
	pid, err := peerPID(c)
	if err != nil {
		w.fail(fmt.Errorf("%s: who records: %w", m.name(), err))
		return
	}
	stop := make(chan struct{})
	defer close(stop)
	go func() {
		select {
		case <-w.ctx.Done():
			_ = c.Close()
		case <-stop:
		}
	}()
	r := bufio.NewReaderSize(c, 1<<16)
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if err != nil {
			break
		}
		text := line[:len(line)-1]
		if first {
			m.born(pid, text)
		} else {
			m.stepped(text)
		}
		w.events.Add(1)
	}
	m.died()
	m.expectEnd(pid)
}

// born begins a life.
func (m *member) born(pid int, header []byte) {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	l, err := w.witness.Open(m.no, header)
	if err != nil {
		w.failed(fmt.Errorf("%s: the recording cannot be replayed: %w", m.name(), err))
		return
	}
	m.life, m.pid = l, pid
}

// stepped is one step of a daemon.
func (m *member) stepped(line []byte) {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.life == nil {
		return
	}
	if err := m.life.Step(line); err != nil {
		w.disagree(m.name(), fmt.Sprintf("replay: %v", err))
		w.failed(fmt.Errorf("%s: the daemon does not decide as the core does: %w", m.name(), err))
	}
}

// died: a daemon has no more to tell.
func (m *member) died() {
	w := m.w
	w.mu.Lock()
	defer w.mu.Unlock()
	if m.life == nil {
		return
	}
	w.witness.Died(m.no)
	m.told("ipamd has ended")
	m.life, m.pid = nil, 0
	w.metNow(m.heldBy, "the daemon has ended and is not started again")
	m.heldBy = 0
}

// endLimit is how long a daemon whose recording has ended may take to end itself.
const endLimit = 15 * time.Second

// expectEnd makes sure that a recording ended because its daemon did: one that goes on unheard is one of which nothing is known.
func (m *member) expectEnd(pid int) {
	stop, ended := make(chan struct{}), make(chan bool, 1)
	go func() { ended <- cluster.AwaitExit(pid, stop) }()
	t := time.NewTimer(endLimit)
	defer t.Stop()
	select {
	case <-ended:
		return
	case <-m.w.ctx.Done():
	case <-t.C:
		m.w.fail(fmt.Errorf("%s: ipamd (process %d) runs on, but its recording has ended", m.name(), pid))
	}
	close(stop)
	<-ended
}
