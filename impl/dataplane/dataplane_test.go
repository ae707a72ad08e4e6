package dataplane_test

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	. "github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

func ip(s string) netip.Addr         { return netip.MustParseAddr(s) }
func prefix(s string) netip.Prefix   { return netip.MustParsePrefix(s) }
func host32(s string) netip.Prefix   { return netip.PrefixFrom(ip(s), 32) }
func never(netip.Addr, string) bool  { return false }
func always(netip.Addr, string) bool { return true }

var (
	hostSpec = HostSpec{
		PrimaryMAC: "0a:00:00:00:00:01", NodeAddress: ip("10.0.10.66"), NodePort: true, MTU: 9001,
		VPCCIDRs: []netip.Prefix{prefix("100.64.0.0/10"), prefix("10.0.0.0/16"), prefix("100.64.0.0/10")},
	}
	eniSpec = ENISpec{
		MAC: "0a:00:00:00:00:02", Device: 2, Primary: ip("10.0.10.43"), Subnet: prefix("10.0.10.0/24"), Table: TableOf(2), MTU: 9001,
	}
	podSpec = PodSpec{
		Alias:    Alias("aws-cni", "291716a3", "eth0", ip("10.0.10.70")),
		HostVeth: HostVethName("eni", "default", "etcd1-0"), Netns: 4026532301, Address: ip("10.0.10.70"), Table: 3, MTU: 9001,
		Displaced: Alias("aws-cni", "94feeebc", "eth0", ip("10.0.10.71")), DisplacedName: "eni0000000000a",
	}
)

func TestPlans(t *testing.T) {
	onMain := podSpec
	onMain.Table, onMain.Displaced, onMain.DisplacedName, onMain.IfName, onMain.MAC = MainTable, "", "", "net1", "02:aa:bb:cc:dd:ee"
	external := hostSpec
	external.ExternalSNAT, external.NodePort = true, false
	nodePorts := hostSpec
	nodePorts.ExternalSNAT = true
	primary := ENISpec{MAC: hostSpec.PrimaryMAC, Table: TableOf(0)}
	for name, tt := range map[string]struct {
		plan Plan
		want string
	}{
		"init": {InitPlan(hostSpec), `
sysctl name=rp_filter value=2 mac=0a:00:00:00:00:01
`},
		"init without node ports": {InitPlan(external), "\n"},
		"host": {HostPlan(hostSpec), `
eni-up mtu=9001 mac=0a:00:00:00:00:01
ensure-rule priority=1024 mark=0x80 table=254
host-nat name="10.0.0.0/16 100.64.0.0/10" value="snat nodeport" addr=10.0.10.66 mac=0a:00:00:00:00:01
`},
		"host with external SNAT and no node ports": {HostPlan(external), `
eni-up mtu=9001 mac=0a:00:00:00:00:01
remove-rule priority=1024 mark=0x80 table=254
host-nat name="10.0.0.0/16 100.64.0.0/10" addr=10.0.10.66 mac=0a:00:00:00:00:01
`},
		"host with external SNAT and node ports": {HostPlan(nodePorts), `
eni-up mtu=9001 mac=0a:00:00:00:00:01
ensure-rule priority=1024 mark=0x80 table=254
host-nat name="10.0.0.0/16 100.64.0.0/10" value=nodeport addr=10.0.10.66 mac=0a:00:00:00:00:01
`},
		"eni": {ENIPlan(eniSpec), `
eni-up mtu=9001 mac=0a:00:00:00:00:02
eni-address addr=10.0.10.43 dst=10.0.10.0/24 mac=0a:00:00:00:00:02
ensure-route dst=10.0.10.1/32 table=3 mac=0a:00:00:00:00:02
ensure-route dst=0.0.0.0/0 via=10.0.10.1 table=3 mac=0a:00:00:00:00:02
remove-route dst=10.0.10.0/24 table=254 mac=0a:00:00:00:00:02
remove-stale-rules addr=10.0.10.43 priority=32765 table=3
ensure-rule addr=10.0.10.43 priority=32765 table=3
`},
		"eni removal": {ENIRemoval(eniSpec), `
remove-rule addr=10.0.10.43 priority=32765
remove-route dst=0.0.0.0/0 table=3 mac=0a:00:00:00:00:02
remove-route dst=10.0.10.1/32 table=3 mac=0a:00:00:00:00:02
`},
		"primary eni":         {ENIPlan(primary), "\n"},
		"primary eni removal": {ENIRemoval(primary), "\n"},
		"pod": {PodPlan(podSpec), `
rename-link link=eni991a2d29a7a name=eni0000000000a alias="enilab/1 aws-cni 94feeebc eth0 10.0.10.71"
create-veth link=eni991a2d29a7a name=eth0 mtu=9001 mac=MAC netns=4026532301 alias=ALIAS
pod-route dst=169.254.1.1/32 netns=4026532301 alias=ALIAS
pod-route dst=0.0.0.0/0 via=169.254.1.1 netns=4026532301 alias=ALIAS
pod-address addr=10.0.10.70 netns=4026532301 alias=ALIAS
pod-neighbour addr=169.254.1.1 mac=MAC netns=4026532301 alias=ALIAS
proxy-neighbour addr=169.254.1.1 alias=ALIAS
remove-stale-rules addr=10.0.10.70 priority=1536 table=3
ensure-route dst=10.0.10.70/32 table=254 alias=ALIAS
ensure-rule addr=10.0.10.70 priority=512 table=254
ensure-rule addr=10.0.10.70 priority=1536 table=3
`},
		"pod of the primary": {PodPlan(onMain), `
create-veth link=eni991a2d29a7a name=net1 mtu=9001 mac=02:aa:bb:cc:dd:ee netns=4026532301 alias=ALIAS
pod-route dst=169.254.1.1/32 netns=4026532301 alias=ALIAS
pod-route dst=0.0.0.0/0 via=169.254.1.1 netns=4026532301 alias=ALIAS
pod-address addr=10.0.10.70 netns=4026532301 alias=ALIAS
pod-neighbour addr=169.254.1.1 mac=02:aa:bb:cc:dd:ee netns=4026532301 alias=ALIAS
proxy-neighbour addr=169.254.1.1 alias=ALIAS
remove-stale-rules addr=10.0.10.70 priority=1536 table=254
ensure-route dst=10.0.10.70/32 table=254 alias=ALIAS
ensure-rule addr=10.0.10.70 priority=512 table=254
`},
		"pod removal": {PodRemoval(podSpec), `
delete-veth alias=ALIAS
remove-rule addr=10.0.10.70 priority=1536
remove-rule addr=10.0.10.70 priority=512
remove-route link=eni991a2d29a7a dst=10.0.10.70/32 table=254 alias=ALIAS
`},
	} {
		want := strings.NewReplacer("ALIAS", `"`+podSpec.Alias+`"`, "MAC", VethMAC(podSpec.Alias)).Replace(tt.want)
		if got := "\n" + tt.plan.String(); got != want {
			t.Errorf("%s:%swant%s", name, got, want)
		}
	}
}

