package ec2

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// fleet is 500 instances with 4 interfaces of 15 addresses each, long settled, and no throttling to
// speak of.
func fleet(b *testing.B) (*Cloud, []InstanceID, time.Duration) {
	b.Helper()
	var cfg Config
	for a := range ActionCount {
		cfg.Throttle.Action[a] = Bucket{maxTokens, maxTokens}
		cfg.Throttle.Unfiltered[a] = Bucket{maxTokens, maxTokens}
	}
	c := New(cfg, 1)
	sub := c.Subnets()[0].ID
	var ids []InstanceID
	for k := range 500 {
		i := must.Get(c.Launch(0, LaunchSpec{Type: "c5.xlarge", SecondaryAddresses: 14}))(b)
		ids = append(ids, i)
		for device := 1; device < 4; device++ {
			now := time.Duration(k*3+device) * time.Second
			e := c.Serve(now, &Request{Action: CreateNetworkInterface, Caller: i, Subnet: sub, SecondaryCount: 14,
				ClientToken: fmt.Sprint(i, device), Tags: []Tag{{"cluster", "c"}}}).ENI.ID
			if p := c.Serve(now+time.Second, &Request{Action: AttachNetworkInterface, Caller: i, ENI: e, Instance: i, DeviceIndex: device}); p.Code != "" {
				b.Fatal(p.Code)
			}
		}
		c.Events()
	}
	now := time.Hour
	c.Advance(now)
	c.Events()
	return c, ids, now
}

func BenchmarkServeAssignUnassign(b *testing.B) {
	c, ids, now := fleet(b)
	enis := make([]ENIID, len(ids))
	for k, i := range ids {
		enis[k] = c.AttachedENIs(i)[1]
		e, _ := c.ENI(enis[k])
		c.Serve(now, &Request{Action: UnassignPrivateIpAddresses, ENI: enis[k], Addresses: e.Secondaries[:1]})
	}
	assign := Request{Action: AssignPrivateIpAddresses, SecondaryCount: 1}
	unassign := Request{Action: UnassignPrivateIpAddresses}
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		k := n % len(ids)
		now += time.Millisecond
		assign.Caller, assign.ENI = ids[k], enis[k]
		p := c.Serve(now, &assign)
		unassign.Caller, unassign.ENI, unassign.Addresses = ids[k], enis[k], p.Assigned
		if q := c.Serve(now, &unassign); q.Code != "" {
			b.Fatal(p.Code, q.Code)
		}
		if n++; n%64 == 0 {
			c.Events()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/call")
}

// One interface's whole life: create, attach, modify, detach, delete, with what happens in between.
func BenchmarkServeLife(b *testing.B) {
	c, ids, now := fleet(b)
	sub := c.Subnets()[0].ID
	i := ids[0]
	last := c.AttachedENIs(i)[3]
	e, _ := c.ENI(last)
	c.Serve(now, &Request{Action: DetachNetworkInterface, Attachment: e.Attachment})
	b.ReportAllocs()
	for b.Loop() {
		now += time.Minute
		e := c.Serve(now, &Request{Action: CreateNetworkInterface, Caller: i, Subnet: sub, SecondaryCount: 14}).ENI.ID
		now += time.Second
		a := c.Serve(now, &Request{Action: AttachNetworkInterface, Caller: i, ENI: e, Instance: i, DeviceIndex: 3}).Attachment
		c.Serve(now, &Request{Action: ModifyNetworkInterfaceAttribute, Caller: i, ENI: e, Attachment: a, DeleteOnTermination: true})
		now += time.Minute
		c.Serve(now, &Request{Action: DetachNetworkInterface, Caller: i, Attachment: a})
		now += time.Minute
		if p := c.Serve(now, &Request{Action: DeleteNetworkInterface, Caller: i, ENI: e}); p.Code != "" {
			b.Fatal(p.Message)
		}
		c.Events()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(5*b.N), "ns/call")
}

func BenchmarkServeThrottled(b *testing.B) {
	c, ids, now := fleet(b)
	c.cfg.Throttle.Action[AttachNetworkInterface] = Bucket{}
	r := Request{Action: AttachNetworkInterface, Caller: ids[0]}
	b.ReportAllocs()
	for b.Loop() {
		now += time.Millisecond
		c.Serve(now, &r)
	}
}

func BenchmarkDescribe(b *testing.B) {
	c, ids, now := fleet(b)
	rows := map[string]Request{
		"ByID":       {ENIs: c.AttachedENIs(ids[9])},
		"ByInstance": {FilterInstance: string(ids[9])},
		"Sweep":      {FilterStatus: "available", FilterTagKey: "cluster", FilterTagValue: "c"},
		"All":        {},
	}
	for _, name := range []string{"ByID", "ByInstance", "Sweep", "All"} {
		r := rows[name]
		r.Action, r.Caller = DescribeNetworkInterfaces, ids[9]
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				now += time.Millisecond
				c.Serve(now, &r)
			}
		})
	}
}

