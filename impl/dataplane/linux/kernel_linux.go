package linux

import (
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/netlink"
)

const (
	// lanes is how many plans are applied at once. The kernel has one lock for all of them (rtnl); more
	// sockets only hide the time between two system calls.
	lanes = 4
	// deletions is how many links are deleted at once. Each waits for the kernel most of its time.
	deletions = 16
	// requestBuffer holds a part of a dump; the kernel makes the parts as large as the buffer, to 32 KiB.
	requestBuffer = 32 << 10
)

// Kernel is one network namespace. Its methods may be called from any goroutine at the same time.
type Kernel struct {
	floor bool
	inode uint64 // of the namespace

	lanes     chan *lane
	deletions chan *lane // of requests to delete a link, which take long

	observing sync.Mutex
	seen      observer

	creating sync.Mutex // from "no link has that name" to "ours has it"

	translating sync.Mutex
	tables      *netlink.Socket // nftables
	nft         netlink.Request

	flushing sync.Mutex
	flows    *netlink.Socket // conntrack
	ct       netlink.Request
	filters  bool // the kernel deletes flows by a filter, as far as we know

	watching sync.Mutex
	monitor  *netlink.Socket

	roster roster
	rules  rulebook

	deleting sync.WaitGroup // requests whose links are gone and that the kernel has not answered

	ports map[uint32]bool // of the sockets that plans speak by; written by Open alone
}

// lane is what one plan at a time uses.
type lane struct {
	s *netlink.Socket
	r netlink.Request
}

// Open opens the network namespace of the calling thread.
func Open(o Options) (*Kernel, error) {
	k := &Kernel{floor: o.Floor, filters: !o.Floor, lanes: make(chan *lane, lanes), deletions: make(chan *lane, deletions), ports: map[uint32]bool{}}
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
	if err = k.openLanes(k.lanes, requestBuffer); err != nil {
		return err
	}
	if err = k.openLanes(k.deletions, podBuffer); err != nil {
		return err
	}
	if k.seen.s, err = netlink.Open(unix.NETLINK_ROUTE, requestBuffer); err != nil {
		return err
	}
	if k.seen.nft, err = netlink.Open(unix.NETLINK_NETFILTER, requestBuffer); err != nil {
		return err
	}
	if k.tables, err = netlink.Open(unix.NETLINK_NETFILTER, requestBuffer); err != nil {
		return err
	}
	if k.flows, err = netlink.Open(unix.NETLINK_NETFILTER, requestBuffer); err != nil {
		return err
	}
	for group, t := range map[int]*told{unix.RTNLGRP_LINK: &k.roster.told, unix.RTNLGRP_IPV4_RULE: &k.rules.told} {
		ask, err := netlink.Open(unix.NETLINK_ROUTE, requestBuffer)
		if err != nil {
			return err
		}
		if err = t.open(ask, group); err != nil {
			return err
		}
	}
	k.monitor, err = openMonitor()
	return err
}

func (k *Kernel) openLanes(lanes chan *lane, buffer int) error {
	for range cap(lanes) {
		s, err := netlink.Open(unix.NETLINK_ROUTE, buffer)
		if err != nil {
			return err
		}
		k.ports[s.Port] = true
		lanes <- &lane{s: s}
	}
	return nil
}

// Close closes the sockets. Nothing else may be running.
func (k *Kernel) Close() error {
	k.deleting.Wait()
	for _, lanes := range []chan *lane{k.lanes, k.deletions} {
		for len(lanes) > 0 {
			(<-lanes).s.Close()
		}
	}
	k.roster.close()
	k.rules.close()
	for _, s := range []*netlink.Socket{k.seen.s, k.seen.nft, k.tables, k.flows, k.monitor} {
		s.Close()
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

// flushes are the addresses of a plan that does nothing but forget their flows: that is done for all of them at once.
func flushes(ops []dataplane.Op) (addrs []netip.Addr) {
	for i := range ops {
		if ops[i].Kind != dataplane.FlushConntrack {
			return nil
		}
		addrs = append(addrs, ops[i].Addr)
	}
	return addrs
}

// Apply runs the plan's operations in their order and stops at the first that fails; done is how many
// are done. pod is the namespace that the plan's pod operations are about, and may be nil when it has none.
func (k *Kernel) Apply(p dataplane.Plan, pod *Pod) (done int, err *dataplane.Error) {
	if addrs := flushes(p.Ops); len(addrs) > 0 { // needs no lane, and would keep it for long
		if err := k.flushConntrack(addrs); err != nil {
			return 0, &dataplane.Error{Kind: kindOf(err), Text: p.Ops[0].String() + " and " + strconv.Itoa(len(addrs)-1) + " more: " + err.Error()}
		}
		return len(p.Ops), nil
	}
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
