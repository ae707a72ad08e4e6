package linux

import (
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	"github.com/enilab/enilab/impl/dataplane"
	rtnl "github.com/enilab/enilab/impl/netlink"
)

// TestRosterSeesAliases: also that of a link that is down, which the kernel tells nobody.
func TestRosterSeesAliases(t *testing.T) {
	enterNew(t)
	k := openHere(t, Options{})
	s := newSpace(t)
	w := spec(1, s.inode)
	apply(t, k, dataplane.PodPlan(w), s.pod(t))
	l, err := netlink.LinkByName(w.HostVeth)
	must(t, err)
	for _, down := range []bool{false, true} {
		if down {
			must(t, netlink.LinkSetDown(l))
		}
		for i := range 3 {
			alias := fmt.Sprintf("alias %d, down %v", i, down)
			must(t, netlink.LinkSetAlias(l, alias))
			if d, err := k.roster.alias(alias); err != nil || d.index != l.Attrs().Index {
				t.Errorf("%s: %+v, %v", alias, d, err)
			}
		}
		if d, err := k.roster.alias("alias 0, down false"); err != nil || d.index != 0 {
			t.Errorf("an alias of the past: %+v, %v", d, err)
		}
	}
}

// TestRosterOverflows: a queue that ran over means a dump, not a link that is missed.
func TestRosterOverflows(t *testing.T) {
	enterNew(t)
	k := openHere(t, Options{})
	if _, err := k.roster.alias("nobody's"); err != nil { // from here on it listens
		t.Fatal(err)
	}
	must(t, k.roster.queue.Room(1))
	s := newSpace(t)
	plug(t, s, "eth0", primaryMAC, "r0")
	l, err := netlink.LinkByName("eth0")
	must(t, err)
	must(t, netlink.LinkSetUp(l))
	for i := range 50 {
		must(t, netlink.LinkSetAlias(l, fmt.Sprint("alias ", i)))
	}
	if d, err := k.roster.alias("alias 49"); err != nil || d.name != "eth0" {
		t.Errorf("after the queue ran over: %+v, %v", d, err)
	}
	if !k.roster.filled {
		t.Error("the roster did not fill itself again")
	}
}

// TestWatchOverflows: notifications that were lost are a hint.
func TestWatchOverflows(t *testing.T) {
	enterNew(t)
	k := openHere(t, Options{})
	must(t, k.monitor.Room(1))
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	for i := range 100 {
		must(t, addAddress("eth0", fmt.Sprintf("192.0.2.%d/32", i+1)))
	}
	hinted(t, watching(t, k), "what was lost")
}

// TestRosterThatCannotHear: a queue that gives nothing but errors is one more error, not a wait without end.
func TestRosterThatCannotHear(t *testing.T) {
	deaf := func() *rtnl.Socket { return rtnl.Adopt(-1, podBuffer) }
	o := roster{queue: deaf(), ask: deaf()}
	answer := make(chan error, 1)
	go func() { _, err := o.name("eth0"); answer <- err }()
	select {
	case err := <-answer:
		if err == nil {
			t.Error("no error")
		}
	case <-time.After(20 * time.Second):
		t.Fatal("no answer within 20s")
	}
}
