package ipam_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// delegating is a node whose slots are to carry prefixes.
func delegating(t *testing.T) *world {
	w := newWorld(t, ipam.Sound())
	w.limits = ipam.Limits{ENIs: 2, Addresses: 5, Prefixes: true}
	w.set.PrefixDelegation = true
	return w
}

// slots are what the attached ENIs have beside their primary addresses.
func (w *world) slots() (addresses, prefixes int) {
	for i := range w.enis {
		addresses, prefixes = addresses+len(w.enis[i].Addresses), prefixes+len(w.enis[i].Prefixes)
	}
	return addresses, prefixes
}

func (w *world) expectSlots(when string, addresses, prefixes int) {
	w.t.Helper()
	if a, p := w.slots(); a != addresses || p != prefixes {
		w.t.Errorf("%s the node has %d addresses and %d prefixes, expected %d and %d", when, a, p, addresses, prefixes)
	}
	w.tidy()
}

// reset changes the settings of a daemon that runs.
func (w *world) reset(change func(*ipam.Settings)) {
	change(&w.set)
	w.step(ipam.Set{Settings: w.set})
}

// TestPrefixesComeAndGo with pods: as many as are wanted, none that a pod has an address of, and no single address.
func TestPrefixesComeAndGo(t *testing.T) {
	w := delegating(t)
	w.start()
	w.live(30 * time.Second)
	w.expectSlots("at the start", 0, 1)
	var pods []*box
	for i := range 20 {
		b, _ := w.up(fmt.Sprint("c", i), fmt.Sprint("web-", i))
		pods = append(pods, &box{att: b.att, pod: b.pod, netns: b.netns})
		w.live(2 * time.Second)
	}
	w.live(time.Minute)
	w.expectSlots("with 20 pods", 0, 3)
	for _, b := range pods[1:] {
		w.down(b)
	}
	for i := range w.boxes {
		w.boxes[i].ready = i == 0
	}
	w.live(30 * time.Minute)
	w.expectSlots("with one pod", 0, 2)
	if r, ok := w.node.Find(pods[0].att); !ok || !w.prefixed(r.Address) {
		t.Errorf("the pod has %+v", r)
	}
}

// TestSlotsTurn: the other kind goes once nobody has it and what replaces it is there; pods keep what they have.
func TestSlotsTurn(t *testing.T) {
	w := delegating(t)
	w.set.PrefixDelegation, w.set.WarmIPTarget = false, 3
	w.start()
	w.live(30 * time.Second)
	b, a := w.up("c1", "web-1")
	w.live(time.Minute)
	w.expectSlots("without prefixes", 4, 0)
	w.reset(func(s *ipam.Settings) { s.PrefixDelegation = true })
	w.live(10 * time.Minute)
	w.expectSlots("with prefixes", 1, 1)
	if w.state(a) != ipam.Assigned || w.marks[ipam.SlotsTurned] == 0 {
		t.Errorf("%v is %v; the turn is told %d times", a, w.state(a), w.marks[ipam.SlotsTurned])
	}
	w.down(b)
	b.ready = false
	w.live(10 * time.Minute)
	w.expectSlots("when the pod has ended,", 0, 1)
	w.up("c2", "web-2")
	w.reset(func(s *ipam.Settings) { s.PrefixDelegation = false })
	w.live(10 * time.Minute)
	w.expectSlots("without prefixes, and a pod that has an address of one,", 0, 1)
	w.down(&w.boxes[1])
	w.boxes[1].ready = false
	w.live(20 * time.Minute)
	w.expectSlots("without prefixes, and without pods,", 3, 0)
}

