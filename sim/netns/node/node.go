package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
)

// callTimeout is how long one call to the helper may take, beyond what the call itself asks for. Nothing that the helper does by itself
// takes a tenth of it; a helper that is stuck must not stop the laboratory for good.
const callTimeout = 30 * time.Second

// Node is the client's end of one node. Its methods may be called from several goroutines.
type Node struct {
	name    string
	slow    float64 // Spec.Slowness
	daemon  Process // Spec.Daemon and Spec.Capabilities
	process *exec.Cmd
	netns   *os.File
	wire    *frames
	events  *queue

	mu      sync.Mutex
	last    uint64
	pending map[uint64]chan message // answers that are waited for
	broken  error                   // why no answer comes any more

	gone  chan struct{} // closed once the helper's process has ended
	close sync.Once
}

// Start makes a node: the helper's process, its namespaces and its file system. It takes some 10 ms. An error says what the machine
// lacks, if that is the reason.
func Start(s Spec) (*Node, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("start node %q: %w", s.Name, err)
	}
	n := &Node{name: s.Name, slow: s.Slowness, daemon: s.process(), events: newQueue(), pending: map[uint64]chan message{}, gone: make(chan struct{})}
	if err := n.launch(&s); err != nil {
		return nil, fmt.Errorf("start node %q: %w", s.Name, err)
	}
	go n.receive()
	go n.reap()
	if _, err := call[struct{}](n, "setup", &s, 0); err != nil {
		_ = n.Close()
		return nil, err
	}
	return n, nil
}

func (s *Spec) check() error {
	switch {
	case s.Name == "" || len(s.Name) > 64:
		return fmt.Errorf("the name has %d characters, a hostname has 1 to 64", len(s.Name))
	case len(s.Self) == 0:
		return errors.New("no Spec.Self: it has to be an argument list of this binary that calls node.Main")
	}
	return nil
}

// receive takes what the helper sends until it sends no more; then there is no helper.
func (n *Node) receive() {
	for {
		var m message
		err := n.wire.read(&m)
		if err != nil {
			_ = n.process.Process.Kill() // unless it has ended
			<-n.gone
			n.fail(n.process.ProcessState.String())
			return
		}
		if m.Event != nil {
			n.events.push(*m.Event)
			continue
		}
		n.mu.Lock()
		c := n.pending[m.ID]
		delete(n.pending, m.ID)
		n.mu.Unlock()
		if c != nil {
			c <- m // has room for it
		}
	}
}

// fail ends every call, those under way and those to come.
func (n *Node) fail(how string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.broken = fmt.Errorf("the node's helper is gone (%s)", how)
	for id, c := range n.pending {
		close(c)
		delete(n.pending, id)
	}
	n.events.end()
}

// reap waits for the helper, which ends last of all processes of its node.
func (n *Node) reap() {
	_ = n.process.Wait()
	close(n.gone)
}

// call asks the helper and waits for its answer, at most extra longer than a call may take anyway.
func call[R any](n *Node, method string, args any, extra time.Duration) (result R, err error) {
	body, err := n.ask(method, args, slowed(callTimeout, n.slow)+max(extra, 0))
	if len(body) > 0 { // some answers have both: an observation that is not complete, and why
		if e := json.Unmarshal(body, &result); e != nil && err == nil {
			err = e
		}
	}
	if err != nil {
		err = fmt.Errorf("%s: %s: %w", n.name, method, err)
	}
	return result, err
}

func (n *Node) ask(method string, args any, timeout time.Duration) (json.RawMessage, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	id, c, err := n.expect()
	if err != nil {
		return nil, err
	}
	if err := n.wire.write(&request{ID: id, Method: method, Args: raw}); err != nil {
		n.forget(id)
		return nil, fmt.Errorf("the node's helper does not listen: %w", err)
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case m, ok := <-c:
		if !ok {
			return nil, n.brokenBy()
		}
		if m.Error != "" {
			return m.Body, errors.New(m.Error)
		}
		return m.Body, nil
	case <-timer.C:
		n.forget(id)
		return nil, fmt.Errorf("the node's helper has not answered for %v", timeout)
	}
}

// expect takes a number for a request and a place for its answer.
func (n *Node) expect() (uint64, <-chan message, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.broken != nil {
		return 0, nil, n.broken
	}
	n.last++
	c := make(chan message, 1)
	n.pending[n.last] = c
	return n.last, c, nil
}

func (n *Node) forget(id uint64) {
	n.mu.Lock()
	delete(n.pending, id)
	n.mu.Unlock()
}

func (n *Node) brokenBy() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.broken
}

// Name is the node's.
func (n *Node) Name() string { return n.name }

// Netns is the node's network namespace. It belongs to the Node, which closes it.
func (n *Node) Netns() *os.File { return n.netns }

