package ipam_test

import (
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// TestARefusedRepeatSaysNothingOfTheFirstTry: the answer to CreateNetworkInterface never came, and EC2 refuses its repeat
// for a reason of that instant. The ENI that the first try has made, or makes a minute later, is found by the token; no
// sweep looks for it here.
func TestARefusedRepeatSaysNothingOfTheFirstTry(t *testing.T) {
	for _, c := range []struct {
		name    string
		first   ipam.Class // what came of the first try
		crash   bool       // the daemon dies then
		repeats []ipam.Class
		late    bool // the first try is carried out after the repeats
	}{
		{"denied", ipam.Lost, false, []ipam.Class{ipam.Denied, ipam.Denied, ipam.Denied}, false},
		{"denied after an error of EC2's own", ipam.Unavailable, false, []ipam.Class{ipam.Denied}, false},
		{"denied after a restart", ipam.Lost, true, []ipam.Class{ipam.Denied, ipam.Denied}, false},
		{"throttled, then denied", ipam.Lost, false, []ipam.Class{ipam.Throttled, ipam.Denied}, false},
		{"the subnet is full before the first try lands", ipam.Lost, false, []ipam.Class{ipam.SubnetFull}, true},
		{"a limit before the first try lands", ipam.Lost, true, []ipam.Class{ipam.Limit}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			policy := ipam.Sound()
			policy.Sweep = func(ipam.Leak) bool { return false }
			w := newWorld(t, policy)
			w.set.WarmENITarget = 2
			w.start()
			first := w.untilCall(ipam.CreateENI)
			if !c.late {
				w.call(first)
			}
			if c.crash {
				w.start()
			} else {
				w.step(ipam.Called{ID: first.ID, Result: ipam.Result{Class: c.first}})
			}
			for _, class := range c.repeats {
				again := w.untilCall(ipam.CreateENI)
				w.step(ipam.Called{ID: again.ID, Result: ipam.Result{Class: class}})
			}
			if c.late {
				w.call(first)
			}
			w.live(20 * time.Minute)
			v := ipam.View{}
			w.node.View(&v)
			if v.Intents != 0 || len(v.ENIs) != 2 || len(w.enis) != 2 {
				t.Errorf("the node has %d ENIs and %d intents, EC2 has %d ENIs; expected 2, 0, 2", len(v.ENIs), v.Intents,
					len(w.enis))
			}
			w.tidy()
		})
	}
}

// TestARefusedCreateIsOver: what EC2 has answered made nothing. The next try is another call.
func TestARefusedCreateIsOver(t *testing.T) {
	for _, class := range []ipam.Class{ipam.Denied, ipam.SubnetFull, ipam.Limit} {
		w := newWorld(t, ipam.Sound())
		w.set.WarmENITarget = 2
		w.start()
		c := w.untilCall(ipam.CreateENI)
		w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: class}})
		if again := w.untilCall(ipam.CreateENI); again.Token == c.Token {
			t.Errorf("%v: the token of a call that EC2 has refused is used again", class)
		}
	}
}
