package kernel_test

import (
	"net/netip"
	"reflect"
	"testing"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
)

const (
	primaryMAC   = "0a:00:00:00:00:01"
	secondaryMAC = "0a:00:00:00:00:02"
)

var (
	subnet = netip.MustParsePrefix("10.0.10.0/24")
	host   = dataplane.HostSpec{
		PrimaryMAC: primaryMAC, NodeAddress: ip("10.0.10.66"), VPCCIDRs: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")},
		NodePort: true, MTU: dataplane.DefaultMTU,
	}
	secondary = dataplane.ENISpec{
		MAC: secondaryMAC, Device: 2, Primary: ip("10.0.10.43"), Subnet: subnet, Table: dataplane.TableOf(2), MTU: dataplane.DefaultMTU,
	}
)

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

// node is a node with a primary and a configured secondary ENI.
func node(t testing.TB) *kernel.Kernel {
	t.Helper()
	k := kernel.New(1)
	k.PlugPrimary(primaryMAC, netip.MustParsePrefix("10.0.10.66/24"), ip("10.0.10.1"))
	k.Plug(secondaryMAC)
	apply(t, k, dataplane.InitPlan(host))
	apply(t, k, dataplane.HostPlan(host))
	apply(t, k, dataplane.ENIPlan(secondary))
	return k
}

func apply(t testing.TB, k *kernel.Kernel, p dataplane.Plan) {
	t.Helper()
	if done, err := k.Apply(p, 0, len(p.Ops)); err != nil {
		t.Fatalf("Apply: after %d of %d: %v", done, len(p.Ops), err)
	}
}

// pod is the spec of a pod in a new namespace.
func pod(k *kernel.Kernel, name string, a netip.Addr, table int) dataplane.PodSpec {
	return dataplane.PodSpec{
		Alias:    dataplane.Alias("aws-cni", "sandbox-"+name+"-"+a.String(), "eth0", a),
		HostVeth: dataplane.HostVethName("eni", "default", name),
		Netns:    k.NewNamespace(), Address: a, Table: table, MTU: dataplane.DefaultMTU,
	}
}

// running is a pod whose plan was applied.
func running(t testing.TB, k *kernel.Kernel, name string, a netip.Addr, table int) dataplane.PodSpec {
	t.Helper()
	s := pod(k, name, a, table)
	apply(t, k, dataplane.PodPlan(s))
	return s
}

func wantTrace(t testing.TB, k *kernel.Kernel, a netip.Addr, mac, fault string) {
	t.Helper()
	if got, ok := k.Trace(a, mac); got != fault || ok != (fault == "") {
		t.Errorf("Trace(%v, %s) = %q, %v, want %q", a, mac, got, ok, fault)
	}
}

func index(k *kernel.Kernel) *dataplane.Index {
	o := k.Observe()
	return o.Index()
}

func TestPodsAreReachable(t *testing.T) {
	k := node(t)
	a, b := pod(k, "web-0", ip("10.0.10.70"), dataplane.MainTable), pod(k, "web-1", ip("10.0.10.80"), secondary.Table)
	apply(t, k, dataplane.PodPlan(a))
	apply(t, k, dataplane.PodPlan(b))
	wantTrace(t, k, a.Address, primaryMAC, "")
	wantTrace(t, k, b.Address, secondaryMAC, "")
	wantTrace(t, k, a.Address, secondaryMAC, kernel.BackByOther)
	wantTrace(t, k, ip("10.0.10.99"), primaryMAC, kernel.RoutedElsewhere)
	for _, peer := range []netip.Addr{ip("10.0.10.200"), ip("10.0.77.1")} {
		if fault, ok := k.TraceFrom(b.Address, secondaryMAC, peer); !ok {
			t.Errorf("from %v: %s", peer, fault)
		}
	}
	if fault, ok := k.NodePort(b.Address, primaryMAC); !ok {
		t.Errorf("NodePort: %s", fault)
	}
	if src, mac, fault := k.Egress(b.Address, ip("1.1.1.1")); src != host.NodeAddress || mac != primaryMAC || fault != "" {
		t.Errorf("Egress to the internet = %v by %s, %q", src, mac, fault)
	}
	if src, mac, fault := k.Egress(b.Address, ip("10.0.77.1")); src != b.Address || mac != secondaryMAC || fault != "" {
		t.Errorf("Egress to the VPC = %v by %s, %q", src, mac, fault)
	}
	ix := index(k)
	for _, p := range []dataplane.PodSpec{a, b} {
		if got := dataplane.RepairPod(p, ix); !got.Empty() {
			t.Errorf("nothing is wrong, but RepairPod says\n%v", got)
		}
	}
	if got := dataplane.RepairHost(host, ix); !got.Empty() {
		t.Errorf("RepairHost says\n%v", got)
	}
	if got := dataplane.RepairENI(secondary, ix); !got.Empty() {
		t.Errorf("RepairENI says\n%v", got)
	}
	keepNone := func(a netip.Addr, alias string) bool { return false }
	if got := dataplane.Residue(ix, keepNone); len(got.Ops) == 0 {
		t.Errorf("Residue of everything is empty")
	}
}