// PID is the helper's process ID as the caller's PID namespace has it. In the node it is 1.
func (n *Node) PID() int { return n.process.Process.Pid }

// Root is the path by which the caller sees the node's file system, for as long as the node lives.
func (n *Node) Root() string { return "/proc/" + strconv.Itoa(n.PID()) + "/root" }

// Events are what has ended, in the order in which it ended. They are kept until they are read, and the channel is closed after the last
// one once the node is gone. A reader that stops before that leaks a goroutine.
func (n *Node) Events() <-chan Event { return n.events.out }

// Gone is closed once the node's processes have ended: by Close, or because the helper died.
func (n *Node) Gone() <-chan struct{} { return n.gone }

// Kill ends every process of the node at once, and with them every call that waits for an answer. Close is still needed.
func (n *Node) Kill() { _ = n.process.Process.Kill() } // the helper has nothing to tidy up: the kernel does

// Close ends every process of the node, and with them its namespaces, mounts and files. It may be called more than once.
func (n *Node) Close() error { return n.CloseWithin(slowed(callTimeout, n.slow)) }

// CloseWithin is Close with a bound: the error says what has not ended by then.
func (n *Node) CloseWithin(limit time.Duration) error {
	n.close.Do(func() {
		n.Kill()
		_ = n.wire.stream.Close()
		_ = n.netns.Close()
	})
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-n.gone:
		return nil
	case <-late.C:
		return fmt.Errorf("close %s: process %d has not ended %v after SIGKILL: something in it cannot be interrupted", n.name, n.PID(), limit)
	}
}

// StartDaemon is StartProcess of Spec.Daemon, with args after its arguments.
func (n *Node) StartDaemon(args []string, env map[string]string) (life int, err error) {
	p := n.daemon
	if len(p.Argv) == 0 {
		return 0, fmt.Errorf("%s: this node has no daemon: Spec.Daemon is empty", n.name)
	}
	p.Argv, p.Env = slices.Concat(p.Argv, args), env
	return n.StartProcess(p)
}

// StartProcess runs a program as the daemon. There is one at a time. The life it gives is 1 for the first and grows; the DaemonExited event names it,
// and comes when nothing that the daemon started runs any more. Of what it prints Output has the newest.
func (n *Node) StartProcess(p Process) (life int, err error) {
	return call[int](n, "start-daemon", p, 0)
}

// SignalDaemon sends a signal to the daemon; an error when none runs. When the daemon has ended, all that it started is killed.
func (n *Node) SignalDaemon(sig syscall.Signal) error {
	return n.do("signal-daemon", signalArgs{sig})
}

// Memory is the largest resident set that the daemon has had, in bytes; an error when none runs.
func (n *Node) Memory() (int64, error) { return call[int64](n, "memory", nil, 0) }

// MakeNetns makes a pod's namespace, mounted at /run/netns/NAME, with lo up and the responder listening, and gives its inode.
func (n *Node) MakeNetns(name string) (inode uint64, err error) {
	return call[uint64](n, "make-netns", name, 0)
}

// RemoveNetns unmounts a namespace, as a runtime does. It dies unless it is held.
func (n *Node) RemoveNetns(inode uint64) error { return n.do("remove-netns", inode) }

// Hold keeps a namespace and its responder alive although it is unmounted: a process in state D is in it. Holds are counted.
func (n *Node) Hold(inode uint64) error { return n.do("hold", inode) }

// Release ends one Hold. The last one ends a namespace that is unmounted.
func (n *Node) Release(inode uint64) error { return n.do("release", inode) }

// RunPlugin runs the plugin through libcni. It returns once the run is under way; how it ended is a PluginDone event with that op, which
// no other run may have at the same time. An error means that nothing was run and no event comes.
func (n *Node) RunPlugin(op uint64, r Run) error { return n.do("run-plugin", runArgs{op, r}) }

// KillPlugin SIGKILLs the process of a run, makes libcni go no further, and waits until it has ended. The event still comes. No run of that
// op: nothing happens.
func (n *Node) KillPlugin(op uint64) error { return n.do("kill-plugin", op) }

// GC runs the plugin binary's GC verb, with valid as cni.dev/valid-attachments or, if absent, without that key. Code is 0 or the CNI
// error code, text the plugin's message. A plugin that never ran has code -1.
func (n *Node) GC(valid []Attachment, absent bool) (code int, text string) {
	return n.direct("gc", gcArgs{valid, absent})
}

// Status runs the plugin binary's STATUS verb. The results are GC's.
func (n *Node) Status() (code int, text string) { return n.direct("status", nil) }

