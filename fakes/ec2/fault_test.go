package ec2

import (
	"strings"
	"testing"
	"time"
)

func TestFaultText(t *testing.T) {
	rows := []struct {
		text string
		want Fault
	}{
		{"Lose", Fault{Kind: Lose}},
		{"Fail action=AttachNetworkInterface node=i-0abc code=InternalError times=3",
			Fault{Kind: Fail, Action: AttachNetworkInterface, Instance: "i-0abc", Code: "InternalError", Times: 3}},
		{"Fail action=CreateNetworkInterface code=InternalError times=1 after=executed",
			Fault{Kind: Fail, Action: CreateNetworkInterface, Code: "InternalError", Times: 1, Executed: true}},
		{"Slow action=CreateTags by=1.5s until=2m0s", Fault{Kind: Slow, Action: CreateTags, Slow: 1500 * time.Millisecond, Until: 2 * time.Minute}},
		{"ClockSkew node=i-1 by=-10m0s code=AuthFailure", Fault{Kind: ClockSkew, Instance: "i-1", By: -10 * time.Minute, Code: "AuthFailure"}},
		{"StaleReads by=30s", Fault{Kind: StaleReads, By: 30 * time.Second}},
		{"DetachHangs node=i-1 times=1", Fault{Kind: DetachHangs, Instance: "i-1", Times: 1}},
		{"UnassignByStranger address=10.0.0.7", Fault{Kind: UnassignByStranger, Address: ip("10.0.0.7")}},
		{"DeleteByStranger eni=eni-1", Fault{Kind: DeleteByStranger, ENI: "eni-1"}},
		{"DrainByStranger action=CreateNetworkInterface subnet=subnet-1 leave=4",
			Fault{Kind: DrainByStranger, Action: CreateNetworkInterface, Subnet: "subnet-1", Leave: 4}},
		{"IMDSSilent node=i-1 until=1m0s", Fault{Kind: IMDSSilent, Instance: "i-1", Until: time.Minute}},
	}
	for _, row := range rows {
		if got, err := ParseFault(0, row.text); err != nil || got != row.want {
			t.Errorf("%s: %+v, %v", row.text, got, err)
		}
		if got := row.want.String(); got != row.text {
			t.Errorf("%+v prints %q, want %q", row.want, got, row.text)
		}
	}
	f, err := ParseFault(time.Hour, "  Down\taction=any   for=90s ")
	if want := (Fault{Kind: Down, Until: time.Hour + 90*time.Second}); err != nil || f != want {
		t.Errorf("for counts from now: %+v, %v", f, err)
	}
}

func TestFaultTextThatIsNone(t *testing.T) {
	rows := []struct{ text, says string }{
		{" ", "begin with a kind"},
		{"fail", `no kind "fail"`},
		{strings.Repeat("x", 2000), "2000 bytes"},
		{"Fail AttachNetworkInterface", "expected KEY=VALUE"},
		{"Fail code=", "expected KEY=VALUE"},
		{"Fail by=3s", "Fail takes no \"by\": write Fail [action=ACTION]"},
		{"Fail action=Attach", `no action "Attach"`},
		{"Fail times=0", "from 1 to"},
		{"Fail times=99999999999", "from 1 to"},
		{"Fail times=1 times=2", "given twice"},
		{"Down until=1m for=1m", "given twice"},
		{"Slow by=5", "is no duration"},
		{"Slow by=-5s", "negative"},
		{"Down for=2000000h", "hundred years"},
		{"UnassignByStranger address=10.0.0", "is no address"},
		{"DrainByStranger leave=-1", "from 0 to"},
		{"Fail after=all", "write executed, or dropped"},
		{"Lose after=executed", "Lose takes no \"after\""},
	}
	for _, row := range rows {
		if f, err := ParseFault(0, row.text); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%.60q: %+v, %v: want an error that says %s", row.text, f, err, row.says)
		}
	}
}