// TestASubnetWithoutPrefixes gives single addresses meanwhile, says so, and is asked again.
func TestASubnetWithoutPrefixes(t *testing.T) {
	w := delegating(t)
	w.limits.Addresses, w.bare = 14, true
	asked := 0
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		for _, e := range effs {
			if c, ok := e.(*ipam.Call); ok && c.PrefixCount > 0 {
				asked++
			}
		}
	}
	w.start()
	w.live(time.Minute)
	free := w.seenView().Free
	if _, prefixes := w.slots(); prefixes != 0 || free == 0 || !strings.Contains(w.reasons(), "no /28 prefix") {
		t.Errorf("%d addresses are free, reasons %q", free, w.reasons())
	}
	if told := w.marks[ipam.PrefixesGone]; told == 0 || asked == 0 || asked > 5 {
		t.Errorf("EC2 was asked %d times for a prefix in a minute, which was told %d times", asked, told)
	}
	w.bare = false
	w.live(time.Hour)
	w.up("c1", "web-1")
	w.live(10 * time.Minute)
	if _, prefixes := w.slots(); prefixes == 0 || w.reasons() != "" {
		t.Errorf("there are prefixes again, and the node has %d, reasons %q", prefixes, w.reasons())
	}
	w.tidy()
}

// TestATypeWithoutPrefixes has single addresses, and says once that the setting has no effect.
func TestATypeWithoutPrefixes(t *testing.T) {
	w := delegating(t)
	w.limits.Prefixes = false
	w.start()
	w.live(time.Minute)
	w.reset(func(*ipam.Settings) {})
	w.live(10 * time.Minute)
	if addresses, prefixes := w.slots(); addresses == 0 || prefixes > 0 || w.marks[ipam.TypeWithoutPrefixes] != 1 {
		t.Errorf("%d addresses, %d prefixes, told %d times", addresses, prefixes, w.marks[ipam.TypeWithoutPrefixes])
	}
}

// TestSecurityGroupsFollowThePrimarys: an ENI that the node made gets them when they change, once; where EC2 refuses
// that is said, and the ENI serves pods as it is.
func TestSecurityGroupsFollowThePrimarys(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.groups, w.set.WarmENITarget = []string{"sg-1"}, 2
	w.start()
	w.live(time.Minute)
	second := func() []string { return w.eni("eni-1").Groups }
	if !slices.Equal(second(), w.groups) {
		t.Fatalf("it is made with %q", second())
	}
	calls, refuse := 0, true
	regroups := func(e ipam.Effect) bool { c, ok := e.(*ipam.Call); return ok && c.Action == ipam.GroupENI }
	w.groups = []string{"sg-3", "sg-2"}
	for end := w.now + 5*time.Minute; w.now < end; {
		if i := slices.IndexFunc(w.flight, regroups); i >= 0 {
			calls++
			c := w.take(i).(*ipam.Call)
			if c.ENI != "eni-1" {
				t.Errorf("groups of %s are changed", c.ENI)
			}
			if refuse {
				w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.Denied, Code: "UnauthorizedOperation"}})
				refuse = false
				w.calm()
				if why := w.reasons(); !strings.Contains(why, "eni-1") {
					t.Errorf("EC2 refuses, and the reasons are %q", why)
				}
				w.up("c1", "web-1")
				continue
			}
			w.step(w.outcome(c))
			continue
		}
		if !w.onward() {
			t.Fatalf("at %v the node rests", w.now)
		}
	}
	if !slices.Equal(second(), w.groups) || calls != 2 || strings.Contains(w.reasons(), "groups") {
		t.Errorf("after %d calls it has %q, reasons %q", calls, second(), w.reasons())
	}
	w.groups = []string{"sg-2", "sg-3"} // the same in another order
	w.tap = func(_ ipam.Input, effs []ipam.Effect) {
		if slices.ContainsFunc(effs, regroups) {
			t.Errorf("its groups are changed again at %v", w.now)
		}
	}
	w.live(5 * time.Minute)
}

