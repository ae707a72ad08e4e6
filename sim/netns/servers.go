package netns

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/fakes/kube"
	kubeserver "github.com/enilab/enilab/fakes/kube/server"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// Where a node finds what stands outside of it. The metadata's address is the real one.
const (
	imdsAddr = "169.254.169.254"
	ec2Addr  = "127.0.0.1:4566"
	kubeAddr = "127.0.0.1:6443"

	criSocket    = "/run/containerd/containerd.sock"
	clockSocket  = node.Sockets + "/clock.sock"
	recordSocket = node.Sockets + "/record.sock"
)

// endpoints are what stands outside of a node and is found inside of it: who serves it there, and where.
type endpoints struct {
	n       *instance
	sockets []io.Closer
	servers []*http.Server
	runtime io.Closer // what stands behind the runtime endpoint
}

// serve opens everything that a node's daemon talks to.
func (e *endpoints) serve() error {
	n, w := e.n, e.n.w
	b := &backend{w, n}
	web := map[string]*http.Server{
		imdsAddr + ":80": imdsserver.Server(n.tokenless.watch(imdsserver.Handler(imdsserver.Config{View: b.metadata, Now: b.clock, Role: "node", Options: imdsserver.Options{V1: w.tokensOptional()}}))),
		ec2Addr:          ec2server.Server(ec2server.Handler(b)),
		kubeAddr:         w.keeper.kubernetes(n),
	}
	if err := e.addAddress(imdsAddr); err != nil {
		return err
	}
	for addr, s := range web {
		l, err := e.listen("tcp", addr)
		if err != nil {
			return err
		}
		e.servers = append(e.servers, s)
		go func() { _ = s.Serve(l) }()
	}
	if err := w.keeper.listen(n); err != nil {
		return err
	}
	return e.listenCRI()
}

// close ends all that listens.
func (e *endpoints) close() {
	for _, s := range e.servers {
		_ = s.Close()
	}
	if e.runtime != nil {
		_ = e.runtime.Close()
	}
	for _, c := range e.sockets {
		_ = c.Close()
	}
}

// listen opens a TCP listener in the node's network namespace.
func (e *endpoints) listen(network, addr string) (l net.Listener, err error) {
	failed := vpc.Do(e.n.box.Netns(), func() error { l, err = net.Listen(network, addr); return nil })
	if err = errors.Join(failed, err); err != nil {
		return nil, fmt.Errorf("listen on %s: %w", addr, err)
	}
	return l, nil
}

// accept serves a unix socket in the node's file system. Connections are taken in the order in which they were made, one at a time.
func (e *endpoints) accept(path string, take func(net.Conn)) error {
	l, err := net.Listen("unix", e.n.box.Root()+path)
	if err != nil {
		return err
	}
	e.sockets = append(e.sockets, l)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			take(conn)
		}
	}()
	return nil
}

// backend carries a node's requests to the models.
type backend struct {
	w *World
	n *instance
}

func (b *backend) clock() time.Duration {
	var t time.Duration
	b.w.mail.Ask(func() { t = b.w.now() })
	return t
}

// Do makes a request to EC2 travel, as the model says.
func (b *backend) Do(ctx context.Context, r *ec2.Request) (ec2.Response, error) {
	request := *r
	return b.w.mail.Await(ctx, func(answer func(*ec2.Response)) { b.n.send(&request, answer) })
}

// hold keeps a request back for a while.
func (b *backend) hold(d time.Duration) {
	done := make(chan struct{})
	b.w.mail.Post(func() {
		release := b.n.keep()
		b.w.after(d, func() { release(); close(done) })
	})
	select {
	case <-done:
	case <-b.w.mail.Closed():
	}
}

// metadata is the instance's view; a silent service hangs for as long as a caller waits.
func (b *backend) metadata(context.Context) (view ec2.IMDS, ok bool) {
	b.w.mail.Ask(func() {
		if view, ok = b.w.EC2.IMDS(b.w.now(), b.n.Instance); ok {
			view.ENIs = append([]ec2.IMDSENI(nil), view.ENIs...)
		}
	})
	if !ok {
		b.hold(models.HangTimeout)
		panic(http.ErrAbortHandler) // the connection ends without an answer
	}
	return view, ok
}

// kubeBackend is the API server.
type kubeBackend struct{ *backend }

// read looks at the models, for who reaches the API server.
func (b kubeBackend) read(look func()) (err error) {
	ok := b.w.mail.Ask(func() {
		if look(); b.w.Kube.Away(b.w.now()) {
			err = errAway
		}
	})
	if !ok {
		err = machine.ErrClosed
	}
	return err
}

