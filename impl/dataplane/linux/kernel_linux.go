package linux

import (
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
)

const (
	// lanes is how many plans are applied at once. The kernel has one lock for all of them (rtnl); more
	// sockets only hide the time between two system calls.
	lanes = 4
	// requestBuffer holds a part of a dump; the kernel makes the parts as large as the buffer, to 32 KiB.
	requestBuffer = 32 << 10
	// guesses bounds how many aliases are remembered with their link's index.
	guesses = 1024
)

// Kernel is one network namespace. Its methods may be called from any goroutine at the same time.
type Kernel struct {
	floor bool
	inode uint64 // of the namespace

	lanes chan *lane

	observing sync.Mutex
	seen      observer

	creating sync.Mutex // from "nobody has that name" to "now we have it"

	netfilter sync.Mutex
	tables    *socket // nftables
	flows     *socket // conntrack
	nft       request

	watching sync.Mutex
	monitor  *socket

	remembering sync.Mutex
	index       map[string]int // alias to a link's index: a guess

	ports map[uint32]bool // of our own sockets; written by Open alone
}

// lane is what one plan at a time uses.
type lane struct {
	s *socket
	r request
}

// Open opens the network namespace of the calling thread.
func Open(o Options) (*Kernel, error) {
	k := &Kernel{floor: o.Floor, lanes: make(chan *lane, lanes), index: map[string]int{}, ports: map[uint32]bool{}}
	if err := k.open(); err != nil {
		k.Close()
		return nil, fmt.Errorf("open the kernel's netlink sockets: %w", err)
	}
	return k, nil
}

func (k *Kernel) open() (err error) {
	if k.inode, err = threadNamespace(); err != nil {
		return err
	}
	for range lanes {
		s, err := k.openOwn(unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		k.lanes <- &lane{s: s}
	}
	if k.seen.s, err = k.openOwn(unix.NETLINK_ROUTE); err != nil {
		return err
	}
	if k.seen.nft, err = k.openOwn(unix.NETLINK_NETFILTER); err != nil {
		return err
	}
	if k.tables, err = k.openOwn(unix.NETLINK_NETFILTER); err != nil {
		return err
	}
	if k.flows, err = k.openOwn(unix.NETLINK_NETFILTER); err != nil {
		return err
	}
	k.monitor, err = openMonitor()
	return err
}

// openOwn opens a socket whose notifications Watch leaves out.
func (k *Kernel) openOwn(protocol int) (*socket, error) {
	s, err := openSocket(protocol, requestBuffer)
	if err == nil && protocol == unix.NETLINK_ROUTE {
		k.ports[s.port] = true
	}
	return s, err
}

// Close closes the sockets. Nothing else may be running.
func (k *Kernel) Close() error {
	for {
		select {
		case l := <-k.lanes:
			l.s.close()
			continue
		default:
		}
		break
	}
	for _, s := range []*socket{k.seen.s, k.seen.nft, k.tables, k.flows, k.monitor} {
		s.close()
	}
	k.seen.s, k.seen.nft, k.tables, k.flows, k.monitor = nil, nil, nil, nil, nil
	return nil
}

// threadNamespace is the inode of the calling thread's network namespace.
func threadNamespace() (uint64, error) {
	var st unix.Stat_t
	if err := unix.Stat("/proc/thread-self/ns/net", &st); err != nil {
		return 0, &os.PathError{Op: "stat", Path: "/proc/thread-self/ns/net", Err: err}
	}
	return st.Ino, nil
}

// Apply runs the plan's operations in their order and stops at the first that fails; done is how many
// are done. pod is the namespace that the plan's pod operations are about, and may be nil when it has none.
func (k *Kernel) Apply(p dataplane.Plan, pod *Pod) (done int, err *dataplane.Error) {
	l := <-k.lanes
	defer func() { k.lanes <- l }()
	a := applier{k: k, s: l.s, r: &l.r, pod: pod}
	for done = range p.Ops {
		op := &p.Ops[done]
		if err := a.apply(op); err != nil {
			return done, &dataplane.Error{Kind: kindOf(err), Op: done, Text: op.String() + ": " + err.Error()}
		}
	}
	return len(p.Ops), nil
}

// remember notes which index the link of an alias has.
func (k *Kernel) remember(alias string, index int) {
	k.remembering.Lock()
	defer k.remembering.Unlock()
	if len(k.index) >= guesses {
		clear(k.index)
	}
	k.index[alias] = index
}

func (k *Kernel) forget(alias string) {
	k.remembering.Lock()
	defer k.remembering.Unlock()
	delete(k.index, alias)
}

// guess is the index that the link of an alias had, or 0.
func (k *Kernel) guess(alias string) int {
	k.remembering.Lock()
	defer k.remembering.Unlock()
	return k.index[alias]
}
