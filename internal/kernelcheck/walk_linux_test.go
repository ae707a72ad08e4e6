package kernelcheck

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/internal/splitmix"
)

// walker does random things to both kernels, from small pools so that they collide.
type walker struct {
	*world
	random uint64
	inodes [8]uint64 // the model's
}

func (w *walker) n(n int) int { return int(splitmix.Next(&w.random) % uint64(n)) }

func (w *walker) address() netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 10, byte(100 + w.n(8))}) }
func (w *walker) mac() string         { return fmt.Sprintf("0a:00:00:00:00:%02x", w.n(3)) }
func (w *walker) table() int          { return []int{254, 2, 3}[w.n(3)] }
func (w *walker) name() string        { return dataplane.HostVethName("eni", "ns", fmt.Sprint(w.n(5))) }
func (w *walker) inode() uint64       { return w.inodes[w.n(len(w.inodes))] }
func (w *walker) half() bool          { return w.n(2) == 0 }

func (w *walker) alias() string {
	return dataplane.Alias("aws-cni", fmt.Sprint("sandbox", w.n(3)), "eth0", w.address())
}

// link is the name of a link that may be there.
func (w *walker) link() string {
	if w.n(4) == 0 {
		return fmt.Sprint("eth", w.n(3))
	}
	return w.name()
}

func (w *walker) pod() dataplane.PodSpec {
	a := w.address()
	s := dataplane.PodSpec{
		Alias: dataplane.Alias("aws-cni", fmt.Sprint("sandbox", w.n(3)), "eth0", a), HostVeth: w.name(),
		Netns: w.inode(), Address: a, Table: w.table(), MTU: 9001 * w.n(2),
	}
	if w.n(6) == 0 {
		s.IfName = "net1"
	}
	if w.n(3) == 0 {
		s.Displaced, s.DisplacedName = w.alias(), w.name()
	}
	return s
}

func (w *walker) eni() dataplane.ENISpec {
	subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(10 + 10*w.n(2)), 0}), 24)
	primary := subnet.Addr().Next().Next()
	for range w.n(3) {
		primary = primary.Next()
	}
	return dataplane.ENISpec{MAC: w.mac(), Device: 1, Primary: primary, Subnet: subnet, Table: w.table(), MTU: 9001}
}

func (w *walker) host() dataplane.HostSpec {
	s := dataplane.HostSpec{PrimaryMAC: w.mac(), NodeAddress: netip.MustParseAddr("10.0.10.2"), NodePort: w.half(), ExternalSNAT: w.half(), MTU: 9001}
	for i := range w.n(4) {
		s.VPCCIDRs = append(s.VPCCIDRs, netip.PrefixFrom(netip.AddrFrom4([4]byte{10, byte(i), 0, 0}), 16))
	}
	return s
}

// op is an operation that need not make sense.
func (w *walker) op() dataplane.Op {
	kinds := []dataplane.Kind{dataplane.RenameLink, dataplane.AdoptLink, dataplane.LinkUp, dataplane.SetMAC, dataplane.DeleteVeth, dataplane.PodRoute,
		dataplane.PodAddress, dataplane.PodNeighbour, dataplane.ProxyNeighbour, dataplane.EnsureRoute, dataplane.RemoveRoute, dataplane.EnsureRule,
		dataplane.RemoveRule, dataplane.RemoveStaleRules, dataplane.FlushConntrack, dataplane.ENIUp, dataplane.ENIAddress, dataplane.Sysctl, dataplane.None}
	o := dataplane.Op{Kind: kinds[w.n(len(kinds))], Netns: w.inode(), Table: w.table(), Priority: []int{512, 1024, 1536, 32765}[w.n(4)],
		MTU: w.n(2) * 1400, Addr: w.address(), MAC: w.mac(), Value: fmt.Sprint(w.n(3)), Name: "rp_filter"}
	o.Dst = netip.PrefixFrom(w.address(), []int{0, 16, 24, 32}[w.n(4)]).Masked()
	switch o.Kind {
	case dataplane.EnsureRoute, dataplane.RemoveRoute:
		switch w.n(3) {
		case 0:
			o.Alias, o.MAC = w.alias(), ""
		case 1:
			o.Link, o.MAC = w.link(), ""
		}
		if w.half() {
			o.Via = netip.AddrFrom4([4]byte{10, 0, byte(10 + 10*w.n(2)), 1})
		}
	case dataplane.RenameLink:
		o.Alias, o.Name = w.alias(), w.name()
		if w.half() {
			o.Link = w.name()
		}
	case dataplane.ENIAddress:
		o.Dst, o.Addr = w.eni().Subnet, w.eni().Primary
	case dataplane.AdoptLink:
		o.Link, o.Alias = w.name(), w.alias()
	case dataplane.PodNeighbour:
		o.Alias, o.Addr = w.alias(), dataplane.Gateway()
	case dataplane.PodRoute:
		o.Alias, o.Dst, o.Via = w.alias(), netip.PrefixFrom(netip.IPv4Unspecified(), 0), dataplane.Gateway()
	case dataplane.ENIUp, dataplane.Sysctl:
	case dataplane.EnsureRule, dataplane.RemoveRule, dataplane.RemoveStaleRules:
		if w.n(6) == 0 {
			o.Mark, o.Addr = dataplane.Mark, netip.Addr{}
		}
	default:
		o.Alias = w.alias()
	}
	return o
}

