package linux

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/netlink"
)

const (
	// settle is how long Watch gathers what comes together before it gives a hint: a third party that flushes
	// a table sends one notification per line.
	settle = 20 * time.Millisecond
	// stopCheck is how often Watch looks whether it should end.
	stopCheck = 200 * time.Millisecond
	// monitorBuffer is what the kernel may queue while Watch is busy, in bytes; past it, ENOBUFS, which is a hint too.
	monitorBuffer = 1 << 20
)

// errWatching refuses a second Watch: there is one queue of notifications.
var errWatching = errors.New("watch the kernel: somebody watches already")

// watched are the groups that tell of what an Observation holds. Entries of the proxy table tell no listener
// (pneigh_lookup and pneigh_delete send nothing), so RTNLGRP_NEIGH would only tell of every ARP.
var watched = []int{unix.RTNLGRP_LINK, unix.RTNLGRP_IPV4_IFADDR, unix.RTNLGRP_IPV4_ROUTE, unix.RTNLGRP_IPV4_RULE}

func openMonitor() (*netlink.Socket, error) {
	s, err := netlink.Open(unix.NETLINK_ROUTE, requestBuffer, watched...)
	if err != nil {
		return nil, err
	}
	if err = s.Room(monitorBuffer); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// signed asks that notifications about a link say whose request caused them, which the kernel does since 6.2 and only for those who want
// to be told themselves as well. The answers to such a request contain the notification.
const signed = unix.NLM_F_ECHO

// watcher tells what third parties did from what we did, and from what happens to links by itself.
type watcher struct {
	k     *Kernel
	seed  maphash.Seed
	links map[int]uint64 // what a link last looked like
	// fresh are links that we have made and not yet brought up with their alias. No kernel says who did the latter (do_setlink).
	fresh map[int]bool
	// doubt are links that have changed for an unknown reason: the kernel brings a link down before it deletes it for us.
	doubt map[int]bool
}

func newWatcher(k *Kernel) *watcher {
	return &watcher{k: k, seed: maphash.MakeSeed(), links: map[int]uint64{}, fresh: map[int]bool{}, doubt: map[int]bool{}}
}

// Watch calls hint when something changed that none of our requests changed, once for what comes together, until
// ctx ends; then it returns nil. A hint may be one too many, and what a kernel does not tell (nftables, proxy
// neighbours, the inside of pods) gives none, so a watcher also observes now and then.
func (k *Kernel) Watch(ctx context.Context, hint func()) error {
	if !k.watching.TryLock() {
		return errWatching
	}
	defer k.watching.Unlock()
	w := newWatcher(k)
	var due time.Time // when to judge what came; zero: nothing did
	strange := false
	for ctx.Err() == nil {
		timeout := stopCheck
		if !due.IsZero() {
			if timeout = time.Until(due); timeout <= 0 {
				if strange || len(w.doubt) > 0 {
					hint()
				}
				due, strange = time.Time{}, false
				clear(w.doubt)
				continue
			}
		}
		if err := k.monitor.Wait(max(timeout, time.Millisecond)); err == unix.ETIMEDOUT {
			continue
		} else if err != nil {
			return fmt.Errorf("watch the kernel: %w", err)
		}
		foreign, err := w.drain()
		if err != nil {
			return fmt.Errorf("watch the kernel: %w", err)
		}
		strange = strange || foreign
		if (foreign || len(w.doubt) > 0) && due.IsZero() {
			due = time.Now().Add(settle)
		}
	}
	return nil
}

// drain reads what is queued and says whether a third party did any of it.
func (w *watcher) drain() (foreign bool, err error) {
	for {
		b, err := w.k.monitor.ReceiveNow()
		switch err {
		case nil:
		case unix.EAGAIN:
			return foreign, nil
		case unix.ENOBUFS, unix.EMSGSIZE: // some were lost
			foreign = true
			clear(w.links)
			clear(w.fresh)
			continue
		default:
			return foreign, err
		}
		for h, rest, ok := netlink.Split(b); ok; h, rest, ok = netlink.Split(rest) {
			foreign = w.foreign(&h) || foreign
		}
	}
}

// foreign judges one notification. The kernel says whose request caused it; 0 is no process's, which before Linux 6.2
// is every link's. Carriers and statistics come by themselves, so a link that looks as before is no news.
func (w *watcher) foreign(h *netlink.Header) bool {
	ours := w.k.ports[h.Port]
	switch h.Kind {
	case unix.RTM_NEWLINK:
		var v netlink.Link
		if !v.Parse(h.Body) {
			return false
		}
		if h.Body[0] != unix.AF_UNSPEC { // a bridge port's or an address family's own
			return false
		}
		w.changed(&v, ours)
		return false
	case unix.RTM_DELLINK:
		var v netlink.Link
		if v.Parse(h.Body) {
			delete(w.links, v.Index)
			delete(w.fresh, v.Index)
			if ours {
				delete(w.doubt, v.Index)
			}
		}
		return !ours
	case unix.RTM_NEWADDR, unix.RTM_DELADDR, unix.RTM_NEWROUTE, unix.RTM_DELROUTE, unix.RTM_NEWRULE, unix.RTM_DELRULE:
		return !ours
	}
	return false
}

// changed is how a link looks now.
func (w *watcher) changed(v *netlink.Link, ours bool) {
	look := w.look(v)
	before, known := w.links[v.Index]
	w.links[v.Index] = look
	switch {
	case known && before == look:
	case ours:
		w.fresh[v.Index] = !known
	case w.fresh[v.Index] && len(v.Alias) > 0:
		delete(w.fresh, v.Index)
	default:
		w.doubt[v.Index] = true
	}
}

// look is a link's appearance in an Observation, hashed.
func (w *watcher) look(v *netlink.Link) uint64 {
	var h maphash.Hash
	h.SetSeed(w.seed)
	h.Write(v.Name)
	h.WriteByte(0)
	h.Write(v.Alias)
	h.WriteByte(0)
	h.Write(v.MAC)
	var numbers [16]byte
	netlink.Native.PutUint32(numbers[0:], uint32(v.MTU))
	netlink.Native.PutUint32(numbers[4:], v.Flags&unix.IFF_UP)
	netlink.Native.PutUint32(numbers[8:], uint32(v.RPFilter))
	netlink.Native.PutUint32(numbers[12:], uint32(v.NetNSID))
	h.Write(numbers[:])
	return h.Sum64()
}
