package ipam_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// damages are what somebody does to a pod's network between two ADDs of its attachment.
var damages = []struct {
	name string
	do   func(w *world, b *box, a netip.Addr)
}{
	{"nothing", func(*world, *box, netip.Addr) {}},
	{"the veth is removed", func(w *world, b *box, a netip.Addr) { w.unplug(b, a) }},
	{"the veth has no address at its other end", func(w *world, b *box, a netip.Addr) {
		name := w.kernel.VethOf(b.att.ContainerID)
		w.unplug(b, a)
		w.apply(dataplane.Op{Kind: dataplane.CreateVeth, Link: name, Alias: aliasOf(b, a), MAC: "02:00:00:00:09:09", Netns: b.netns, Name: "eth0"})
	}},
	{"the veth is down, and its route went with that", func(w *world, b *box, a netip.Addr) { w.kernel.LinkDown(w.kernel.VethOf(b.att.ContainerID)) }},
	{"the host route is removed", func(w *world, b *box, a netip.Addr) { w.kernel.RemoveRoutes(dataplane.MainTable) }},
	{"the rules are removed", func(w *world, b *box, a netip.Addr) { w.kernel.FlushRules() }},
}

func aliasOf(b *box, a netip.Addr) string {
	return dataplane.Alias(b.att.Network, b.att.ContainerID, b.att.IfName, a)
}

func (w *world) unplug(b *box, a netip.Addr) {
	w.apply(dataplane.Op{Kind: dataplane.DeleteVeth, Alias: aliasOf(b, a)})
}

func (w *world) apply(ops ...dataplane.Op) {
	w.t.Helper()
	if _, err := w.kernel.Apply(dataplane.Plan{Ops: ops}, 0, len(ops)); err != nil {
		w.t.Fatal(err)
	}
}

// whole says what a pod's network lacks.
func (w *world) whole(b *box, a netip.Addr) string {
	o := w.kernel.Observe()
	r, _ := w.node.Find(b.att)
	plan := dataplane.RemakePod(dataplane.PodSpec{Alias: aliasOf(b, a), HostVeth: r.Veth, Netns: b.netns, Address: a, Table: dataplane.MainTable, IfName: "eth0"}, o.Index())
	return plan.String()
}

// TestAddAgainLooks: an ADD that is repeated is answered with the same address, and its network is there by then, whatever happened to it.
func TestAddAgainLooks(t *testing.T) {
	for _, d := range damages {
		t.Run(d.name, func(t *testing.T) {
			w := ready(t, ipam.Sound())
			b, a := w.up("c1", "web-1")
			d.do(w, b, a)
			again := w.add(b)
			for i := 0; w.replies[again] == nil; i++ {
				w.step(w.outcome(w.take(0)))
			}
			if r := w.answered(again); r.Address != a {
				t.Errorf("the ADD got %v, the first one %v", r.Address, a)
			}
			if left := w.whole(b, a); left != "" {
				t.Errorf("ADD said yes, and the kernel lacks:\n%s", left)
			}
			w.calm()
			w.down(b)
			w.tidy()
		})
	}
}

// TestAddAgainWithoutARoom: what cannot be put back is refused, and nobody loses anything by it.
func TestAddAgainWithoutARoom(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	name := w.kernel.VethOf("c1")
	w.unplug(b, a)
	w.apply(dataplane.Op{Kind: dataplane.CreateVeth, Link: name, Alias: "somebody's", MAC: "02:00:00:00:09:09", Netns: w.kernel.NewNamespace(), Name: "eth0"})
	again := w.add(b)
	w.calm()
	if r := w.replies[again]; r == nil || r.Err == nil || r.Err.Code != ipam.CodeIO || !strings.Contains(r.Err.Text, "end the sandbox") {
		t.Errorf("the ADD was answered %+v", r)
	}
	if r, ok := w.node.Find(b.att); !ok || r.State != ipam.Assigned || r.Address != a {
		t.Errorf("the attachment has %+v", r)
	}
	w.tidy()
}

// TestAddAgainWaits: who repeats an ADD waits for the kernel, and a DEL, the end of the daemon or its own time ends that wait.
func TestAddAgainWaits(t *testing.T) {
	for name, x := range map[string]struct {
		end  func(w *world, b *box)
		says string
	}{
		"DEL":  {func(w *world, b *box) { w.del(b) }, "a DEL of the same attachment came"},
		"stop": {func(w *world, b *box) { w.step(ipam.Stop{}) }, "ipamd is stopping"},
		"time": {func(w *world, b *box) { w.pass(time.Minute) }, "did not end in time"},
	} {
		t.Run(name, func(t *testing.T) {
			w := ready(t, ipam.Sound())
			b, _ := w.up("c1", "web-1")
			one, two := w.add(b), w.add(b)
			w.survive()
			gone := w.add(b)
			w.step(ipam.Gone{Req: gone})
			x.end(w, b)
			for _, r := range []ipam.Req{one, two} {
				if r := w.replies[r]; r == nil || r.Err == nil || r.Err.Code != ipam.CodeTryAgain || !strings.Contains(r.Err.Text, x.says) {
					t.Errorf("the ADD was answered %+v", r)
				}
			}
			if w.replies[gone] != nil {
				t.Error("a caller that hung up was answered")
			}
			w.calm()
			w.tidy()
		})
	}
}

// TestAddsAgainShareARepair: two that are repeated at once get one answer, by one repair.
func TestAddsAgainShareARepair(t *testing.T) {
	w := ready(t, ipam.Sound())
	b, a := w.up("c1", "web-1")
	w.unplug(b, a)
	before := w.marks[ipam.DriftRepaired]
	one, two := w.add(b), w.add(b)
	w.calm()
	if w.answered(one).Address != a || w.answered(two).Address != a || w.marks[ipam.DriftRepaired] != before+1 {
		t.Errorf("%d repairs", w.marks[ipam.DriftRepaired]-before)
	}
	w.tidy()
}
