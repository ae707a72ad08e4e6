package cri

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/enilab/enilab/impl/grpclite"
	"github.com/enilab/enilab/impl/ipam"
)

// Runtime is a container runtime behind a unix socket. Its methods may be called at once; they take turns.
type Runtime struct {
	socket string
	turn   chan struct{} // one list at a time: it guards what follows, and keeps requests one after another
	known  map[string]detail
	ended  bool
}

// service is what is asked (api.proto).
const service = "/runtime.v1.RuntimeService/"

// Dial names a socket: a path, or unix:// and a path. Every list has a connection of its own, so it fails on a name alone, and what became of an
// earlier connection is no reason for anything.
func Dial(socket string) (*Runtime, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(socket, "unix://"), "unix:")
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("runtime socket %q: expected an absolute path such as /run/containerd/containerd.sock", socket)
	}
	return &Runtime{socket: path, turn: make(chan struct{}, 1), known: map[string]detail{}}, nil
}

// Close ends the Runtime after the list under way.
func (r *Runtime) Close() error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	r.ended = true
	return nil
}

// Sandboxes are all pod sandboxes of the runtime, whatever their state. Address is that of a ready one with a network of its own. The
// list is whole, or there is an error with the runtime's text, an *grpclite.Error where it came from the connection or the runtime.
func (r *Runtime) Sandboxes(ctx context.Context) ([]ipam.Sandbox, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another list of sandboxes: %w", ctx.Err())
	}
	defer func() { <-r.turn }()
	if r.ended {
		return nil, errors.New("the runtime's socket was closed by the daemon")
	}
	c, err := grpclite.Dial(ctx, r.socket)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	answer, err := c.Call(ctx, service+"ListPodSandbox", nil)
	if err != nil {
		return nil, err
	}
	list, err := readList(answer)
	if err != nil {
		return nil, fmt.Errorf("list of sandboxes: %w", err)
	}
	next := make(map[string]detail, len(list))
	for i := range list {
		s := &list[i]
		d, known := r.known[s.ID]
		if s.Ready && !known {
			if d, err = ask(ctx, c, s.ID); err != nil {
				return nil, fmt.Errorf("status of sandbox %s: %w", s.ID, err)
			}
		}
		if d.host || d.address.IsValid() {
			next[s.ID] = d
		}
		if s.Ready {
			s.Address = d.address
		}
	}
	r.known = next
	return list, nil
}

// ask is a sandbox's status. One that was removed since the list was made stays in the list, which it was in, without an address.
func ask(ctx context.Context, c *grpclite.Conn, id string) (detail, error) {
	answer, err := c.Call(ctx, service+"PodSandboxStatus", grpclite.AppendText(nil, 1, id))
	if grpclite.CodeOf(err) == grpclite.NotFound {
		return detail{}, nil
	}
	if err != nil {
		return detail{}, err
	}
	return readDetail(answer)
}
