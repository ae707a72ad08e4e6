package ec2

import (
	"slices"
	"testing"
	"time"
)

// An interface's groups are others at once; a Describe and metadata follow later, each by its own lag, and never go back.
func TestGroupsTrail(t *testing.T) {
	w, i := launched(t)
	old := w.view(i).ENIs[0].Groups
	e := w.view(i).ENIs[0].ENI
	if !w.ThirdPartyMakeGroup(w.now, "", "sg-new") || w.ThirdPartyMakeGroup(w.now, "", "sg-new") {
		t.Fatal("a group is made once")
	}
	lag := w.cfg.Lag
	lag.IMDSAddress, lag.Describe = Always(4*time.Second), Always(2*time.Second)
	w.SetLag(lag)
	w.wait(time.Minute)
	if !w.ThirdPartyGroups(w.now, e, []string{"sg-new"}) || w.ThirdPartyGroups(w.now, e, []string{"sg-new"}) {
		t.Fatal("groups are changed once")
	}
	if w.ThirdPartyGroups(w.now, e, []string{"sg-unknown"}) {
		t.Error("EC2 knows no sg-unknown")
	}
	seen := func() (described, shown []string) {
		return w.do(Request{Action: DescribeNetworkInterfaces, ENIs: []ENIID{e}}).ENIs[0].SecurityGroups, w.view(i).ENIs[0].Groups
	}
	for _, at := range []struct {
		after            time.Duration
		described, shown []string
	}{{0, old, old}, {3 * time.Second, []string{"sg-new"}, old}, {2 * time.Second, []string{"sg-new"}, []string{"sg-new"}}} {
		w.wait(at.after)
		if d, s := seen(); !slices.Equal(d, at.described) || !slices.Equal(s, at.shown) {
			t.Errorf("%v: EC2 says %v, metadata %v: expected %v and %v", w.now, d, s, at.described, at.shown)
		}
	}
	if v := w.eni(e); !slices.Equal(v.SecurityGroups, []string{"sg-new"}) {
		t.Errorf("%v", v.SecurityGroups)
	}
}

// A group goes only when no interface has it, and no VPC as its default one; then EC2 does not know it.
func TestGroupsAreDeleted(t *testing.T) {
	w, i := launched(t)
	e, first := w.view(i).ENIs[0].ENI, w.view(i).ENIs[0].Groups
	w.ThirdPartyMakeGroup(w.now, "", "sg-new")
	w.ThirdPartyGroups(w.now, e, []string{"sg-new"})
	if w.ThirdPartyDeleteGroup(w.now, "sg-new") || w.ThirdPartyDeleteGroup(w.now, first[0]) || w.ThirdPartyDeleteGroup(w.now, "sg-none") {
		t.Fatal("a group that is used, a default one or an unknown one was deleted")
	}
	w.ThirdPartyGroups(w.now, e, first)
	before := w.Clone()
	if !w.ThirdPartyDeleteGroup(w.now, "sg-new") {
		t.Fatal("a group that nobody has stays")
	}
	w.refused(Request{Action: CreateNetworkInterface, Subnet: plenty, SecurityGroups: []string{"sg-new"}}, codeGroupNotFound)
	if p := before.Serve(w.now, &Request{Action: CreateNetworkInterface, Subnet: plenty, SecurityGroups: []string{"sg-new"}}); p.Code != "" {
		t.Errorf("the clone lost it too: %s", p.Message)
	}
}

// A subnet's tags change one by one; a Describe shows them.
func TestStrangersTagSubnets(t *testing.T) {
	w := newWorld(t)
	const key = "kubernetes.io/role/cni"
	tags := func() []Tag { return w.do(Request{Action: DescribeSubnets, Subnet: tiny}).Subnets[0].Tags }
	before := len(tags())
	for _, step := range []struct {
		value   string
		changes bool
		tags    int
	}{{"", false, before}, {"1", true, before + 1}, {"1", false, before + 1}, {"0", true, before + 1}, {"", true, before}} {
		if did := w.ThirdPartyTag(w.now, tiny, key, step.value); did != step.changes || len(tags()) != step.tags {
			t.Errorf("%q: changed is %v, tags %v", step.value, did, tags())
		}
	}
	if w.ThirdPartyTag(w.now, "subnet-none", key, "1") {
		t.Error("there is no such subnet")
	}
}