func BenchmarkTravel(b *testing.B) {
	c, ids, _ := fleet(b)
	r := Request{Action: AttachNetworkInterface, Caller: ids[0]}
	for b.Loop() {
		c.Travel(&r)
	}
}

func BenchmarkIMDS(b *testing.B) {
	c, ids, now := fleet(b)
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		if v, ok := c.IMDS(now, ids[n%len(ids)]); !ok || len(v.ENIs) != 4 {
			b.Fatal(v)
		}
		n++
	}
}

func BenchmarkHasAddress(b *testing.B) {
	c, ids, _ := fleet(b)
	e, _ := c.ENI(c.AttachedENIs(ids[77])[2])
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := c.HasAddress(ids[77], e.Secondaries[5]); !ok {
			b.Fatal("gone")
		}
	}
}

func BenchmarkClone(b *testing.B) {
	b.Run("Fleet", func(b *testing.B) {
		c, _, _ := fleet(b)
		b.ReportAllocs()
		for b.Loop() {
			c.Clone()
		}
	})
	b.Run("OneNode", func(b *testing.B) {
		c := New(testConfig(), 1)
		if _, err := c.Launch(0, LaunchSpec{Type: "c5.xlarge", SecondaryAddresses: 14}); err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			c.Clone()
		}
	})
}

// Prefixes and IPv6 come and go on a subnet of which a part is in use.
func BenchmarkServePrefix(b *testing.B) {
	cfg := Config{VPCs: []VPC{{IPv6: []netip.Prefix{cidr("2001:db8:0:100::/56")}}}}
	cfg.Subnets = []SubnetConfig{{CIDR: cidr("10.0.0.0/16"), IPv6: cidr("2001:db8:0:100::/64")}}
	for a := range ActionCount {
		cfg.Throttle.Action[a] = Bucket{maxTokens, maxTokens}
	}
	for _, row := range []struct {
		name             string
		assign, unassign Action
		six              bool
		r                Request
	}{
		{"Prefix4", AssignPrivateIpAddresses, UnassignPrivateIpAddresses, false, Request{PrefixCount: 1}},
		{"Address6", AssignIpv6Addresses, UnassignIpv6Addresses, true, Request{IPv6Count: 1}},
		{"Prefix6", AssignIpv6Addresses, UnassignIpv6Addresses, true, Request{IPv6PrefixCount: 1}},
	} {
		b.Run(row.name, func(b *testing.B) {
			c := New(cfg, 1)
			sub := c.Subnets()[0].ID
			now := time.Duration(0)
			var enis []ENIID
			for range 500 {
				enis = append(enis, c.Serve(now, &Request{Action: CreateNetworkInterface, Subnet: sub, SecondaryCount: 40, IPv6Count: 40}).ENI.ID)
			}
			now += time.Minute // until every replica knows them
			b.ReportAllocs()
			n := 0
			for b.Loop() {
				now += time.Millisecond
				assign := row.r
				e := enis[n%len(enis)]
				assign.Action, assign.ENI = row.assign, e
				p := c.Serve(now, &assign)
				unassign := Request{Action: row.unassign, ENI: e}
				if row.six {
					unassign.IPv6, unassign.IPv6Prefixes = p.Assigned, p.Prefixes
				} else {
					unassign.Prefixes = p.Prefixes
				}
				if q := c.Serve(now, &unassign); q.Code != "" {
					b.Fatal(p.Code, q.Code, q.Message)
				}
				if n++; n%64 == 0 {
					c.Events()
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/call")
		})
	}
}