func TestACrashAnywhereInPodPlanLeavesNothing(t *testing.T) {
	k := node(t)
	older, newer := pod(k, "etcd-0", ip("10.0.10.70"), secondary.Table), pod(k, "etcd-0", ip("10.0.10.71"), secondary.Table)
	apply(t, k, dataplane.PodPlan(older))
	newer.Displaced, newer.DisplacedName = older.Alias, dataplane.DisplacedVethName("eni", older.Alias)
	before, plan := k.Counts(), dataplane.PodPlan(newer)
	for n := range len(plan.Ops) + 1 {
		crashed := k.Clone()
		if done, err := crashed.Apply(plan, 0, n); done != n || err != nil {
			t.Fatalf("Apply of %d operations = %d, %v", n, done, err)
		}
		again := crashed.Clone()
		apply(t, crashed, dataplane.PodRemoval(newer))
		if got := crashed.Counts(); got != before {
			t.Errorf("after %d operations and removal: %+v, want %+v", n, got, before)
		}
		wantTrace(t, crashed, older.Address, secondaryMAC, "")
		apply(t, again, dataplane.PodRemoval(newer)) // the way to try again after a crash
		apply(t, again, plan)
		wantTrace(t, again, newer.Address, secondaryMAC, "")
	}
}

func TestApplyStopsAtTheFirstFailure(t *testing.T) {
	k := node(t)
	spec := pod(k, "web", ip("10.0.10.70"), secondary.Table)
	plan := dataplane.PodPlan(spec)
	if done, err := k.Apply(plan, 1, len(plan.Ops)); done != 1 || err == nil || err.Kind != dataplane.NoLink || err.Op != 1 {
		t.Errorf("Apply without the veth = %d, %v", done, err)
	}
	apply(t, k, plan)
	if done, err := k.Apply(plan, 0, len(plan.Ops)); done != 0 || err == nil || err.Kind != dataplane.Exists {
		t.Errorf("Apply twice = %d, %v, want exclusive creation", done, err)
	}
	elsewhere := dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.PodAddress, Alias: spec.Alias, Netns: k.NewNamespace(), Addr: spec.Address}}}
	if _, err := k.Apply(elsewhere, 0, 1); err == nil || err.Kind != dataplane.NoNamespace {
		t.Errorf("Apply to a namespace the link does not lead to: %v", err)
	}
	generation := k.Generation()
	if done, err := k.Apply(plan, 1, len(plan.Ops)); done != len(plan.Ops) || err != nil {
		t.Errorf("Apply of the rest again = %d, %v, want idempotent operations", done, err)
	}
	if k.Generation() != generation {
		t.Error("nothing changed, but the generation did")
	}
	for _, r := range [][2]int{{-5, 2}, {3, 99}, {9, 2}, {99, 99}, {-1, -1}} {
		k.Clone().Apply(plan, r[0], r[1]) // any range is cut, none panics
	}
}

func TestCreateVethIsExclusive(t *testing.T) {
	k := node(t)
	a := running(t, k, "web", ip("10.0.10.70"), dataplane.MainTable)
	for name, change := range map[string]func(*dataplane.PodSpec){
		"same name":      func(s *dataplane.PodSpec) { s.Alias += "0"; s.Netns = k.NewNamespace() },
		"same alias":     func(s *dataplane.PodSpec) { s.HostVeth = "eni0"; s.Netns = k.NewNamespace() },
		"same namespace": func(s *dataplane.PodSpec) { s.HostVeth = "eni0"; s.Alias += "0" },
	} {
		b := a
		change(&b)
		if done, err := k.Apply(dataplane.PodPlan(b), 0, 99); done != 0 || err == nil || err.Kind != dataplane.Exists {
			t.Errorf("%s: %d, %v, want exists", name, done, err)
		}
	}
	b := a
	b.HostVeth, b.Alias, b.Netns = "eni0", a.Alias+"0", 12345
	if _, err := k.Apply(dataplane.PodPlan(b), 0, 99); err == nil || err.Kind != dataplane.NoNamespace {
		t.Errorf("without a namespace: %v", err)
	}
}

