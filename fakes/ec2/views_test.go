package ec2

import (
	"net/netip"
	"slices"
	"testing"
	"time"
)

// view is an instance's metadata now.
func (w *world) view(i InstanceID) IMDS {
	w.t.Helper()
	v, ok := w.IMDS(w.now, i)
	if !ok {
		w.t.Fatalf("no metadata at %v", w.now)
	}
	return v
}

// lagging is a world whose lags are exact: listed 3 s after in-use, complete 2 s later, secondaries 1 s
// after that; a detached interface stays 8 s.
func lagging(t *testing.T) *world {
	cfg := exact(testConfig())
	cfg.Lag.IMDSAttach = Always(3 * time.Second)
	cfg.Lag.IMDSPartial = Always(2 * time.Second)
	cfg.Lag.IMDSAddress = Always(time.Second)
	cfg.Lag.IMDSDetach = Always(8 * time.Second)
	return &world{Cloud: New(cfg, 5), t: t}
}

func TestIMDSLagsBehindAttachAndDetach(t *testing.T) {
	w := lagging(t)
	i := w.launch("m5.large", plenty)
	e := w.create(plenty, 2)
	a := w.attach(e, i, 2)
	want := func(at time.Duration, entries int, partial bool, addresses int) {
		t.Helper()
		w.now = at
		w.Advance(at)
		v := w.view(i)
		if len(v.ENIs) != entries {
			t.Fatalf("at %v: %d MACs, want %d: %+v", at, len(v.ENIs), entries, v.ENIs)
		}
		if entries < 2 {
			return
		}
		last := v.ENIs[len(v.ENIs)-1]
		if last.MAC != w.eni(e).MAC || last.Partial != partial || len(last.Addresses) != addresses {
			t.Errorf("at %v: %+v", at, last)
		}
		if partial && (last.ENI != "" || last.Subnet != "" || last.Device != 0) {
			t.Errorf("at %v: leaves are there: %+v", at, last)
		}
	}
	want(1999*time.Millisecond, 1, false, 0)
	want(2*time.Second, 1, false, 0) // in-use
	want(4999*time.Millisecond, 1, false, 0)
	want(5*time.Second, 2, true, 0) // listed
	want(6999*time.Millisecond, 2, true, 0)
	want(7*time.Second, 2, false, 1) // complete
	want(8*time.Second, 2, false, 3) // secondaries

	w.now = 20 * time.Second
	w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 1})
	want(20*time.Second, 2, false, 3)
	want(21*time.Second, 2, false, 4)
	w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: w.eni(e).Secondaries[:2]})
	want(21*time.Second, 2, false, 4)
	want(22*time.Second, 2, false, 2)

	w.now = 30 * time.Second
	w.do(Request{Action: DetachNetworkInterface, Attachment: a})
	want(35*time.Second, 2, false, 2) // detached
	if v := w.eni(e); v.Status != Available {
		t.Fatalf("%+v", v)
	}
	want(37999*time.Millisecond, 2, false, 2)
	want(38*time.Second, 1, false, 0)
}

// inOrder has 29 addresses assigned one after the other, and expects that metadata shows ever more of them, however
// its lags are drawn.
func inOrder(t *testing.T, r Request, count func(*world, InstanceID) int) (*world, ENIID) {
	t.Helper()
	cfg := exact(testConfig())
	cfg.Lag.IMDSAddress = Span{0, time.Second, 3 * time.Second}
	w := &world{Cloud: New(cfg, 9), t: t}
	i := w.launch("c5.4xlarge", plenty)
	r.ENI = w.AttachedENIs(i)[0]
	first := count(w, i)
	shown := first
	for step := range 400 {
		if step < 29 {
			w.do(r)
		}
		w.wait(100 * time.Millisecond)
		n := count(w, i)
		if n < shown {
			t.Fatalf("at %v metadata went from %d addresses to %d", w.now, shown, n)
		}
		shown = n
	}
	if shown != first+29 {
		t.Errorf("%d shown in the end", shown)
	}
	return w, r.ENI
}

// Two changes in a row never show out of order.
func TestIMDSKeepsTheOrderOfChanges(t *testing.T) {
	shown := func(w *world, i InstanceID) int { return len(w.view(i).ENIs[0].Addresses) }
	w, e := inOrder(t, Request{Action: AssignPrivateIpAddresses, SecondaryCount: 1}, shown)
	if n := len(w.enis[w.slotOf(e)].versions); n > 30 {
		t.Errorf("%d versions are kept", n)
	}
	w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e, Addresses: w.eni(e).Secondaries[:1]})
	if n := len(w.enis[w.slotOf(e)].versions); n != 2 {
		t.Errorf("%d versions are kept after a rest, want the one shown and the new one", n)
	}
}

