package dataplane

import (
	"net/netip"
	"reflect"
	"testing"
)

// Every field of an observation counts: each one changed alone makes two observations differ.
func TestObservationEqualSeesEveryField(t *testing.T) {
	full := func() Observation {
		a, p := netip.MustParseAddr("10.0.0.1"), netip.MustParsePrefix("10.0.0.0/24")
		return Observation{
			Links: []Link{{Index: 1, Name: "eni1", MAC: "02:00", Alias: "x", Adopted: true, Up: true, MTU: 9001, RPFilter: 2, Addresses: []netip.Prefix{p},
				Proxy: []netip.Addr{a}, Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{a}}},
			Routes: []Route{{Table: 254, Dst: p, Via: a, Link: "eni1"}},
			Rules:  []Rule{{Priority: 512, From: p, To: p, Mark: 1, Table: 254}},
			NAT:    NAT{Present: true, Device: "02:00", Address: a, CIDRs: "x", SNAT: true, NodePort: true}, Complete: true,
			Forward: Forward{Drops: true, Accepts: "eni"},
		}
	}
	one, two := full(), full()
	if !one.Equal(&two) {
		t.Fatal("equal observations differ")
	}
	zero := func(name string, pick func(*Observation) reflect.Value) {
		n := pick(&Observation{Links: make([]Link, 1), Routes: make([]Route, 1), Rules: make([]Rule, 1)}).NumField()
		for i := range n {
			changed := full()
			f := pick(&changed).Field(i)
			f.SetZero()
			if one.Equal(&changed) {
				t.Errorf("%s.%s is not compared", name, pick(&changed).Type().Field(i).Name)
			}
		}
	}
	zero("Observation", func(o *Observation) reflect.Value { return reflect.ValueOf(o).Elem() })
	zero("Link", func(o *Observation) reflect.Value { return reflect.ValueOf(&o.Links[0]).Elem() })
	zero("Route", func(o *Observation) reflect.Value { return reflect.ValueOf(&o.Routes[0]).Elem() })
	zero("Rule", func(o *Observation) reflect.Value { return reflect.ValueOf(&o.Rules[0]).Elem() })
	zero("NAT", func(o *Observation) reflect.Value { return reflect.ValueOf(&o.NAT).Elem() })
	zero("Forward", func(o *Observation) reflect.Value { return reflect.ValueOf(&o.Forward).Elem() })
}

// TestARouteOfAnotherTable to the same address is another route.
func TestARouteOfAnotherTable(t *testing.T) {
	dst := netip.MustParsePrefix("10.0.0.20/32")
	ix := (&Observation{Routes: []Route{{Table: 5, Dst: dst, Link: "eth1"}, {Table: MainTable, Dst: dst, Link: "eni1"}}}).Index()
	for table, want := range map[int]string{5: "eth1", MainTable: "eni1"} {
		if r := ix.routeTo(table, dst); r == nil || r.Link != want {
			t.Errorf("table %d: %+v, expected the one over %s", table, r, want)
		}
	}
	if r := ix.routeTo(6, dst); r != nil {
		t.Errorf("table 6 has none, found %+v", r)
	}
}