func TestRemovalTakesTheAddressFromAHeldNamespace(t *testing.T) {
	k := node(t)
	a := running(t, k, "web", ip("10.0.10.70"), secondary.Table)
	k.Hold(a.Netns)
	k.CloseNamespace(a.Netns)
	if inode, ok := k.InUse(a.Address); !ok || inode != a.Netns || !k.NamespaceExists(a.Netns) {
		t.Fatalf("a held namespace lost its address: %d, %v", inode, ok)
	}
	if evidence, used := index(k).Uses(a.Address); !used || evidence != "configured behind "+a.HostVeth {
		t.Errorf("Uses = %q, %v", evidence, used)
	}
	apply(t, k, dataplane.PodRemoval(a))
	if _, ok := k.InUse(a.Address); ok || !k.NamespaceExists(a.Netns) {
		t.Errorf("after removal: in use %v, namespace lives %v, want only the latter", ok, k.NamespaceExists(a.Netns))
	}
	k.Release(a.Netns)
	if k.NamespaceExists(a.Netns) {
		t.Error("a closed namespace outlived the last process")
	}
	if again := k.NewNamespace(); again != a.Netns {
		t.Errorf("inode %d, want the lowest free one again, %d", again, a.Netns)
	}
}

func TestClosingANamespaceLeavesResidueNotUse(t *testing.T) {
	k := node(t)
	before := k.Counts()
	a := running(t, k, "web", ip("10.0.10.70"), secondary.Table)
	k.CloseNamespace(a.Netns)
	ix := index(k)
	if evidence, used := ix.Uses(a.Address); used {
		t.Errorf("Uses = %q, want no use: rules are residue", evidence)
	}
	if _, left := ix.Residue(a.Address); !left {
		t.Error("no residue, but the rules outlive the namespace")
	}
	if what, left := k.Leftovers(a.Address); !left || what != kernel.LeftRule {
		t.Errorf("Leftovers = %q, %v", what, left)
	}
	if got := dataplane.RepairPod(a, ix); !got.Empty() {
		t.Errorf("the veth is gone, but RepairPod says\n%v", got)
	}
	apply(t, k, dataplane.PodRemoval(a))
	if got := k.Counts(); got != before {
		t.Errorf("%+v, want %+v", got, before)
	}
}

func TestTwoIncarnationsKeepTheirTraffic(t *testing.T) {
	k := node(t)
	older := running(t, k, "etcd-0", ip("10.0.10.70"), secondary.Table)
	newer := pod(k, "etcd-0", ip("10.0.10.71"), dataplane.MainTable)
	newer.Displaced, newer.DisplacedName = older.Alias, dataplane.DisplacedVethName("eni", older.Alias)
	apply(t, k, dataplane.PodPlan(newer))
	wantTrace(t, k, older.Address, secondaryMAC, "")
	wantTrace(t, k, newer.Address, primaryMAC, "")
	ix := index(k)
	if l := ix.LinkByName(newer.HostVeth); l == nil || l.Alias != newer.Alias {
		t.Errorf("the canonical name belongs to %+v, want the newest", l)
	}
	older.HostVeth = newer.DisplacedName
	if got := dataplane.RepairPod(older, ix); !got.Empty() {
		t.Errorf("the older incarnation wants\n%v", got)
	}
	apply(t, k, dataplane.PodRemoval(older))
	wantTrace(t, k, newer.Address, primaryMAC, "")
	if _, ok := k.InUse(older.Address); ok {
		t.Error("the older incarnation outlived its removal")
	}
}

// TestALateRemovalSparesTheNextOwner: the removal of a sandbox that is long gone names its own alias,
// so the veth and route of another attachment of the same pod name and address stay.
func TestALateRemovalSparesTheNextOwner(t *testing.T) {
	k := node(t)
	older := pod(k, "etcd-0", ip("10.0.10.70"), dataplane.MainTable)
	newer := older
	newer.Alias = dataplane.Alias("aws-cni", "291716a3", "eth0", newer.Address)
	apply(t, k, dataplane.PodPlan(newer))
	apply(t, k, dataplane.PodRemoval(older))
	wantTrace(t, k, newer.Address, primaryMAC, "")
}