func TestPlanEqualAndDiff(t *testing.T) {
	p, q := PodRemoval(podSpec), PodRemoval(podSpec)
	if !p.Equal(q) || p.Diff(q) != "" || p.Empty() || !(Plan{}).Empty() {
		t.Errorf("a plan differs from itself: %s", p.Diff(q))
	}
	q.Ops = append(q.Ops[1:3:3], Op{Kind: SetMAC, MAC: "02:00:00:00:00:01"}, q.Ops[3])
	q.Ops[0].Table = 3
	want := `- delete-veth alias="enilab/1 aws-cni 291716a3 eth0 10.0.10.70"
- remove-rule addr=10.0.10.70 priority=1536
+ remove-rule addr=10.0.10.70 priority=1536 table=3
  remove-rule addr=10.0.10.70 priority=512
+ set-mac mac=02:00:00:00:00:01
  remove-route link=eni991a2d29a7a dst=10.0.10.70/32 table=254 alias="enilab/1 aws-cni 291716a3 eth0 10.0.10.70"
`
	if got := p.Diff(q); p.Equal(q) || got != want {
		t.Errorf("Diff:\n%swant\n%s", got, want)
	}
	if got, want := (Plan{}).Diff(Plan{Ops: p.Ops[2:3]}), "+ remove-rule addr=10.0.10.70 priority=512\n"; got != want {
		t.Errorf("Diff = %q, want %q", got, want)
	}
}

// TestPlanIsEncodable: the daemon keeps pending work as data.
func TestPlanIsEncodable(t *testing.T) {
	for _, p := range []Plan{HostPlan(hostSpec), ENIPlan(eniSpec), PodPlan(podSpec), PodRemoval(podSpec)} {
		text := must.Get(json.Marshal(p))(t)
		var q Plan
		if err := json.Unmarshal(text, &q); err != nil || !p.Equal(q) {
			t.Errorf("%v after %s:\n%s", err, text, p.Diff(q))
		}
	}
	var k Kind
	if err := k.UnmarshalText([]byte("teleport")); err == nil {
		t.Error("an unknown kind was read")
	}
	for _, k := range []Kind{AcceptForward + 1, 200} { // of a later version
		if got, want := k.String(), fmt.Sprint("kind-", int(k)); got != want {
			t.Errorf("kind %d reads %q, expected %q", int(k), got, want)
		}
	}
}

func TestNames(t *testing.T) {
	for device, want := range map[int]int{0: MainTable, 1: 2, 3: 4} {
		if got := TableOf(device); got != want {
			t.Errorf("TableOf(%d) = %d, want %d", device, got, want)
		}
	}
	// printf default.web-0 | sha1sum
	if got, want := HostVethName("eni", "default", "web-0"), "eni0d7763386da"; got != want {
		t.Errorf("HostVethName = %q, want %q", got, want)
	}
	if got := DisplacedVethName("eni", podSpec.Alias); len(got) != 14 || got == podSpec.HostVeth {
		t.Errorf("DisplacedVethName = %q", got)
	}
	if got := SubnetGateway(prefix("10.0.10.128/25")); got != ip("10.0.10.129") {
		t.Errorf("SubnetGateway = %v", got)
	}
	seen := map[string]bool{}
	for _, alias := range []string{"", "a", "b", podSpec.Alias, podSpec.Displaced} {
		mac := VethMAC(alias)
		if len(mac) != 17 || !strings.ContainsRune("26ae", rune(mac[1])) || seen[mac] {
			t.Errorf("VethMAC(%q) = %s, want a locally administered unicast address of its own", alias, mac)
		}
		seen[mac] = true
	}
}

func TestAlias(t *testing.T) {
	network, id, ifName, a, ok := ParseAlias(podSpec.Alias)
	if network != "aws-cni" || id != "291716a3" || ifName != "eth0" || a != podSpec.Address || !ok {
		t.Errorf("ParseAlias = %q %q %q %v %v", network, id, ifName, a, ok)
	}
	for _, bad := range []string{
		"", "enilab/1", "enilab/1 ", "n c eth0 10.0.0.1", "enilab/2 n c eth0 10.0.0.1", "enilab/1 n c eth0", "enilab/1 n c eth0 ", "enilab/1 n c eth0 x",
		"enilab/1  c eth0 10.0.0.1", "enilab/1 n  eth0 10.0.0.1", "enilab/1 n c  10.0.0.1", "enilab/1 n c eth0 10.0.0.1 ",
		"enilab/1 n c eth0 010.0.0.1", "enilab/1 n c d eth0 10.0.0.1", " enilab/1 n c eth0 10.0.0.1", "enilab/1 n c eth0 fe80::1%a b",
		"n c eth0 10.0.0.1",
	} {
		if _, _, _, _, ok := ParseAlias(bad); ok {
			t.Errorf("ParseAlias(%q) is ok", bad)
		}
	}
}