// Every kind is drawn, reads back from its own text, and is the same for the same seed.
func TestDrawnFaults(t *testing.T) {
	nodes := []InstanceID{"i-1", "i-2"}
	seen, executed := map[FaultKind]int{}, 0
	for seed := range uint64(2000) {
		f := DrawFault(seed, time.Minute, nodes)
		seen[f.Kind]++
		if f.Executed {
			executed++
		}
		if again := DrawFault(seed, time.Minute, nodes); again != f {
			t.Fatalf("seed %d: %v, then %v", seed, f, again)
		}
		if got, err := ParseFault(0, f.String()); err != nil || got != f {
			t.Fatalf("seed %d: %v reads back as %v, %v", seed, f, got, err)
		}
		if f.Until != 0 && (f.Until <= time.Minute || f.Until > 3*time.Minute) {
			t.Fatalf("seed %d: %v: it is to end within two minutes", seed, f)
		}
	}
	if executed < 10 {
		t.Errorf("of %d failures %d come after the deed", seen[Fail], executed)
	}
	for _, k := range FaultKinds() {
		if seen[k] < 50 && k < endOfDrawn {
			t.Errorf("%v was drawn %d times of 2000", k, seen[k])
		}
	}
	if f := DrawFault(3, 0, nil); f.Instance != "" {
		t.Errorf("%v: there are no nodes", f)
	}
}

func FuzzParseFault(f *testing.F) {
	for seed := range uint64(40) {
		f.Add(DrawFault(seed, time.Second, []InstanceID{"i-1"}).String())
	}
	f.Fuzz(func(t *testing.T, text string) {
		fault, err := ParseFault(time.Hour, text)
		if err != nil {
			return
		}
		if again, err := ParseFault(0, fault.String()); err != nil || again != fault {
			t.Fatalf("%q: %+v prints %q and reads back as %+v, %v", text, fault, fault, again, err)
		}
		w, i := launched(t)
		w.Fault(fault)
		for _, a := range []Action{CreateNetworkInterface, DescribeSubnets, DescribeNetworkInterfaces} {
			w.Serve(w.now, &Request{Action: a, Caller: i, Subnet: plenty})
		}
	})
}

// TestFailAfterTheDeed: EC2 answers with an error what it has done, of every kind that changes something. A request that it refuses by itself was
// not carried out, and the fault waits for one that is; the same request again, with its client token, is answered with what the first one made.
func TestFailAfterTheDeed(t *testing.T) {
	w, i := launched(t)
	fail := func(a Action, code string) {
		w.Fault(Fault{Kind: Fail, Action: a, Code: code, Times: 1, Executed: true})
	}
	fail(CreateNetworkInterface, "")
	w.refused(Request{Action: CreateNetworkInterface, Caller: i, Subnet: "subnet-none"}, "InvalidSubnetID.NotFound")
	q := Request{Action: CreateNetworkInterface, Caller: i, Subnet: plenty, SecondaryCount: 2, ClientToken: "t"}
	before := len(w.do(Request{Action: DescribeNetworkInterfaces}).ENIs)
	w.refused(q, "InternalError")
	if n := len(w.do(Request{Action: DescribeNetworkInterfaces}).ENIs); n != before+1 {
		t.Errorf("CreateNetworkInterface failed after it was executed: there are %d interfaces, before it %d", n, before)
	}
	e := w.do(q).ENI.ID
	fail(AttachNetworkInterface, "Unavailable")
	w.refused(Request{Action: AttachNetworkInterface, Caller: i, ENI: e, Instance: i, DeviceIndex: 1}, "Unavailable")
	w.wait(time.Minute)
	fail(AssignPrivateIpAddresses, "RequestLimitExceeded")
	w.refused(Request{Action: AssignPrivateIpAddresses, Caller: i, ENI: e, SecondaryCount: 1}, "RequestLimitExceeded")
	if got := w.eni(e); got.Status != InUse || len(got.Secondaries) != 3 {
		t.Errorf("attach and assign failed after they were executed: %+v", got)
	}
}

func TestClockSkew(t *testing.T) {
	rows := []struct {
		by   time.Duration
		code string
		want string
	}{
		{0, "", ""},
		{5 * time.Minute, "", ""},
		{-5 * time.Minute, "", ""},
		{5*time.Minute + 1, "", "AuthFailure"},
		{-5*time.Minute - 1, "", "RequestExpired"},
		{-time.Hour, "AuthFailure", "AuthFailure"},
	}
	for _, row := range rows {
		w, i := launched(t)
		w.Fault(Fault{Kind: ClockSkew, Instance: i, By: row.by, Code: row.code})
		if p := w.Serve(0, &Request{Action: DescribeSubnets, Caller: i}); p.Code != row.want {
			t.Errorf("%v: code %q, want %q", row.by, p.Code, row.want)
		}
		w.do(Request{Action: DescribeSubnets}) // another's clock is right
	}
}