func TestRepair(t *testing.T) {
	foreign := dataplane.Rule{Priority: dataplane.PriorityFromPod, From: host32(ip("10.0.10.70")), Table: 9}
	for name, tt := range map[string]struct {
		accident func(*kernel.Kernel, dataplane.PodSpec)
		fault    string // what Trace says before the repair
	}{
		"rules flushed":          {func(k *kernel.Kernel, s dataplane.PodSpec) { k.FlushRules() }, kernel.BackByOther},
		"rules from pods gone":   {func(k *kernel.Kernel, s dataplane.PodSpec) { k.FlushRules(512, 1024, 32765) }, kernel.BackByOther},
		"MAC changed":            {func(k *kernel.Kernel, s dataplane.PodSpec) { k.SetLinkMAC(s.HostVeth, "02:00:00:00:00:99") }, kernel.WrongNeighbour},
		"host veth down":         {func(k *kernel.Kernel, s dataplane.PodSpec) { k.LinkDown(s.HostVeth) }, kernel.RoutedElsewhere},
		"main flushed":           {func(k *kernel.Kernel, s dataplane.PodSpec) { k.RemoveRoutes(dataplane.MainTable) }, kernel.NoRouteToPod},
		"ENI's table flushed":    {func(k *kernel.Kernel, s dataplane.PodSpec) { k.RemoveRoutes(secondary.Table) }, kernel.BackByOther},
		"ENI down":               {func(k *kernel.Kernel, s dataplane.PodSpec) { k.LinkDown("eth1") }, kernel.ENILinkDown},
		"stale rule besides":     {func(k *kernel.Kernel, s dataplane.PodSpec) { k.AddForeignRule(foreign) }, ""},
		"proxy and static entry": {func(k *kernel.Kernel, s dataplane.PodSpec) { k.LoseProxy(s.HostVeth); k.LoseNeighbour(s.Netns) }, kernel.NoNeighbour},
		"ARP and static entry": {func(k *kernel.Kernel, s dataplane.PodSpec) {
			if n := k.Suffer(kernel.Accident{What: kernel.DropARP}); n != 1 {
				t.Errorf("%d neighbours dropped, expected the gateway's", n)
			}
			k.LoseNeighbour(s.Netns)
		}, kernel.NoNeighbour},
		"NAT flushed": {func(k *kernel.Kernel, s dataplane.PodSpec) { k.FlushNAT() }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			k := node(t)
			spec := running(t, k, "web", ip("10.0.10.70"), secondary.Table)
			healthy := k.Observe()
			tt.accident(k, spec)
			if name == "host veth down" && index(k).LinkByAlias(spec.Alias).Proxy != nil {
				t.Error("a link that is down keeps its proxy neighbours")
			}
			wantTrace(t, k, spec.Address, secondaryMAC, tt.fault)
			ix := index(k)
			repairs := 0
			for _, p := range []dataplane.Plan{dataplane.RepairHost(host, ix), dataplane.RepairENI(secondary, ix), dataplane.RepairPod(spec, ix)} {
				repairs += len(p.Ops)
				apply(t, k, p)
				for _, op := range p.Ops {
					if op.Netns != 0 {
						t.Errorf("the repair enters the pod: %v", op.String())
					}
				}
			}
			if repairs == 0 {
				t.Error("nothing was repaired")
			}
			wantTrace(t, k, spec.Address, secondaryMAC, "")
			if name == "main flushed" { // the machine's own default route is not ours to repair
				return
			}
			if got := k.Observe(); !reflect.DeepEqual(got, healthy) {
				t.Errorf("after the repair the kernel is\n%+v\nand it was\n%+v", got, healthy)
			}
		})
	}
}

// TestTheProxyAnswersOnlyForOthers: Linux answers ARP by proxy for an address it would itself route
// elsewhere, so a pod without its permanent entry needs the host to have a default route.
func TestTheProxyAnswersOnlyForOthers(t *testing.T) {
	k := node(t)
	a, b := pod(k, "a", ip("10.0.10.70"), dataplane.MainTable), pod(k, "b", ip("10.0.10.71"), dataplane.MainTable)
	apply(t, k, dataplane.PodPlan(a))
	apply(t, k, dataplane.PodPlan(b))
	spared := k.Clone()
	spared.LoseProxy(b.HostVeth)
	spared.LoseNeighbour(a.Netns)
	wantTrace(t, spared, b.Address, primaryMAC, "") // it is not the one that lost its entry
	k.LoseNeighbour(a.Netns)
	if fault, ok := k.Between(a.Address, b.Address); !ok {
		t.Error(fault)
	}
	same := k.Clone()
	apply(t, same, dataplane.Plan{Ops: []dataplane.Op{
		{Kind: dataplane.EnsureRoute, Alias: a.Alias, Table: dataplane.MainTable, Dst: host32(dataplane.Gateway())},
	}})
	wantTrace(t, same, a.Address, primaryMAC, kernel.NoNeighbour)
	k.RemoveRoutes(dataplane.MainTable)
	ix := index(k)
	apply(t, k, dataplane.RepairPod(a, ix))
	apply(t, k, dataplane.RepairPod(b, ix))
	if fault, ok := k.Between(a.Address, b.Address); ok || fault != kernel.NoNeighbour {
		t.Errorf("Between = %q, %v, want %q", fault, ok, kernel.NoNeighbour)
	}
	if fault, ok := k.Between(b.Address, ip("10.0.10.99")); ok || fault != kernel.NoPodLink {
		t.Errorf("Between = %q, %v, want %q", fault, ok, kernel.NoPodLink)
	}
}