// TestWhereENIsAreMade: in the subnet with the most free addresses of those that are for pods; in another one when
// EC2 refuses there; and an ENI in a subnet that is for pods no more gives back what no pod has.
func TestWhereENIsAreMade(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.limits.ENIs = 4
	w.subnets = []ipam.Subnet{{ID: "subnet-1", Free: 50}, {ID: "subnet-2", Free: 200, Role: "1"},
		{ID: "subnet-3", Free: 250},
		{ID: "subnet-4", Free: 240, Role: "1", Others: true}}
	w.set.WarmIPTarget, w.set.MinimumIPTarget = 1, 7
	w.start()
	w.live(2 * time.Minute)
	if v := w.eni("eni-1"); v == nil || v.Subnet != "subnet-2" {
		t.Fatalf("the first one is %+v", v)
	}
	w.reset(func(s *ipam.Settings) { s.MinimumIPTarget = 12 })
	c := w.untilCall(ipam.CreateENI)
	w.step(ipam.Called{ID: c.ID, Result: ipam.Result{Class: ipam.SubnetFull, Code: "InsufficientFreeAddressesInSubnet"}})
	if c.Subnet != "subnet-2" {
		t.Errorf("the second one is wanted in %s", c.Subnet)
	}
	w.live(5 * time.Minute)
	if v := w.eni("eni-2"); v == nil || v.Subnet != "subnet-1" || w.marks[ipam.SubnetSwitched] == 0 {
		t.Errorf("EC2 has refused in subnet-2, and the second one is %+v", v)
	}
	b, a := w.up("c1", "web-1")
	from := slices.IndexFunc(w.enis, func(e cloudENI) bool { return slices.Contains(e.Addresses, a) })
	subnet := w.enis[from].Subnet
	for i := range w.subnets { // from now on the pod's is for no pods, and the others are
		w.subnets[i].Role, w.subnets[i].Others = "1", false
		if w.subnets[i].ID == subnet {
			w.subnets[i].Role = "0"
		}
	}
	w.start() // which asks anew
	w.live(20 * time.Minute)
	for i := range w.enis {
		e := &w.enis[i]
		for _, ip := range e.Addresses {
			if e.Subnet == subnet && ip != a {
				t.Errorf("%s of %s, which is not for pods any more, has %v, which no pod has", e.ID, e.Subnet, ip)
			}
		}
	}
	if r, ok := w.node.Find(b.att); !ok || r.Address != a {
		t.Errorf("the pod has %+v", r)
	}
	w.tidy()
}

// TestCustomNetworking: pods have ENIs of the ENIConfig's subnet and groups, and none of the primary one; without an
// ENIConfig none is made, and the node says so.
func TestCustomNetworking(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	w.groups = []string{"sg-1"}
	w.set.CustomNetwork, w.set.API = true, true
	w.subnets = []ipam.Subnet{{ID: "subnet-1", Free: 100}, {ID: "subnet-2", Free: 100}}
	w.config = &ipam.ENIConfig{Name: "z", Missing: true}
	w.start()
	w.live(2 * time.Minute)
	if len(w.enis) != 1 || !strings.Contains(w.reasons(), `no ENIConfig "z"`) || len(w.enis[0].Addresses) > 0 {
		t.Errorf("without an ENIConfig there are %+v, reasons %q", w.enis, w.reasons())
	}
	w.config = &ipam.ENIConfig{Name: "z", Subnet: "subnet-2", Groups: []string{"sg-9"}}
	w.live(10 * time.Minute)
	v := w.eni("eni-1")
	if v == nil || v.Subnet != "subnet-2" || !slices.Equal(v.Groups, []string{"sg-9"}) || w.reasons() != "" {
		t.Fatalf("by the ENIConfig: %+v, reasons %q", v, w.reasons())
	}
	if _, a := w.up("c1", "web-1"); slices.Contains(w.enis[0].Addresses, a) || len(w.enis[0].Addresses) > 0 {
		t.Errorf("the pod has %v, and the primary ENI %v", a, w.enis[0].Addresses)
	}
	w.groups = []string{"sg-2"} // of the primary one alone
	w.live(10 * time.Minute)
	if !slices.Equal(w.eni("eni-1").Groups, []string{"sg-9"}) {
		t.Errorf("its groups are %q by now", w.eni("eni-1").Groups)
	}
	w.tidy()
}

