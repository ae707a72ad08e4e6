package linux

import (
	"fmt"
	"testing"
	"time"

	"github.com/vishvananda/netlink"

	rtnl "github.com/enilab/enilab/impl/netlink"
	"github.com/enilab/enilab/internal/must"
)

// TestRosterSeesAliases: also that of a link that is down, which the kernel tells nobody. Only those that
// are down are looked at each time.
func TestRosterSeesAliases(t *testing.T) {
	k, w := withPod(t)
	l := must.Get(netlink.LinkByName(w.HostVeth))(t)
	for _, down := range []bool{false, true} {
		if down {
			must.Do(t, netlink.LinkSetDown(l))
		}
		for i := range 3 {
			alias := fmt.Sprintf("alias %d, down %v", i, down)
			must.Do(t, netlink.LinkSetAlias(l, alias))
			if d, err := k.roster.alias(alias); err != nil || d.index != l.Attrs().Index {
				t.Errorf("%s: %+v, %v", alias, d, err)
			}
			if len(k.roster.down) > 0 != down {
				t.Errorf("%s: looked at each time are the links %v", alias, k.roster.down)
			}
		}
		if d, err := k.roster.alias("alias 0, down false"); err != nil || d.index != 0 {
			t.Errorf("an alias of the past: %+v, %v", d, err)
		}
	}
}

// TestRosterOverflows: a queue that ran over means a dump, not a link that is missed.
func TestRosterOverflows(t *testing.T) {
	k := openNew(t, Options{})
	if _, err := k.roster.alias("nobody's"); err != nil { // from here on it listens
		t.Fatal(err)
	}
	must.Do(t, k.roster.queue.Room(1))
	s := newSpace(t)
	plug(t, s, "eth0", primaryMAC, "r0")
	l := must.Get(netlink.LinkByName("eth0"))(t)
	must.Do(t, netlink.LinkSetUp(l))
	for i := range 50 {
		must.Do(t, netlink.LinkSetAlias(l, fmt.Sprint("alias ", i)))
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
	k := openNew(t, Options{})
	must.Do(t, k.monitor.Room(1))
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	for i := range 100 {
		must.Do(t, addAddress("eth0", fmt.Sprintf("192.0.2.%d/32", i+1)))
	}
	hinted(t, watching(t, k), "what was lost")
}

// TestRosterThatCannotHear: a queue that gives nothing but errors is one more error, not a wait without end.
func TestRosterThatCannotHear(t *testing.T) {
	deaf := func() *rtnl.Socket { return rtnl.Adopt(-1, podBuffer) }
	o := roster{told: told{queue: deaf(), ask: deaf()}}
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