func FuzzParseAlias(f *testing.F) {
	f.Add("enilab/1 aws-cni 0123 eth0 10.0.0.1")
	f.Add("enilab/1    10.0.0.1")
	f.Add("enilab/1 a b c fe80::1%d e")
	f.Fuzz(func(t *testing.T, s string) {
		network, id, ifName, a, ok := ParseAlias(s)
		if !ok {
			if network != "" || id != "" || ifName != "" || a != (netip.Addr{}) {
				t.Fatalf("ParseAlias(%q) refused and still said %q %q %q %v", s, network, id, ifName, a)
			}
			return
		}
		if got := Alias(network, id, ifName, a); got != s {
			t.Fatalf("Alias(ParseAlias(%q)) = %q", s, got)
		}
	})
}

// seen is an observation with one of everything.
func seen() Observation {
	o := Observation{Complete: true, Links: []Link{
		{Index: 5, Name: "eni-dying", Veth: true, PeerAddresses: []netip.Addr{ip("10.0.10.81")}},
		{Index: 2, Name: "eth0", MAC: hostSpec.PrimaryMAC, Up: true, Addresses: []netip.Prefix{prefix("10.0.10.66/24")}},
		{Index: 4, Name: "cali1", Alias: "theirs", Veth: true, PeerLive: true, Up: true},
		{Index: 3, Name: "eni-live", Alias: podSpec.Alias, Veth: true, PeerLive: true, Up: true, PeerAddresses: []netip.Addr{ip("10.0.10.72"), ip("10.0.10.70")}},
	}, Routes: []Route{
		{Table: 254, Dst: host32("10.0.10.80"), Link: "cali1"},
		{Table: 254, Dst: host32("10.0.10.81"), Link: "eni-dying"},
		{Table: 254, Dst: host32("10.0.10.82")},
		{Table: 254, Dst: host32("10.0.10.83"), Via: ip("10.0.10.1"), Link: "eth0"},
		{Table: 2, Dst: prefix("10.0.10.0/24"), Link: "eth0"},
		{Table: 254, Dst: prefix("10.0.10.0/24"), Link: "eth0"},
	}, Rules: []Rule{
		{Priority: 1536, From: host32("10.0.10.84"), Table: 3},
		{Priority: 512, To: host32("10.0.10.84"), Table: 254},
		{Priority: 512, To: host32("10.0.10.84"), From: host32("10.0.10.85"), Table: 254},
	}}
	o.Sort()
	return o
}

func TestObservationSorts(t *testing.T) {
	o := seen()
	var text []string
	for _, l := range o.Links {
		text = append(text, l.Name)
	}
	for _, r := range o.Routes {
		text = append(text, r.Dst.String())
	}
	for _, r := range o.Rules {
		text = append(text, r.From.String()+">"+r.To.String())
	}
	want := []string{
		"cali1", "eni-dying", "eni-live", "eth0",
		"10.0.10.0/24", "10.0.10.80/32", "10.0.10.81/32", "10.0.10.82/32", "10.0.10.83/32", "10.0.10.0/24",
		"invalid Prefix>10.0.10.84/32", "10.0.10.85/32>10.0.10.84/32", "10.0.10.84/32>invalid Prefix",
	}
	if !reflect.DeepEqual(text, want) {
		t.Errorf("sorted:\n%q\nwant\n%q", text, want)
	}
	if o.Links[2].PeerAddresses[0] != ip("10.0.10.70") {
		t.Errorf("addresses are not sorted: %v", o.Links[2].PeerAddresses)
	}
}

func TestUseAndResidue(t *testing.T) {
	o := seen()
	ix := o.Index()
	for a, want := range map[string]struct{ use, residue string }{
		"10.0.10.66": {"configured on eth0", ""},
		"10.0.10.70": {"configured behind eni-live", ""},
		"10.0.10.72": {"", ""}, // the link's alias names another one
		"10.0.10.80": {"routed to cali1, whose namespace lives", ""},
		"10.0.10.81": {"", "a route"}, // the peer's namespace is dying
		"10.0.10.82": {"", "a route"},
		"10.0.10.83": {"", "a route"},
		"10.0.10.84": {"", "a rule"},
		"10.0.10.85": {"", ""}, // one side of a third party's rule
		"10.0.10.99": {"", ""},
	} {
		if use, used := ix.Uses(ip(a)); use != want.use || used != (want.use != "") {
			t.Errorf("Uses(%s) = %q, %v, want %q", a, use, used, want.use)
		}
		if use, used := o.Uses(ip(a)); use != want.use || used != (want.use != "") {
			t.Errorf("Observation.Uses(%s) = %q, %v, want %q", a, use, used, want.use)
		}
		if residue, left := ix.Residue(ip(a)); residue != want.residue || left != (want.residue != "") {
			t.Errorf("Residue(%s) = %q, %v, want %q", a, residue, left, want.residue)
		}
	}
}

