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
		{Request{Action: DescribeInstances, Instances: []InstanceID{"i-x"}}, 100, 20},
		{Request{Action: DescribeInstances, Paged: true}, 100, 20},
		{Request{Action: DescribeInstanceTypes}, 50, 10},
		{Request{Action: DescribeVpcs}, 50, 10},
		{Request{Action: DescribeVpcs, FilterDescription: "*"}, 100, 20},
		{Request{Action: DescribeVpcs, VPCs: []string{"vpc-x"}}, 100, 20},
		{Request{Action: DescribeSecurityGroups}, 50, 10},
		{Request{Action: DescribeSecurityGroups, SecurityGroups: []string{"sg-1"}}, 100, 20},
		{Request{Action: DeleteTags}, 100, 10},
		{Request{Action: AssignIpv6Addresses}, 100, 5},
		{Request{Action: UnassignIpv6Addresses}, 50, 5},
		{Request{Action: RunInstances}, 5, 2},
		{Request{Action: TerminateInstances}, 100, 5},
		{Request{Action: RebootInstances}, 50, 5},
		{Request{Action: StopInstances}, 50, 5},
		{Request{Action: StartInstances}, 50, 5},
	}
	for _, row := range rows {
		w := newWorld(t)
		w.now = time.Hour
		passed := func() int { return w.passed(200, &row.req) }
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

// passed is how many of so many requests are not throttled.
func (w *world) passed(of int, r *Request) (n int) {
	for range of {
		if w.Serve(w.now, r).Code != "RequestLimitExceeded" {
			n++
		}
	}
	return n
}

// Resource-rate buckets ("Request throttling for the Amazon EC2 API"): 1000 instances can be launched at once, however many calls that
// takes, then 2 a second; 1000 can be terminated, then 20 a second.
func TestResourceRates(t *testing.T) {
	rows := []struct {
		what   Request
		dry    bool
		calls  int // that pass at once, of ten
		after  time.Duration
		passes int // then, of ten
	}{
		{Request{Action: RunInstances, MaxCount: 1000}, false, 1, 499 * time.Second, 0},
		{Request{Action: RunInstances, MaxCount: 1000}, false, 1, 500 * time.Second, 1},
		{Request{Action: RunInstances, MaxCount: 250}, false, 4, 125 * time.Second, 1},
		{Request{Action: RunInstances, MaxCount: 1001}, false, 0, time.Hour, 0},
		{Request{Action: RunInstances, MaxCount: 1000}, true, 5, time.Second, 2}, // a dry run pays for the request only
		{Request{Action: RunInstances, MaxCount: 1 << 62}, false, 0, time.Hour, 0},
		{Request{Action: RunInstances, MaxCount: -5}, false, 5, time.Second, 2},
		{Request{Action: TerminateInstances, Instances: make([]InstanceID, 500)}, false, 2, 25 * time.Second, 1},
		{Request{Action: StopInstances, Instances: make([]InstanceID, 500)}, false, 2, 25 * time.Second, 1},
		{Request{Action: StartInstances, Instances: make([]InstanceID, 500)}, false, 2, 250 * time.Second, 1},
	}
	for _, row := range rows {
		w := newWorld(t)
		row.what.DryRun = row.dry
		passed := func() int { return w.passed(10, &row.what) }
		if n := passed(); n != row.calls {
			t.Errorf("%v of %d: %d pass at once, want %d", row.what.Action, row.what.resources(), n, row.calls)
		}
		w.now += row.after
		if n := passed(); n != row.passes {
			t.Errorf("%v of %d: %d pass after %v, want %d", row.what.Action, row.what.resources(), n, row.after, row.passes)
		}
	}
}

// A dry run of any action costs a token and changes nothing; without the permission it says so.
func TestDryRunCostsATokenAndChangesNothing(t *testing.T) {
	w, i := launched(t)
	e, a := w.attachedENI(i, 1, 3)
	before := accounts(w.Cloud)
	for action := CreateNetworkInterface; action < ActionCount; action++ {
		r := Request{Action: action, Caller: i, DryRun: true, ENI: e, Attachment: a, Subnet: plenty, Instance: i, Instances: []InstanceID{i},
			Type: "m5.large", MinCount: 1, MaxCount: 1, SecondaryCount: 1, Tags: []Tag{{"k", "v"}}, Resources: []string{string(e)}}
		l, _ := w.bucket(&r)
		w.refused(r, "DryRunOperation")
		if l.spent == 0 {
			t.Errorf("%v: a dry run costs nothing", action)
		}
		w.Fault(Fault{Kind: DenyPermission, Action: action, Times: 1})
		w.refused(r, "UnauthorizedOperation")
	}
	if accounts(w.Cloud) != before {
		t.Error("a dry run has changed something")
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
