package linux

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/dataplane"
)

// TestNonsenseChangesNothing: an operation that says too little, or what no kernel knows, is refused for that reason,
// and nothing is done.
func TestNonsenseChangesNothing(t *testing.T) {
	k := openNew(t, Options{})
	plug(t, newSpace(t), "eth0", primaryMAC, "r0")
	apply(t, k, dataplane.InitPlan(hostSpec(true, true)), nil)
	s := newSpace(t)
	p := s.pod(t)
	w := spec(1, s.inode)
	apply(t, k, dataplane.PodPlan(w), p)
	other := spec(2, s.inode)
	long := strings.Repeat("x", dataplane.MaxAlias+1)
	host := netip.PrefixFrom(other.Address, 32)
	create := func(change func(*dataplane.Op)) dataplane.Op {
		op := dataplane.Op{Kind: dataplane.CreateVeth, Link: "eniother", Alias: other.Alias, Name: "eth1", Netns: s.inode,
			MTU: 1500}
		change(&op)
		return op
	}
	before := observe(t, k)
	for name, op := range map[string]dataplane.Op{
		"a veth without a name":              create(func(o *dataplane.Op) { o.Link = "" }),
		"a veth without the pod's name":      create(func(o *dataplane.Op) { o.Name = "" }),
		"a veth of no namespace":             create(func(o *dataplane.Op) { o.Netns = 0 }),
		"16 characters in the pod":           create(func(o *dataplane.Op) { o.Name = "0123456789abcdef" }),
		"a veth's alias of 256 bytes":        create(func(o *dataplane.Op) { o.Alias = long }),
		"half a MAC":                         create(func(o *dataplane.Op) { o.MAC = "0a:00:00" }),
		"an MTU that no veth has":            create(func(o *dataplane.Op) { o.MTU = 1 << 20 }),
		"a link without its new name":        {Kind: dataplane.RenameLink, Alias: w.Alias},
		"a new name of 16 characters":        {Kind: dataplane.RenameLink, Alias: w.Alias, Name: "0123456789abcdef"},
		"a link is adopted for nobody":       {Kind: dataplane.AdoptLink, Link: w.HostVeth},
		"an adopted alias of 256 bytes":      {Kind: dataplane.AdoptLink, Link: w.HostVeth, Alias: long},
		"a MAC that is none":                 {Kind: dataplane.SetMAC, Alias: w.Alias, MAC: "0a-00-00-00-00-01"},
		"a neighbour without an address":     {Kind: dataplane.ProxyNeighbour, Alias: w.Alias},
		"a rule of no table":                 {Kind: dataplane.EnsureRule, Priority: 600, Addr: other.Address},
		"a rule without a priority":          {Kind: dataplane.EnsureRule, Table: 7, Addr: other.Address},
		"a route of no table":                {Kind: dataplane.EnsureRoute, Alias: w.Alias, Dst: host},
		"a route to nowhere":                 {Kind: dataplane.EnsureRoute, Alias: w.Alias, Table: 7},
		"an ENI's address of no subnet":      {Kind: dataplane.ENIAddress, MAC: primaryMAC, Addr: other.Address},
		"an ENI's subnet without an address": {Kind: dataplane.ENIAddress, MAC: primaryMAC, Dst: host},
		"a filter of -1":                     {Kind: dataplane.Sysctl, MAC: primaryMAC, Name: "rp_filter", Value: "-1"},
		"a filter of 3":                      {Kind: dataplane.Sysctl, MAC: primaryMAC, Name: "rp_filter", Value: "3"},
		"a filter that is no number":         {Kind: dataplane.Sysctl, MAC: primaryMAC, Name: "rp_filter", Value: "strict"},
		"a sysctl without a name":            {Kind: dataplane.Sysctl, MAC: primaryMAC, Value: "1"},
		"a sysctl of two elements":           {Kind: dataplane.Sysctl, MAC: primaryMAC, Name: "all.rp_filter", Value: "1"},
		"a sysctl of no kernel":              {Kind: dataplane.Sysctl, MAC: primaryMAC, Name: "enilab", Value: "1"},
		"SNAT to no address":                 {Kind: dataplane.HostNAT, MAC: primaryMAC, Value: natOp(true, true).Ops[0].Value},
		"flows of no address":                {Kind: dataplane.FlushConntrack},
		"a pod's address that is none":       {Kind: dataplane.PodAddress, Alias: w.Alias, Netns: s.inode},
		"a pod's route to nowhere":           {Kind: dataplane.PodRoute, Alias: w.Alias, Netns: s.inode},
		"a neighbour that is no gateway":     {Kind: dataplane.PodNeighbour, Alias: w.Alias, Netns: s.inode, Addr: w.Address, MAC: primaryMAC},
		"a gateway without a MAC":            {Kind: dataplane.PodNeighbour, Alias: w.Alias, Netns: s.inode, Addr: dataplane.Gateway()},
	} {
		done, err := k.Apply(dataplane.Plan{Ops: []dataplane.Op{op}}, p)
		if done != 0 || err == nil || err.Kind != dataplane.Invalid {
			t.Errorf("%s: done %d, %v; expected that it is invalid", name, done, err)
		}
		if after := observe(t, k); !after.Equal(&before) {
			t.Fatalf("%s: observed %+v\nexpected %+v", name, after, before)
		}
	}
}

// TestRemovalOfNoRoute: a removal that does not say of which table, or which route, removes none: the kernel would take no
// table for main.
func TestRemovalOfNoRoute(t *testing.T) {
	k, w := withPod(t)
	before := observe(t, k)
	for _, op := range []dataplane.Op{{Dst: netip.PrefixFrom(w.Address, 32)}, {Table: dataplane.MainTable}, {}} {
		op.Kind, op.Alias = dataplane.RemoveRoute, w.Alias
		apply(t, k, one(op), nil)
		if after := observe(t, k); !after.Equal(&before) {
			t.Fatalf("%v: the routes are %+v", op, after.Routes)
		}
	}
}

// TestTheLongestAlias is one byte less than the kernel's room.
func TestTheLongestAlias(t *testing.T) {
	k := openNew(t, Options{})
	s := newSpace(t)
	w := spec(1, s.inode)
	for len(w.Alias) < dataplane.MaxAlias {
		w.Alias += "x"
	}
	apply(t, k, dataplane.Plan{Ops: dataplane.PodPlan(w).Ops[:1]}, s.pod(t))
	if l := observe(t, k).Links[0]; l.Alias != w.Alias {
		t.Errorf("the link has the alias %q", l.Alias)
	}
	apply(t, k, one(dataplane.Op{Kind: dataplane.AdoptLink, Link: w.HostVeth, Alias: w.Alias, Addr: w.Address}), nil)
}

// TestWhatThePodRefusesIsAnError: a route by a gateway that nothing leads to.
func TestWhatThePodRefusesIsAnError(t *testing.T) {
	k, s, p, w := withOpenPod(t, Options{})
	route := dataplane.Op{Kind: dataplane.PodRoute, Alias: w.Alias, Netns: s.inode, Dst: netip.MustParsePrefix("10.9.0.0/16"),
		Via: netip.MustParseAddr("192.0.2.1")}
	refuses(t, k, "a gateway behind the default route", route, p, dataplane.Unreachable)
}