func TestEgressFaults(t *testing.T) {
	k := node(t)
	a := running(t, k, "a", ip("10.0.10.70"), secondary.Table)
	internet := ip("1.1.1.1")
	for want, accident := range map[string]func(*kernel.Kernel){
		kernel.NoPodLink:      func(k *kernel.Kernel) { k.CloseNamespace(a.Netns) },
		kernel.HostVethDown:   func(k *kernel.Kernel) { k.LinkDown(a.HostVeth) },
		kernel.WrongNeighbour: func(k *kernel.Kernel) { k.SetLinkMAC(a.HostVeth, "02:00:00:00:00:99") },
		kernel.NoRouteBack:    func(k *kernel.Kernel) { k.RemoveRoutes(dataplane.MainTable); k.FlushRules() },
		kernel.WrongSource:    func(k *kernel.Kernel) { k.FlushRules(dataplane.PriorityFromPod) },
	} {
		c := k.Clone()
		accident(c)
		if _, _, fault := c.Egress(a.Address, internet); fault != want {
			t.Errorf("Egress = %q, want %q", fault, want)
		}
	}
}

func TestSubnetRoutes(t *testing.T) {
	k := kernel.New(1)
	k.PlugPrimary(primaryMAC, netip.MustParsePrefix("10.0.10.66/24"), ip("10.0.10.1"))
	k.Plug(secondaryMAC)
	a, peer := pod(k, "a", ip("10.0.10.70"), dataplane.MainTable), ip("10.0.10.200")
	apply(t, k, dataplane.PodPlan(a))
	plan := dataplane.ENIPlan(secondary)
	apply(t, k, dataplane.Plan{Ops: plan.Ops[:2]})          // up and addressed: main has two routes to the subnet
	apply(t, k.Clone(), dataplane.Plan{Ops: plan.Ops[3:4]}) // and they vouch for the gateway
	if fault, ok := k.TraceFrom(a.Address, primaryMAC, peer); !ok {
		t.Errorf("the later route to the subnet is taken: %s", fault)
	}
	k.LinkDown("eth0")
	k.PlugPrimary(primaryMAC, netip.MustParsePrefix("10.0.10.66/24"), ip("10.0.10.1"))
	if fault, ok := k.TraceFrom(a.Address, primaryMAC, peer); ok || fault != kernel.BackByOther {
		t.Errorf("the secondary's route is the older one now, but %q, %v", fault, ok)
	}
	moved := secondary
	moved.Primary, moved.Subnet = ip("10.0.20.43"), netip.MustParsePrefix("10.0.20.0/24")
	apply(t, k, dataplane.ENIPlan(moved))
	if fault, ok := k.TraceFrom(a.Address, primaryMAC, peer); !ok {
		t.Errorf("an address that went left its route behind: %s", fault)
	}
}

// TestClonesShareNothing: lists of one pod grow on both sides of a clone.
func TestClonesShareNothing(t *testing.T) {
	k := node(t)
	a := running(t, k, "a", ip("10.0.10.70"), dataplane.MainTable)
	add := func(k *kernel.Kernel, last byte) {
		op := dataplane.Op{Kind: dataplane.PodAddress, Alias: a.Alias, Netns: a.Netns, Addr: netip.AddrFrom4([4]byte{10, 0, 10, last})}
		apply(t, k, dataplane.Plan{Ops: []dataplane.Op{op}})
	}
	for n := range byte(6) {
		c := k.Clone()
		add(k, 100+n)
		add(c, 200+n)
		for _, got := range index(k).LinkByAlias(a.Alias).PeerAddresses {
			if got.As4()[3] >= 200 {
				t.Fatalf("the original has the clone's %v", got)
			}
		}
	}
}

func TestAddressOfTheHostIsNoPods(t *testing.T) {
	k := node(t)
	a := running(t, k, "a", secondary.Primary, secondary.Table)
	wantTrace(t, k, a.Address, secondaryMAC, kernel.OnHost)
	if fault, ok := k.TraceHost(ip("10.0.10.99"), secondaryMAC); ok || fault != kernel.NotOnHost {
		t.Errorf("TraceHost = %q, %v", fault, ok)
	}
}