// TestWhatAPodAddsIsNoUse: its own address is the one that alias, route or records name; where nothing does, it may be any.
func TestWhatAPodAddsIsNoUse(t *testing.T) {
	own, more, other := ip("10.0.10.70"), ip("10.0.10.72"), ip("10.0.10.74")
	nothing := func(string, netip.Addr) bool { return false }
	for name, tt := range map[string]struct {
		alias    string
		has      []netip.Addr
		routed   netip.Addr
		recorded func(string, netip.Addr) bool
		used     []netip.Addr
		beyond   []netip.Addr
	}{
		"alias":              {podSpec.Alias, []netip.Addr{own, more}, netip.Addr{}, nothing, []netip.Addr{own}, []netip.Addr{more}},
		"alias, removed":     {podSpec.Alias, []netip.Addr{more}, netip.Addr{}, nothing, nil, []netip.Addr{more}},
		"alias, and a route": {podSpec.Alias, []netip.Addr{own, more}, other, nothing, []netip.Addr{own, other}, []netip.Addr{more}},
		"another's alias":    {"theirs", []netip.Addr{own, more}, own, nothing, []netip.Addr{own}, []netip.Addr{more}},
		"route":              {"", []netip.Addr{own, more}, own, nothing, []netip.Addr{own}, []netip.Addr{more}},
		"route elsewhere":    {"", []netip.Addr{own, more}, other, nothing, []netip.Addr{own, more, other}, nil},
		"records": {"", []netip.Addr{own, more}, netip.Addr{}, func(link string, a netip.Addr) bool { return link == "eni-pod" && a == own },
			[]netip.Addr{own}, []netip.Addr{more}},
		"records of another link": {"", []netip.Addr{own, more}, netip.Addr{}, func(link string, a netip.Addr) bool { return link == "eni-live" && a == own },
			[]netip.Addr{own, more}, nil},
		"nothing": {"", []netip.Addr{own, more}, netip.Addr{}, nothing, []netip.Addr{own, more}, nil},
	} {
		o := Observation{Links: []Link{{Index: 1, Name: "eni-pod", Alias: tt.alias, Veth: true, PeerLive: true, Up: true, PeerAddresses: tt.has}}, Complete: true}
		if tt.routed.IsValid() {
			o.Routes = []Route{{Table: MainTable, Dst: netip.PrefixFrom(tt.routed, 32), Link: "eni-pod"}}
		}
		ix := o.IndexBy(tt.recorded)
		for _, a := range []netip.Addr{own, more, other} {
			if _, used := ix.Uses(a); used != slices.Contains(tt.used, a) {
				t.Errorf("%s: %v is in use: %v", name, a, used)
			}
			if l := ix.Beyond(a); (l != nil) != slices.Contains(tt.beyond, a) {
				t.Errorf("%s: %v is beyond the pod's own: %v", name, a, l)
			}
		}
	}
}

// TestAnotherPodsAddress stays that pod's, whichever of the two links comes first.
func TestAnotherPodsAddress(t *testing.T) {
	victim := ip("10.0.10.72")
	for _, name := range []string{"eni-a", "eni-z"} {
		o := Observation{Links: []Link{
			{Name: "eni-m", Alias: Alias("aws-cni", "94feeebc", "eth0", victim), Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{victim}},
			{Name: name, Alias: podSpec.Alias, Veth: true, PeerLive: true, PeerAddresses: []netip.Addr{podSpec.Address, victim}},
		}, Complete: true}
		o.Sort()
		ix := o.Index()
		if l := ix.User(victim); l == nil || l.Name != "eni-m" {
			t.Errorf("beside %s: it is used by %+v", name, l)
		}
		if l := ix.Beyond(victim); l == nil || l.Name != name {
			t.Errorf("beside %s: %+v has it beyond its own", name, l)
		}
	}
}

func TestIndexFindsLinks(t *testing.T) {
	o := seen()
	ix := o.Index()
	if l := ix.LinkByAlias(podSpec.Alias); l == nil || l.Name != "eni-live" {
		t.Errorf("LinkByAlias = %+v", l)
	}
	if l := ix.LinkByMAC(hostSpec.PrimaryMAC); l == nil || l.Name != "eth0" {
		t.Errorf("LinkByMAC = %+v", l)
	}
	if l := ix.LinkByName("eni-dying"); l == nil || l.Index != 5 {
		t.Errorf("LinkByName = %+v", l)
	}
	if ix.LinkByName("") != nil || ix.LinkByAlias("") != nil || ix.LinkByMAC("") != nil {
		t.Error("the empty key finds a link")
	}
}

func TestResidueOfAnObservation(t *testing.T) {
	o := seen()
	if got := Residue(o.Index(), always); !got.Empty() {
		t.Errorf("everything is wanted, but\n%v", got)
	}
	want := `delete-veth alias="enilab/1 aws-cni 291716a3 eth0 10.0.10.70"
remove-rule addr=10.0.10.84 priority=512 table=254
remove-rule addr=10.0.10.84 priority=1536 table=3
remove-route dst=10.0.10.82/32 table=254
`
	if got := Residue(o.Index(), never); got.String() != want {
		t.Errorf("Residue =\n%vwant\n%v", got, want)
	}
}

// TestResidueOnLinks: routes of a link that is deleted go with it, third parties' have a gateway, and a link
// that stays gives up the routes of addresses that nobody wants.
func TestResidueOnLinks(t *testing.T) {
	o := seen()
	for _, a := range []string{"10.0.10.70", "10.0.10.87", "10.0.10.88"} {
		o.Routes = append(o.Routes, Route{Table: 254, Dst: host32(a), Link: "eni-live"})
	}
	o.Routes = append(o.Routes, Route{Table: 254, Dst: host32("10.0.10.86"), Via: ip("10.0.10.70"), Link: "eni-live"})
	o.Sort()
	keep := func(a netip.Addr, alias string) bool {
		return alias == podSpec.Alias || alias == "" && (a == ip("10.0.10.84") || a == ip("10.0.10.82") || a == ip("10.0.10.88"))
	}
	want := "remove-route link=eni-live dst=10.0.10.87/32 table=254 alias=\"" + podSpec.Alias + "\"\n"
	if got := Residue(o.Index(), keep); got.String() != want {
		t.Errorf("Residue =\n%vwant\n%v", got, want)
	}
	keep = func(a netip.Addr, alias string) bool { return a == ip("10.0.10.84") || a == ip("10.0.10.82") }
	want = "delete-veth alias=\"" + podSpec.Alias + "\"\n"
	if got := Residue(o.Index(), keep); got.String() != want {
		t.Errorf("Residue =\n%vwant\n%v", got, want)
	}
}

