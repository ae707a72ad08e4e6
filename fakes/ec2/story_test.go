package ec2

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// events are the events since the last look, one per line, without what is always there.
func (w *world) story() string {
	var b strings.Builder
	for _, e := range w.Events() {
		fmt.Fprintf(&b, "%v %v", e.At, e.Kind)
		if e.Instance != "" {
			fmt.Fprintf(&b, " device %d", e.Device)
		}
		if e.Address.IsValid() {
			fmt.Fprintf(&b, " %v", e.Address)
		}
		if e.By != "" {
			b.WriteString(" by instance")
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (w *world) told(want string) {
	w.t.Helper()
	want = strings.TrimLeft(strings.ReplaceAll(want, "\t", ""), "\n")
	if got := w.story(); got != want {
		w.t.Errorf("events:\n%swant:\n%s", got, want)
	}
}

func TestLifeOfAnInterface(t *testing.T) {
	w, i := launched(t)
	w.told(`
		0s ENICreated device 0
		0s ENIAttached device 0
		0s LinkPlugged device 0
	`)
	p := w.do(Request{Action: CreateNetworkInterface, Caller: i, Subnet: plenty, SecondaryCount: 2, Description: "d", Tags: []Tag{{"k", "v"}}})
	e := p.ENI.ID
	if p.ENI.Status != Available || len(p.ENI.Secondaries) != 2 || p.ENI.Primary != ip("10.0.0.5") || p.ENI.SecurityGroups[0] != "sg-1" {
		t.Errorf("created: %+v", p.ENI)
	}
	a := w.do(Request{Action: AttachNetworkInterface, Caller: i, ENI: e, Instance: i, DeviceIndex: 2}).Attachment
	if v := w.eni(e); v.Status != Attaching || v.Attachment != a || v.Instance != i || v.DeviceIndex != 2 || v.DeleteOnTermination {
		t.Errorf("attaching: %+v", v)
	}
	if _, ok := w.HasAddress(i, p.ENI.Primary); ok {
		t.Error("an attaching interface has its address already")
	}
	if at, ok := w.Next(); !ok || at != time.Second {
		t.Errorf("next at %v, %v", at, ok)
	}
	w.wait(10 * time.Second)
	w.do(Request{Action: ModifyNetworkInterfaceAttribute, Caller: i, ENI: e, Attachment: a, DeleteOnTermination: true})
	got := w.do(Request{Action: AssignPrivateIpAddresses, Caller: i, ENI: e, SecondaryCount: 1}).Assigned
	if v := w.eni(e); v.Status != InUse || !v.DeleteOnTermination || !slices.Equal(v.Secondaries[2:], got) {
		t.Errorf("in use: %+v, assigned %v", v, got)
	}
	if owner, ok := w.HasAddress(i, got[0]); !ok || owner != e {
		t.Errorf("HasAddress: %v, %v", owner, ok)
	}
	if owner, on, ok := w.OwnerOf(got[0]); !ok || owner != e || on != i {
		t.Errorf("OwnerOf: %v, %v, %v", owner, on, ok)
	}
	w.do(Request{Action: UnassignPrivateIpAddresses, Caller: i, ENI: e, Addresses: got})
	w.do(Request{Action: DetachNetworkInterface, Caller: i, Attachment: a})
	w.refused(Request{Action: DeleteNetworkInterface, Caller: i, ENI: e}, "InvalidParameterValue")
	w.wait(5 * time.Second)
	w.do(Request{Action: DeleteNetworkInterface, Caller: i, ENI: e})
	if _, ok := w.ENI(e); ok {
		t.Error("the interface is still there")
	}
	w.told(`
		0s ENICreated by instance
		1s LinkPlugged device 2 by instance
		2s ENIAttached device 2 by instance
		10s AddressAssigned device 2 10.0.0.8 by instance
		10s AddressUnassigned device 2 10.0.0.8 by instance
		10s LinkUnplugged device 2 by instance
		10s ENIDetachStarted device 2 by instance
		15s ENIDetached device 2 by instance
		15s ENIDeleted by instance
	`)
	balance(t, w.Cloud)
}

// Incident 31: Attach has no DeleteOnTermination, so an instance that dies before Modify leaves its
// interface behind.
func TestTerminate(t *testing.T) {
	w := newWorld(t)
	i := w.launch("m5.xlarge", plenty)
	kept, _ := w.attachedENI(i, 1, 3)
	gone, a := w.attachedENI(i, 2, 3)
	w.do(Request{Action: ModifyNetworkInterfaceAttribute, ENI: gone, Attachment: a, DeleteOnTermination: true})
	half := w.create(plenty, 0)
	w.attach(half, i, 3)
	primary := w.AttachedENIs(i)[0]
	w.Events()
	w.Terminate(w.now, i)
	w.told(`
		20s LinkUnplugged device 0
		20s ENIDetached device 0
		20s ENIDeleted
		20s LinkUnplugged device 1
		20s ENIDetached device 1
		20s LinkUnplugged device 2
		20s ENIDetached device 2
		20s ENIDeleted
		20s ENIDetached device 3
		20s InstanceTerminated device 0
	`)
	for _, id := range []ENIID{primary, gone} {
		if _, ok := w.ENI(id); ok {
			t.Errorf("%s outlives its instance", id)
		}
	}
	for _, id := range []ENIID{kept, half} {
		if v := w.eni(id); v.Status != Available || v.Instance != "" || v.Attachment != "" {
			t.Errorf("left behind: %+v", v)
		}
	}
	if _, ok := w.IMDS(w.now, i); ok {
		t.Error("a terminated instance has metadata")
	}
	if at, ok := w.Next(); ok {
		t.Errorf("something is still to happen at %v", at)
	}
	w.Terminate(w.now, i)
	w.Terminate(w.now, "i-unknown")
	w.wait(time.Hour)
	w.told("")
	balance(t, w.Cloud)
}

func TestClientToken(t *testing.T) {
	w := newWorld(t)
	r := Request{Action: CreateNetworkInterface, Subnet: plenty, SecondaryCount: 2, ClientToken: "once", Tags: []Tag{{"createdAt", "1"}}}
	first := w.do(r).ENI
	i := w.launch("m5.large", plenty)
	w.attach(first.ID, i, 1)
	again := w.do(r).ENI
	if again.ID != first.ID || again.Status != Attaching || len(w.AllENIs()) != 2 {
		t.Errorf("repetition gave %+v", again)
	}
	other := r
	other.Tags = []Tag{{"createdAt", "2"}}
	w.refused(other, "IdempotentParameterMismatch")
	w.Terminate(w.now, i)
	w.do(Request{Action: DeleteNetworkInterface, ENI: first.ID})
	if late := w.do(r).ENI; late.ID != first.ID || len(late.Secondaries) != 2 || len(w.AllENIs()) != 0 {
		t.Errorf("repetition after the deletion gave %+v and %d interfaces", late, len(w.AllENIs()))
	}
	w.wait(tokenLife)
	w.do(Request{Action: DeleteNetworkInterface, ENI: w.create(plenty, 0)}) // a deletion forgets old tokens
	if fresh := w.do(r).ENI; fresh.ID == first.ID {
		t.Error("a token is remembered for ever")
	}
}

// A lost answer: the call was executed, and repeating an Assign executes it again.
func TestLostAnswer(t *testing.T) {
	w, i := launched(t)
	e := w.AttachedENIs(i)[0]
	r := Request{Action: AssignPrivateIpAddresses, Caller: i, ENI: e, SecondaryCount: 2}

	w.Fault(Fault{Kind: Lose, Action: AssignPrivateIpAddresses, Times: 1})
	if p := w.Serve(w.now, &r); !p.Lost || p.HTTP != 0 || p.Assigned != nil {
		t.Errorf("a lost answer tells %+v", p)
	}
	w.do(r)
	if n := len(w.eni(e).Secondaries); n != 4 {
		t.Errorf("%d addresses after a lost and a repeated assign of 2, want 4", n)
	}
	w.Fault(Fault{Kind: LoseRequest, Times: 1})
	if p := w.Serve(w.now, &r); !p.Lost || len(w.eni(e).Secondaries) != 4 {
		t.Errorf("a lost request was executed, or answered: %+v", p)
	}
	w.Fault(Fault{Kind: Duplicate, Instance: i, Times: 1})
	if p := w.do(r); len(p.Assigned) != 2 || len(w.eni(e).Secondaries) != 8 || w.eni(e).Secondaries[6] != p.Assigned[0] {
		t.Errorf("delivered twice: assigned %v of %v", p.Assigned, w.eni(e).Secondaries)
	}
	if n := w.CallsBy(i, AssignPrivateIpAddresses); n != (Count{Total: 5, OK: 3, Lost: 2}) || n != w.Calls(AssignPrivateIpAddresses) {
		t.Errorf("ledger: %+v", n)
	}
	if len(w.Faults()) != 0 {
		t.Errorf("faults left: %+v", w.Faults())
	}
}

func TestSlow(t *testing.T) {
	w := &world{Cloud: New(testConfig(), 3), t: t}
	i := w.launch("m5.large", plenty)
	r := Request{Action: AttachNetworkInterface, Caller: i}
	least, most := time.Hour, time.Duration(0)
	for range 500 {
		there, back := w.Travel(&r)
		least, most = min(least, there+back), max(most, there+back)
		if there <= 0 || back <= 0 {
			t.Fatalf("there %v, back %v", there, back)
		}
	}
	if least < 100*time.Millisecond || least > 110*time.Millisecond || most < 350*time.Millisecond || most > 400*time.Millisecond {
		t.Errorf("from %v to %v", least, most)
	}
	w.Fault(Fault{Kind: Slow, Slow: 90 * time.Second, Times: 1})
	w.Fault(Fault{Kind: SlowAnswer, Slow: 20 * time.Second, Times: 1})
	if there, back := w.Travel(&r); there < 90*time.Second || back < 20*time.Second || back > 21*time.Second {
		t.Errorf("there %v, back %v", there, back)
	}
	if there, _ := w.Travel(&r); there > time.Second {
		t.Errorf("a fault of one call slowed a second one: %v", there)
	}
}

func TestHanging(t *testing.T) {
	w := newWorld(t)
	i := w.launch("m5.xlarge", plenty)
	_, a := w.attachedENI(i, 1, 0)
	b, until := w.attachedENI(i, 2, 0)
	w.Fault(Fault{Kind: DetachHangs, Instance: i, Times: 1})
	w.do(Request{Action: DetachNetworkInterface, Attachment: a})
	w.Fault(Fault{Kind: DetachHangs, Until: 2 * time.Minute})
	w.do(Request{Action: DetachNetworkInterface, Attachment: until})
	c := w.create(plenty, 0)
	w.Fault(Fault{Kind: AttachHangs})
	w.attach(c, i, 3)
	w.now = 125 * time.Second
	w.Advance(w.now - 1)
	if s := w.eni(b).Status; s != Detaching {
		t.Errorf("before its fault ended: %v", s)
	}
	w.Advance(w.now)
	if s := w.eni(b).Status; s != Available {
		t.Errorf("5s after its fault ended: %v", s)
	}
	w.wait(time.Hour)
	if d, e := w.CountENIs(Detaching), w.eni(c).Status; d != 1 || e != Attaching {
		t.Errorf("%d hang detaching, and an attach that hangs is %v", d, e)
	}
	w.ClearFaults(w.now)
	w.wait(5 * time.Second)
	if d, e := w.CountENIs(Detaching), w.eni(c).Status; d != 0 || e != InUse {
		t.Errorf("after the faults: %d detaching, %v", d, e)
	}
	if links := w.Links(i); len(links) != 2 || links[1].ENI != c || links[1].Device != 3 {
		t.Errorf("links: %+v", links)
	}
	balance(t, w.Cloud)
}

// A freed address must not come straight back: it waits, and then it is the last in the queue.
func TestFreedAddressesRotate(t *testing.T) {
	cfg := exact(testConfig())
	cfg.Lag.FreedAddress = Always(2 * time.Second)
	w := &world{Cloud: New(cfg, 1), t: t}
	e := w.do(Request{Action: CreateNetworkInterface, Subnet: tiny, SecondaryCount: 2}).ENI
	back := e.Secondaries[0]
	w.do(Request{Action: UnassignPrivateIpAddresses, ENI: e.ID, Addresses: []netip.Addr{back}})
	w.refused(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, Addresses: []netip.Addr{back}}, "InvalidParameterValue")
	w.do(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, SecondaryCount: 8})
	if n := w.FreeAddresses(tiny); n != 0 {
		t.Errorf("%d free while the freed one waits", n)
	}
	w.refused(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, SecondaryCount: 1}, "InsufficientFreeAddressesInSubnet")
	w.wait(2 * time.Second)
	w.DrainSubnet(w.now, tiny, 0)
	w.DrainSubnet(w.now, tiny, 5)
	if got := w.do(Request{Action: AssignPrivateIpAddresses, ENI: e.ID, SecondaryCount: 1}).Assigned; got[0] != back {
		t.Errorf("assigned %v, want %v", got, back)
	}
	balance(t, w.Cloud)

	var order []netip.Addr // with some to spare, all others come first
	f := w.do(Request{Action: CreateNetworkInterface, Subnet: plenty}).ENI.ID
	for range 400 {
		a := w.do(Request{Action: AssignPrivateIpAddresses, ENI: f, SecondaryCount: 1}).Assigned
		if k := slices.Index(order, a[0]); k >= 0 && len(order)-k < 240 {
			t.Fatalf("%v came back after %d others", a[0], len(order)-k-1)
		}
		order = append(order, a[0])
		w.do(Request{Action: UnassignPrivateIpAddresses, ENI: f, Addresses: a})
		w.wait(time.Second)
	}
}