// TestSweptWhenItSays: SweptBy is no guess.
func TestSweptWhenItSays(t *testing.T) {
	w := ready(t, ipam.Sound())
	leak := ipam.ENI{ID: "eni-91", MAC: "02:00:00:00:09:91", Subnet: "subnet-1", Status: "available", Owner: instance,
		Created: bootWall}
	far, kept := leak, leak
	far.ID, far.MAC, far.Owner = "eni-92", "02:00:00:00:09:92", "i-far"
	kept.ID, kept.MAC, kept.NoManage = "eni-93", "02:00:00:00:09:93", "true"
	for _, e := range []ipam.ENI{leak, far, kept} {
		w.enis = append(w.enis, cloudENI{ENI: e})
	}
	at, ok := w.node.SweptBy(w.now, &leak)
	if !ok || at <= w.now {
		t.Fatalf("by %v, %v", at, ok)
	}
	for _, e := range []ipam.ENI{far, kept} {
		if at, ok := w.node.SweptBy(w.now, &e); ok {
			t.Errorf("%s is swept by %v", e.ID, at)
		}
	}
	w.live(at - w.now - 2*time.Second)
	before := w.eni("eni-91") != nil
	w.live(4 * time.Second)
	if after := w.eni("eni-91") != nil; !before || after || w.eni("eni-92") == nil || w.eni("eni-93") == nil {
		t.Errorf("just before %v it was there: %v, just after: %v", at, before, after)
	}
}

// TestClassesOfCodes: by the code, else by its message, else by the status.
func TestClassesOfCodes(t *testing.T) {
	for _, c := range []struct {
		code, message string
		status        int
		want          ipam.Class
	}{
		{"RequestLimitExceeded", "", 503, ipam.Throttled},
		{"InsufficientCidrBlocks", "", 400, ipam.SubnetFull},
		{"PrivateIpAddressLimitExceeded", "", 400, ipam.Limit},
		{"InvalidNetworkInterface.InUse", "", 400, ipam.InUse},
		{"ExpiredToken", "", 400, ipam.Denied},
		{"InvalidParameterValue", "there are not sufficient free Ipv4 addresses", 400, ipam.SubnetFull},
		{"InvalidParameterValue", "eni-1 is currently in use", 400, ipam.InUse},
		{"InvalidParameterValue", "no", 400, ipam.Invalid},
		{"Other", "eni-1 is currently in use, and sufficient free Ipv4", 400, ipam.Invalid},
		{"InvalidGroup.NotFound", "", 400, ipam.NotFound},
		{"Other", "", 429, ipam.Throttled},
		{"Other", "", 500, ipam.Unavailable},
		{"Other", "", 499, ipam.Invalid},
	} {
		if got := ipam.ClassOf(c.code, c.message, c.status); got != c.want {
			t.Errorf("%s, %q, %d: %v, expected %v", c.code, c.message, c.status, got, c.want)
		}
	}
}

