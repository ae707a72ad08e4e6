package ec2

import (
	"testing"
	"time"
)

// AvailableIpAddressCount trails by what Lag.Available says, to an eighth, and by what a fault adds.
func TestAvailableTrails(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Lag.Available = Always(8 * time.Second)
	w := &world{Cloud: New(cfg, 1), t: t}
	shown := func() int { return w.do(Request{Action: DescribeSubnets, Subnet: plenty}).Subnets[0].Available }
	w.create(plenty, 9)
	for _, row := range []struct {
		wait time.Duration
		want int
	}{{0, 251}, {7 * time.Second, 251}, {time.Second, 241}} {
		w.wait(row.wait)
		if n := shown(); n != row.want {
			t.Errorf("at %v: %d are available, want %d", w.now, n, row.want)
		}
	}
	for k := range 100 { // ten a second: more changes than are kept
		w.now += 100 * time.Millisecond
		w.create(plenty, 0)
		least := 241 - max(0, k+1-80)
		if n := shown(); n < least || n > min(241, least+11) {
			t.Errorf("at %v: %d are available, want %d or what was a second before", w.now, n, least)
		}
	}
	w.wait(9 * time.Second)
	if n := shown(); n != 141 {
		t.Errorf("after a rest %d are available, want 141", n)
	}
	w.create(plenty, 0)
	w.wait(8 * time.Second)
	w.Fault(Fault{Kind: StaleReads, By: time.Minute, Times: 1})
	if n := shown(); n < 141 {
		t.Errorf("%d are available for a stale reader", n)
	}
	if n := shown(); n != 140 {
		t.Errorf("%d are available, want 140", n)
	}
	if n := w.Subnets()[0].Available; n != 140 {
		t.Errorf("the truth is %d, want 140", n)
	}
}

// Reads go back and forth by default; with Lag.Monotonic those of one caller never go back, and another's are its own.
func TestMonotonicReads(t *testing.T) {
	backwards := func(monotonic bool) (n int) {
		cfg := testConfig()
		cfg.Lag.Monotonic = monotonic
		w := &world{Cloud: New(cfg, 4), t: t}
		i := w.launch("m5.large", plenty)
		e := w.AttachedENIs(i)[0]
		most := map[InstanceID]int{}
		for k := range 400 {
			w.now += 100 * time.Millisecond
			caller := i
			if k%5 == 0 {
				caller = ""
			}
			shown := len(w.do(Request{Action: DescribeNetworkInterfaces, Caller: caller, ENIs: []ENIID{e}}).ENIs[0].Secondaries)
			if shown < most[caller] {
				n++
			}
			most[caller] = max(most[caller], shown)
			if k%50 == 49 {
				w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 1})
			}
		}
		return n
	}
	if n := backwards(false); n == 0 {
		t.Error("no read went back: the default is to be as bad as EC2")
	}
	if n := backwards(true); n != 0 {
		t.Errorf("%d reads went back", n)
	}
}

func TestStaleReads(t *testing.T) {
	w, i := launched(t)
	w.wait(time.Minute)
	e := w.create(plenty, 0)
	w.wait(10 * time.Second)
	w.Fault(Fault{Kind: StaleReads, Instance: i, By: 11 * time.Second})
	w.refused(Request{Action: DescribeNetworkInterfaces, Caller: i, ENIs: []ENIID{e}}, "InvalidNetworkInterfaceID.NotFound")
	w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}})
	w.wait(time.Second)
	w.do(Request{Action: DescribeNetworkInterfaces, Caller: i, ENIs: []ENIID{e}})
}
