package kernel

import (
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/splitmix"
)

// walker does random things to a kernel, from small pools so that they collide.
type walker struct {
	random uint64
	inodes [12]uint64
}

func (w *walker) n(n int) int { return int(splitmix.Next(&w.random) % uint64(n)) }

const poolSize = 12

func pooled(i int) netip.Addr { return netip.AddrFrom4([4]byte{10, 0, 10, byte(100 + i)}) }

func (w *walker) address() netip.Addr { return pooled(w.n(poolSize)) }
func (w *walker) mac() string         { return fmt.Sprintf("0a:00:00:00:00:%02x", w.n(4)) }
func (w *walker) table() int          { return []int{254, 2, 3, 4}[w.n(4)] }
func (w *walker) name() string        { return dataplane.HostVethName("eni", "ns", fmt.Sprint(w.n(6))) }

func (w *walker) alias() string {
	a := w.address()
	return dataplane.Alias("aws-cni", fmt.Sprint("sandbox", w.n(4)), "eth0", a)
}

func (w *walker) pod() dataplane.PodSpec {
	a := w.address()
	s := dataplane.PodSpec{
		Alias: dataplane.Alias("aws-cni", fmt.Sprint("sandbox", w.n(4)), "eth0", a), HostVeth: w.name(),
		Netns: w.inodes[w.n(len(w.inodes))], Address: a, Table: w.table(), MTU: 9001 * w.n(2),
	}
	if w.n(2) == 0 {
		s.Displaced, s.DisplacedName = w.alias(), w.name()
	}
	return s
}

func (w *walker) eni() dataplane.ENISpec {
	subnet := netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 0, byte(10 * w.n(3)), 0}), 24)
	return dataplane.ENISpec{MAC: w.mac(), Device: 1, Primary: w.address(), Subnet: subnet, Table: w.table(), MTU: 9001}
}

// op is an operation that need not make sense.
func (w *walker) op() dataplane.Op {
	o := dataplane.Op{
		Kind: dataplane.Kind(w.n(25)), Netns: w.inodes[w.n(len(w.inodes))], Table: w.table(), Priority: []int{512, 1024, 1536, 32765, 32767}[w.n(5)],
		MTU: w.n(2) * 1400, Link: w.name(), Name: w.name(), Value: "2",
	}
	if w.n(3) > 0 {
		o.Addr, o.Via = w.address(), w.address()
	}
	if w.n(3) > 0 {
		o.Dst = netip.PrefixFrom(w.address(), []int{0, 8, 24, 32}[w.n(4)])
	}
	if w.n(2) == 0 {
		o.Via = netip.Addr{}
	}
	switch w.n(3) {
	case 0:
		o.Alias = w.alias()
	case 1:
		o.MAC = w.mac()
	}
	if w.n(8) == 0 {
		o.Mark = 0x80
	}
	return o
}

func (w *walker) step(k *Kernel) {
	switch what := w.n(40); {
	case what < 12:
		p := dataplane.PodPlan(w.pod())
		k.Apply(p, 0, w.n(len(p.Ops)+3))
	case what < 17:
		k.Apply(dataplane.PodRemoval(w.pod()), 0, 5)
	case what < 19:
		k.Apply(dataplane.ENIPlan(w.eni()), 0, 7)
	case what < 20:
		k.Apply(dataplane.ENIRemoval(w.eni()), 0, 3)
	case what < 24:
		k.Apply(dataplane.Plan{Ops: []dataplane.Op{w.op(), w.op()}}, w.n(3)-1, 2)
	case what < 28:
		w.inodes[w.n(len(w.inodes))] = k.NewNamespace()
	case what < 32:
		k.CloseNamespace(w.inodes[w.n(len(w.inodes))])
	default:
		w.accident(k, what)
	}
}

func (w *walker) accident(k *Kernel, what int) {
	name, inode := w.name(), w.inodes[w.n(len(w.inodes))]
	if w.n(4) == 0 {
		name = fmt.Sprint("eth", w.n(3))
	}
	switch what {
	case 32:
		k.Hold(inode)
	case 33:
		k.Release(inode)
	case 34:
		k.LoseNeighbour(inode)
	case 35:
		k.LoseProxy(name)
	case 36:
		k.OpenFlow(w.address())
		if w.n(3) == 0 {
			k.SetLinkMAC(name, w.mac())
		}
	case 37:
		k.LinkDown(name)
		if w.n(2) == 0 {
			k.SetLinkAlias(name, w.alias())
		}
	case 38:
		if w.n(2) == 0 {
			k.Plug(w.mac())
		} else {
			k.PlugPrimary(w.mac(), netip.PrefixFrom(w.address(), 24), netip.AddrFrom4([4]byte{10, 0, 10, 1}))
		}
	case 39:
		w.rare(k)
	}
}

