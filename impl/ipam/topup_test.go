package ipam_test

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// asked is a request for addresses: when, on which ENI ("" is a new one), and how many.
type asked struct {
	at    time.Duration
	eni   string
	count int
}

// askedList is what EC2 was asked for, in order.
type askedList []asked

// expect compares with what is expected, and begins anew.
func (l *askedList) expect(t *testing.T, what string, want ...asked) {
	t.Helper()
	if !slices.Equal(*l, want) {
		t.Errorf("%s: EC2 was asked for %+v, expected %+v", what, *l, want)
	}
	*l = nil
}

// warmWorld is a node with room for so many addresses on an ENI whose pool has what WARM_IP_TARGET asks for, and what it
// asks EC2 for from then on.
func warmWorld(t *testing.T, perENI, target int) (*world, *askedList) {
	w := newWorld(t, ipam.Sound())
	w.limits.Addresses = perENI + 1
	w.set.WarmIPTarget = target
	w.start()
	w.live(90 * time.Second)
	if v := w.seenView(); v.Free != target {
		t.Fatalf("the pool has %d addresses, expected %d", v.Free, target)
	}
	list := &askedList{}
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if c, ok := e.(*ipam.Call); ok && (c.Action == ipam.AssignIPs || c.Action == ipam.CreateENI) {
				*list = append(*list, asked{w.now, c.ENI, c.Count})
			}
		}
	}
	return w, list
}

// ups brings so many pods at once.
func (w *world) ups(names ...string) {
	w.t.Helper()
	for _, n := range names {
		w.up(n, "web-"+n)
	}
}

// TestTheWarmPoolIsToppedUpInBatches: a request of EC2's limited ones brings what several pods have taken.
func TestTheWarmPoolIsToppedUpInBatches(t *testing.T) {
	w, list := warmWorld(t, 40, 6)

	from := w.now
	w.ups("a")
	w.live(30 * time.Second)
	list.expect(t, "one is missing, and no more for five seconds", asked{from + 5*time.Second, "eni-0", 1})

	from = w.now
	w.ups("b", "c", "d")
	list.expect(t, "half of the target is missing", asked{from, "eni-0", 3})

	w.live(30 * time.Second)
	from = w.now
	w.ups("e")
	w.live(4 * time.Second)
	list.expect(t, "one is missing")
	w.ups("f")
	w.live(30 * time.Second)
	list.expect(t, "two are missing, the second for a second", asked{from + 5*time.Second, "eni-0", 2})

	w.ups("g")
	w.live(3 * time.Second)
	w.survive()
	w.live(30 * time.Second)
	list.expect(t, "the same daemon, read back", asked{w.now - 28*time.Second, "eni-0", 1})
}

// TestANewDaemonTopsUpWithinFiveSeconds: it does not know since when an address is missing, and counts from its own
// first look.
func TestANewDaemonTopsUpWithinFiveSeconds(t *testing.T) {
	w, l := warmWorld(t, 40, 6)
	w.ups("a")
	w.live(4 * time.Second)
	from := w.now
	w.start()
	w.live(4900 * time.Millisecond)
	if len(*l) > 0 {
		t.Errorf("a daemon that starts at %v asks for %+v at once", from, *l)
	}
	w.live(2 * time.Second)
	if len(*l) != 1 || (*l)[0].count != 1 {
		t.Errorf("a daemon that starts at %v asks for %+v, expected one address after five seconds", from, *l)
	}
}

// TestWhatIsNeededIsAskedForAtOnce: no pod waits for a batch.
func TestWhatIsNeededIsAskedForAtOnce(t *testing.T) {
	t.Run("a further ENI", func(t *testing.T) {
		w, l := warmWorld(t, 6, 6)
		from := w.now
		w.ups("a")
		l.expect(t, "the ENI is full", asked{from, "", 1})
	})
	t.Run("below MINIMUM_IP_TARGET", func(t *testing.T) {
		w, l := warmWorld(t, 40, 6)
		from := w.now
		w.set.MinimumIPTarget = 7
		w.step(ipam.Set{Settings: w.set})
		w.calm()
		l.expect(t, "one is missing", asked{from, "eni-0", 1})
	})
}

// TestAnAddressThatEC2DoesNotListYetIsAskedAboutSoon: a replica of EC2's that is behind lacks what EC2 has
// just given, and so does metadata. No pod gets that before EC2 lists it, nor does its ENI get more meanwhile, so EC2 is asked again after seconds.
func TestAnAddressThatEC2DoesNotListYetIsAskedAboutSoon(t *testing.T) {
	w, _ := warmWorld(t, 40, 3)
	w.live(time.Minute)
	before := slices.Clone(w.eni("eni-0").Addresses)
	w.ups("a", "b")
	given := slices.Clone(w.eni("eni-0").Addresses)
	given = slices.DeleteFunc(given, func(ip netip.Addr) bool { return slices.Contains(before, ip) })
	if len(given) != 2 {
		t.Fatalf("EC2 has given %v, expected two addresses", given)
	}
	behind := func(list []ipam.ENI) {
		for i := range list {
			all := slices.Clone(list[i].Addresses)
			list[i].Addresses = slices.DeleteFunc(all, func(ip netip.Addr) bool { return slices.Contains(given, ip) })
		}
	}
	in := w.look(w.untilLook(ipam.LookIMDS))
	behind(in.IMDS.ENIs)
	w.step(in)
	in = w.look(w.untilLook(ipam.LookENI))
	behind(in.ENIs)
	w.step(in)
	from := w.now
	w.ups("c")
	r := w.add(w.pod("d", "web-d"))
	w.live(6 * time.Second)
	if reply := w.replies[r]; reply == nil || reply.Err != nil || !slices.Contains(given, reply.Address) {
		t.Errorf("six seconds after %v the pod has %+v, expected success, and one of %v", from, reply, given)
	}
}
