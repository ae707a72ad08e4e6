package ipam_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// withSecond is a node whose pods have addresses of eni-1 too. calls are the mutations of eni-1 from then on.
func withSecond(t *testing.T) (w *world, boxes []*box, calls *int) {
	w = newWorld(t, ipam.Sound())
	w.start()
	w.live(30 * time.Second)
	w.sevenPods()
	for i := range w.boxes {
		boxes = append(boxes, &w.boxes[i])
	}
	calls = new(int)
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			switch e := e.(type) {
			case *ipam.Call:
				if e.ENI == "eni-1" {
					*calls++
				}
			case *ipam.Apply:
				if e.Lane.ENI == "eni-1" {
					*calls++
				}
			}
		}
	}
	return w, boxes, calls
}

// Somebody tags an ENI of ours while pods use it. The next daemon reads the tag: it does nothing more to the ENI, its pods keep what they have,
// and what they give up is given to nobody.
func TestAnENIThatIsTaggedLater(t *testing.T) {
	w, boxes, calls := withSecond(t)
	v := w.eni("eni-1")
	v.NoManage = "true"
	had := slices.Clone(v.Addresses)
	on := slices.DeleteFunc(slices.Clone(boxes), func(b *box) bool { return !slices.Contains(had, b.addr) })
	if len(on) == 0 {
		t.Fatal("no pod is on eni-1")
	}
	w.start()
	w.live(time.Minute)
	*calls = 0 // until EC2 has answered, the records' word stands: its link is set up
	view := ipam.View{}
	w.node.View(&view)
	if len(view.Others) != 1 || view.Others[0].ID != "eni-1" || view.Others[0].Why == "" || view.Assigned != len(boxes) {
		t.Fatalf("%+v", view)
	}
	r := w.del(on[0])
	w.calm()
	if reply := w.replies[r]; reply == nil || reply.Err != nil {
		t.Fatalf("DEL: %+v", reply)
	}
	on[0].ready = false
	w.live(time.Hour)
	for range 4 {
		w.live(20 * time.Second)
		if _, a := w.up("new-"+w.now.String(), "new"); slices.Contains(had, a) {
			t.Fatalf("a pod is given %v of eni-1", a)
		}
	}
	if *calls > 0 {
		t.Errorf("%d things were done to eni-1", *calls)
	}
	if err := w.node.Sane(); err != nil {
		t.Error(err)
	}
}

// While EC2 does not say whose ENIs are attached, those that pods of ours are on serve on, and one that no record names waits for its word.
func TestUnreadTags(t *testing.T) {
	w, _, _ := withSecond(t)
	w.limits.ENIs = 4
	w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: "eni-9", MAC: "02:00:00:00:00:99", Device: 3, Subnet: "subnet-1", CIDR: w.enis[0].CIDR, Primary: addr("10.0.0.200"),
		Addresses: []netip.Addr{addr("10.0.0.201")}, Status: "in-use", Instance: instance, Attachment: "attach-9"}})
	w.kernel.Plug("02:00:00:00:00:99")
	w.deaf = true
	w.start()
	w.live(5 * time.Minute)
	view := ipam.View{}
	w.node.View(&view)
	if len(view.Others) != 2 || view.Others[1].ID != "eni-9" || view.Others[1].Why != "" || len(view.ENIs) != 2 {
		t.Fatalf("EC2 is silent: %+v", view)
	}
	if !slices.ContainsFunc(view.Reasons, func(s string) bool { return strings.Contains(s, "eni-9 (EC2 has not said its tags)") }) {
		t.Errorf("nothing says so: %q", view.Reasons)
	}
	w.deaf = false
	w.live(5 * time.Minute)
	w.node.View(&view)
	if len(view.Others) != 0 || len(view.ENIs) != 4 {
		t.Fatalf("EC2 has said that nobody else claims it: %+v", view)
	}
}