func (b kubeBackend) Pods(_ context.Context, name string) (pods []kube.Pod, err error) {
	err = b.read(func() {
		if name == b.n.Name() {
			pods = append(pods, b.w.Kube.ListPods(int(b.n.No))...)
		}
	})
	return pods, err
}

func (b kubeBackend) Node(_ context.Context, name string) (info kubeserver.NodeInfo, ok bool, err error) {
	err = b.read(func() { info, ok = b.n.nodeInfo(), name == b.n.Name() && !b.n.Gone })
	return info, ok, err
}

// ENIConfig is asked for with the node object, before an ENI is made.
func (b kubeBackend) ENIConfig(_ context.Context, name string) (e kube.ENIConfig, ok bool, err error) {
	err = b.read(func() { e, _, ok = b.w.Kube.ENIConfig(name) })
	return e, ok, err
}

// errAway ends a connection without an answer.
var errAway = errors.New("the API server is away")

// Changed never comes: what a verb changes of a node object under a daemon that runs are labels and annotations, and a daemon reads them when it
// needs them. One that starts reads it anew.
func (b kubeBackend) Changed() <-chan struct{} { return nil }

// listenCRI exchanges what stands behind the runtime endpoint. What is no runtime answers like one that knows nothing:
// gRPC says unimplemented, HTTP not found.
func (e *endpoints) listenCRI() error {
	if e.runtime != nil {
		_ = e.runtime.Close()
		e.runtime = nil
	}
	n := e.n
	api, socket := n.w.keeper.runtime(n)
	switch {
	case n.Socket == models.Absent:
		return e.remove(socket)
	case api == "none" || socket == "":
		return nil
	}
	l, err := e.listenAt(socket)
	if err != nil {
		return err
	}
	b := criBackend{&backend{n.w, n}}
	if api == "docker" {
		h := criserver.Docker(b)
		if n.Socket == models.Unimplemented {
			h = http.NotFoundHandler()
		}
		s := criserver.DockerServer(h)
		e.runtime = s
		go func() { _ = s.Serve(l) }()
		return nil
	}
	if api == "cri-v1alpha2" {
		e.servesCRI(l, criserver.New(b, criserver.WithAlpha(true)))
	} else {
		e.servesCRI(l, criserver.New(b))
	}
	return nil
}

// listenAt listens on a socket in the node, a path or ADDRESS:PORT, which may have had another listener.
func (e *endpoints) listenAt(socket string) (net.Listener, error) {
	if !strings.HasPrefix(socket, "/") {
		return e.listen("tcp", socket)
	}
	if err := e.remove(socket); err != nil {
		return nil, err
	}
	path := e.n.box.Root() + socket
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	return net.Listen("unix", path)
}

// remove takes a socket of the node away.
func (e *endpoints) remove(socket string) error {
	if !strings.HasPrefix(socket, "/") {
		return nil
	}
	return e.n.box.Remove(socket)
}

// servesCRI lets a gRPC server answer on a listener.
func (e *endpoints) servesCRI(l net.Listener, server *criserver.Server) {
	if e.n.Socket == models.Unimplemented {
		server = criserver.Unimplemented()
	}
	e.runtime = stopper(server.Stop)
	go func() { _ = server.Serve(l) }()
}

// criBackend is the runtime.
type criBackend struct{ *backend }

func (b criBackend) Sandboxes(context.Context) (out []cri.Sandbox, err error) {
	down, partial := false, false
	ok := b.w.mail.Ask(func() {
		if b.w.parts.WithoutBooks {
			b.w.SocketMet(&b.n.Node, "the daemon asks for the list, and the runtime socket is "+b.n.Socket.String())
		}
		if b.n.Socket == models.Empty {
			return
		}
		list, whole := b.n.CRI.ListSandboxes()
		b.w.BoxesMet(&b.n.Node)
		out, down, partial = append(out, list...), !whole, b.n.Socket == models.Partial
	})
	switch {
	case !ok:
		return nil, machine.ErrClosed
	case down:
		b.hold(models.HangTimeout)
		return nil, status.Error(codes.Unavailable, "the runtime is restarting")
	case partial:
		return nil, status.Error(codes.DeadlineExceeded, "context deadline exceeded")
	}
	return out, nil
}

func (b criBackend) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: b.w.Cluster.Runtime.String(), Version: "1"}, nil
}

// addAddress gives the node's loopback an address.
func (e *endpoints) addAddress(addr string) error {
	return addLoopback(e.n.box.Netns(), netip.MustParseAddr(addr))
}