// TestResidueIsOnlyOfOurShape: routes of other tables and of more than one address, and rules as we write none, are third
// parties', though nobody wants their addresses.
func TestResidueIsOnlyOfOurShape(t *testing.T) {
	address, other := host32("10.0.10.90"), host32("10.0.10.91") // a route to a link is a use, whatever its table
	link := Link{Index: 3, Name: "eni-live", Alias: podSpec.Alias, Veth: true, PeerLive: true}
	o := Observation{Complete: true, Links: []Link{link}, Routes: []Route{
		{Table: 7, Dst: address, Link: link.Name},
		{Table: 7, Dst: address},
		{Table: MainTable, Dst: prefix("10.9.0.0/16"), Link: link.Name},
		{Table: MainTable, Dst: prefix("10.9.0.0/16")},
		{Table: MainTable, Dst: address, Via: ip("10.0.10.70"), Link: link.Name},
		{Table: MainTable, Dst: address, Via: ip("10.0.10.1")},
	}, Rules: []Rule{
		{Priority: PriorityToPod, To: other, Table: 7},
		{Priority: PriorityToPod, From: other, Table: MainTable},
		{Priority: PriorityFromPod, To: other, Table: 3},
		{Priority: PriorityFromENI, To: other, Table: 3},
		{Priority: PriorityFromPod + 1, From: other, Table: 3},
		{Priority: PriorityMark, Mark: Mark, Table: MainTable},
	}}
	keep := func(_ netip.Addr, alias string) bool { return alias != "" }
	if have := Residue(o.Index(), keep); !have.Empty() {
		t.Errorf("Residue =\n%v", have)
	}
	o.Rules = append(o.Rules, Rule{Priority: PriorityToPod, To: other, Table: MainTable},
		Rule{Priority: PriorityFromPod, From: other, Table: 3}, Rule{Priority: PriorityFromENI, From: other, Table: 3})
	o.Routes = append(o.Routes, Route{Table: MainTable, Dst: address, Link: link.Name})
	if have := Residue(o.Index(), keep); len(have.Ops) != 4 || have.Ops[3].Kind != RemoveRoute {
		t.Errorf("of three rules and a route of our shape the residue is\n%v", have)
	}
}

func TestRepairNeedsItsLink(t *testing.T) {
	o := Observation{Complete: true}
	ix := o.Index()
	for _, p := range []Plan{RepairHost(hostSpec, ix), RepairENI(eniSpec, ix), RepairPod(podSpec, ix)} {
		if !p.Empty() {
			t.Errorf("without links:\n%v", p)
		}
	}
}

// TestStrangersLinksStay: an ENI that was given our alias, and a link of the pod's name whose route
// leads elsewhere.
func TestStrangersLinksStay(t *testing.T) {
	o := Observation{Complete: true, Links: []Link{
		{Name: "eth1", Alias: podSpec.Alias, Up: true},
		{Name: podSpec.HostVeth, Veth: true, PeerLive: true, Up: true},
	}, Routes: []Route{{Table: MainTable, Dst: host32("10.0.10.70"), Link: "eth1"}}}
	if got := Residue(o.Index(), func(a netip.Addr, alias string) bool { return alias == "" }); !got.Empty() {
		t.Errorf("Residue =\n%v", got)
	}
	o.Links[0].Alias = ""
	if got := RepairPod(podSpec, o.Index()); !got.Empty() {
		t.Errorf("RepairPod adopts a link that does not carry the address:\n%v", got)
	}
}

// TestRouteThroughAGateway: a route to the pod's address by way of a gateway leads elsewhere, though it names the pod's link.
func TestRouteThroughAGateway(t *testing.T) {
	o := Observation{Complete: true, Links: []Link{{Name: podSpec.HostVeth, Alias: podSpec.Alias, MAC: VethMAC(podSpec.Alias), MTU: podSpec.MTU, Up: true,
		Veth: true, PeerLive: true, Proxy: []netip.Addr{Gateway()}}},
		Routes: []Route{{Table: MainTable, Dst: host32("10.0.10.70"), Link: podSpec.HostVeth}}}
	puts := func() bool {
		return slices.ContainsFunc(RepairPod(podSpec, o.Index()).Ops, func(op Op) bool { return op.Kind == EnsureRoute })
	}
	if puts() {
		t.Error("the route is there, and the repair makes it")
	}
	if o.Routes[0].Via = ip("10.0.10.1"); !puts() {
		t.Errorf("the pod's address is routed to a gateway, and the repair is\n%v", RepairPod(podSpec, o.Index()))
	}
	o.Links = append(o.Links, Link{Name: "eth1", Up: true})
	if o.Routes[0] = (Route{Table: MainTable, Dst: host32("10.0.10.70"), Link: "eth1"}); !puts() {
		t.Errorf("the pod's address is routed to an ENI's link, and the repair is\n%v", RepairPod(podSpec, o.Index()))
	}
}