func (w *walker) rare(k *Kernel) {
	switch w.n(12) {
	case 0:
		k.Reboot()
	case 1:
		k.Unplug(w.mac())
	case 2:
		k.FlushRules(512)
	case 3:
		k.RemoveRoutes(w.table())
	case 4:
		k.FlushNAT()
	case 5, 6:
		k.InterruptDumps(1)
		k.Observe()
	case 7, 8:
		r := dataplane.Rule{Priority: []int{w.n(40000), 512, 1536}[w.n(3)], Table: w.table()}
		if p := netip.PrefixFrom(w.address(), 24+w.n(9)); w.n(2) == 0 {
			r.From = p
		} else {
			r.To = p
		}
		k.AddForeignRule(r)
	case 9:
		k.Apply(dataplane.HostPlan(dataplane.HostSpec{PrimaryMAC: w.mac(), NodeAddress: w.address(), NodePort: w.n(2) == 0}), 0, 3)
	default:
		o := k.Observe()
		ix := o.Index()
		k.Apply(dataplane.Residue(ix, func(a netip.Addr, alias string) bool { return a == w.address() }), 0, 50)
		k.Apply(dataplane.RepairENI(w.eni(), ix), 0, 50)
		k.Apply(dataplane.RepairPod(w.pod(), ix), 0, 50)
	}
}

// recompute checks every index against the links, namespaces and lists they were made from.
func (k *Kernel) recompute() error {
	var byName, byAlias []ref
	var holders []holder
	ends := map[uint64]int{}
	live := 0
	for i := range k.links {
		l, slot := &k.links[i], int32(i)
		if l.index == 0 {
			if !slices.Contains(k.free, slot) {
				return fmt.Errorf("slot %d is neither used nor free", slot)
			}
			continue
		}
		live++
		byName = append(byName, ref{l.name, slot})
		if l.alias != "" {
			byAlias = append(byAlias, ref{l.alias, slot})
		}
		for _, a := range l.podAddresses {
			holders = append(holders, holder{a, l.netns, slot})
		}
		if l.netns != 0 {
			ends[l.netns]++
		}
		if l.eni != slices.ContainsFunc(k.enis, func(r ref) bool { return r.slot == slot }) || l.eni == (l.netns != 0) {
			return fmt.Errorf("link %s is an ENI or it is not", l.name)
		}
	}
	byKey := func(a, b ref) int { return strings.Compare(a.key, b.key) }
	slices.SortFunc(byName, byKey)
	slices.SortFunc(byAlias, byKey)
	if !slices.Equal(byName, k.byName) || !slices.Equal(byAlias, k.byAlias) || live+len(k.free) != len(k.links) {
		return fmt.Errorf("names %v, aliases %v\nwant %v, %v", k.byName, k.byAlias, byName, byAlias)
	}
	return k.recomputeLists(holders, ends)
}

func (k *Kernel) recomputeLists(holders []holder, ends map[uint64]int) error {
	sorted := slices.IsSortedFunc(k.holders, func(a, b holder) int {
		if c := a.address.Compare(b.address); c != 0 {
			return c
		}
		return int(a.inode) - int(b.inode)
	})
	if !sorted || len(holders) != len(k.holders) {
		return fmt.Errorf("holders %v, want %v", k.holders, holders)
	}
	for _, h := range holders {
		if !slices.Contains(k.holders, h) || k.namespace(h.inode) == nil {
			return fmt.Errorf("holder %v is not listed, or its namespace is gone", h)
		}
	}
	for i, ns := range k.namespaces {
		if ns.ends != ends[ns.inode] || !ns.mounted && ns.holds <= 0 || i > 0 && k.namespaces[i-1].inode >= ns.inode {
			return fmt.Errorf("namespace %+v has %d ends", ns, ends[ns.inode])
		}
		delete(ends, ns.inode)
	}
	if len(ends) != 0 {
		return fmt.Errorf("veths lead to dead namespaces: %v", ends)
	}
	for i := range k.routes {
		r := &k.routes[i]
		if l := &k.links[r.slot]; l.index == 0 || !l.up {
			return fmt.Errorf("route %+v outlived its link, or the link is down", r)
		}
		if i > 0 && r.before(k.routes[i-1].table, k.routes[i-1].dst.Bits(), k.routes[i-1].dst.Addr()) {
			return fmt.Errorf("routes are not sorted at %d", i)
		}
	}
	for _, list := range [][]addressRule{k.to, k.from} {
		for i := 1; i < len(list); i++ {
			if list[i].before(list[i-1].address, list[i-1].priority) || list[i] == list[i-1] {
				return fmt.Errorf("rules are not sorted, or repeat, at %d", i)
			}
		}
	}
	if !slices.IsSortedFunc(k.wide, dataplane.CompareRules) || !slices.IsSortedFunc(k.flows, netip.Addr.Compare) {
		return fmt.Errorf("wide rules or flows are not sorted")
	}
	return nil
}