// TestSettingsAreBounded: what is taken changes the settings, and what is not leaves them alone.
func TestSettingsAreBounded(t *testing.T) {
	key := strings.Repeat("k", 317)
	for variable, c := range map[string]struct{ good, bad []string }{
		"WARM_IP_TARGET":                    {[]string{"0", "10000"}, []string{"-1", "10001", "", "x", "1.5"}},
		"IP_COOLDOWN_PERIOD":                {[]string{"0", "86400"}, []string{"-1", "86401", "30s"}},
		"AWS_VPC_ENI_MTU":                   {[]string{"576", "9001"}, []string{"575", "9002"}},
		"AWS_VPC_K8S_CNI_VETHPREFIX":        {[]string{"a", "enix"}, []string{"", "enixx", "eth", "vlan", "lo"}},
		"ENABLE_IMDS_ONLY_MODE":             {[]string{"true", "0"}, []string{"yes", ""}},
		"MANAGE_UNTAGGED_ENI":               {[]string{"false"}, []string{"no"}},
		"ENI_CONFIG_LABEL_DEF":              {[]string{"a.b/c_d-E", key}, []string{"", key + "k", "a/b/c", "a b"}},
		"ENILAB_IMDS_ONLY_EXCLUDED_DEVICES": {[]string{"", "1", "63,2"}, []string{"0", "64", "1,,2", "x"}},
		"NO_SUCH_VARIABLE":                  {nil, []string{"1"}},
	} {
		for _, v := range c.good {
			if s := ipam.Defaults(); s.Put(variable, v) != nil {
				t.Errorf("%s=%q is refused", variable, v)
			}
		}
		for _, v := range c.bad {
			if s := ipam.Defaults(); s.Put(variable, v) == nil || s != ipam.Defaults() {
				t.Errorf("%s=%q is taken, or leaves its mark: %+v", variable, v, s)
			}
		}
	}
	s := ipam.Settings{LeaveUntagged: true}
	if err := s.Put("MANAGE_UNTAGGED_ENI", "true"); err != nil || s.LeaveUntagged {
		t.Errorf("%v, %v", s.LeaveUntagged, err)
	}
	if err := s.Put("ENILAB_IMDS_ONLY_EXCLUDED_DEVICES", "63, 2"); err != nil || s.Excluded.String() != "2,63" {
		t.Errorf("%v, %v", s.Excluded, err)
	}
	for device, has := range map[int]bool{0: false, 2: true, 3: false, 63: true, 64: false} {
		if s.Excluded.Has(device) != has {
			t.Errorf("device %d of %v: %v", device, s.Excluded, !has)
		}
	}
	if err := s.Put("ENILAB_IMDS_ONLY_EXCLUDED_DEVICES", ""); err != nil || s.Excluded != 0 {
		t.Errorf("none is excluded any more: %v, %v", s.Excluded, err)
	}
	for _, c := range []struct {
		s    ipam.Settings
		want bool
	}{{ipam.Settings{}, true}, {ipam.Settings{NoProvisioning: true}, false}, {ipam.Settings{IMDSOnly: true}, false},
		{ipam.Settings{Cordoned: true}, false}, {ipam.Settings{Cordoned: true, ManageWhenCordon: true}, true}} {
		if c.s.Provisions() != c.want {
			t.Errorf("%+v: %v", c.s, !c.want)
		}
	}
}

// TestNamesThatAnAliasCannotHold are refused, and those that it can are not.
func TestNamesThatAnAliasCannotHold(t *testing.T) {
	long := strings.Repeat("x", 256)
	for name, ok := range map[string]bool{"": true, "c1": true, "ü": true, long[:255]: true, long: false, "a b": false,
		"a\tb": false, "a\x00": false, "\xff": false} {
		for i := range 3 {
			a := ipam.Attachment{Network: "n", ContainerID: "c", IfName: "i"}
			*[]*string{&a.Network, &a.ContainerID, &a.IfName}[i] = name
			if err := a.Plain(); (err == nil) != ok {
				t.Errorf("%.10q as name %d: %v", name, i, err)
			}
		}
	}
	if got := (ipam.Attachment{Network: "n", ContainerID: "0123456789", IfName: "i"}).String(); got != "n/01234567/i" {
		t.Errorf("it reads %s", got)
	}
}

// TestTagsOfASubnet: its role, and whether it is for other clusters alone.
func TestTagsOfASubnet(t *testing.T) {
	const of, role = "cni.networking.k8s.aws/cluster/", "kubernetes.io/role/cni"
	for _, c := range []struct {
		cluster string
		tags    []string
		want    ipam.Subnet
	}{
		{"c1", nil, ipam.Subnet{}},
		{"c1", []string{role, "1", "Name", "x"}, ipam.Subnet{Role: "1"}},
		{"c1", []string{of + "c2", ""}, ipam.Subnet{Others: true}},
		{"c1", []string{of + "c1", "", of + "c2", ""}, ipam.Subnet{}},
		{"c1", []string{of + "c2", "", of + "c1", ""}, ipam.Subnet{}},
		{"", []string{of + "c2", ""}, ipam.Subnet{}},
		{"c1", []string{"kubernetes.io/cluster/c2", "shared"}, ipam.Subnet{}},
		{"c1", []string{role, "1", "kubernetes.io/cluster/c2", "shared"}, ipam.Subnet{Role: "1"}},
	} {
		var s ipam.Subnet
		s.Tagged(c.cluster, func(yield func(key, value string) bool) {
			for i := 0; i < len(c.tags); i += 2 {
				if !yield(c.tags[i], c.tags[i+1]) {
					return
				}
			}
		})
		if s != c.want {
			t.Errorf("cluster %q, tags %q: %+v, expected %+v", c.cluster, c.tags, s, c.want)
		}
	}
}