// What third parties do behind the node's back is done at once, or just before the call that is named.
func TestFaultsByStrangers(t *testing.T) {
	w := newWorld(t)
	i, other := w.launch("m5.large", plenty), w.launch("m5.large", plenty)
	e, _ := w.attachedENI(i, 1, 3)
	kept, _ := w.attachedENI(other, 1, 3)

	w.Fault(Fault{Kind: UnassignByStranger, Instance: i, Times: 2})
	if n := len(w.eni(e).Secondaries); n != 1 {
		t.Errorf("%d secondaries are left, want 1", n)
	}
	w.Fault(Fault{Kind: UnassignByStranger, Address: w.eni(e).Secondaries[0]})
	if n := len(w.eni(e).Secondaries); n != 0 {
		t.Errorf("%d secondaries are left, want 0", n)
	}
	w.Fault(Fault{Kind: UnassignByStranger, Instance: i, Times: 5}) // there are none

	w.Fault(Fault{Kind: DetachByStranger, Instance: i, Action: AssignPrivateIpAddresses})
	w.do(Request{Action: DescribeSubnets, Caller: i})
	if s := w.eni(e).Status; s != InUse {
		t.Errorf("%v before the call that is named", s)
	}
	w.do(Request{Action: AssignPrivateIpAddresses, Caller: i, ENI: e, SecondaryCount: 1})
	if s := w.eni(e).Status; s != Detaching {
		t.Errorf("%v after the call that is named, want detaching", s)
	}
	w.Fault(Fault{Kind: DetachByStranger, Instance: i}) // there is none in use but the primary one

	w.Fault(Fault{Kind: DeleteByStranger, ENI: e})
	if _, ok := w.ENI(e); ok {
		t.Error("it is not deleted")
	}
	primary := w.AttachedENIs(i)[0]
	w.Fault(Fault{Kind: DeleteByStranger, ENI: primary})
	w.Fault(Fault{Kind: DeleteByStranger, ENI: "eni-nonsense"})
	if w.eni(primary).Status != InUse || w.eni(kept).Status != InUse || len(w.eni(kept).Secondaries) != 3 {
		t.Error("it hit what it was not to")
	}

	w.Fault(Fault{Kind: DrainByStranger, Subnet: tiny, Leave: 2})
	w.Fault(Fault{Kind: DrainByStranger})
	if a, b := w.FreeAddresses(tiny), w.FreeAddresses(plenty); a != 2 || b != 0 {
		t.Errorf("%d and %d addresses are free, want 2 and 0", a, b)
	}
	if len(w.Faults()) != 0 {
		t.Errorf("in force: %v", w.Faults())
	}
	w.Fault(Fault{Kind: DeleteByStranger})
	if _, ok := w.ENI(kept); ok {
		t.Error("of all, the only one that is not primary is to be deleted")
	}
	balance(t, w.Cloud)
}

func TestLedgerRows(t *testing.T) {
	w, i := launched(t)
	w.Fault(Fault{Kind: Fail, Action: DescribeSubnets, Code: "Odd", Times: 2})
	for range 3 {
		w.Serve(0, &Request{Action: DescribeSubnets, Caller: i})
	}
	w.Serve(0, &Request{Action: DeleteNetworkInterface})
	w.Serve(0, &Request{Action: DeleteNetworkInterface, ENI: "eni-00000000000000000"})
	w.Fault(Fault{Kind: ThrottleBurst})
	w.Serve(0, &Request{Action: AttachNetworkInterface, Caller: i})
	w.Fault(Fault{Kind: Lose, Times: 1})
	w.Serve(0, &Request{Action: AttachNetworkInterface, Caller: i})
	w.Serve(0, &Request{Action: 200})
	want := []LedgerRow{
		{AnyAction, "", CallFailed, "InvalidAction", 1},
		{AttachNetworkInterface, i, CallThrottled, "RequestLimitExceeded", 1},
		{AttachNetworkInterface, i, CallLost, "", 1},
		{DeleteNetworkInterface, "", CallFailed, "InvalidNetworkInterfaceID.NotFound", 1},
		{DeleteNetworkInterface, "", CallFailed, "MissingParameter", 1},
		{DescribeSubnets, i, CallOK, "", 1},
		{DescribeSubnets, i, CallFailed, "Odd", 2},
	}
	got := w.LedgerRows()
	if len(got) != len(want) {
		t.Fatalf("%+v, want %+v", got, want)
	}
	for k := range want {
		if got[k] != want[k] {
			t.Errorf("row %d: %+v, want %+v", k, got[k], want[k])
		}
	}
	if f := w.Clone(); len(f.LedgerRows()) != len(want) {
		t.Error("the clone's ledger is another")
	}
}
