package kind

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	fake "github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
	"github.com/enilab/enilab/sim/models"
)

// set exchanges what stands behind the runtime endpoint.
func (e *endpoint) set(s models.Socket) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.socket = s
	if e.shut {
		return nil
	}
	return e.stand()
}

// stand listens in the runtime's place. Callers hold mu.
func (e *endpoint) stand() error {
	if e.runtime != nil {
		_ = e.runtime.Close()
		e.runtime = nil
	}
	var err error
	if e.runtime, err = standIn(e.socket, e.node.Root()+criSocket, e.node.Root()+runtimeSocket); err != nil {
		return fmt.Errorf("%s: stand in the runtime's place: %w", e.node.Name, err)
	}
	return nil
}

// standIn listens at a path as s says; nil is nothing. runtime is the socket of the right one.
func standIn(s models.Socket, path, runtime string) (io.Closer, error) {
	if s == models.Absent {
		return nil, os.RemoveAll(path)
	}
	l, err := listenAt(path)
	if err != nil {
		return nil, err
	}
	switch s {
	case models.Right:
		return forward(l, runtime), nil
	case models.Unimplemented:
		return served(l, criserver.Unimplemented()), nil
	}
	return served(l, criserver.New(otherRuntime{s == models.Partial})), nil
}

// served runs a server that Close stops.
func served(l net.Listener, s *criserver.Server) io.Closer {
	go func() { _ = s.Serve(l) }()
	return stopper{s}
}

type stopper struct{ s *criserver.Server }

func (s stopper) Close() error {
	s.s.Stop()
	return nil
}

// otherRuntime is not the node's.
type otherRuntime struct{ partial bool }

func (o otherRuntime) Sandboxes(context.Context) ([]fake.Sandbox, error) {
	if o.partial {
		return nil, status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	}
	return nil, nil
}

func (otherRuntime) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: "containerd", Version: "1"}, nil
}

// forwarder passes connections on, byte by byte.
type forwarder struct {
	to string
	l  net.Listener

	mu    sync.Mutex
	conns map[net.Conn]bool
	shut  bool
}

func forward(l net.Listener, to string) *forwarder {
	f := &forwarder{to: to, l: l, conns: map[net.Conn]bool{}}
	go f.run()
	return f
}

func (f *forwarder) run() {
	for {
		c, err := f.l.Accept()
		if err != nil {
			return
		}
		go f.pass(c)
	}
}

// pass carries one connection. A runtime that is not there closes it, as a refusal would.
func (f *forwarder) pass(c net.Conn) {
	defer f.drop(c)
	if !f.keep(c) {
		return
	}
	to, err := net.Dial("unix", f.to)
	if err != nil {
		return
	}
	defer f.drop(to)
	if !f.keep(to) {
		return
	}
	done := make(chan struct{}, 2)
	for _, pair := range [][2]net.Conn{{c, to}, {to, c}} {
		go func() {
			_, _ = io.Copy(pair[0], pair[1])
			done <- struct{}{}
		}()
	}
	<-done
}

func (f *forwarder) keep(c net.Conn) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.conns[c] = true
	return !f.shut
}

func (f *forwarder) drop(c net.Conn) {
	_ = c.Close()
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.conns, c)
}

// Close ends every connection: whoever has one open has to come again, and meets what stands there then.
func (f *forwarder) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.shut = true
	for c := range f.conns {
		_ = c.Close()
	}
	return f.l.Close()
}
