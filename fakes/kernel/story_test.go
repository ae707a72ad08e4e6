package kernel_test

import (
	"net/netip"
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