func TestIMDSAfterForcedDetachStaysUntilReboot(t *testing.T) {
	w := lagging(t)
	i := w.launch("m5.large", plenty)
	_, a := w.attachedENI(i, 1, 0)
	w.do(Request{Action: DetachNetworkInterface, Attachment: a, Force: true})
	w.wait(time.Hour)
	e2, _ := w.attachedENI(i, 2, 0)
	if v := w.view(i); len(v.ENIs) != 3 || v.ENIs[1].Device != 1 || v.ENIs[2].ENI != e2 {
		t.Errorf("before the reboot: %+v", v.ENIs)
	}
	w.Reboot(w.now, i)
	w.Reboot(w.now, "i-unknown")
	if v := w.view(i); len(v.ENIs) != 2 {
		t.Errorf("after the reboot: %+v", v.ENIs)
	}
}

func TestIMDSSilentAndVPCCIDRs(t *testing.T) {
	w := lagging(t)
	i, j := w.launch("m5.large", plenty), w.launch("m5.large", plenty)
	w.Fault(Fault{Kind: IMDSSilent, Instance: i, Until: time.Minute})
	if _, ok := w.IMDS(0, i); ok {
		t.Error("metadata answers although it is silent")
	}
	more := netip.MustParsePrefix("100.64.0.0/16")
	w.AddCIDR(0, "", more)
	w.AddCIDR(0, "", more)
	w.AddCIDR(0, "", netip.Prefix{})
	if v := w.view(j); len(v.Instance.VPCCIDRs) != 1 {
		t.Errorf("too early: %v", v.Instance.VPCCIDRs)
	}
	w.now = time.Minute
	if v := w.view(i); !slices.Equal(v.Instance.VPCCIDRs, []netip.Prefix{defaultVPC(), more}) {
		t.Errorf("%v", v.Instance.VPCCIDRs)
	}
	if _, ok := w.IMDS(0, "i-unknown"); ok {
		t.Error("an unknown instance has metadata")
	}
}

// A MAC without leaves comes last: its device index is one of the leaves.
func TestIMDSOrder(t *testing.T) {
	w := lagging(t)
	i := w.launch("m5.xlarge", plenty)
	early, mid := w.create(plenty, 0), w.create(plenty, 0)
	w.attach(mid, i, 2)
	w.wait(20 * time.Second)
	w.attach(early, i, 1)
	w.wait(5 * time.Second) // listed, not complete
	if v := w.view(i).ENIs; len(v) != 3 || v[1].ENI != mid || !v[2].Partial || v[2].MAC != w.eni(early).MAC {
		t.Errorf("%+v", v)
	}
	w.wait(2 * time.Second)
	if v := w.view(i).ENIs; len(v) != 3 || v[1].ENI != early || v[2].ENI != mid {
		t.Errorf("%+v", v)
	}
}

// A Describe shows the past, as far back as its lag: what was made since is not there, what was
// deleted since still is.
func TestDescribeIsBehind(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Lag.Describe = Always(2 * time.Second)
	w := &world{Cloud: New(cfg, 1), t: t}
	i := w.launch("m5.large", plenty)
	if n := len(w.do(Request{Action: DescribeNetworkInterfaces, FilterInstance: string(i)}).ENIs); n != 1 {
		t.Errorf("the primary interface is not seen at once")
	}
	e := w.create(plenty, 0)
	byID := Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}
	w.refused(byID, "InvalidNetworkInterfaceID.NotFound")
	if n := len(w.do(Request{Action: DescribeNetworkInterfaces}).ENIs); n != 1 {
		t.Errorf("a list shows %d", n)
	}
	w.wait(1999 * time.Millisecond)
	w.refused(byID, "InvalidNetworkInterfaceID.NotFound")
	w.wait(time.Millisecond)
	w.do(byID)

	w.attach(e, i, 1)
	w.do(Request{Action: AssignPrivateIpAddresses, ENI: e, SecondaryCount: 3})
	if v := w.do(byID).ENIs[0]; v.Status != Available || v.Instance != "" || len(v.Secondaries) != 0 {
		t.Errorf("too fresh: %+v", v)
	}
	on := Request{Action: DescribeInstances, Instance: i}
	if v := w.do(on).Instances[0].Interfaces; len(v) != 1 {
		t.Errorf("too fresh: %+v", v)
	}
	w.wait(10 * time.Second)
	if v := w.do(on).Instances[0].Interfaces; len(v) != 2 || v[1].Device != 1 {
		t.Errorf("too stale: %+v", v)
	}
	if v := w.do(byID).ENIs[0]; v.Status != InUse || v.Instance != i || len(v.Secondaries) != 3 {
		t.Errorf("too stale: %+v", v)
	}
	w.do(Request{Action: DetachNetworkInterface, Attachment: w.eni(e).Attachment})
	w.wait(10 * time.Second)
	w.do(Request{Action: DeleteNetworkInterface, ENI: e})
	w.do(byID) // deleted, and still told of
	w.refused(Request{Action: DeleteNetworkInterface, ENI: e}, "InvalidNetworkInterfaceID.NotFound")
	w.wait(2 * time.Second)
	w.refused(byID, "InvalidNetworkInterfaceID.NotFound")
	balance(t, w.Cloud)
}