// lookupSlowly is lookup without any index: all rules in one list, every route in turn.
func (k *Kernel) lookupSlowly(source, destination netip.Addr, mark uint32) *route {
	type rule struct{ order, table int }
	var hits []rule
	for _, r := range k.to {
		if r.address == destination {
			hits = append(hits, rule{r.priority*4 + 0, r.table})
		}
	}
	for _, r := range k.from {
		if r.address == source {
			hits = append(hits, rule{r.priority*4 + 1, r.table})
		}
	}
	for i := range k.wide {
		if wideMatch(&k.wide[i], source, destination, mark) {
			hits = append(hits, rule{k.wide[i].Priority*4 + 2, k.wide[i].Table})
		}
	}
	hits = append(hits, rule{mainPriority*4 + 3, dataplane.MainTable})
	slices.SortStableFunc(hits, func(a, b rule) int { return a.order - b.order })
	for _, h := range hits {
		var best *route
		for i := range k.routes {
			r := &k.routes[i]
			covers := r.dst.Bits() == 0 || destination.IsValid() && r.dst.Contains(destination)
			if r.table == h.table && covers && (best == nil || r.dst.Bits() > best.dst.Bits()) {
				best = r
			}
		}
		if best != nil {
			return best
		}
	}
	return nil
}

// TestRandomWalk: nothing panics, the indexes stay what a recomputation gives, the quick lookup answers
// as the slow one, Dirty names every address whose reachability changed, and a clone that takes the
// same steps is the same kernel.
func TestRandomWalk(t *testing.T) {
	const steps = 100_000
	w := walker{random: 1}
	k := New(7)
	type reach struct{ first, second string }
	var before [poolSize]reach
	for n := range before {
		before[n] = reach{NoENILink, NoENILink}
	}
	reached := 0
	for i := range steps {
		w.step(k)
		dirty, all := k.Changed()
		if i%8 == 0 {
			for n := range before {
				a, b := pooled(n), pooled((n+i)%poolSize)
				if got, want := k.lookup(a, b, 0x80), k.lookupSlowly(a, b, 0x80); got != want {
					t.Fatalf("step %d: lookup(%v, %v) = %+v, want %+v", i, a, b, got, want)
				}
			}
			if err := k.recompute(); err != nil {
				t.Fatalf("step %d: %v", i, err)
			}
		}
		for n := range before {
			var now reach
			now.first, _ = k.Trace(pooled(n), "0a:00:00:00:00:00")
			now.second, _ = k.Trace(pooled(n), "0a:00:00:00:00:01")
			if now != before[n] && !all && !slices.Contains(dirty, pooled(n)) {
				t.Fatalf("step %d: %v was %v and is %v, but is not dirty", i, pooled(n), before[n], now)
			}
			if now.first == "" || now.second == "" {
				reached++
			}
			before[n] = now
		}
	}
	if reached < steps/100 {
		t.Errorf("only %d traces succeeded: the walk is not about much", reached)
	}
}

func TestCloneIsIndependent(t *testing.T) {
	w := walker{random: 5}
	k := New(7)
	for range 300 {
		for range 20 {
			w.step(k)
		}
		clone, twin := k.Clone(), k.Clone()
		seen := twin.Observe()
		ours, theirs := w, w
		for range 20 {
			ours.step(clone)
		}
		k.Changed()
		if got := k.Clone().Observe(); !reflect.DeepEqual(got, seen) {
			t.Fatal("a step of the clone changed the original")
		}
		for range 20 {
			theirs.step(k)
		}
		if !reflect.DeepEqual(k.Observe(), clone.Observe()) || k.Generation() != clone.Generation() || k.Counts() != clone.Counts() {
			t.Fatal("the same steps made two kernels of one")
		}
		if got := twin.Observe(); !reflect.DeepEqual(got, seen) {
			t.Fatal("a step of the original changed a clone")
		}
	}
}
