package linux

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// watching runs Watch and counts hints.
func watching(t *testing.T, k *Kernel) (hints chan struct{}) {
	hints = make(chan struct{}, 1024)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- k.Watch(ctx, func() { hints <- struct{}{} }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return hints
}

func hinted(t *testing.T, hints chan struct{}, what string) {
	t.Helper()
	select {
	case <-hints:
	case <-time.After(20 * time.Second):
		t.Fatalf("waited 20 s for a hint of %s", what)
	}
}

// TestWatchStrangers: whatever somebody else does to what an Observation holds gives a hint.
func TestWatchStrangers(t *testing.T) {
	k, w := withPod(t)
	hints := watching(t, k)
	l := must.Get(netlink.LinkByName(w.HostVeth))(t)
	for _, stranger := range []struct {
		what string
		do   func() error
	}{
		{"another MAC", func() error {
			return netlink.LinkSetHardwareAddr(l, net.HardwareAddr{2, 0, 0, 0, 0, 9})
		}},
		{"another alias", func() error { return netlink.LinkSetAlias(l, "mine") }},
		{"a rule less", func() error {
			r := netlink.NewRule()
			r.Priority = dataplane.PriorityToPod
			return netlink.RuleDel(r)
		}},
		{"a route less", func() error {
			return netlink.RouteDel(&netlink.Route{LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: &net.IPNet{IP: w.Address.AsSlice(), Mask: net.CIDRMask(32, 32)}})
		}},
		{"an address more", func() error { return addAddress(w.HostVeth, "192.0.2.1/32") }},
		{"a link that is down", func() error { return netlink.LinkSetDown(l) }},
		{"a link less", func() error { return netlink.LinkDel(l) }},
	} {
		must.Do(t, stranger.do())
		hinted(t, hints, stranger.what)
	}
}

// TestWatchOurselves: what we do gives no hint, and what comes by itself (carriers) gives none either. A third party's
// act after it shows that all of it has been seen.
func TestWatchOurselves(t *testing.T) {
	k := openNew(t, Options{})
	hints := watching(t, k)
	s := newSpace(t)
	p := s.pod(t)
	for i := range 4 {
		w := spec(i, s.inode)
		w.IfName = w.HostVeth
		apply(t, k, dataplane.PodPlan(w), p)
		apply(t, k, dataplane.PodRemoval(w), nil)
	}
	k.deleting.Wait()
	must.Do(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "stranger"}, PeerName: "peer"}))
	hinted(t, hints, "a link more")
	if n := len(hints); n > 1 { // the pair may be told in two parts
		t.Errorf("%d hints more than expected: what we do ourselves is no news", n)
	}
}

// TestWatchKnowsItsOwn: each of our plans by itself leaves nothing in doubt, where the kernel says whose request it was.
func TestWatchKnowsItsOwn(t *testing.T) {
	enterNew(t)
	var u unix.Utsname
	must.Do(t, unix.Uname(&u))
	var major, minor int
	if _, err := fmt.Sscanf(unix.ByteSliceToString(u.Release[:]), "%d.%d", &major, &minor); err != nil || major*100+minor < 602 {
		t.Skip("needs Linux 6.2, which says who changed a link")
	}
	k := openHere(t, Options{})
	s := newSpace(t)
	p := s.pod(t)
	watch := newWatcher(k)
	quiet := func(what string) {
		t.Helper()
		if foreign, err := watch.drain(); err != nil || foreign || len(watch.doubt) > 0 {
			t.Errorf("%s: a stranger's act %v, links in doubt %v, error %v; expected nothing", what, foreign, watch.doubt, err)
		}
	}
	quiet("nothing")
	for i := range 4 {
		w := spec(i, s.inode)
		apply(t, k, dataplane.PodPlan(w), p)
		quiet("a pod more")
		apply(t, k, dataplane.PodRemoval(w), nil)
		quiet("a pod less")
		k.deleting.Wait()
	}
	if len(watch.links)+len(watch.fresh) > 0 {
		t.Errorf("links that are gone are remembered: %v, %v", watch.links, watch.fresh)
	}
}

// TestWatchTwice: there is one queue, and a second reader would get half.
func TestWatchTwice(t *testing.T) {
	k := openNew(t, Options{})
	hints := watching(t, k)
	must.Do(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "stranger"}, PeerName: "peer"}))
	hinted(t, hints, "a link more") // so the first one watches
	if err := k.Watch(t.Context(), func() {}); err != errWatching {
		t.Errorf("a second Watch: %v", err)
	}
}