func TestStrangers(t *testing.T) {
	w, i := launched(t)
	e, _ := w.attachedENI(i, 1, 2)
	primary := w.AttachedENIs(i)[0]
	w.Events()
	victim := w.eni(e).Secondaries[0]
	w.ThirdPartyUnassign(w.now, victim)
	w.ThirdPartyUnassign(w.now, victim)          // gone
	w.ThirdPartyUnassign(w.now, ip("10.0.0.99")) // nobody's
	w.ThirdPartyUnassign(w.now, w.eni(e).Primary)
	w.ThirdPartyUnassign(w.now, netip.Addr{})
	w.ThirdPartyDetach(w.now, e)
	w.ThirdPartyDetach(w.now, e)
	w.ThirdPartyDetach(w.now, primary)
	w.ThirdPartyDetach(w.now, "eni-x")
	w.wait(5 * time.Second)
	w.ThirdPartyDetach(w.now, e)
	w.told(`
		10s AddressUnassigned device 1 10.0.0.6
		10s LinkUnplugged device 1
		10s ENIDetachStarted device 1
		15s ENIDetached device 1
	`)
	if n := w.Calls(DetachNetworkInterface).Total; n != 0 {
		t.Errorf("strangers are in the ledger: %d", n)
	}
	w.DrainSubnet(w.now, plenty, 3)
	if n := w.FreeAddresses(plenty); n != 3 {
		t.Errorf("%d left", n)
	}
	w.DrainSubnet(w.now, plenty, -3)
	w.DrainSubnet(w.now, "subnet-x", 0)
	w.DrainSubnet(w.now, plenty, 1<<40)
	if n := w.FreeAddresses(plenty); n != 248 {
		t.Errorf("%d free after strangers gave everything back, want 248", n)
	}
	if n := w.FreeAddresses("subnet-x"); n != -1 {
		t.Errorf("an unknown subnet has %d free", n)
	}
	balance(t, w.Cloud)
}

