package netns

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"

	criserver "github.com/enilab/enilab/fakes/cri/server"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
	"github.com/enilab/enilab/systems"
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
	policed bool      // it has a network policy agent's port
}

// serve opens everything that a node's daemon talks to.
func (e *endpoints) serve() error {
	n, w := e.n, e.n.w
	b := &backend{n}
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

// tokensOptional says whether metadata answers requests without a token: as the cluster says, or else where a system asks as it was before IMDSv2.
func (w *World) tokensOptional() bool {
	if w.Cluster.Tokens != "" {
		return w.Cluster.Tokens == "optional"
	}
	return slices.ContainsFunc(w.parts.all(), func(s *systems.System) bool { return s.Metadata.Tokens == "optional" })
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
	b := criBackend{&backend{n}}
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
	server := criserver.New(b)
	switch {
	case n.Socket == models.Unimplemented:
		server = criserver.Unimplemented()
	case api == "cri-v1alpha2":
		server = criserver.New(b, criserver.WithAlpha(true))
	}
	e.runtime = stopper(server.Stop)
	go func() { _ = server.Serve(l) }()
	return nil
}

// listenPolicies gives a node a network policy agent that is content with everything: no policy is judged here.
func (e *endpoints) listenPolicies() error {
	path := e.n.box.Root() + policySocket
	_ = os.Remove(path)
	socket, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	server := newPolicyAgent()
	e.sockets = append(e.sockets, stopper(server.Stop))
	go func() { _ = server.Serve(socket) }()
	if e.policed {
		return nil
	}
	e.policed = true
	port, err := e.listen("tcp", policyAddr)
	if err != nil {
		return err
	}
	go func() { _ = server.Serve(port) }()
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

// addAddress gives the node's loopback an address; one that it has is fine.
func (e *endpoints) addAddress(addr string) error {
	a := netip.MustParseAddr(addr)
	return addLink(e.n.box.Netns(), "lo", netip.PrefixFrom(a, a.BitLen()))
}

// stopper is a Closer of what only stops.
type stopper func()

func (s stopper) Close() error { s(); return nil }
