package ec2

import (
	"testing"
	"time"
)

// A third party's interface is what it asked for, at the lowest device index that is free, and Describe says what kind
// it is. One of an Elastic Network Adapter alone has neither addresses nor a link.
func TestStrangersAttach(t *testing.T) {
	w, i := launched(t)
	tag := Tag{Key: "node.k8s.amazonaws.com/no_manage", Value: "true"}
	first, ok := w.ThirdPartyAttach(w.now, i, 0, ThirdPartyENI{Tags: []Tag{tag}, Secondaries: 2, Prefixes: 0})
	second, also := w.ThirdPartyAttach(w.now, i, 0, ThirdPartyENI{Kind: EFAOnly})
	if !ok || !also {
		t.Fatal("EC2 refuses them")
	}
	if id, ok := w.ThirdPartyAttach(w.now, i, 0, ThirdPartyENI{}); ok {
		t.Errorf("%s is attached beyond the limit of the type", id)
	}
	total := len(w.AllENIs())
	if total != 3 {
		t.Errorf("%d interfaces: what could not be attached is left", total)
	}
	w.wait(time.Minute)
	if e := w.eni(first); e.DeviceIndex != 1 || len(e.Secondaries) != 2 || len(e.Tags) != 1 || e.Tags[0] != tag || e.Kind != Ordinary || e.Status != InUse {
		t.Errorf("%+v", e)
	}
	e := w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{second}}).ENIs[0]
	if e.DeviceIndex != 2 || e.Primary.IsValid() || e.Kind.String() != "efa-only" {
		t.Errorf("%+v", e)
	}
	if links := w.Links(i); len(links) != 2 {
		t.Errorf("%d links: expected the primary's and the first one's", len(links))
	}
	for _, m := range w.view(i).ENIs {
		if m.ENI == second && (m.Partial || len(m.Addresses) > 0) {
			t.Errorf("metadata: %+v", m)
		}
	}
	if !w.ThirdPartyDetach(w.now, first) {
		t.Fatal("it cannot be detached")
	}
	w.wait(time.Minute)
	if e := w.eni(first); e.Status != Available {
		t.Errorf("%s", e.Status)
	}
	balance(t, w.Cloud)
}
