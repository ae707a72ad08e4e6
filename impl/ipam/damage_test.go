package ipam

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// TestDamageIsFound wherever it is, also behind slots that are empty or sound.
func TestDamageIsFound(t *testing.T) {
	for _, c := range []struct {
		name string
		harm func(n *Node)
		want string // "" is that it is none
	}{
		{"none", func(*Node) {}, ""},
		{"an address twice", func(n *Node) { n.Addrs[3].IP = n.Addrs[2].IP }, "there twice"},
		{"an address that is none", func(n *Node) { n.Addrs[3].IP = netip.Addr{} }, "invalid"},
		{"an attachment twice", func(n *Node) { n.Addrs[2].Att = n.Addrs[3].Att }, "has another address"},
		{"an attachment twice, of which one is past", func(n *Node) {
			n.pool.rest(0, 2, true)
			n.pool.unkey(2)
			n.Addrs[2].Att = n.Addrs[3].Att
		}, ""},
		{"a pod's that cannot be looked up", func(n *Node) { n.Addrs[3].Keyed = false }, "cannot be looked up"},
		{"a removal that cannot be looked up", func(n *Node) {
			n.pool.rest(0, 3, false)
			n.Addrs[3].Keyed, n.Addrs[3].Op = false, releasing
		}, "cannot be looked up"},
		{"an ENI twice", func(n *Node) { n.ENIs[3].ID = n.ENIs[2].ID }, "eni-2 is there twice"},
		{"two ENIs that are not made yet", func(n *Node) { n.ENIs[2].ID, n.ENIs[3].ID = "", "" }, ""},
		{"an ENI that is in an empty slot too", func(n *Node) { n.ENIs[0].ID = "eni-2" }, ""},
		{"a hole twice", func(n *Node) { n.Holes = append(n.Holes, n.Holes[0]) }, "twice among the holes"},
		{"an address in a hole", func(n *Node) { n.Holes = append(n.Holes, 3) }, "and a hole"},
		{"an empty slot that is no hole", func(n *Node) { n.Holes = nil }, "and a hole"},
		{"an empty slot with an attachment", func(n *Node) { n.Addrs[0].Keyed = true }, "that something is done to"},
		{"an empty slot with an operation", func(n *Node) { n.Addrs[0].Op = adding }, "that something is done to"},
		{"an empty slot on an ENI", func(n *Node) { n.Addrs[0].ENI = 1 }, "that something is done to"},
		{"an operation of another state", func(n *Node) { n.Addrs[1].Op = releasing }, "runs"},
		{"on an ENI that is none", func(n *Node) { n.pool.place(3, 0) }, "an empty slot"},
		{"too many are counted", func(n *Node) { n.Count[Free]++ }, "by state"},
		{"too many are counted of an ENI", func(n *Node) { n.ENIs[2].Has[Free]++ }, "by state"},
		{"an unknown phase", func(n *Node) { n.Phase = stopping + 1 }, "phase"},
		{"no facts to serve from", func(n *Node) { n.Deaf = true }, "serves from its records"},
		{"an instance of too many ENIs", func(n *Node) { n.Inst.Limits.ENIs = mostENIs + 1 }, "limits"},
		{"tries below zero", func(n *Node) { n.Addrs[3].Tries = -1 }, "-1 tries"},
		{"tries of an ENI below zero", func(n *Node) { n.ENIs[3].Tries = -1 }, "-1 tries"},
		{"an unknown stage", func(n *Node) { n.ENIs[3].Stage = Tombstoned + 1 }, "stage"},
		{"failures below zero", func(n *Node) { n.Looks[looks-1].Fails = -1 }, "negative number"},
	} {
		n := freeOn(t, "10.0.0.20", "10.0.0.21", "10.0.0.22", "10.0.0.23")
		for _, id := range []string{"eni-1", "eni-2", "eni-3"} {
			n.enis.newENI(eni{ENI: ENI{ID: id, Device: 1}, Stage: Ready})
		}
		for i := int32(0); i < 4; i++ {
			n.pool.place(i, 1)
		}
		n.enis.vacate(0)
		n.pool.forget(0)
		for i, id := range map[int32]string{2: "c2", 3: "c3"} {
			n.pool.become(i, Assigned)
			n.Addrs[i].Att = Attachment{network, id, "eth0"}
			n.pool.key(i)
		}
		c.harm(n)
		err := n.consistent()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, expected %q", c.name, err, c.want)
		}
	}
}

