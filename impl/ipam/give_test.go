package ipam

import (
	"net/netip"
	"testing"
	"time"
)

// poolOf is a Node with an ENI for each of these, whose addresses are: a pod's, free, cooling, or set aside. The
// first is the primary one.
func poolOf(t *testing.T, enis ...string) *Node {
	t.Helper()
	n := newborn(t)
	n.Phase, n.Surveyed, n.Set = serving, true, Defaults()
	n.Inst = Instance{ID: "i-1", Subnet: "subnet-1", Limits: Limits{ENIs: 4, Addresses: 5}}
	n.subnets.seen(0, &Seen{What: LookSubnets, Complete: true, Subnets: []Subnet{{ID: "subnet-1", Free: 200},
		{ID: "subnet-2", Free: 9, Role: "0"}}},
		true, 0, 0)
	last := byte(9)
	for device, has := range enis {
		on := n.enis.newENI(eni{ENI: ENI{ID: "eni-" + string('0'+rune(device)), Device: device, Subnet: "subnet-1"},
			Stage: Ready, Linked: true})
		for _, s := range has {
			last++
			ip := netip.AddrFrom4([4]byte{10, 0, 0, last})
			n.pool.adopt(0, ip, on, false)
			i := n.pool.byAddress[ip]
			if n.pool.free(i); s != 'f' {
				n.pool.become(i, Assigned)
			}
			switch s {
			case 'c':
				n.pool.rest(0, i, true)
				n.pool.Addrs[i].Att = Attachment{network, "c", "eth0"}
			case 'q':
				n.pool.become(i, Quarantined)
			}
		}
	}
	return n
}

// TestWhatIsRequestedInASubnetIsNotFreeThere: an ENI's own address too. What is not asked for after all is.
func TestWhatIsRequestedInASubnetIsNotFreeThere(t *testing.T) {
	for _, c := range []struct{ prefixes, more, takes, enis int }{{0, 3, 4, 1}, {0, 6, 8, 2}, {16, 3, 17, 1}} {
		n := poolOf(t, "pppp")
		n.Set.PrefixDelegation, n.Inst.Limits.Prefixes = c.prefixes > 0, c.prefixes > 0
		n.warm.grow(0, c.more, false)
		if free := n.subnets.candidate("subnet-1").Free; free != 200-c.takes || len(n.ENIs) != 1+c.enis {
			t.Errorf("of 200 addresses %d are free when %d are wanted, expected %d; %d ENIs are made, expected %d",
				free, c.more, 200-c.takes, len(n.ENIs)-1, c.enis)
		}
		n.warm.unplan()
		if free := n.subnets.candidate("subnet-1").Free; free != 200 || n.enis.making() {
			t.Errorf("nothing is asked for, and of 200 addresses %d are free", free)
		}
	}
}

// TestNothingIsMadeBeforeItIsKnownWhatThereIs: an attached ENI that may be the node's may have what is wanted.
func TestNothingIsMadeBeforeItIsKnownWhatThereIs(t *testing.T) {
	for _, c := range []struct {
		name           string
		but            func(n *Node)
		makes, assigns bool
		thinks         time.Duration // again
	}{
		{"all is known", func(*Node) {}, true, true, never},
		{"EC2 has to say whose an ENI is", func(n *Node) { n.evidence.Others = []other{{ID: "eni-9"}} }, false,
			false, never},
		{"EC2 has said whose it is", func(n *Node) { n.evidence.Others = []other{{ID: "eni-9", Why: "theirs"}} },
			true, true, never},
		{"EC2 does not say", func(n *Node) {
			n.evidence.Others, n.evidence.Looks[LookAttached].Fails = []other{{ID: "eni-9"}}, 3
		}, true, true, never},
		{"EC2 has to say which subnets there are", func(n *Node) { n.subnets.CandidatesKnown = false }, false, false,
			never},
		{"EC2 has refused", func(n *Node) { n.pool.Warm.GrowAt = time.Minute + 1 }, false, false, time.Minute + 1},
		{"EC2 had refused", func(n *Node) { n.pool.Warm.GrowAt = time.Minute }, true, true, never},
		{"no further ENI is allowed", func(n *Node) { n.Set.MaxENI = 1 }, false, true, never},
		{"one has to be attached again", func(n *Node) {
			ix := n.enis.newENI(eni{ENI: ENI{ID: "eni-8"}, Stage: Created, mutation: mutation{Barred: attachTries}})
			n.pool.place(0, ix)
		}, false, true, never},
	} {
		n := poolOf(t, "ppp")
		n.subnets.CandidatesAt = time.Minute
		c.but(n)
		n.warm.grow(time.Minute, 3, false)
		if makes, assigns := n.ENIs[len(n.ENIs)-1].Stage == Intended,
			n.ENIs[0].Doing == AssignIPs; makes != c.makes || assigns != c.assigns {
			t.Errorf("%s: an ENI is made: %v, addresses are asked for: %v; expected %v, %v", c.name, makes, assigns,
				c.makes, c.assigns)
		}
		if n.pool.Warm.At != c.thinks {
			t.Errorf("%s: thought of again at %v, expected %v", c.name, n.pool.Warm.At, c.thinks)
		}
	}
}

