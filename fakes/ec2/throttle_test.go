package ec2

import (
	"testing"
	"time"
)

// The figures of "Request throttling for the Amazon EC2 API": how many calls of a burst pass at once, and
// what passes in the second after it.
func TestThrottleTable(t *testing.T) {
	rows := []struct {
		req           Request
		burst, refill int
	}{
		{Request{Action: CreateNetworkInterface}, 100, 5},
		{Request{Action: AttachNetworkInterface}, 50, 5},
		{Request{Action: ModifyNetworkInterfaceAttribute}, 100, 5},
		{Request{Action: DetachNetworkInterface}, 50, 5},
		{Request{Action: DeleteNetworkInterface}, 100, 5},
		{Request{Action: AssignPrivateIpAddresses}, 100, 5},
		{Request{Action: UnassignPrivateIpAddresses}, 100, 5},
		{Request{Action: CreateTags}, 100, 10},
		{Request{Action: DescribeNetworkInterfaces}, 50, 10},
		{Request{Action: DescribeNetworkInterfaces, FilterStatus: "available"}, 100, 20},
		{Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{"eni-x"}}, 100, 20},
		{Request{Action: DescribeSubnets}, 50, 10},
		{Request{Action: DescribeSubnets, Subnet: plenty}, 100, 20},
		{Request{Action: DescribeInstances}, 50, 10},
		{Request{Action: DescribeInstances, Instance: "i-x"}, 100, 20},
	}
	for _, row := range rows {
		w := newWorld(t)
		w.now = time.Hour
		passed := func() (n int) {
			for range 200 {
				if w.Serve(w.now, &row.req).Code != "RequestLimitExceeded" {
					n++
				}
			}
			return n
		}
		if n := passed(); n != row.burst {
			t.Errorf("%v: burst of %d, want %d", row.req.Action, n, row.burst)
		}
		w.now += time.Second - 1
		if n := passed(); n != row.refill-1 {
			t.Errorf("%v: %d a nanosecond before a second is over, want %d", row.req.Action, n, row.refill-1)
		}
		w.now++
		if n := passed(); n != 1 {
			t.Errorf("%v: %d as the second ends, want 1", row.req.Action, n)
		}
		w.now += 1000 * time.Hour
		if n := passed(); n != row.burst {
			t.Errorf("%v: burst of %d after a rest, want %d", row.req.Action, n, row.burst)
		}
	}
}

// 500 nodes that want two more interfaces each: (1000 − 50) / 5 = 190 s on Attach alone, however the
// callers time their retries, because a refused call costs nothing and the bucket never rounds.
func TestThousandAttachesNeed190Seconds(t *testing.T) {
	for _, retry := range []time.Duration{7 * time.Millisecond, 333 * time.Microsecond * 100, 200 * time.Millisecond} {
		w := newWorld(t)
		r := Request{Action: AttachNetworkInterface, ENI: "eni-x"}
		passed, last := 0, time.Duration(0)
		for passed < 1000 {
			if w.Serve(w.now, &r).Code != "RequestLimitExceeded" {
				passed++
				last = w.now
				continue
			}
			w.now += retry
		}
		if last < 190*time.Second || last > 190*time.Second+retry {
			t.Errorf("retrying every %v: the last of 1000 attaches passed at %v, want 190s", retry, last)
		}
		if n := w.Calls(AttachNetworkInterface); n.Failed != 1000 || n.Total != n.Failed+n.Throttled {
			t.Errorf("ledger: %+v", n)
		}
	}
}

func TestThrottlingComesBeforeValidationAndHasNoEffect(t *testing.T) {
	w := newWorld(t)
	w.Fault(Fault{Kind: ThrottleBurst, Action: CreateNetworkInterface, Until: time.Minute})
	w.refused(Request{Action: CreateNetworkInterface, Subnet: "nonsense"}, "RequestLimitExceeded")
	w.refused(Request{Action: CreateNetworkInterface, Subnet: plenty}, "RequestLimitExceeded")
	if n := len(w.AllENIs()); n != 0 {
		t.Errorf("%d interfaces exist", n)
	}
	w.do(Request{Action: DescribeSubnets}) // another bucket
	w.wait(time.Minute)
	w.do(Request{Action: CreateNetworkInterface, Subnet: plenty}) // 200 ms of refill since the last drain
}

func TestBucketsAreConfigurable(t *testing.T) {
	cfg := testConfig()
	cfg.Throttle.Action[CreateTags] = Bucket{Capacity: 1}
	cfg.Throttle.Action[DeleteNetworkInterface] = Bucket{Capacity: -4, RefillPerSecond: 1 << 62}
	w := &world{Cloud: New(cfg, 1), t: t}
	w.refused(Request{Action: CreateTags}, "MissingParameter")
	w.now = 1 << 62
	w.refused(Request{Action: CreateTags}, "RequestLimitExceeded") // it never refills
	w.refused(Request{Action: DeleteNetworkInterface}, "RequestLimitExceeded")
}