func (w *walker) step() {
	switch what := w.n(40); {
	case what < 12:
		p := dataplane.PodPlan(w.pod())
		if w.n(4) == 0 { // a crash
			p.Ops = p.Ops[:w.n(len(p.Ops))]
		}
		w.apply(p)
	case what < 16:
		w.apply(dataplane.PodRemoval(w.pod()))
	case what < 18:
		w.apply(dataplane.ENIPlan(w.eni()))
	case what < 19:
		w.apply(dataplane.ENIRemoval(w.eni()))
	case what < 21:
		w.apply(dataplane.HostPlan(w.host()))
	case what < 26:
		w.apply(dataplane.Plan{Ops: []dataplane.Op{w.op()}})
	case what < 28:
		if at := w.n(len(w.inodes)); !w.fake.NamespaceExists(w.inodes[at]) {
			w.inodes[at] = w.newNamespace()
		}
	case what < 29:
		w.closeNamespace(w.inode())
	case what < 32:
		w.plugging()
	case what < 36:
		w.repair()
	default:
		w.stranger()
	}
}

func (w *walker) plugging() {
	switch w.n(5) {
	case 0:
		w.unplug(w.mac())
	case 1, 2:
		w.plugPrimary("0a:00:00:00:00:00", netip.MustParsePrefix("10.0.10.2/24"), netip.MustParseAddr("10.0.10.1"))
	default:
		w.plug(w.mac())
	}
}

func (w *walker) repair() {
	o := w.fake.Observe()
	ix := o.Index()
	switch w.n(4) {
	case 0:
		w.apply(dataplane.Residue(ix, func(a netip.Addr, alias string) bool { return a == w.address() }))
	case 1:
		w.apply(dataplane.RepairENI(w.eni(), ix))
	case 2:
		w.apply(dataplane.RepairHost(w.host(), ix))
	default:
		for _, l := range o.Links {
			if _, _, _, a, ok := dataplane.ParseAlias(l.Alias); ok && w.half() {
				w.apply(dataplane.RepairPod(dataplane.PodSpec{Alias: l.Alias, HostVeth: w.name(), Address: a, Table: w.table()}, ix))
				return
			}
		}
		w.apply(dataplane.RepairPod(w.pod(), ix))
	}
}

func (w *walker) stranger() {
	switch w.n(8) {
	case 0:
		if name := w.link(); strings.HasPrefix(name, "eth") {
			w.setMAC(name, w.mac())
		} else { // no ENI's: the kernel cannot tell a veth without an alias from one that the test plugged in
			w.setMAC(name, "0e:00:00:00:00:01")
		}
	case 1:
		alias := ""
		if w.half() {
			alias = w.alias()
		}
		w.setAlias(w.name(), alias)
	case 2, 3:
		w.linkDown(w.link())
	case 4:
		w.loseProxy(w.name())
	case 5:
		w.flushRules(512)
	case 6:
		w.removeRoutes(w.table())
	case 7:
		if w.half() {
			w.flushNAT()
		} else {
			w.foreignRule(dataplane.Rule{Priority: []int{700, 512, 1536}[w.n(3)], Table: w.table(), From: netip.PrefixFrom(w.address(), 24+w.n(9)).Masked()})
		}
	}
}

// TestWalk: the model and the kernel agree on everything that plans, repairs, crashes and third parties do.
func TestWalk(t *testing.T) {
	steps := 250
	if testing.Short() {
		steps = 80
	}
	for _, floor := range []bool{false, true} {
		for seed := range 4 {
			t.Run(fmt.Sprintf("floor=%v/seed=%d", floor, seed), func(t *testing.T) {
				w := &walker{world: newWorld(t, linux.Options{Floor: floor}), random: uint64(seed)}
				for i := range w.inodes {
					w.inodes[i] = w.newNamespace()
				}
				w.plugPrimary("0a:00:00:00:00:00", netip.MustParsePrefix("10.0.10.2/24"), netip.MustParseAddr("10.0.10.1"))
				w.plug("0a:00:00:00:00:01")
				for range steps {
					w.step()
					w.compare()
				}
				if !slices.ContainsFunc(w.log, func(s string) bool { return len(s) > 0 }) {
					t.Error("nothing was done")
				}
				t.Logf("%d plans, of which %d failed in both", w.plans, w.failures)
			})
		}
	}
}