// TestWhatAnENIIsInTheView: what pods can get of it now, and what is on its way to it or from it.
func TestWhatAnENIIsInTheView(t *testing.T) {
	for _, c := range []struct {
		name                   string
		but                    func(n *Node, e *eni)
		free, covered, intents int
		shown                  bool
	}{
		{"in service", func(*Node, *eni) {}, 3, 0, 0, true},
		{"it has an intent", func(_ *Node, e *eni) { e.Stored = true }, 3, 0, 1, true},
		{"it gives back two", func(_ *Node, e *eni) { e.Trimming, e.Before = true, make([]netip.Addr, 2) }, 1, 2, 0,
			true},
		{"it is attached again, with six", func(_ *Node, e *eni) {
			e.Stage, e.Addresses = Created, make([]netip.Addr,
				6)
		}, 0, 5, 0, true},
		{"it is attached again, with fewer than are known", func(_ *Node, e *eni) { e.Stage = Created }, 0, 3, 0,
			true},
		{"its link is set up", func(_ *Node, e *eni) { e.Stage, e.Addresses = Configured, make([]netip.Addr, 6) }, 0,
			5, 0, true},
		{"it drains", func(_ *Node, e *eni) { e.Stage, e.Stored = Draining, true }, 0, 3, 1, true},
		{"it is not for pods", func(n *Node, e *eni) { e.Subnet = "subnet-2" }, 0, 3, 0, true},
		{"somebody's leak", func(_ *Node, e *eni) { e.Stage, e.Foreign, e.Stored = Tombstoned, true, true }, 0, 0, 1,
			false},
		{"an empty slot", func(_ *Node, e *eni) { e.Stage, e.Stored = 0, true }, 0, 0, 0, false},
		{"refused", func(_ *Node, e *eni) { e.Stage, e.Barred = Created, attachTries }, 0, 3, 0, true},
	} {
		n := poolOf(t, "", "pfff")
		c.but(n, &n.ENIs[1])
		n.enis.newENI(eni{ENI: ENI{ID: "eni-9"}, Stage: Ready})
		v := View{Free: 99, Covered: 99, Intents: 99, ENIs: make([]ViewENI, 9)}
		n.View(&v)
		if v.Free != c.free || v.Covered != c.covered || v.Intents != c.intents || v.Assigned != 1 || v.Running != 0 {
			t.Errorf("%s: free %d, covered %d, intents %d; expected %+v", c.name, v.Free, v.Covered, v.Intents, c)
		}
		if len(v.ENIs) < 2 || v.ENIs[len(v.ENIs)-1].ID != "eni-9" || len(v.ENIs) > 3 || v.Settings != n.Set ||
			v.Limits != n.Inst.Limits {
			t.Errorf("%s: %+v", c.name, v)
		}
		var shown *ViewENI
		for i := range v.ENIs {
			if v.ENIs[i].ID == "eni-1" {
				shown = &v.ENIs[i]
			}
		}
		if (shown != nil) != c.shown {
			t.Errorf("%s: the ENIs are %+v", c.name, v.ENIs)
		} else if c.shown && (shown.Total != 4 || shown.InUse != 1 || shown.Available != c.free ||
			shown.Barred != (n.ENIs[1].Barred > 0) ||
			shown.Excluded != (n.ENIs[1].Subnet == "subnet-2")) {
			t.Errorf("%s: it is shown as %+v", c.name, *shown)
		}
	}
}

// TestWhatIsOnNoENIInTheView: what EC2 has taken back cools on and is not counted, and pods whose address is on no
// ENI are, once the node serves.
func TestWhatIsOnNoENIInTheView(t *testing.T) {
	for phase, counts := range map[phase]bool{recovering: false, serving: true} {
		n := poolOf(t, "ppqqqccf")
		n.Phase, n.Known = phase, true
		n.pool.Cooling = []int32{0, 2, 5, 6} // the first two are stale
		for _, i := range []int32{0, 2, 3, 5} {
			n.pool.place(i, -1)
		}
		n.evidence.Others = []other{{ID: "eni-9", MAC: "m9", Device: 3, Why: "theirs"}}
		n.ledger.await(eniCall, 0)
		for s := range stores {
			for range 1 + s {
				n.ledger.waitSaved(Store(s), saveAdd, 0, 0)
			}
		}
		v := View{Taken: 99, Homeless: 99, Others: make([]ViewOther, 3)}
		n.View(&v)
		homeless, taken, cooling := 0, 0, 2
		if counts {
			homeless, taken, cooling = 1, 2, 1
		}
		if v.Taken != taken || v.Homeless != homeless || v.Cooling != cooling || v.Quarantined != 3 ||
			v.Assigned != 2 ||
			v.Serving != counts || v.Stopping || !v.Named || v.Running != 4 ||
			!slices.Equal(v.Others, []ViewOther{{ID: "eni-9", MAC: "m9", Device: 3, Why: "theirs"}}) {
			t.Errorf("it serves %v: %+v", counts, v)
		}
	}
}