func TestLaunch(t *testing.T) {
	w := newWorld(t)
	rows := []struct {
		spec LaunchSpec
		code string
	}{
		{LaunchSpec{Type: "m5.large"}, ""},
		{LaunchSpec{Type: "m5.large", Subnet: far, SecondaryAddresses: 9}, ""},
		{LaunchSpec{Type: "m5.tiny"}, "InvalidParameterValue"},
		{LaunchSpec{Type: "m5.large", Subnet: "subnet-x"}, "InvalidSubnetID.NotFound"},
		{LaunchSpec{Type: "m5.large", SecondaryAddresses: 10}, "PrivateIpAddressLimitExceeded"},
		{LaunchSpec{Type: "m5.large", SecondaryAddresses: 1<<63 - 1}, "PrivateIpAddressLimitExceeded"},
		{LaunchSpec{Type: "m5.large", SecondaryAddresses: -1}, "PrivateIpAddressLimitExceeded"},
		{LaunchSpec{Type: "c5.4xlarge", Subnet: tiny, SecondaryAddresses: 11}, "InsufficientFreeAddressesInSubnet"},
	}
	for _, row := range rows {
		id, err := w.Launch(0, row.spec)
		if row.code == "" {
			if v, ok := w.IMDS(0, id); err != nil || !ok || len(v.ENIs) != 1 || len(v.ENIs[0].Addresses) != 1+row.spec.SecondaryAddresses ||
				v.Instance.PrimaryMAC != v.ENIs[0].MAC || v.Instance.PrimaryAddress != v.ENIs[0].Addresses[0] || v.Instance.Type != row.spec.Type {
				t.Errorf("%+v: %v, %+v", row.spec, err, v)
			}
			continue
		}
		if e, ok := err.(*Error); !ok || e.Code != row.code || id != "" {
			t.Errorf("%+v: %q, %v, want %s", row.spec, id, err, row.code)
		}
	}
	w.cfg.ENIQuota = 2
	if _, err := w.Launch(0, LaunchSpec{Type: "m5.large"}); err == nil || !strings.Contains(err.Error(), "NetworkInterfaceLimitExceeded") {
		t.Errorf("beyond the quota: %v", err)
	}
}
