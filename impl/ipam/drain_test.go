package ipam

import (
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// TestEvidence: what the kernel's and the runtime's answers are worth for an ENI with two free addresses, of which the first is
// about to be unassigned, if any.
func TestEvidence(t *testing.T) {
	first, second := netip.MustParseAddr("10.0.0.10"), netip.MustParseAddr("10.0.0.11")
	none := netip.Addr{}
	heard := disuse{KernelOK: true, RuntimeOK: true}
	for _, c := range []struct {
		name    string
		e       eni
		uses    netip.Addr // what kernel and runtime say is used
		said    disuse
		stopped bool
	}{
		{"both see no use", eni{Stage: Draining}, none, heard, false},
		{"of what is unassigned", eni{Stage: Ready, Trimming: true}, none, heard, false},
		{"they were asked before", eni{Stage: Draining, Tag: 2}, none, disuse{}, false}, // contract 8
		{"EC2 is being asked already", eni{Stage: Draining, mutation: mutation{Wait: calling}}, none, disuse{}, false},
		{"nothing is given back", eni{Stage: Ready}, none, disuse{}, false},
		{"it is detached", eni{Stage: Detached}, none, disuse{}, false},
		{"an address of what drains is used", eni{Stage: Draining}, second, disuse{}, true},
		{"one that stays is", eni{Stage: Ready, Trimming: true}, second, heard, false},
		{"one that goes is", eni{Stage: Ready, Trimming: true}, first, disuse{}, true},
		{"an earlier daemon's call may take it yet", eni{Stage: Ready, Trimming: true, Doubt: time.Hour}, first,
			disuse{}, false},
		{"the kernel has been heard, and is not asked again", eni{Stage: Draining, disuse: heard}, second, heard,
			false},
	} {
		for source := range 2 {
			n := newborn(t)
			n.Witness = Witnesses{Kernel: true, Runtime: true}
			ix := n.newENI(c.e)
			n.ENIs[ix].Tag = c.e.Tag
			for _, ip := range []netip.Addr{first, second} {
				n.adopt(0, ip, ix, false)
				n.free(n.byAddress[ip])
			}
			if c.e.Trimming {
				n.ENIs[ix].Before = []netip.Addr{first}
				n.Addrs[n.byAddress[first]].Leaving = true
			}
			want := c.said
			if source == 0 {
				o := dataplane.Observation{Complete: true}
				if c.uses.IsValid() {
					o.Links = []dataplane.Link{{Name: "stranger", Addresses: []netip.Prefix{netip.PrefixFrom(c.uses, 32)}}}
				}
				n.drains(0, o.Index(), 1)
				want.RuntimeOK = c.e.RuntimeOK
			} else {
				n.drainsRuntime(0, map[string]*Sandbox{"c1": {ID: "c1", Ready: true, Address: c.uses}}, 1)
				want.KernelOK = c.e.KernelOK
			}
			stopped := false
			for _, e := range n.out {
				m, ok := e.(*Note)
				stopped = stopped || ok && m.Point == DrainStopped
			}
			if got := n.ENIs[ix].disuse; got != want || stopped != c.stopped {
				t.Errorf("%s, source %d: %+v, stopped %t; expected %+v and %t", c.name, source, got, stopped, want, c.stopped)
			}
		}
	}
}