// TestOnlyALiveNamespaceIsAdopted: a link that another attachment's alias names, or whose namespace ends, carries nobody's pod of ours, though the
// address is routed to it.
func TestOnlyALiveNamespaceIsAdopted(t *testing.T) {
	for name, l := range map[string]Link{
		"another attachment's":         {Alias: podSpec.Displaced, Veth: true, PeerLive: true},
		"another's, and its pod ended": {Alias: podSpec.Displaced, Veth: true},
		"its namespace ends":           {Veth: true},
		"no veth":                      {PeerLive: true},
	} {
		l.Name, l.Up = podSpec.HostVeth, true
		o := Observation{Complete: true, Links: []Link{l}, Routes: []Route{{Table: MainTable, Dst: host32("10.0.10.70"), Link: l.Name}}}
		if got := RepairPod(podSpec, o.Index()); !got.Empty() {
			t.Errorf("%s: RepairPod =\n%v", name, got)
		}
	}
}

// TestRepairPod: nothing but the veth is left, under its older name.
func TestRepairPod(t *testing.T) {
	o := Observation{Complete: true, Links: []Link{{
		Name: "eni-old", Alias: podSpec.Alias, MAC: "02:00:00:00:00:99", MTU: 1500, Veth: true, PeerLive: true,
	}}, Rules: []Rule{{Priority: PriorityFromPod, From: host32("10.0.10.70"), Table: 9}}}
	want := `rename-link name=eni991a2d29a7a alias=ALIAS
set-mac mac=MAC alias=ALIAS
link-up mtu=9001 alias=ALIAS
proxy-neighbour addr=169.254.1.1 alias=ALIAS
remove-stale-rules addr=10.0.10.70 priority=1536 table=3
ensure-route dst=10.0.10.70/32 table=254 alias=ALIAS
ensure-rule addr=10.0.10.70 priority=512 table=254
ensure-rule addr=10.0.10.70 priority=1536 table=3
`
	want = strings.NewReplacer("ALIAS", `"`+podSpec.Alias+`"`, "MAC", VethMAC(podSpec.Alias)).Replace(want)
	if got := RepairPod(podSpec, o.Index()); got.String() != want {
		t.Errorf("RepairPod =\n%vwant\n%v", got, want)
	}
	unlisted := podSpec
	unlisted.Table = UnknownTable
	got := RepairPod(unlisted, o.Index()).String() // and no rule from the address is taken away, for it may be the right one
	if kept, _, _ := strings.Cut(want, "remove-stale"); !strings.HasPrefix(got, kept) || strings.Contains(got, "stale") || strings.Contains(got, "priority=1536") {
		t.Errorf("while it is not known which ENI has the address, RepairPod =\n%v", got)
	}
	o.Links = append(o.Links, Link{Name: podSpec.HostVeth, Alias: "another"})
	if got := RepairPod(podSpec, o.Index()); got.Ops[0].Kind == RenameLink {
		t.Errorf("the repair takes a name that another link has:\n%v", got)
	}
}

// TestRepairAdopts: a link without an alias gets it. What another CNI made keeps its MAC and is marked, also when an earlier version adopted it;
// what we made gets the MAC that the alias says.
func TestRepairAdopts(t *testing.T) {
	const theirs, other = "0a:00:00:00:00:01", "0a:00:00:00:00:02"
	for name, tt := range map[string]struct {
		link Link
		mac  string // of the record
		want string
	}{
		"another CNI's":               {Link{MAC: theirs}, theirs, "adopt-link link=LINK addr=10.0.10.70 mac=0a:00:00:00:00:01 alias=ALIAS\n"},
		"another CNI's, drifted":      {Link{MAC: other}, theirs, "adopt-link link=LINK addr=10.0.10.70 mac=0a:00:00:00:00:01 alias=ALIAS\nset-mac mac=0a:00:00:00:00:01 alias=ALIAS\n"},
		"adopted by an older version": {Link{MAC: theirs, Alias: podSpec.Alias}, theirs, "adopt-link link=LINK addr=10.0.10.70 mac=0a:00:00:00:00:01 alias=ALIAS\n"},
		"adopted":                     {Link{MAC: theirs, Alias: podSpec.Alias, Adopted: true}, theirs, ""},
		"ours":                        {Link{MAC: VethMAC(podSpec.Alias)}, "", "adopt-link link=LINK addr=10.0.10.70 alias=ALIAS\n"},
		"ours, drifted":               {Link{MAC: other}, VethMAC(podSpec.Alias), "adopt-link link=LINK addr=10.0.10.70 alias=ALIAS\nset-mac mac=MAC alias=ALIAS\n"},
	} {
		l, spec := tt.link, podSpec
		l.Name, l.Veth, l.PeerLive, l.Up, l.MTU, l.Proxy, spec.MAC = spec.HostVeth, true, true, true, spec.MTU, []netip.Addr{Gateway()}, tt.mac
		prefix := host32("10.0.10.70")
		o := Observation{Complete: true, Links: []Link{l}, Routes: []Route{{Table: MainTable, Dst: prefix, Link: l.Name}},
			Rules: []Rule{{Priority: PriorityToPod, To: prefix, Table: MainTable}, {Priority: PriorityFromPod, From: prefix, Table: spec.Table}}}
		want := strings.NewReplacer("ALIAS", `"`+spec.Alias+`"`, "LINK", l.Name, "MAC", VethMAC(spec.Alias)).Replace(tt.want)
		if plan := RepairPod(spec, o.Index()); plan.String() != want {
			t.Errorf("%s: RepairPod =\n%vwant\n%v", name, plan, want)
		}
	}
}