// TestWhichENIIsIdle: the last one of which no pod has anything, unless pods that come while addresses cool would
// need another one at once.
func TestWhichENIIsIdle(t *testing.T) {
	for _, c := range []struct {
		name string
		enis []string
		less int
		but  func(n *Node)
		want int32 // -1 is none
	}{
		{"the second", []string{"pfff", "ffff"}, 4, nil, 1},
		{"the last", []string{"pfff", "ffff", "ffff"}, 8, nil, 2},
		{"the last, whichever comes first", []string{"pfff", "ffff", "ffff"}, 8,
			func(n *Node) { n.ENIs[1].Device = 3 }, 1},
		{"less than it has is too much", []string{"pfff", "ffff"}, 3, nil, -1},
		{"a smaller one", []string{"pfff", "fff", "ffff"}, 3, nil, 1},
		{"the primary one", []string{"ffff", "pfff"}, 4, nil, -1},
		{"a pod has one", []string{"ffff", "fffp"}, 4, nil, -1},
		{"one is set aside", []string{"ffff", "fffq"}, 4, nil, -1},
		{"one cools", []string{"ffff", "fffc"}, 4, nil, -1},
		{"it is on its way", []string{"pfff", "ffff"}, 4, func(n *Node) { n.ENIs[1].Stage = Configured }, -1},
		{"it goes already", []string{"pfff", "ffff"}, 4, func(n *Node) { n.ENIs[1].Stage = Draining }, -1},
		{"something is done to it", []string{"pfff", "ffff"}, 4, func(n *Node) { n.ENIs[1].Wait = applying }, -1},
		{"it is not for pods", []string{"pfff", "ffff"}, 4, func(n *Node) { n.ENIs[1].Subnet = "subnet-2" }, -1},
		{"EC2 is called for the last", []string{"pfff", "ffff", "ffff"}, 4, func(n *Node) { n.ENIs[2].Wait = calling }, 1},
		{"it has just had to stay", []string{"pfff", "ffff"}, 4, func(n *Node) { n.ENIs[1].KeptTill = time.Hour + 1 }, -1},
		{"it had to stay a while ago", []string{"pfff", "ffff"}, 4, func(n *Node) { n.ENIs[1].KeptTill = time.Hour }, 1},
		{"its room is needed, and nothing cools", []string{"pppf", "ffff"}, 4, nil, 1},
		{"one cools, and there is room", []string{"pfc", "ffff"}, 4, nil, 1},
		{"one cools, and there is hardly room", []string{"ppfc", "ffff"}, 4, nil, -1},
		{"one cools, and one is set aside", []string{"pqfc", "ffff"}, 4, nil, -1},
		{"one cools, and one more stays free", []string{"pffc", "ffff"}, 4, nil, -1},
		{"one cools, and one more may go", []string{"pffc", "ffff"}, 5, nil, 1},
		{"one cools, and a third ENI has nothing", []string{"ppfc", "ffff", ""}, 4, nil, 2},
	} {
		n := poolOf(t, c.enis...)
		if c.but != nil {
			c.but(n)
		}
		ix, ok := n.warm.idleENI(time.Hour, Want{Less: c.less})
		if ok != (c.want >= 0) || ok && ix != c.want {
			t.Errorf("%s: ENI %d, %v; expected %d", c.name, ix, ok, c.want)
		}
	}
}

