package judge

import (
	"testing"

	"github.com/enilab/enilab/impl/ipam"
)

// believed is a daemon's view.
type believed ipam.View

func (b believed) View(v *ipam.View) { *v = ipam.View(b) }

// TestRoom: I15 on a type with room for ten addresses beside each ENI's own.
func TestRoom(t *testing.T) {
	ready := ipam.ViewENI{Stage: ipam.Ready}
	intended := ipam.ViewENI{Stage: ipam.Intended}
	nine := ipam.ViewENI{Stage: ipam.Ready, Total: 144, Prefixes: 9, Prefixed: 144}
	byIP := ipam.Settings{WarmIPTarget: 3, MinimumIPTarget: 5}
	for _, x := range []struct {
		name string
		v    ipam.View
		okay bool
	}{
		{"the room is all used", ipam.View{Settings: byIP, Assigned: 7, Waiting: 1, ENIs: []ipam.ViewENI{ready, intended}}, true},
		{"there is room for all", ipam.View{Settings: byIP, Assigned: 6, Waiting: 1, ENIs: []ipam.ViewENI{ready, intended}}, false},
		{"there is room on one under way", ipam.View{Settings: byIP, Assigned: 10, ENIs: []ipam.ViewENI{ready, {Stage: ipam.Created}, intended}}, false},
		{"two at once, one too many", ipam.View{Settings: byIP, Waiting: 17, ENIs: []ipam.ViewENI{ready, intended, intended}}, false},
		{"two at once", ipam.View{Settings: byIP, Waiting: 18, ENIs: []ipam.ViewENI{ready, intended, intended}}, true},
		{"MINIMUM_IP_TARGET", ipam.View{Settings: ipam.Settings{MinimumIPTarget: 11}, ENIs: []ipam.ViewENI{ready, intended}}, true},
		{"WARM_ENI_TARGET", ipam.View{Settings: ipam.Settings{WarmENITarget: 1}, Assigned: 1, ENIs: []ipam.ViewENI{ready, intended}}, true},
		{"WARM_ENI_TARGET, met", ipam.View{Settings: ipam.Settings{WarmENITarget: 1}, ENIs: []ipam.ViewENI{ready, intended}}, false},
		{"no more pods may be", ipam.View{Settings: ipam.Settings{WarmENITarget: 1, MaxPods: 9}, Assigned: 9, ENIs: []ipam.ViewENI{ready, intended}}, false},
		{"what cools down has a place", ipam.View{Settings: byIP, Assigned: 5, Cooling: 2, Quarantined: 1, ENIs: []ipam.ViewENI{ready, intended}}, true},
		{"so has a prefix", ipam.View{Settings: byIP, Assigned: 5, ENIs: []ipam.ViewENI{{Stage: ipam.Ready, Prefixes: 3}, intended}}, true},
		{"two whole prefixes are missing, and pods are in nine of ten", ipam.View{Settings: ipam.Settings{WarmPrefixTarget: 2}, Assigned: 115, Free: 29,
			Prefixes: ipam.Delegation{On: true}, ENIs: []ipam.ViewENI{nine, intended}}, true},
		{"one of the nine is whole", ipam.View{Settings: ipam.Settings{WarmPrefixTarget: 2}, Assigned: 115, Free: 29,
			Prefixes: ipam.Delegation{On: true, Free: 1}, ENIs: []ipam.ViewENI{nine, intended}}, false},
		{"no prefix is missing, though none is whole", ipam.View{Settings: ipam.Settings{WarmPrefixTarget: 2}, Assigned: 112, Free: 32,
			Prefixes: ipam.Delegation{On: true}, ENIs: []ipam.ViewENI{nine, intended}}, false},
		{"one that leaves", ipam.View{Settings: byIP, Assigned: 5, ENIs: []ipam.ViewENI{{Stage: ipam.Draining}, intended}}, true},
		{"one that EC2 does not attach", ipam.View{Settings: byIP, Assigned: 5, ENIs: []ipam.ViewENI{{Stage: ipam.Created, Barred: true}, intended}}, true},
	} {
		t.Run(x.name, func(t *testing.T) {
			x.v.Limits = ipam.Limits{ENIs: 4, Addresses: 11}
			a := New(Config{Nodes: 1})
			put := []ipam.Effect{&ipam.Save{Store: ipam.LibStore, Put: []ipam.Row{{Intent: &ipam.Intent{Token: "t", Stage: ipam.Intended, Doing: ipam.CreateENI}}}}}
			a.Makes(0, 1, put, believed(x.v))
			if got := len(a.Violations()) == 0; got != x.okay {
				t.Errorf("held %v, expected %v: %v", got, x.okay, a.Violations())
			}
			before := len(a.Violations())
			a.Makes(0, 1, put, believed(x.v))
			a.Makes(0, 1, []ipam.Effect{&ipam.Call{Action: ipam.CreateENI, Token: "t"}}, believed(x.v))
			if got := len(a.Violations()); got != before {
				t.Errorf("a token that was asked for is judged again: %v", a.Violations())
			}
		})
	}
}
