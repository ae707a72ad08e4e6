package ipam_test

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// TestEC2IsNotAsked: with ENABLE_IMDS_ONLY_MODE nothing is asked of EC2, whatever happens: addresses come and go by metadata's word, once it has stood
// for ten minutes.
func TestEC2IsNotAsked(t *testing.T) {
	w := ready(t, ipam.Sound())
	_, had := w.up("c1", "web-1")
	clear(w.rows)
	leak := ipam.Row{Intent: &ipam.Intent{Token: "t", Stage: ipam.Tombstoned, ENI: ipam.ENI{ID: "eni-9"}, Doing: ipam.DeleteENI}}
	w.rows[leak.Key()] = leak // of an earlier daemon, which could call EC2
	w.set.IMDSOnly = true
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			switch e := e.(type) {
			case *ipam.Call:
				t.Errorf("at %v EC2 is called: %+v", w.now, e)
			case *ipam.Look:
				if e.What == ipam.LookENI || e.What == ipam.LookAttached || e.What == ipam.LookLeaked {
					t.Errorf("at %v EC2 is asked: %+v", w.now, e)
				}
			}
		}
	}
	v := ipam.View{}
	free := func() int { w.node.View(&v); return v.Free }
	w.start()
	w.live(9 * time.Minute)
	if n := free(); n != 0 || v.Assigned != 1 || !v.Surveyed {
		t.Fatalf("after nine minutes %d addresses are free: %+v", n, v)
	}
	r := w.add(w.pod("c2", "web-2"))
	w.live(time.Minute)
	if reply := w.replies[r]; reply == nil || reply.Err == nil || !strings.Contains(reply.Err.Error(), "ENABLE_IMDS_ONLY_MODE") {
		t.Errorf("ADD while none is known is answered by %+v", reply)
	}
	w.live(3 * time.Minute)
	had2 := free()
	if had2 < 4 {
		t.Fatalf("after thirteen minutes %d addresses are free: %+v", had2, v)
	}

	// A third party takes one away, and gives another.
	e := &w.enis[0]
	taken := e.Addresses[len(e.Addresses)-1]
	if taken == had {
		taken = e.Addresses[0]
	}
	for i := range e.Addresses {
		if e.Addresses[i] == taken {
			e.Addresses[i] = addr("10.0.0.99")
		}
	}
	w.live(5 * time.Minute)
	given := e.Addresses
	e.Addresses = slices.DeleteFunc(slices.Clone(given), func(a netip.Addr) bool { return a == addr("10.0.0.99") })
	w.live(time.Minute) // and one look does not show it
	e.Addresses = given
	for i := range had2 {
		b := w.pod("c"+strconv.Itoa(10+i), "api-"+strconv.Itoa(i))
		r := w.add(b)
		w.live(time.Second)
		if reply := w.replies[r]; reply != nil && reply.Err == nil && reply.Address == taken {
			t.Errorf("%v is given away while metadata does not list it", taken)
		}
		w.del(&w.boxes[len(w.boxes)-1])
	}
	w.live(3 * time.Minute)
	if n := free(); n != had2 {
		t.Errorf("by nine minutes of metadata's word %d addresses are free, after %d", n, had2)
	}
	w.live(2 * time.Minute)
	if n := free(); n != had2-1 {
		t.Errorf("metadata has not listed the new one at all looks, and %d addresses are free, after %d", n, had2)
	}
	w.live(6 * time.Minute)
	if n := free(); n != had2 || v.Assigned != 1 || v.Quarantined != 0 {
		t.Errorf("one went, one came, and %d addresses are free, after %d: %+v", n, had2, v)
	}
}

// attachForeign attaches an ENI with one secondary address and a link, as a third party does.
func (w *world) attachForeign(id string, device int) {
	mac := "02:00:00:00:00:9" + strconv.Itoa(device)
	w.enis = append(w.enis, cloudENI{ENI: ipam.ENI{ID: id, MAC: mac, Device: device, Subnet: "subnet-1", CIDR: w.enis[0].CIDR,
		Primary: addr("10.0.0.20" + strconv.Itoa(device)), Addresses: []netip.Addr{addr("10.0.0.21" + strconv.Itoa(device))}, Status: "in-use",
		Instance: instance, Attachment: "attach-" + id}})
	w.kernel.Plug(mac)
}

// TestMetadataAloneDoesNotSayWhose: with ENABLE_IMDS_ONLY_MODE an ENI is ours that metadata listed with addresses when the first daemon of the boot
// started, unless its device index is excluded; one that comes later is told and left alone, also by the next daemon.
func TestMetadataAloneDoesNotSayWhose(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.limits.ENIs = 6
	w.set.IMDSOnly = true
	if err := w.set.Put("ENILAB_IMDS_ONLY_EXCLUDED_DEVICES", "3, 5"); err != nil || w.set.Excluded.String() != "3,5" {
		t.Fatalf("%v, %v", w.set.Excluded, err)
	}
	w.attachForeign("eni-8", 2)
	w.attachForeign("eni-9", 3)
	w.step(ipam.Start{Boot: "b", Rebooted: true, Booted: w.now, Seed: 9, Daemon: self, Version: w.version, Wall: bootWall, Settings: w.set})
	w.live(time.Minute)
	w.attachForeign("eni-7", 4)
	w.live(15 * time.Minute)
	check := func(when string) {
		t.Helper()
		v := ipam.View{}
		w.node.View(&v)
		var used, left []string
		for i := range v.ENIs {
			used = append(used, v.ENIs[i].ID)
		}
		for i := range v.Others {
			if left = append(left, v.Others[i].ID); v.Others[i].Why == "" {
				t.Errorf("%s: nothing says why %s is left alone", when, v.Others[i].ID)
			}
		}
		slices.Sort(used)
		slices.Sort(left)
		if !slices.Contains(used, "eni-8") || slices.Contains(used, "eni-7") || slices.Contains(used, "eni-9") || !slices.Equal(left, []string{"eni-7", "eni-9"}) {
			t.Errorf("%s: used are %q, left alone are %q; expected eni-8 to be used, eni-7 and eni-9 not", when, used, left)
		}
	}
	check("after sixteen minutes")
	w.start()
	w.live(11 * time.Minute) // before that metadata may be behind
	check("after a restart")
}
