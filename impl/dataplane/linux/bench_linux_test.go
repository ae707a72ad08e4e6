package linux

import (
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// full is a node with 110 pods, as the benchmarks find it.
func full(b *testing.B) *Kernel {
	k := openNew(b, Options{})
	for i := range 110 {
		s := newSpace(b)
		apply(b, k, dataplane.PodPlan(spec(i, s.inode)), s.pod(b))
	}
	return k
}

// another is a pod that such a node has not yet.
func another(b *testing.B) (*Kernel, *Pod, dataplane.PodSpec) {
	k := full(b)
	s := newSpace(b)
	return k, s.pod(b), spec(500, s.inode)
}

func BenchmarkPodPlan(b *testing.B) {
	k, p, w := another(b)
	b.ReportAllocs()
	for b.Loop() {
		apply(b, k, dataplane.PodPlan(w), p)
		b.StopTimer()
		takeAway(b, k, w)
		b.StartTimer()
	}
}

// takeAway removes a pod and waits until the kernel has forgotten it: what it still does then would be counted
// to the next.
func takeAway(b *testing.B, k *Kernel, w dataplane.PodSpec) {
	apply(b, k, dataplane.PodRemoval(w), nil)
	k.deleting.Wait()
}

func BenchmarkPodRemoval(b *testing.B) {
	k, p, w := another(b)
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		k.deleting.Wait()
		apply(b, k, dataplane.PodPlan(w), p)
		b.StartTimer()
		apply(b, k, dataplane.PodRemoval(w), nil)
	}
}

// BenchmarkPodPlanOps and BenchmarkPodRemovalOps say which operation costs what.
func BenchmarkPodPlanOps(b *testing.B)    { benchmarkOps(b, false) }
func BenchmarkPodRemovalOps(b *testing.B) { benchmarkOps(b, true) }

func benchmarkOps(b *testing.B, removal bool) {
	k, p, w := another(b)
	plan := dataplane.PodPlan(w)
	if removal {
		plan = dataplane.PodRemoval(w)
	}
	for i := range plan.Ops {
		b.Run(plan.Ops[i].Kind.String(), func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				if removal {
					apply(b, k, dataplane.PodPlan(w), p)
				}
				apply(b, k, dataplane.Plan{Ops: plan.Ops[:i]}, p)
				b.StartTimer()
				apply(b, k, dataplane.Plan{Ops: plan.Ops[i : i+1]}, p)
				b.StopTimer()
				takeAway(b, k, w)
				b.StartTimer()
			}
		})
	}
}

func BenchmarkObserve110(b *testing.B) {
	k := full(b)
	if o := observe(b, k); len(o.Links) != 110 || len(o.Rules) != 220 {
		b.Fatalf("%d links, %d rules", len(o.Links), len(o.Rules))
	}
	b.ReportAllocs()
	for b.Loop() {
		observe(b, k)
	}
}

// BenchmarkFlushConntrack is a flush by a kernel that deletes by filter, and by one that does not.
func BenchmarkFlushConntrack(b *testing.B) {
	for _, floor := range []bool{false, true} {
		b.Run(fmt.Sprintf("floor=%v", floor), func(b *testing.B) {
			k := openNew(b, Options{Floor: floor})
			must.Do(b, addAddress("lo", "192.0.2.1/32"))
			hook(b)
			for b.Loop() {
				b.StopTimer()
				c := must.Get(net.Dial("udp", "192.0.2.1:9"))(b)
				_, _ = c.Write([]byte("flow"))
				c.Close()
				b.StartTimer()
				apply(b, k, dataplane.Plan{Ops: []dataplane.Op{{Kind: dataplane.FlushConntrack, Addr: netip.MustParseAddr("192.0.2.1")}}}, nil)
			}
		})
	}
}

// hook makes the kernel follow flows, which it does where a rule asks for them.
func hook(b *testing.B) {
	c := &nftables.Conn{}
	table := c.AddTable(&nftables.Table{Family: nftables.TableFamilyIPv4, Name: "flows"})
	chain := c.AddChain(&nftables.Chain{Name: "out", Table: table, Type: nftables.ChainTypeFilter, Hooknum: nftables.ChainHookOutput, Priority: nftables.ChainPriorityFilter})
	c.AddRule(&nftables.Rule{Table: table, Chain: chain, Exprs: []expr.Any{&expr.Ct{Key: expr.CtKeySTATE, Register: 1}}})
	must.Do(b, c.Flush())
}
