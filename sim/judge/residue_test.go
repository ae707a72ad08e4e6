package judge_test

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
)

// TestUnclaimed: without books, whatever the kernel has for an address that neither a living sandbox nor the machine has is a leak.
func TestUnclaimed(t *testing.T) {
	addr, host := netip.MustParseAddr, func(a string) netip.Prefix { return netip.MustParsePrefix(a + "/32") }
	o := &dataplane.Observation{Complete: true,
		Links: []dataplane.Link{
			{Name: "eth0", Addresses: []netip.Prefix{netip.MustParsePrefix("10.0.0.10/24")}},
			{Name: "eni1", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{addr("10.0.0.21")}},
			{Name: "eni5", Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{addr("10.0.0.25")}},
		},
		Routes: []dataplane.Route{
			{Table: 2, Dst: host("10.0.0.1"), Link: "eth1"},                           // the router's
			{Table: 2, Dst: host("10.0.0.77"), Via: addr("10.0.0.1"), Link: "eth1"},   // somewhere else
			{Table: 254, Dst: host("10.0.0.21"), Link: "eni1"},                        // a living sandbox's
			{Table: 254, Dst: host("10.0.0.23")},                                      // to a link that is gone
			{Table: 254, Dst: netip.MustParsePrefix("10.0.9.0/24"), Link: "somebody"}, // no address's
		},
		Rules: []dataplane.Rule{
			{Priority: 512, To: host("10.0.0.21"), Table: 254},
			{Priority: 512, To: host("10.0.0.22"), Table: 254},
			{Priority: 1024, Mark: 0x80, Table: 254},
			{Priority: 1536, From: host("10.0.0.24"), Table: 2},
		}}
	o.Sort()
	living := []netip.Addr{addr("10.0.0.1"), addr("10.0.0.10"), addr("10.0.0.21")}
	r := judge.ResidueOf([]netip.Addr{addr("10.0.0.30")}, o)
	got := r.Unclaimed(func(a netip.Addr) bool { return slices.Contains(living, a) })
	want := []string{"address 10.0.0.30 is configured in a namespace that no sandbox has", "a rule for 10.0.0.22", "a route for 10.0.0.23",
		"a rule for 10.0.0.24", "a veth for 10.0.0.25, which no living sandbox has"}
	if !slices.Equal(got, want) {
		t.Errorf("found\n%s\nexpected\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	living = append(living, addr("10.0.0.22"), addr("10.0.0.23"), addr("10.0.0.24"), addr("10.0.0.25"))
	if got := judge.ResidueOf(nil, o).Unclaimed(func(a netip.Addr) bool { return slices.Contains(living, a) }); len(got) > 0 {
		t.Errorf("every address has a sandbox: found %q", got)
	}
}

// TestOutside: what is judged from the answers that a runtime got, and that it is nothing where nothing is wrong.
func TestOutside(t *testing.T) {
	addr := netip.MustParseAddr("10.0.0.9")
	att := func(id string) ipam.Attachment {
		return ipam.Attachment{Network: "aws-cni", ContainerID: id, IfName: "eth0"}
	}
	alone := judge.Holding{Count: 1}
	for name, c := range map[string]struct {
		play func(a *judge.Auditor)
		want []judge.ID
	}{
		"after its cool-down": {func(a *judge.Auditor) {
			a.Added(0, 1, att("a"), addr, alone)
			a.Released(time.Minute, 1, att("a"), addr)
			a.Added(90*time.Second, 1, att("b"), addr, alone)
		}, nil},
		"before its cool-down": {func(a *judge.Auditor) {
			a.Added(0, 1, att("a"), addr, alone)
			a.Released(time.Minute, 1, att("a"), addr)
			a.Added(89*time.Second, 1, att("b"), addr, alone)
		}, []judge.ID{judge.I7}},
		"a DEL that is repeated begins no other cool-down": {func(a *judge.Auditor) {
			a.Added(0, 1, att("a"), addr, alone)
			a.Released(time.Minute, 1, att("a"), addr)
			a.Released(80*time.Second, 1, att("a"), addr)
			a.Added(90*time.Second, 1, att("b"), addr, alone)
		}, nil},
		"in two namespaces": {func(a *judge.Auditor) {
			a.Added(0, 1, att("a"), addr, judge.Holding{Count: 2, Otherwise: "node-2"})
		}, []judge.ID{judge.I1, judge.I2}},
	} {
		t.Run(name, func(t *testing.T) {
			a := judge.New(judge.Config{Nodes: 2, Without: judge.Books})
			a.Runs(0, 1, 30*time.Second)
			c.play(a)
			var got []judge.ID
			for _, v := range a.Violations() {
				got = append(got, v.Invariant)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("found %v, expected %v", a.Violations(), c.want)
			}
		})
	}
}

// TestNotJudged: a world without books says which invariants it does not judge, and judges all with them.
func TestNotJudged(t *testing.T) {
	if got := judge.New(judge.Config{}).NotJudged(); len(got) > 0 {
		t.Errorf("with all sources: %v", got)
	}
	if got, want := fmt.Sprint(judge.New(judge.Config{Without: judge.Books}).NotJudged()), "[I3 I9 I11 I12 I13 I15]"; got != want {
		t.Errorf("without books: %v, expected %v", got, want)
	}
	if got := (judge.Kernel | judge.Books).String(); got != "kernel, books" {
		t.Error(got)
	}
}