func TestErrors(t *testing.T) {
	err := &Error{Kind: Exists, Op: 1, Text: "create-veth link=eni0: another link has that name"}
	if got, want := err.Error(), "operation 2: already exists: create-veth link=eni0: another link has that name"; got != want {
		t.Errorf("Error = %q, want %q", got, want)
	}
	for kind := range ErrorKind(20) { // go-cni takes these words for success
		if text := kind.String(); text == "" || strings.Contains(text, "not found") || strings.Contains(text, "no such file") {
			t.Errorf("ErrorKind(%d) = %q", kind, text)
		}
	}
}

// TestAPodsLinkIsNoENI: the alias says whose a link is, also when it has an ENI's MAC, and was there first.
func TestAPodsLinkIsNoENI(t *testing.T) {
	o := Observation{Complete: true, Links: []Link{
		{Index: 2, Name: "eni1", Veth: true, MAC: eniSpec.MAC, Alias: podSpec.Alias, Up: true},
		{Index: 3, Name: "eth1", MAC: eniSpec.MAC, Up: true},
	}}
	if l := o.Index().LinkByMAC(eniSpec.MAC); l == nil || l.Index != 3 {
		t.Errorf("the ENI is %+v", l)
	}
	o.Links = o.Links[:1]
	if l := o.Index().LinkByMAC(eniSpec.MAC); l != nil {
		t.Errorf("a pod's link is an ENI: %+v", l)
	}
}

// TestRuleOfTwoAddresses: it is about neither.
func TestRuleOfTwoAddresses(t *testing.T) {
	if a, ok := (Rule{Priority: 1536, From: host32("10.0.0.1"), To: host32("10.0.0.2"), Table: 3}).Addr(); ok {
		t.Errorf("it is about %v", a)
	}
}

// TestSortedObservation: what kernels list in any order is in one.
func TestSortedObservation(t *testing.T) {
	o := Observation{Links: []Link{{Name: "eni1", Addresses: []netip.Prefix{host32("10.0.0.2"), host32("10.0.0.1")},
		PeerAddresses: []netip.Addr{ip("10.0.0.4"), ip("10.0.0.3")}, Proxy: []netip.Addr{ip("169.254.1.2"), ip("169.254.1.1")}}}}
	o.Sort()
	want := Link{Name: "eni1", Addresses: []netip.Prefix{host32("10.0.0.1"), host32("10.0.0.2")},
		PeerAddresses: []netip.Addr{ip("10.0.0.3"), ip("10.0.0.4")}, Proxy: []netip.Addr{ip("169.254.1.1"), ip("169.254.1.2")}}
	if !reflect.DeepEqual(o.Links[0], want) {
		t.Errorf("%+v", o.Links[0])
	}
}

// TestStaleRuleBehindTheRightOne: the right rule of an address is no reason not to look for the wrong one.
func TestStaleRuleBehindTheRightOne(t *testing.T) {
	pod := podSpec
	pod.Displaced, pod.DisplacedName = "", ""
	right := Rule{Priority: PriorityFromPod, From: host32(pod.Address.String()), Table: pod.Table}
	wrong := right
	wrong.Table = 7
	for _, rules := range [][]Rule{{right, wrong}, {wrong, right}} {
		o := Observation{Complete: true, Rules: rules, Links: []Link{{Index: 2, Name: pod.HostVeth, Veth: true, PeerLive: true, Up: true, MTU: pod.MTU,
			MAC: VethMAC(pod.Alias), Alias: pod.Alias, Proxy: []netip.Addr{Gateway()}, PeerAddresses: []netip.Addr{pod.Address}}}}
		removes := false
		for _, op := range RepairPod(pod, o.Index()).Ops {
			removes = removes || op.Kind == RemoveRule || op.Kind == RemoveStaleRules
		}
		if !removes {
			t.Errorf("%+v: the rule to another table stays", rules)
		}
	}
}

// TestIndexFindsEachOfMany: hashes collide, and each key still leads to its own link; keys of nobody lead to none.
func TestIndexFindsEachOfMany(t *testing.T) {
	const links = 300
	at := func(n, i int) netip.Addr { return netip.AddrFrom4([4]byte{10, byte(n), byte(i >> 8), byte(i)}) }
	mac := func(n, i int) string { return fmt.Sprintf("0a:00:00:%02x:%02x:%02x", n, i>>8, i&255) }
	o := Observation{Complete: true}
	for i := range links {
		o.Links = append(o.Links,
			Link{Name: fmt.Sprint("eth", i), MAC: mac(0, i), Addresses: []netip.Prefix{netip.PrefixFrom(at(0, i), 24)}},
			Link{Name: fmt.Sprint("eni", i), MAC: mac(1, i), Alias: fmt.Sprint("alias ", i)})
	}
	ix := o.Index()
	for i := range links {
		eni, pod := &o.Links[2*i], &o.Links[2*i+1]
		if ix.LinkByName(eni.Name) != eni || ix.LinkByName(pod.Name) != pod || ix.LinkByAlias(pod.Alias) != pod ||
			ix.LinkByMAC(eni.MAC) != eni || ix.User(at(0, i)) != eni {
			t.Errorf("%s and %s are not found by each of their keys", eni.Name, pod.Name)
		}
		_, used := ix.Uses(at(1, i))
		if used || ix.LinkByMAC(mac(1, i)) != nil || ix.LinkByMAC(mac(2, i)) != nil ||
			ix.LinkByName(fmt.Sprint("eth", links+i)) != nil || ix.LinkByAlias(fmt.Sprint("alias ", links+i)) != nil {
			t.Errorf("keys of nobody, number %d, lead to a link", i)
		}
	}
}