func (n *Node) direct(method string, args any) (int, string) {
	e, err := call[ended](n, method, args, slowed(directTimeout, n.slow))
	if err != nil {
		return -1, err.Error()
	}
	return e.Code, e.Text
}

// Addresses are the addresses that are configured in the pods' namespaces that live, held ones included; loopback's and those that pods have
// added are left out.
func (n *Node) Addresses() ([]Holder, error) { return call[[]Holder](n, "addresses", nil, 0) }

// Ask connects to a TCP port from a pod's namespace (0: from the node) and gives what the other side says before it closes. The time is
// what that took.
func (n *Node) Ask(from uint64, to netip.AddrPort, timeout time.Duration) (text string, took time.Duration, err error) {
	a, err := call[answer](n, "ask", askArgs{from, to, timeout}, timeout)
	return a.Text, a.Took, err
}

// Observe is what impl/dataplane/linux sees in the node's namespace. The error says why an observation is not complete.
func (n *Node) Observe() (dataplane.Observation, error) {
	return call[dataplane.Observation](n, "observe", nil, 0)
}

// ConfigurePrimary does what the machine's own network configuration does: the link is up and has the address, with its subnet route, and
// the default route of the main table leads to the gateway.
func (n *Node) ConfigurePrimary(name string, address netip.Prefix, gateway netip.Addr) error {
	return n.do("configure-primary", addressArgs{name, address, gateway})
}

// Interfere has a third party change the node's namespace, or a pod's, and says how many things there were to change.
// What is gone, a namespace or a link, has none: no error.
func (n *Node) Interfere(a kernel.Accident) (int, error) { return call[int](n, "interfere", a, 0) }

// AddThirdParty puts on the node what others than its CNI have there (interference.AddThirdParty), and says what this kernel takes none of, and why.
func (n *Node) AddThirdParty() (lacks []string, err error) {
	return call[[]string](n, "add-third-party", nil, 0)
}

// ThirdParty is what of that is there, by name, as text.
func (n *Node) ThirdParty() (map[string]string, error) {
	return call[map[string]string](n, "third-party", nil, 0)
}

// LoseRecords removes the daemon's records of allocations (Records), and says whether there were any.
func (n *Node) LoseRecords() (bool, error) { return call[bool](n, "lose-records", nil, 0) }

// WriteRecords replaces them.
func (n *Node) WriteRecords(data []byte) error { return n.WriteFile(Records, data) }

// WriteFile writes a file of the node, of mode 0600 if it is new, and makes the folders above it.
func (n *Node) WriteFile(path string, data []byte) error {
	return n.do("write-file", fileArgs{path, data})
}

// ReadFile reads a file of the node; an error that says so when it has more than 16 MiB.
func (n *Node) ReadFile(path string) ([]byte, error) { return call[[]byte](n, "read-file", path, 0) }

// Install makes files of the node of others, or makes them anew: processes that run the old one go on running it.
func (n *Node) Install(files []Copy) error { return n.do("install", files) }

// Link lets a path of the node lead to another one, unless it does already.
func (n *Node) Link(path, target string) error { return n.do("link", linkArgs{path, target}) }

// Remove removes a file of the node, if it is there.
func (n *Node) Remove(path string) error { return n.do("remove", path) }

// Reboot is a reboot without the time that it takes. The daemon, the plugins (their events come, with what killed them) and every other
// process are gone, pods' namespaces with their holds and responders, all links but the ENIs', every rule, route and nftables table, and
// what was in /run/aws-node. ENIs' links are there, down and without an address; lo is up. What is in /var/lib stays.
func (n *Node) Reboot() error { return n.do("reboot", nil) }

// Exec runs a command in the node and waits for it, or kills it and what it started at ctx's deadline (10 minutes from now without one):
// standard output and error together (the first 16 MiB), and its exit code, -1 after a signal.
func (n *Node) Exec(ctx context.Context, argv []string) (out []byte, code int, err error) {
	return n.Command(ctx, Process{Argv: argv})
}

// Command is Exec of a program with an environment, a folder and capabilities of its own.
func (n *Node) Command(ctx context.Context, p Process) (out []byte, code int, err error) {
	if err := ctx.Err(); err != nil {
		return nil, -1, err
	}
	timeout := execTimeout
	if end, ok := ctx.Deadline(); ok {
		timeout = min(timeout, time.Until(end))
	}
	o, err := call[output](n, "exec", execArgs{p, timeout}, timeout)
	return o.Data, o.Code, err
}

// Leaks is what there is in the node now. Compare it with what there was before.
func (n *Node) Leaks() (Inventory, error) { return call[Inventory](n, "leaks", nil, 0) }

// do is a call that gives nothing but an error.
func (n *Node) do(method string, args any) error {
	_, err := call[struct{}](n, method, args, 0)
	return err
}
