package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// helper is PID 1 of a node. All its threads are in the node's network namespace, but those that never return to Go's pool.
type helper struct {
	wire  *frames
	spec  Spec
	ready atomic.Bool // set-up is done: before that, "/" is the host's
	network
	children

	mu     sync.Mutex
	pods   map[uint64]*pod // by inode, while the helper keeps them alive
	runs   map[uint64]*run // by op
	daemon *daemon         // nil: none runs
	life   int             // the newest daemon's
}

// Main is the helper: the main function of the process that Start executes. It returns when the client has closed its end, and the
// process has to end then.
func Main() error {
	wire, err := inherited()
	if err != nil {
		return err
	}
	h := &helper{wire: wire, pods: map[uint64]*pod{}, runs: map[uint64]*run{}}
	h.reapOrphans()
	for {
		r := new(request)
		if err := wire.read(r); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read from the laboratory: %w", err)
		}
		go h.serve(r)
	}
}

// inherited is the helper's end of the socket pair. It refuses what Start did not start: set-up would rearrange the caller's own world.
func inherited() (*frames, error) {
	const fd = 3
	unix.CloseOnExec(fd) // before anything else is started
	kind, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE)
	if err != nil || kind != unix.SOCK_STREAM || os.Getpid() != 1 {
		return nil, errors.New("this command is run by the laboratory, once per node, in namespaces of its own: there is nothing to run by hand")
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		return nil, fmt.Errorf("set the socket pair non-blocking: %w", err)
	}
	return &frames{stream: os.NewFile(fd, "client")}, nil
}

// method does what a request asks for. What it returns as after runs once the answer is on its way, so that no event overtakes it.
type method func(h *helper, args json.RawMessage) (result any, after func(), err error)

// give is a method that has a result.
func give[A, R any](f func(*helper, A) (R, error)) method {
	return begin(func(h *helper, a A) (R, func(), error) { r, err := f(h, a); return r, nil, err })
}

// act is a method that has none.
func act[A any](f func(*helper, A) error) method {
	return begin(func(h *helper, a A) (struct{}, func(), error) { return struct{}{}, nil, f(h, a) })
}

// begin is a method that goes on after its answer.
func begin[A, R any](f func(*helper, A) (R, func(), error)) method {
	return func(h *helper, raw json.RawMessage) (any, func(), error) {
		var a A
		if err := json.Unmarshal(raw, &a); err != nil {
			return nil, nil, fmt.Errorf("arguments: %w", err)
		}
		return f(h, a)
	}
}

// none are the arguments of a method that has none.
type none = *struct{}

var methods = map[string]method{
	"start-daemon":      begin((*helper).startDaemon),
	"signal-daemon":     act((*helper).signalDaemon),
	"memory":            give((*helper).memory),
	"make-netns":        give((*helper).makeNetns),
	"remove-netns":      act((*helper).removeNetns),
	"hold":              act((*helper).hold),
	"release":           act((*helper).release),
	"run-plugin":        begin((*helper).runPlugin),
	"kill-plugin":       act((*helper).killPlugin),
	"gc":                give((*helper).gc),
	"status":            give((*helper).status),
	"addresses":         give((*helper).addresses),
	"ask":               give((*helper).ask),
	"configure-primary": act((*helper).configurePrimary),
	"interfere":         give((*helper).interfere),
	"add-third-party":   give((*helper).addThirdParty),
	"third-party":       give((*helper).thirdParty),
	"lose-records":      give((*helper).loseRecords),
	"link":              act((*helper).link),
	"install":           act((*helper).install),
	"remove":            act((*helper).remove),
	"write-file":        act((*helper).writeFile),
	"read-file":         give((*helper).readFile),
	"reboot":            act((*helper).reboot),
	"exec":              give((*helper).exec),
	"observe":           give((*helper).observe),
	"leaks":             give((*helper).leaks),
}

// serve answers one request.
func (h *helper) serve(r *request) {
	m := message{ID: r.ID}
	result, after, err := h.dispatch(r)
	if result != nil {
		body, e := json.Marshal(result)
		m.Body, err = body, errors.Join(err, e)
	}
	if err != nil {
		m.Error = err.Error()
	}
	if err := h.wire.write(&m); err != nil && after == nil {
		fmt.Fprintf(os.Stderr, "answer %s: %v\n", r.Method, err) // the reader of the socket pair ends the process
	}
	if after != nil {
		after()
	}
}

func (h *helper) dispatch(r *request) (any, func(), error) {
	if r.Method == "setup" {
		return act((*helper).setup)(h, r.Args)
	}
	f, ok := methods[r.Method]
	switch {
	case !ok:
		return nil, nil, errors.New("the helper has no such method: client and helper are not of one build")
	case !h.ready.Load():
		return nil, nil, errors.New("the node is not set up")
	}
	return f(h, r.Args)
}

// event tells the client.
func (h *helper) event(e Event) {
	_ = h.wire.write(&message{Event: &e}) // without a reader the process ends
}

// sysctls are what a node has at boot, whatever the host has: a new namespace inherits the host's. Every new link filters strictly, which
// is Amazon Linux 2's default, and the one that amazon-vpc-cni-k8s's init container loosens.
var sysctls = []struct{ name, value string }{{"ip_forward", "1"}, {"conf/all/rp_filter", "0"}, {"conf/default/rp_filter", "1"}}

// setup makes the node out of new namespaces.
func (h *helper) setup(s Spec) error {
	if h.ready.Load() {
		return errors.New("the node is set up already")
	}
	h.spec = s
	if err := unix.Sethostname([]byte(s.Name)); err != nil {
		return fmt.Errorf("set the hostname: %w", err)
	}
	if err := makeRoot(&h.spec); err != nil {
		return err
	}
	if err := h.open(); err != nil {
		return err
	}
	if err := linkUp(h.nl, "lo"); err != nil {
		return err
	}
	for _, s := range sysctls {
		if err := os.WriteFile("/proc/sys/net/ipv4/"+s.name, []byte(s.value), 0); err != nil {
			return fmt.Errorf("set net.ipv4.%s: %w", s.name, err)
		}
	}
	h.ready.Store(true)
	return nil
}