func TestDirty(t *testing.T) {
	k := node(t)
	k.Changed()
	a := running(t, k, "a", ip("10.0.10.70"), secondary.Table)
	if got, all := k.Changed(); all || len(got) != 1 || got[0] != a.Address {
		t.Errorf("after a pod: %v, %v, want its address", got, all)
	}
	if got, all := k.Changed(); all || len(got) != 0 {
		t.Errorf("drained, and still %v, %v", got, all)
	}
	for _, kind := range []dataplane.Kind{dataplane.RemoveRoute, dataplane.EnsureRoute} {
		op := dataplane.Op{Kind: kind, Alias: a.Alias, Table: dataplane.MainTable, Dst: host32(a.Address)}
		apply(t, k, dataplane.Plan{Ops: []dataplane.Op{op}})
		if got, all := k.Changed(); all || len(got) != 1 || got[0] != a.Address {
			t.Errorf("after %v: %v, %v, want the pod's address", kind, got, all)
		}
	}
	k.FlushRules()
	if got, all := k.Changed(); !all || len(got) != 0 {
		t.Errorf("after a wide change: %v, %v, want all", got, all)
	}
	for i := range 1000 {
		k.AddForeignRule(dataplane.Rule{Priority: 5, From: host32(netip.AddrFrom4([4]byte{10, 9, byte(i >> 8), byte(i)})), Table: 9})
	}
	if got, all := k.Changed(); !all || len(got) != 0 {
		t.Errorf("after a thousand changes: %d addresses, %v, want all", len(got), all)
	}
}

func TestRepairAdoptsAnotherCNIsPod(t *testing.T) {
	k := node(t)
	spec := pod(k, "web", ip("10.0.10.70"), secondary.Table)
	theirs := spec
	theirs.MAC = "02:aa:bb:cc:dd:ee"
	apply(t, k, dataplane.PodPlan(theirs))
	k.SetLinkAlias(spec.HostVeth, "cali0")
	if got := dataplane.RepairPod(spec, index(k)); !got.Empty() {
		t.Errorf("a stranger's link is taken over:\n%v", got)
	}
	adopt := dataplane.Op{Kind: dataplane.AdoptLink, Link: spec.HostVeth, Alias: spec.Alias, Addr: spec.Address}
	for want, prepare := range map[dataplane.ErrorKind]func(*dataplane.Op){
		dataplane.Exists: func(*dataplane.Op) {},
		dataplane.NoLink: func(op *dataplane.Op) { op.Link = "eth1" },
	} {
		op := adopt
		prepare(&op)
		if _, err := k.Apply(dataplane.Plan{Ops: []dataplane.Op{op}}, 0, 1); err == nil || err.Kind != want {
			t.Errorf("adopting a stranger's link: %v, want %v", err, want)
		}
	}
	k.SetLinkAlias(spec.HostVeth, "")
	adopt.Addr = ip("10.0.10.99")
	if _, err := k.Apply(dataplane.Plan{Ops: []dataplane.Op{adopt}}, 0, 1); err == nil || err.Kind != dataplane.NoLink {
		t.Errorf("adopting a link for an address it does not carry: %v", err)
	}
	k.LoseProxy(spec.HostVeth)
	spec.MAC = theirs.MAC // as the daemon found it
	apply(t, k, dataplane.RepairPod(spec, index(k)))
	wantTrace(t, k, spec.Address, secondaryMAC, "")
	if l := index(k).LinkByAlias(spec.Alias); l == nil || l.MAC != theirs.MAC || !l.Adopted {
		t.Fatalf("adopted as %+v, want its alias new, its MAC as it was, and that it is another CNI's", l)
	}
	if got := dataplane.RepairPod(spec, index(k)); !got.Empty() {
		t.Errorf("after adoption RepairPod still says\n%v", got)
	}
	apply(t, k, dataplane.PodRemoval(spec))
	if _, ok := k.InUse(spec.Address); ok {
		t.Error("an adopted pod cannot be removed")
	}
}

// TestAliasAndRouteAreLostTogether: the namespace behind the link says whose it is, unless the address is led elsewhere.
func TestAliasAndRouteAreLostTogether(t *testing.T) {
	k := node(t)
	spec := pod(k, "web", ip("10.0.10.70"), secondary.Table)
	other := pod(k, "api", ip("10.0.10.71"), secondary.Table)
	apply(t, k, dataplane.PodPlan(spec))
	apply(t, k, dataplane.PodPlan(other))
	host := netip.PrefixFrom(spec.Address, 32)
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.EnsureRoute, Alias: other.Alias, Dst: host, Table: dataplane.MainTable}}})
	k.SetLinkAlias(spec.HostVeth, "")
	if got := dataplane.RepairPod(spec, index(k)); !got.Empty() {
		t.Errorf("a link is taken over whose address is led elsewhere:\n%v", got)
	}
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.RemoveRoute, Alias: other.Alias, Dst: host, Table: dataplane.MainTable}}})
	apply(t, k, dataplane.RepairPod(spec, index(k)))
	wantTrace(t, k, spec.Address, secondaryMAC, "")
}

