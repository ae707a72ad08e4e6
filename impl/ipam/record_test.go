package ipam_test

import (
	"bytes"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

const bootWall = 1_700_000_000

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

func prefix(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// someRows have every field of an address row set somewhere.
func someRows() []ipam.Row {
	return []ipam.Row{
		{Address: addr("10.0.0.9"), State: ipam.Assigned, Att: ipam.Attachment{Network: "aws-cni", ContainerID: "c1", IfName: "eth0"},
			Pod: ipam.Pod{Namespace: "default", Name: "web-0", UID: "u1"}, Netns: 4026532001, Veth: "eni123", ENI: "eni-1",
			Allocated: 7 * time.Second, SeenCRI: true},
		{Address: addr("10.0.0.10"), State: ipam.Cooling, Att: ipam.Attachment{Network: "aws-cni", ContainerID: "c2", IfName: "eth0"},
			Pod: ipam.Pod{Namespace: "default", Name: "web-1"}, Netns: 4026532002, Veth: "eni124", ENI: "eni-1",
			Allocated: 8 * time.Second, ReleasedAt: 20 * time.Second},
		{Address: addr("10.0.1.1"), State: ipam.Quarantined, ENI: "eni-2", ReleasedAt: -3 * time.Second},
	}
}

// someFacts are the row of a node's own address.
func someFacts() ipam.Row {
	return ipam.Row{Address: addr("10.0.0.4"), State: ipam.Departed, ReleasedAt: time.Second, Node: &ipam.Facts{
		Instance: ipam.Instance{ID: "i-1", Type: "m5.large", Zone: "eu-1a", Subnet: "subnet-1", PrimaryMAC: "02:00:00:00:00:01", Address: addr("10.0.0.4"),
			VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Limits: ipam.Limits{ENIs: 3, Addresses: 10}},
		ENIs: []ipam.ENI{{ID: "eni-1", MAC: "02:00:00:00:00:01", Subnet: "subnet-1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Primary: addr("10.0.0.4")},
			{ID: "eni-2", MAC: "02:00:00:00:00:02", Device: 1, Subnet: "subnet-2", CIDR: netip.MustParsePrefix("10.0.1.0/24"), Primary: addr("10.0.1.4")}}}}
}

// TestFactsComeBack, through each version of the records.
func TestFactsComeBack(t *testing.T) {
	rows := append([]ipam.Row{someFacts()}, someRows()...)
	for version := 1; version <= ipam.Version; version++ {
		got := must.Get(ipam.DecodeRun(version, bootWall, must.Get(ipam.EncodeRun(version, bootWall, rows))(t)))(t)
		same(t, got[:1], rows[:1])
		if ipam.FactsOf(got) == nil {
			t.Errorf("version %d: the facts cannot be used", version)
		}
	}
	for _, bad := range []string{`7`, `null`, `{"enis":7}`, `{"enis":[7]}`, `{}`, `{"enis":[{"device":"x"}]}`, `{"enis":[],"address":"here"}`, `{"enis":[],"vpc":["10.0.0.0"]}`} {
		file := `{"version":"vpc-cni-ipam/1","allocations":[],"enilab":{"record":2,"resting":[{"networkName":"","containerID":"","ifName":"","ipv4":"10.0.0.4","state":"departed","node":` + bad + `}]}}`
		if rows, err := ipam.DecodeRun(2, bootWall, []byte(file)); err == nil {
			t.Errorf("%s is read as %+v", bad, rows[0].Node)
		}
	}
}

func someIntents() []ipam.Row {
	return []ipam.Row{
		{Intent: &ipam.Intent{Token: "a", Stage: ipam.Intended, ENI: ipam.ENI{Subnet: "subnet-1"}, Doing: ipam.CreateENI, Count: 9, Wall: bootWall}},
		{Intent: &ipam.Intent{Token: "b", Stage: ipam.Tombstoned, Doing: ipam.DeleteENI, Foreign: true, ENI: ipam.ENI{ID: "eni-3", MAC: "02:00:00:00:00:03",
			Device: 2, Subnet: "subnet-1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Primary: addr("10.0.0.4"), Addresses: []netip.Addr{addr("10.0.0.5")},
			Status: "available", Attachment: "eni-attach-1", Instance: "i-1", Owner: "i-2", Created: bootWall, DOT: true, Partial: true}}},
		{Intent: &ipam.Intent{Token: "c", Stage: ipam.Ready, ENI: ipam.ENI{ID: "eni-4"}, Doing: ipam.UnassignIPs, Before: []netip.Addr{addr("10.0.0.6"), addr("10.0.0.7")}}},
	}
}

func same(t testing.TB, got, want []ipam.Row) {
	t.Helper()
	if !reflect.DeepEqual(got, want) && len(got)+len(want) > 0 {
		t.Fatalf("rows differ:\n got %+v\nwant %+v", got, want)
	}
}

// TestRunLooksLikeUpstream holds the file to amazon-vpc-cni-k8s's format, byte for byte.
func TestRunLooksLikeUpstream(t *testing.T) {
	got := must.Get(ipam.EncodeRun(2, bootWall, someRows()))(t)
	want := `{"version":"vpc-cni-ipam/1","allocations":[` +
		`{"allocatedAt":7000000000,"allocationTimestamp":1700000007000000000,"containerID":"c1","eni":"eni-1","ifName":"eth0","ipv4":"10.0.0.9",` +
		`"metadata":{"interfacesCount":1,"k8sPodName":"web-0","k8sPodNamespace":"default"},"netns":4026532001,"networkName":"aws-cni","podUID":"u1","seenRuntime":true,"veth":"eni123"}],` +
		`"enilab":{"record":2,"resting":[` +
		`{"allocatedAt":8000000000,"containerID":"c2","eni":"eni-1","ifName":"eth0","ipv4":"10.0.0.10",` +
		`"metadata":{"interfacesCount":1,"k8sPodName":"web-1","k8sPodNamespace":"default"},"netns":4026532002,"networkName":"aws-cni","releasedAt":20000000000,"state":"cooling","veth":"eni124"},` +
		`{"allocatedAt":0,"containerID":"","eni":"eni-2","ifName":"","ipv4":"10.0.1.1","metadata":{"interfacesCount":1},"networkName":"","releasedAt":-3000000000,"state":"quarantined"}]}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestRowsComeBack(t *testing.T) {
	rows := someRows()
	backwards := slices.Clone(rows)
	slices.Reverse(backwards)
	data := must.Get(ipam.EncodeRun(0, bootWall, backwards))(t)
	same(t, must.Get(ipam.DecodeRun(0, bootWall, data))(t), rows)
	if again := must.Get(ipam.EncodeRun(0, bootWall, rows))(t); !bytes.Equal(again, data) {
		t.Error("the order of the rows shows in the file")
	}

	intents := someIntents()
	backwards = slices.Clone(intents)
	slices.Reverse(backwards)
	data = must.Get(ipam.EncodeLib(0, backwards))(t)
	same(t, must.Get(ipam.DecodeLib(0, data))(t), intents)
	if again := must.Get(ipam.EncodeLib(0, intents))(t); !bytes.Equal(again, data) || backwards[0].Intent.Token != "c" {
		t.Error("the order of the intents shows in the file, or the caller's has changed")
	}
	if _, err := ipam.EncodeLib(0, append(backwards, backwards[0])); err == nil {
		t.Error("an intent is written twice")
	}
	for _, rows := range [][]ipam.Row{nil, {}} {
		same(t, must.Get(ipam.DecodeRun(2, bootWall, must.Get(ipam.EncodeRun(2, bootWall, rows))(t)))(t), nil)
		same(t, must.Get(ipam.DecodeLib(2, must.Get(ipam.EncodeLib(2, rows))(t)))(t), nil)
	}
}

// TestUpstreamsFile is what amazon-vpc-cni-k8s leaves behind when it is replaced.
func TestUpstreamsFile(t *testing.T) {
	const file = `{"version":"vpc-cni-ipam/1","allocations":[
	 {"networkName":"aws-cni","containerID":"c9","ifName":"eth0","ipv4":"10.0.0.22","allocationTimestamp":1700000011000000000,"metadata":{"k8sPodNamespace":"kube-system","k8sPodName":"dns","interfacesCount":2}},
	 {"networkName":"aws-cni","containerID":"c8","ifName":"eth0","ipv4":"10.0.0.21","allocationTimestamp":1600000000000000000}]}`
	rows := must.Get(ipam.DecodeRun(2, bootWall, []byte(file)))(t)
	same(t, rows, []ipam.Row{
		{Address: addr("10.0.0.21"), State: ipam.Assigned, Att: ipam.Attachment{Network: "aws-cni", ContainerID: "c8", IfName: "eth0"}},
		{Address: addr("10.0.0.22"), State: ipam.Assigned, Att: ipam.Attachment{Network: "aws-cni", ContainerID: "c9", IfName: "eth0"},
			Pod: ipam.Pod{Namespace: "kube-system", Name: "dns"}, Allocated: 11 * time.Second, Extra: `{"metadata":{"interfacesCount":2}}`},
	})
	back := must.Get(ipam.EncodeRun(2, bootWall, rows))(t)
	if !bytes.Contains(back, []byte(`"interfacesCount":2`)) {
		t.Errorf("a pod of two cards lost one on the way back: %s", back)
	}
}

// TestNeighbourVersions is rule C: what one version does not know survives it.
func TestNeighbourVersions(t *testing.T) {
	rows := someRows()
	two := must.Get(ipam.EncodeRun(2, bootWall, rows))(t)
	old := must.Get(ipam.DecodeRun(1, bootWall, two))(t)
	if old[0].Netns != 0 || old[0].Veth != "" || old[0].Extra != `{"netns":4026532001,"veth":"eni123"}` {
		t.Errorf("version 1 read %+v", old[0])
	}
	one := must.Get(ipam.EncodeRun(1, bootWall, old))(t)
	same(t, must.Get(ipam.DecodeRun(2, bootWall, one))(t), rows)

	plain := must.Get(ipam.EncodeRun(1, bootWall, rows))(t)
	if bytes.Contains(plain, []byte("netns")) || bytes.Contains(plain, []byte("veth")) {
		t.Errorf("version 1 wrote fields of version 2: %s", plain)
	}

	const far = `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"aws-cni","containerID":"c1","ifName":"eth0","ipv4":"10.0.0.9","allocationTimestamp":1,
	 "allocatedAt":5,"qos":{"b":[1,2]},"metadata":{"zone":"a"}}],"enilab":{"record":9,"resting":[{"networkName":"","containerID":"","ifName":"","ipv4":"10.0.0.8","state":"exiled","why":"x"}]}}`
	got := must.Get(ipam.DecodeRun(2, bootWall, []byte(far)))(t)
	same(t, got, []ipam.Row{
		{Address: addr("10.0.0.8"), State: ipam.Quarantined, Extra: `{"why":"x"}`},
		{Address: addr("10.0.0.9"), State: ipam.Assigned, Att: ipam.Attachment{Network: "aws-cni", ContainerID: "c1", IfName: "eth0"}, Allocated: 5,
			Extra: `{"metadata":{"zone":"a"},"qos":{"b":[1,2]}}`},
	})
	same(t, must.Get(ipam.DecodeRun(2, bootWall, must.Get(ipam.EncodeRun(2, bootWall, got))(t)))(t), got)

	const farIntent = `{"version":"enilab-intents/1","record":9,"intents":[{"token":"t","stage":"frozen","doing":"MoveNetworkInterface","eni":{"id":"eni-1","card":2},"why":1}]}`
	intents := must.Get(ipam.DecodeLib(2, []byte(farIntent)))(t)
	same(t, intents, []ipam.Row{{Intent: &ipam.Intent{Token: "t", ENI: ipam.ENI{ID: "eni-1"},
		Extra: `{"doing":"MoveNetworkInterface","eni":{"card":2},"stage":"frozen","why":1}`}}})
	same(t, must.Get(ipam.DecodeLib(2, must.Get(ipam.EncodeLib(2, intents))(t)))(t), intents)
}

func TestDamagedRunStore(t *testing.T) {
	whole := must.Get(ipam.EncodeRun(2, bootWall, someRows()))(t)
	allocation := func(s string) string {
		return `{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"n","containerID":"c","ifName":"i",` + s + `}]}`
	}
	ours := func(s string) string { return `{"version":"vpc-cni-ipam/1","allocations":[],"enilab":` + s + `}` }
	for _, c := range []struct{ name, data, says string }{
		{"empty", "", "the file is empty"},
		{"cut off", string(whole[:len(whole)-9]), "unexpected end"},
		{"two files", string(whole) + string(whole), "after top-level value"},
		{"foreign", `{"kind":"List"}`, "version is missing"},
		{"not an object", `[1]`, "expected an object"},
		{"null", `null`, "found null"},
		{"intents", `{"version":"enilab-intents/1","record":2,"intents":[]}`, `expected "vpc-cni-ipam/1", found "enilab-intents/1"`},
		{"no allocations", `{"version":"vpc-cni-ipam/1"}`, "allocations is missing"},
		{"wrong list", `{"version":"vpc-cni-ipam/1","allocations":{}}`, "allocations: "},
		{"null row", `{"version":"vpc-cni-ipam/1","allocations":[null]}`, "allocation 1 of 1: expected an object, found null"},
		{"no address", allocation(`"veth":"x"`), "ipv4 is missing"},
		{"invalid address", allocation(`"ipv4":"10.0.0"`), `expected an IP address, found "10.0.0"`},
		{"address with a zone", allocation(`"ipv4":"fe80::1%eth0"`), "expected an IP address"},
		{"wrong type", allocation(`"ipv4":"10.0.0.1","netns":"x"`), "10.0.0.1: netns"},
		{"null field", allocation(`"ipv4":"10.0.0.1","veth":null`), "veth: found null"},
		{"wrong metadata", allocation(`"ipv4":"10.0.0.1","metadata":7`), "metadata"},
		{"no container", `{"version":"vpc-cni-ipam/1","allocations":[{"ipv4":"10.0.0.1","networkName":"n","ifName":"i"}]}`, "containerID is missing"},
		{"no record version", ours(`{"resting":[]}`), "record is missing"},
		{"record version 0", ours(`{"record":0,"resting":[]}`), "expected 1 or more"},
		{"no resting", ours(`{"record":1}`), "resting is missing"},
		{"enilab null", ours(`null`), "enilab: expected an object"},
		{"resting assigned", ours(`{"record":1,"resting":[{"ipv4":"10.0.0.1","state":"assigned"}]}`), "expected cooling or quarantined"},
		{"resting without a state", ours(`{"record":1,"resting":[{"ipv4":"10.0.0.1"}]}`), "state is missing"},
		{"twice", strings.Replace(string(whole), "10.0.0.10", "10.0.0.9", 1), "10.0.0.9: expected one row, found two"},
	} {
		rows, err := ipam.DecodeRun(2, bootWall, []byte(c.data))
		if err == nil || rows != nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "decode run store") {
			t.Errorf("%s: %d rows, error %v; want %q", c.name, len(rows), err, c.says)
		}
	}
	for i := range whole { // any prefix
		if rows, err := ipam.DecodeRun(2, bootWall, whole[:i]); err == nil || rows != nil {
			t.Fatalf("the first %d of %d bytes were read", i, len(whole))
		}
	}
}

func TestDamagedLibStore(t *testing.T) {
	whole := must.Get(ipam.EncodeLib(2, someIntents()))(t)
	intent := func(s string) string { return `{"version":"enilab-intents/1","record":2,"intents":[` + s + `]}` }
	for _, c := range []struct{ name, data, says string }{
		{"empty", "", "the file is empty"},
		{"cut off", string(whole[:len(whole)-9]), "unexpected end"},
		{"allocations", `{"version":"vpc-cni-ipam/1","allocations":[]}`, `expected "enilab-intents/1"`},
		{"no record", `{"version":"enilab-intents/1","intents":[]}`, "record is missing"},
		{"no token", intent(`{"stage":"ready"}`), "token is missing"},
		{"empty token", intent(`{"token":""}`), "found an empty text"},
		{"wrong type", intent(`{"token":"t","count":"x"}`), `"t": count`},
		{"wrong stage", intent(`{"token":"t","stage":4}`), "stage"},
		{"wrong address", intent(`{"token":"t","before":["x"]}`), "before: expected IP addresses"},
		{"wrong prefix", intent(`{"token":"t","eni":{"cidr":"10.0.0.0"}}`), "cidr: expected an address and a length"},
		{"eni null", intent(`{"token":"t","eni":null}`), "eni: expected an object"},
		{"twice", intent(`{"token":"t"},{"token":"t"}`), `"t": expected one row, found two`},
	} {
		rows, err := ipam.DecodeLib(2, []byte(c.data))
		if err == nil || rows != nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "decode lib store") {
			t.Errorf("%s: %d rows, error %v; want %q", c.name, len(rows), err, c.says)
		}
	}
	for i := range whole {
		if rows, err := ipam.DecodeLib(2, whole[:i]); err == nil || rows != nil {
			t.Fatalf("the first %d of %d bytes were read", i, len(whole))
		}
	}
}

func TestRowsThatAreNoRecord(t *testing.T) {
	one := someRows()[0]
	free, nowhere, extra, zoned, both := one, one, one, one, one
	free.State, nowhere.Address, extra.Extra = ipam.Free, netip.Addr{}, `[1]`
	zoned.Address, both.Intent = addr("fe80::1%eth0"), someIntents()[0].Intent
	for name, rows := range map[string][]ipam.Row{"free": {free}, "nowhere": {nowhere}, "twice": {one, one},
		"extra": {extra}, "intent": someIntents(), "zone": {zoned}, "address and intent": {both}} {
		if data, err := ipam.EncodeRun(2, bootWall, rows); err == nil || data != nil {
			t.Errorf("%s was written: %s", name, data)
		}
	}
	in := someIntents()[0]
	for name, rows := range map[string][]ipam.Row{"address": {one}, "twice": {in, in}, "no token": {{Intent: &ipam.Intent{}}}, "extra": {{Intent: &ipam.Intent{Token: "t", Extra: "x"}}}} {
		if data, err := ipam.EncodeLib(2, rows); err == nil || data != nil {
			t.Errorf("%s was written: %s", name, data)
		}
	}
}

func FuzzDecodeRun(f *testing.F) {
	for _, v := range []int{1, 2} {
		data, _ := ipam.EncodeRun(v, bootWall, someRows())
		f.Add(v, int64(bootWall), data)
		data, _ = ipam.EncodeRun(v, bootWall, []ipam.Row{someFacts()})
		f.Add(v, int64(bootWall), data)
	}
	f.Add(2, int64(0), []byte(`{"version":"vpc-cni-ipam/1","allocations":[{"networkName":"n","containerID":"c","ifName":"i","ipv4":"10.0.0.1","allocationTimestamp":5,"x":{"y":null}}]}`))
	f.Fuzz(func(t *testing.T, version int, wall int64, data []byte) {
		rows, err := ipam.DecodeRun(version, wall, data)
		if err != nil {
			if rows != nil {
				t.Fatal("half read")
			}
			return
		}
		again, err := ipam.EncodeRun(version, wall, rows)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		same(t, must.Get(ipam.DecodeRun(version, wall, again))(t), rows)
		if third := must.Get(ipam.EncodeRun(version, wall, rows))(t); !bytes.Equal(third, again) {
			t.Fatal("not deterministic")
		}
	})
}

func FuzzDecodeLib(f *testing.F) {
	data, _ := ipam.EncodeLib(2, someIntents())
	f.Add(data)
	f.Add([]byte(`{"version":"enilab-intents/1","record":3,"intents":[{"token":"t","stage":"frozen","eni":{"card":1}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		rows, err := ipam.DecodeLib(2, data)
		if err != nil {
			if rows != nil {
				t.Fatal("half read")
			}
			return
		}
		again, err := ipam.EncodeLib(2, rows)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		same(t, must.Get(ipam.DecodeLib(2, again))(t), rows)
	})
}