// TestWhichENIGivesAddressesBack: at rest, with something to give, the one that uses the fewest; of two, not the
// primary one.
func TestWhichENIGivesAddressesBack(t *testing.T) {
	for _, c := range []struct {
		name string
		enis []string
		but  func(e *eni) // the last one
		want int32
	}{
		{"the one that uses fewer", []string{"ppf", "pf"}, nil, 1},
		{"the primary one uses fewer", []string{"pf", "ppf"}, nil, 0},
		{"as many as the primary one", []string{"pff", "pf"}, nil, 1},
		{"the first of two", []string{"ppf", "pff", "pf"}, nil, 1},
		{"the others have none free", []string{"f", "", "pp"}, nil, 0},
		{"none has one free", []string{"p", "cq"}, nil, -1},
		{"it is on its way", []string{"ppf", "pf"}, func(e *eni) { e.Stage = Configured }, 0},
		{"it drains", []string{"ppf", "pf"}, func(e *eni) { e.Stage = Draining }, 0},
		{"its link is put right", []string{"ppf", "pf"}, func(e *eni) { e.Wait = applying }, 0},
		{"it is to get some", []string{"ppf", "pf"}, func(e *eni) { e.Doing = AssignIPs }, 0},
		{"it gives some back already", []string{"ppf", "pf"}, func(e *eni) { e.Trimming = true }, 0},
		{"it has just had to keep some", []string{"ppf", "pf"}, func(e *eni) { e.KeptTill = time.Hour + 1 }, 0},
		{"it had to a while ago", []string{"ppf", "pf"}, func(e *eni) { e.KeptTill = time.Hour }, 1},
		{"it is not for pods", []string{"ppf", "pf"}, func(e *eni) { e.Subnet = "subnet-2" }, 0},
	} {
		n := poolOf(t, c.enis...)
		if c.but != nil {
			c.but(&n.ENIs[len(n.ENIs)-1])
		}
		if got := n.warm.leastUsed(time.Hour, false); got != c.want {
			t.Errorf("%s: ENI %d, expected %d", c.name, got, c.want)
		}
	}
	n := poolOf(t, "pf", "pf")
	if got := n.warm.leastUsed(time.Hour, true); got != -1 {
		t.Errorf("ENI %d is to give back a prefix, and has none", got)
	}
}

// TestWhetherAnENITakesAddresses: one in service whose link is there, or one that EC2 will delete with the instance
// and whose link is awaited.
func TestWhetherAnENITakesAddresses(t *testing.T) {
	rising := eni{ENI: ENI{Device: 1, DOT: true}, Stage: Attached, mutation: mutation{Doing: ModifyENI}}
	serves := eni{ENI: ENI{Device: 1}, Stage: Ready, Linked: true}
	for _, c := range []struct {
		name string
		e    eni
		but  func(e *eni)
		want bool
	}{
		{"in service", serves, func(*eni) {}, true},
		{"without a link", serves, func(e *eni) { e.Linked = false }, false},
		{"the primary one", serves, func(e *eni) { e.Linked, e.Device = false, 0 }, true},
		{"it is to get some", serves, func(e *eni) { e.Doing = AssignIPs }, false},
		{"it gives some back", serves, func(e *eni) { e.Trimming = true }, false},
		{"it has an intent", serves, func(e *eni) { e.Stored = true }, false},
		{"its link is put right", serves, func(e *eni) { e.Wait = applying }, false},
		{"a call is in doubt", serves, func(e *eni) { e.Lost = true }, false},
		{"EC2 is asked about it", serves, func(e *eni) { e.Asking = true }, false},
		{"EC2 refuses to attach it", serves, func(e *eni) { e.Barred = 1 }, false},
		{"attached", rising, func(*eni) {}, true},
		{"EC2 has just attached it", rising, func(e *eni) { e.Doing = AttachENI }, false},
		{"it would outlive the instance", rising, func(e *eni) { e.DOT = false }, false},
		{"its link is there", rising, func(e *eni) { e.Linked = true }, false},
		{"its link is set up", rising, func(e *eni) { e.Stage = Configured }, false},
		{"not attached yet", rising, func(e *eni) { e.Stage = Created }, false},
		{"it drains", serves, func(e *eni) { e.Stage = Draining }, false},
	} {
		e := c.e
		if c.but(&e); e.takes() != c.want {
			t.Errorf("%s: %v", c.name, !c.want)
		}
	}
}