func TestResidueRemovesOnlyOurs(t *testing.T) {
	k := node(t)
	before := k.Counts()
	kept, dead, gone := pod(k, "kept", ip("10.0.10.70"), secondary.Table), pod(k, "dead", ip("10.0.10.71"), secondary.Table), pod(k, "gone", ip("10.0.10.72"), secondary.Table)
	theirs := pod(k, "theirs", ip("10.0.10.73"), secondary.Table)
	for _, s := range []dataplane.PodSpec{kept, dead, gone, theirs} {
		apply(t, k, dataplane.PodPlan(s))
	}
	k.SetLinkAlias(theirs.HostVeth, "cali0")
	k.CloseNamespace(gone.Netns) // its rules stay
	for _, r := range []dataplane.Rule{
		{Priority: 30200, From: host32(gone.Address), Table: 30200},
		{Priority: dataplane.PriorityToPod, To: netip.MustParsePrefix("10.9.0.0/16"), Table: dataplane.MainTable},
		{Priority: dataplane.PriorityFromPod, From: host32(gone.Address), Mark: 0x10000, Table: 9},
	} {
		k.AddForeignRule(r)
	}
	keep := func(a netip.Addr, alias string) bool {
		return a == kept.Address || a == secondary.Primary
	}
	plan := dataplane.Residue(index(k), keep)
	want := "delete-veth alias=\"" + dead.Alias + "\"\n" +
		"remove-rule addr=10.0.10.71 priority=512 table=254\n" +
		"remove-rule addr=10.0.10.72 priority=512 table=254\n" +
		"remove-rule addr=10.0.10.71 priority=1536 table=3\n" +
		"remove-rule addr=10.0.10.72 priority=1536 table=3\n"
	if plan.String() != want {
		t.Errorf("Residue =\n%vwant\n%v", plan, want)
	}
	apply(t, k, plan)
	wantTrace(t, k, kept.Address, secondaryMAC, "")
	wantTrace(t, k, theirs.Address, secondaryMAC, "")
	if got := dataplane.Residue(index(k), keep); !got.Empty() {
		t.Errorf("residue of residue:\n%v", got)
	}
	for _, s := range []dataplane.PodSpec{kept, theirs} {
		k.SetLinkAlias(s.HostVeth, s.Alias)
		apply(t, k, dataplane.PodRemoval(s))
	}
	for _, s := range []dataplane.PodSpec{kept, dead, theirs} {
		k.CloseNamespace(s.Netns)
	}
	before.Rules += 3 // the third parties'
	if got := k.Counts(); got != before {
		t.Errorf("%+v, want %+v", got, before)
	}
}

func TestResidueRemovesAStaleRouteOfAKeptLink(t *testing.T) {
	k := node(t)
	spec := running(t, k, "web", ip("10.0.10.70"), dataplane.MainTable)
	stale := dataplane.Op{Kind: dataplane.EnsureRoute, Alias: spec.Alias, Table: dataplane.MainTable, Dst: host32(ip("10.0.10.99"))}
	apply(t, k, dataplane.Plan{Ops: []dataplane.Op{stale}})
	if what, left := k.Leftovers(ip("10.0.10.99")); !left || what != kernel.LeftRoute {
		t.Errorf("Leftovers = %q, %v", what, left)
	}
	keep := func(a netip.Addr, alias string) bool { return a == spec.Address || a == secondary.Primary }
	plan := dataplane.Residue(index(k), keep)
	if len(plan.Ops) != 1 || plan.Ops[0].Kind != dataplane.RemoveRoute || plan.Ops[0].Dst != stale.Dst {
		t.Fatalf("Residue =\n%v", plan)
	}
	apply(t, k, plan)
	wantTrace(t, k, spec.Address, primaryMAC, "")
	if what, left := k.Leftovers(ip("10.0.10.99")); left {
		t.Error(what)
	}
}

func TestDuplicateAddresses(t *testing.T) {
	k := node(t)
	a := pod(k, "a", ip("10.0.10.70"), dataplane.MainTable)
	b := pod(k, "b", ip("10.0.10.70"), dataplane.MainTable)
	apply(t, k, dataplane.PodPlan(a))
	apply(t, k, dataplane.PodPlan(b))
	if got := k.Holders(a.Address); got != 2 {
		t.Errorf("Holders = %d, want 2", got)
	}
	if inode, _ := k.InUse(a.Address); inode != a.Netns {
		t.Errorf("InUse = %d, want the lowest inode %d", inode, a.Netns)
	}
	seen := 0
	k.LiveAddresses(func(inode uint64, got netip.Addr) { seen++ })
	k.CloseNamespace(a.Netns)
	if got := k.Holders(a.Address); seen != 2 || got != 1 {
		t.Errorf("saw %d, then %d holders, want 2 and 1", seen, got)
	}
	wantTrace(t, k, b.Address, primaryMAC, "")

	second := b
	second.Alias, second.HostVeth, second.IfName = b.Alias+"0", "eni0", "net1"
	apply(t, k, dataplane.PodPlan(second))
	if got := k.Holders(b.Address); got != 1 {
		t.Errorf("Holders = %d, want 1: it is one namespace, however often", got)
	}
}