// A call that changes a new interface may be too early for it ("Eventual consistency in the EC2 API").
func TestMutationTooEarly(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Lag.Mutation = Always(time.Second)
	w := &world{Cloud: New(cfg, 1), t: t}
	i := w.launch("m5.large", plenty)
	e := w.create(plenty, 0)
	r := Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: 1}
	w.refused(r, "InvalidNetworkInterfaceID.NotFound")
	w.wait(time.Second)
	w.do(r)
}

func TestDefaultLagsAreDrawn(t *testing.T) {
	w := &world{Cloud: New(testConfig(), 11), t: t}
	i := w.launch("m5.large", plenty)
	early, tries := 0, 200
	for range tries {
		e := w.create(plenty, 0)
		w.wait(40 * time.Millisecond)
		if w.Serve(w.now, &Request{Action: DescribeNetworkInterfaces, Caller: i, ENIs: []ENIID{e}}).Code != "" {
			early++
		}
		w.wait(time.Minute)
		w.do(Request{Action: DeleteNetworkInterface, ENI: e})
	}
	if early < tries/10 || early > tries*9/10 {
		t.Errorf("%d of %d reads 40ms after Create knew nothing of it", early, tries)
	}
}

func TestFilters(t *testing.T) {
	w, i := launched(t)
	w.attachedENI(i, 1, 0)
	made := w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, Description: "aws-K8S-" + string(i), Tags: []Tag{{"cluster", "a"}}}).ENI.ID
	w.do(Request{Action: CreateTags, ENIs: []ENIID{made}, Tags: []Tag{{"cluster", "b"}, {"more", ""}}})
	rows := []struct {
		req  Request
		want int
	}{
		{Request{}, 3},
		{Request{FilterStatus: "available"}, 1},
		{Request{FilterStatus: "in-use"}, 2},
		{Request{FilterInstance: string(i)}, 2},
		{Request{FilterInstance: string(i), FilterStatus: "available"}, 0},
		{Request{FilterTagKey: "cluster"}, 1},
		{Request{FilterTagKey: "cluster", FilterTagValue: "b"}, 1},
		{Request{FilterTagKey: "cluster", FilterTagValue: "a"}, 0},
		{Request{FilterTagKey: "more"}, 1},
		{Request{FilterDescription: "aws-K8S-*"}, 1},
		{Request{FilterDescription: "aws-K8S-"}, 0},
		{Request{FilterDescription: "*"}, 3},
		{Request{ENIs: []ENIID{made}, FilterStatus: "in-use"}, 0},
	}
	for _, row := range rows {
		row.req.Action = DescribeNetworkInterfaces
		if n := len(w.do(row.req).ENIs); n != row.want {
			t.Errorf("%+v: %d, want %d", row.req, n, row.want)
		}
	}
	if p := w.do(Request{Action: DescribeSubnets}); len(p.Subnets) != 3 || p.Subnets[0].Available != 248 || p.Subnets[2].Zone != "us-west-2b" {
		t.Errorf("%+v", p.Subnets)
	}
	p := w.do(Request{Action: DescribeInstances, Instance: i}).Instances
	if len(p) != 1 || p[0].State != "running" || len(p[0].Interfaces) != 2 || p[0].Interfaces[1].Device != 1 || p[0].Interfaces[1].Status != InUse {
		t.Errorf("%+v", p)
	}
	w.Terminate(w.now, i)
	if p := w.do(Request{Action: DescribeInstances}).Instances; len(p) != 1 || p[0].State != "terminated" || len(p[0].Interfaces) != 0 {
		t.Errorf("%+v", p)
	}
}

// Tags of everything are listed; those of an interface that is gone, or too young for the replica, are not.
func TestDescribeTags(t *testing.T) {
	w, i := launched(t)
	gone, stays := w.create(plenty, 0), w.create(plenty, 0)
	vpc := w.VPCID()
	w.do(Request{Action: CreateTags, ENIs: []ENIID{gone, stays}, Resources: []string{string(i), string(tiny), vpc, "sg-2"}, Tags: []Tag{{"k", "v"}}})
	w.do(Request{Action: CreateTags, ENI: stays, Tags: []Tag{{"a", ""}}})
	w.do(Request{Action: DeleteNetworkInterface, ENI: gone})
	found := w.do(Request{Action: DescribeTags}).Tags
	kv := Tag{"k", "v"}
	want := []TagOf{{kv, string(stays), "network-interface"}, {Tag{"a", ""}, string(stays), "network-interface"}, {kv, string(i), "instance"},
		{kv, string(tiny), "subnet"}, {kv, vpc, "vpc"}, {kv, "sg-2", "security-group"}}
	if !slices.Equal(found, want) {
		t.Errorf("found %v, expected %v", found, want)
	}
	w.SetLag(Lag{Describe: Always(time.Second)})
	w.wait(time.Minute)
	w.do(Request{Action: CreateNetworkInterface, Subnet: plenty, Tags: []Tag{kv}})
	if n := len(w.do(Request{Action: DescribeTags}).Tags); n != len(want) {
		t.Errorf("a replica that is a second behind shows %d tags, expected %d", n, len(want))
	}
}
