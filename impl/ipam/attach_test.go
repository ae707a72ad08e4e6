package ipam_test

import (
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// TestSurplusOfADetachedENI: while it was detached, EC2 has let an ENI be filled beyond what it lets it be attached with. What nobody uses of
// it goes back, and its pods are served again.
func TestSurplusOfADetachedENI(t *testing.T) {
	w, v := cable(t)
	v.Status, v.Instance, v.Device, v.Attachment = "available", "", 0, ""
	v.Addresses = append(v.Addresses, w.fresh(2)...)
	w.live(time.Minute)
	if v := w.eni("eni-1"); v == nil || v.Status != "in-use" || len(v.Addresses) != w.limits.Addresses-1 {
		t.Errorf("a minute after a stranger's detach the ENI is %+v", v)
	}
	view := ipam.View{}
	if w.node.View(&view); view.Assigned != 7 || view.Quarantined != 0 {
		t.Errorf("seven pods live: %+v", view)
	}
}

// TestADetachedENIIsNotFilled: the link is gone, and metadata and EC2 still say that the ENI is attached. More pods come.
// Those that would get its addresses are told to wait for it.
func TestADetachedENIIsNotFilled(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmIPTarget, w.set.MinimumIPTarget = 1, 7
	w.start()
	w.live(10 * time.Second)
	v := w.eni("eni-1")
	if v == nil || v.Status != "in-use" || len(v.Addresses) != 2 {
		t.Fatalf("the second ENI is %+v", v)
	}
	w.kernel.Unplug(v.MAC)
	w.step(ipam.Seen{What: ipam.LookKernel})
	w.live(time.Second)
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if c, ok := e.(*ipam.Call); ok && (c.ENI == v.ID || c.Action == ipam.CreateENI) {
				t.Errorf("%+v", c)
			}
		}
	}
	for i := range 5 {
		w.up("c"+strconv.Itoa(i), "web-"+strconv.Itoa(i))
		w.live(100 * time.Millisecond)
	}
	r := w.add(w.pod("c5", "web-5"))
	w.calm()
	reply := w.replies[r]
	if reply == nil || reply.Err == nil || !strings.Contains(reply.Err.Text, "eni-1 has free addresses, and the kernel shows no link") {
		t.Errorf("the sixth pod: %+v", reply)
	}
	w.kernel.Plug(v.MAC)
	w.step(ipam.Seen{What: ipam.LookKernel})
	w.live(time.Second)
	w.up("c6", "web-6")
}

// sevenPods need a second ENI.
func (w *world) sevenPods() {
	w.t.Helper()
	for i := range 7 {
		w.up("c"+strconv.Itoa(i), "web-"+strconv.Itoa(i))
		w.live(5 * time.Second)
	}
}

// takeIndex detaches an ENI and lets a third party's have its device index.
func (w *world) takeIndex(e *cloudENI) {
	device := e.Device
	w.kernel.Unplug(e.MAC)
	e.Status, e.Instance, e.Device, e.Attachment = "available", "", 0, ""
	w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: "eni-stranger", MAC: "02:00:00:00:99", Instance: instance, Device: device, Status: "attaching"}})
}

// TestATakenIndex: a third party's interface has the index that the records name, and the ENI of living pods takes
// another.
func TestATakenIndex(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.set.WarmIPTarget, w.set.MinimumIPTarget = 1, 7
	w.start()
	w.live(10 * time.Second)
	w.sevenPods()
	device := w.eni("eni-1").Device
	w.takeIndex(w.eni("eni-1"))
	w.live(time.Minute)
	if v := w.eni("eni-1"); v.Status != "in-use" || v.Device == device {
		t.Errorf("index %d is taken, and the ENI is %+v", device, v)
	}
}

// TestIdleENIMakesRoom: a third party takes the index of an ENI with pods, and the last other one is that of a warm
// ENI, which goes.
func TestIdleENIMakesRoom(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.start()
	w.live(10 * time.Second)
	w.sevenPods()
	w.live(time.Minute)
	v, warm := w.eni("eni-1"), w.eni("eni-2")
	if v == nil || warm == nil || warm.Status != "in-use" {
		t.Fatalf("expected an ENI with pods and a warm one, found %+v and %+v", v, warm)
	}
	w.takeIndex(v)
	w.live(10 * time.Minute)
	if v := w.eni("eni-1"); v == nil || v.Status != "in-use" {
		t.Errorf("no index is free but a warm ENI's, and the pods' is %+v", v)
	}
	if w.eni("eni-2") != nil {
		t.Errorf("the warm ENI is there yet: %+v", w.eni("eni-2"))
	}
	if w.made > 6 { // it learns that there is no room for another: after one, three and seven minutes
		t.Errorf("%d ENIs were made", w.made)
	}
}

// TestAttachIsGivenUp: every index is taken by what nobody shows. The ENI is deleted, the next one is tried after a while, and the node says why.
func TestAttachIsGivenUp(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	for d := 1; d < w.limits.ENIs; d++ {
		w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: "eni-stranger", Instance: instance, Device: d, Status: "attaching"}})
	}
	w.set.MinimumIPTarget, w.set.WarmIPTarget = 8, 1
	w.start()
	w.live(80 * time.Second)
	view := ipam.View{}
	w.node.View(&view)
	if w.made != 1 || w.eni("eni-1") != nil || w.marks[ipam.ENIGivenUp] != 1 || view.Intents != 0 || len(view.Reasons) == 0 {
		t.Errorf("%d ENIs were made, %d given up, the first is %+v; the node: %+v", w.made, w.marks[ipam.ENIGivenUp], w.eni("eni-1"), view)
	}
	for range 600 { // also while another one is being tried
		w.live(time.Second)
		if w.node.View(&view); !slices.ContainsFunc(view.Reasons, func(r string) bool { return strings.Contains(r, "EC2 attaches no more than 1 ") }) {
			t.Fatalf("at %v the node does not say why it has too few: %q", w.now, view.Reasons)
		}
	}
	w.live(50 * time.Minute)
	if w.made < 3 || w.made > 6 {
		t.Errorf("%d ENIs were made in an hour: expected a few", w.made)
	}
	w.enis = w.enis[:1]
	w.live(time.Hour)
	if w.node.View(&view); view.Free < 8 || len(view.Reasons) > 0 {
		t.Errorf("the indexes are free: %+v", view)
	}
}