func TestUnplugAndReboot(t *testing.T) {
	k := node(t)
	a, b := pod(k, "a", ip("10.0.10.70"), dataplane.MainTable), pod(k, "b", ip("10.0.10.71"), secondary.Table)
	apply(t, k, dataplane.PodPlan(a))
	apply(t, k, dataplane.PodPlan(b))
	k.SetLinkMAC("eth1", "02:00:00:00:00:99")
	wantTrace(t, k, b.Address, secondaryMAC, kernel.NoENILink)
	unplugged := k.Clone()
	unplugged.Unplug(secondaryMAC)
	wantTrace(t, unplugged, b.Address, secondaryMAC, kernel.NoENILink)
	wantTrace(t, unplugged, b.Address, primaryMAC, "") // incident 1: its rule points to an empty table, main answers
	if got := dataplane.RepairENI(secondary, index(unplugged)); !got.Empty() {
		t.Errorf("an ENI that is gone is repaired:\n%v", got)
	}
	unplugged.Plug(secondaryMAC)
	apply(t, unplugged, dataplane.RepairENI(secondary, index(unplugged)))
	wantTrace(t, unplugged, b.Address, secondaryMAC, "")

	k.Reboot()
	fresh := kernel.New(9)
	fresh.PlugPrimary(primaryMAC, netip.MustParsePrefix("10.0.10.66/24"), ip("10.0.10.1"))
	fresh.Plug(secondaryMAC)
	if got, want := k.Observe(), fresh.Observe(); !reflect.DeepEqual(got, want) {
		t.Errorf("after a reboot\n%+v\nwant\n%+v", got, want)
	}
	if got := k.Counts(); got != fresh.Counts() {
		t.Errorf("Counts %+v", got)
	}
	bare := kernel.New(1)
	generation := bare.Generation()
	if bare.Reboot(); bare.Generation() == generation {
		t.Error("a reboot is no change")
	}
}

func TestInterruptedDumps(t *testing.T) {
	k := node(t)
	for i := range 20 {
		apply(t, k, dataplane.PodPlan(pod(k, string(rune('a'+i)), netip.AddrFrom4([4]byte{10, 0, 10, byte(100 + i)}), dataplane.MainTable)))
	}
	full := k.Observe()
	k.InterruptDumps(5)
	short := false
	for range 5 {
		o := k.Observe()
		if o.Complete {
			t.Error("an interrupted dump says that it is complete")
		}
		short = short || len(o.Links) < len(full.Links)
	}
	if !short {
		t.Error("five interrupted dumps all held everything")
	}
	if got := k.Observe(); !reflect.DeepEqual(got, full) {
		t.Error("the sixth dump is not the first again")
	}
}

func TestSubnetChangesInTheVPC(t *testing.T) {
	k := node(t)
	a := running(t, k, "a", ip("10.0.10.70"), secondary.Table)
	peer := ip("10.1.0.5") // amazon-vpc-cni-k8s #1423: a CIDR was added, but the node does not know
	if source, mac, fault := k.Egress(a.Address, peer); source != host.NodeAddress || mac != primaryMAC || fault != "" {
		t.Errorf("before: %v by %s %s, want translation", source, mac, fault)
	}
	known := host
	known.VPCCIDRs = append([]netip.Prefix{netip.MustParsePrefix("10.1.0.0/16")}, host.VPCCIDRs...)
	apply(t, k, dataplane.RepairHost(known, index(k)))
	if source, mac, fault := k.Egress(a.Address, peer); source != a.Address || mac != secondaryMAC || fault != "" {
		t.Errorf("after: %v by %s %s, want the pod's own address", source, mac, fault)
	}
	external := dataplane.HostSpec{PrimaryMAC: primaryMAC, NodeAddress: host.NodeAddress, ExternalSNAT: true}
	apply(t, k, dataplane.RepairHost(external, index(k)))
	if source, mac, _ := k.Egress(a.Address, ip("1.1.1.1")); source != a.Address || mac != secondaryMAC {
		t.Errorf("external SNAT: %v by %s, want the pod's own address", source, mac)
	}
	for _, r := range k.Observe().Rules {
		if r.Priority == dataplane.PriorityMark {
			t.Error("nothing marks, but the mark rule is there")
		}
	}
}
