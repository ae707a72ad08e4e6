package ec2

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// A prefix takes one place of the interface's and sixteen addresses of the subnet's, is a block on its own boundary, and goes back
// whole.
func TestPrefixes(t *testing.T) {
	w := newWorld(t)
	i := w.launch("m5.large", plenty)
	e := w.AttachedENIs(i)[0]
	free := w.FreeAddresses(plenty)
	p := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, PrefixCount: 3})
	if len(p.Prefixes) != 3 || len(p.Assigned) != 0 {
		t.Fatalf("%+v", p)
	}
	for _, q := range p.Prefixes {
		if q != q.Masked() || q.Bits() != 28 || !cidr("10.0.0.0/24").Contains(q.Addr()) {
			t.Errorf("%v is no block of the subnet", q)
		}
		last := netip.PrefixFrom(q.Addr(), 28).Addr()
		for range 15 {
			last = last.Next()
		}
		if id, ok := w.HasAddress(i, last); !ok || id != e {
			t.Errorf("the last address of %v is not the interface's", q)
		}
	}
	if got := w.FreeAddresses(plenty); got != free-48 {
		t.Errorf("%d free, want %d", got, free-48)
	}
	if v := w.eni(e); !slices.Equal(v.Prefixes, p.Prefixes) || len(v.Secondaries) != 0 {
		t.Errorf("%+v", v)
	}
	if v := w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}).ENIs[0]; !slices.Equal(v.Prefixes, p.Prefixes) {
		t.Errorf("described: %v", v.Prefixes)
	}
	if v := w.view(i).ENIs[0]; !slices.Equal(v.Prefixes, p.Prefixes) || len(v.Addresses) != 1 {
		t.Errorf("metadata: %+v", v)
	}
	w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 6})
	w.refused(Request{Action: AssignPrivateIpAddresses, ENI: e, PrefixCount: 1}, codeAddressLimit)
	w.refused(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 1}, codeAddressLimit)
	w.refused(Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: []netip.Addr{p.Prefixes[0].Addr()}}, codeValue)
	w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e, Prefixes: p.Prefixes[:2]})
	if v := w.eni(e); !slices.Equal(v.Prefixes, p.Prefixes[2:]) {
		t.Errorf("left: %v", v.Prefixes)
	}
	w.wait(time.Minute)
	if got := w.FreeAddresses(plenty); got != free-16-6 {
		t.Errorf("%d free, want %d", got, free-16-6)
	}
	balance(t, w.Cloud)
}

func TestIPv6(t *testing.T) {
	w := newWorld(t)
	i := w.launch("m5.large", plenty)
	e := w.AttachedENIs(i)[0]
	six := w.Subnets()[0].IPv6
	a := w.do(Request{Action: AssignIpv6Addresses, ENI: e, IPv6Count: 3})
	p := w.do(Request{Action: AssignIpv6Addresses, ENI: e, IPv6PrefixCount: 2})
	if len(a.Assigned) != 3 || len(p.Prefixes) != 2 || len(a.Prefixes)+len(p.Assigned) != 0 {
		t.Fatalf("%+v %+v", a, p)
	}
	for _, x := range a.Assigned {
		if id, on, ok := w.OwnerOf(x); !six.Contains(x) || !ok || id != e || on != i {
			t.Errorf("%v of %v belongs to %s", x, six, id)
		}
	}
	for _, q := range p.Prefixes {
		if id, ok := w.HasAddress(i, q.Addr().Next()); q.Bits() != 80 || q != q.Masked() || !six.Contains(q.Addr()) || !ok || id != e {
			t.Errorf("%v of %v belongs to %s", q, six, id)
		}
	}
	v, m, d := w.eni(e), w.view(i).ENIs[0], w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}).ENIs[0]
	for name, got := range map[string][2]any{"truth": {v.IPv6, v.IPv6Prefixes}, "metadata": {m.IPv6, m.IPv6Prefixes}, "described": {d.IPv6, d.IPv6Prefixes}} {
		if !slices.Equal(got[0].([]netip.Addr), a.Assigned) || !slices.Equal(got[1].([]netip.Prefix), p.Prefixes) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if m.SubnetIPv6 != six {
		t.Errorf("metadata's subnet: %v", m.SubnetIPv6)
	}
	w.refused(Request{Action: AssignIpv6Addresses, ENI: e, IPv6Count: 6}, codeAddressLimit)
	w.do(Request{Action: UnassignIpv6Addresses, ENI: e, IPv6: a.Assigned[1:2], IPv6Prefixes: p.Prefixes[1:]})
	if v := w.eni(e); !slices.Equal(v.IPv6, []netip.Addr{a.Assigned[0], a.Assigned[2]}) || !slices.Equal(v.IPv6Prefixes, p.Prefixes[:1]) {
		t.Errorf("left: %v %v", v.IPv6, v.IPv6Prefixes)
	}
	w.wait(time.Minute)
	balance(t, w.Cloud)
	w.Terminate(w.now, i)
	w.wait(time.Minute)
	balance(t, w.Cloud)
	if s := &w.subnets[0].six; len(s.owner)+len(s.blocks)+len(s.held) != 0 {
		t.Errorf("what an interface had is not free after its end: %+v", s)
	}
}