// TestRepairENI: nothing but what lacks, and the subnet's route after whatever makes the kernel make it again.
func TestRepairENI(t *testing.T) {
	link := Link{Index: 3, Name: "eth1", MAC: eniSpec.MAC, MTU: eniSpec.MTU, Up: true}
	addressed := func(with ...string) func(*Observation) {
		return func(o *Observation) {
			o.Links[0].Addresses = nil
			for _, w := range with {
				o.Links[0].Addresses = append(o.Links[0].Addresses, prefix(w))
			}
		}
	}
	subnetBy := func(link string) func(*Observation) {
		return func(o *Observation) {
			o.Routes = append(o.Routes, Route{Table: MainTable, Dst: prefix("10.0.10.0/24"), Link: link})
		}
	}
	toGateway := Route{Table: 3, Dst: host32("10.0.10.1"), Link: "eth1"}
	toAll := Route{Table: 3, Dst: prefix("0.0.0.0/0"), Via: ip("10.0.10.1"), Link: "eth1"}
	rule := Rule{Priority: PriorityFromENI, From: host32("10.0.10.43"), Table: 3}
	for name, tt := range map[string]struct {
		change func(*Observation)
		want   []Kind
	}{
		"complete": {func(*Observation) {}, nil},
		"down": {func(o *Observation) { o.Links[0].Up, o.Routes = false, nil },
			[]Kind{ENIUp, EnsureRoute, EnsureRoute, RemoveRoute}},
		"another MTU":          {func(o *Observation) { o.Links[0].MTU = 1500 }, []Kind{ENIUp}},
		"another address":      {addressed("10.0.10.44/24"), []Kind{ENIAddress, RemoveRoute}},
		"an address too many":  {addressed("10.0.10.43/24", "10.0.10.44/24"), []Kind{ENIAddress, RemoveRoute}},
		"another subnet":       {addressed("10.0.10.43/16"), []Kind{ENIAddress, RemoveRoute}},
		"no address":           {addressed(), []Kind{ENIAddress, RemoveRoute}},
		"no way to all":        {func(o *Observation) { o.Routes = o.Routes[:1] }, []Kind{EnsureRoute}},
		"another gateway":      {func(o *Observation) { o.Routes[1].Via = ip("10.0.10.2") }, []Kind{EnsureRoute}},
		"by another link":      {func(o *Observation) { o.Routes[0].Link = "eth2" }, []Kind{EnsureRoute}},
		"the subnet's route":   {subnetBy("eth1"), []Kind{RemoveRoute}},
		"by the primary's one": {subnetBy("eth0"), nil},
		"no rule":              {func(o *Observation) { o.Rules = nil }, []Kind{EnsureRule}},
		"a rule too many": {func(o *Observation) {
			o.Rules = append(o.Rules, Rule{Priority: PriorityFromENI, From: rule.From, Table: 7})
		}, []Kind{RemoveStaleRules}},
	} {
		o := Observation{Complete: true, Links: []Link{link}, Routes: []Route{toGateway, toAll}, Rules: []Rule{rule}}
		addressed("10.0.10.43/24")(&o)
		tt.change(&o)
		var have []Kind
		for _, op := range RepairENI(eniSpec, o.Index()).Ops {
			have = append(have, op.Kind)
		}
		if !slices.Equal(have, tt.want) {
			t.Errorf("%s: the repair is %v, want %v", name, have, tt.want)
		}
	}
}

// TestRemakePod: a repeated ADD repairs a veth that still ends in a living namespace with the pod's address, and takes
// any other of that alias away before it makes the pair.
func TestRemakePod(t *testing.T) {
	own, other := podSpec.Address, ip("10.9.9.9")
	repair := func(o *Observation) Plan { return RepairPod(podSpec, o.Index()) }
	anew := func(*Observation) Plan { return PodPlan(podSpec) }
	again := func(*Observation) Plan {
		return Plan{Ops: append([]Op{{Kind: DeleteVeth, Alias: podSpec.Alias}}, PodPlan(podSpec).Ops...)}
	}
	for name, tt := range map[string]struct {
		alias string
		lives bool
		has   []netip.Addr
		want  func(*Observation) Plan
	}{
		"whole":                       {podSpec.Alias, true, []netip.Addr{own}, repair},
		"whole, and the pod has more": {podSpec.Alias, true, []netip.Addr{other, own}, repair},
		"without its address":         {podSpec.Alias, true, []netip.Addr{other}, again},
		"its other end is gone":       {podSpec.Alias, false, []netip.Addr{own}, again},
		"neither":                     {podSpec.Alias, false, nil, again},
		"its alias is gone":           {"", true, []netip.Addr{own}, repair},
		"another pod's":               {podSpec.Displaced, true, []netip.Addr{own}, anew},
		"nobody's":                    {"", true, nil, anew},
	} {
		o := Observation{Complete: true, Links: []Link{{Name: podSpec.HostVeth, Veth: true, Alias: tt.alias,
			PeerLive: tt.lives, PeerAddresses: tt.has}}}
		want := tt.want(&o)
		if have := RemakePod(podSpec, o.Index()); !have.Equal(want) || have.Empty() {
			t.Errorf("%s: RemakePod differs from what is expected:\n%s", name, want.Diff(have))
		}
	}
	o := Observation{Complete: true}
	if have := RemakePod(podSpec, o.Index()); !have.Equal(PodPlan(podSpec)) {
		t.Errorf("nothing is left: RemakePod =\n%v", have)
	}
	o.Links = []Link{{Name: podSpec.HostVeth, Veth: true, PeerLive: true}}
	o.Routes = []Route{{Table: MainTable, Dst: host32(own.String()), Link: podSpec.HostVeth}}
	if have := RemakePod(podSpec, o.Index()); !have.Equal(repair(&o)) { // a deletion by the alias would not find it
		t.Errorf("a link without its alias, to which the address is routed: RemakePod =\n%v", have)
	}
}
