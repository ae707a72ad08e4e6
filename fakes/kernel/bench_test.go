package kernel_test

import (
	"net/netip"
	"strconv"
	"testing"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
)

// busy is a node with 45 pods, and the spec of the 46th.
func busy(b testing.TB) (*kernel.Kernel, dataplane.PodSpec) {
	k := node(b)
	var last dataplane.PodSpec
	for i := range 46 {
		table := dataplane.MainTable
		if i%2 == 1 {
			table = secondary.Table
		}
		last = pod(k, "web-"+strconv.Itoa(i), netip.AddrFrom4([4]byte{10, 0, 10, byte(100 + i)}), table)
		if i < 45 {
			apply(b, k, dataplane.PodPlan(last))
		}
	}
	return k, last
}

func BenchmarkPodPlan(b *testing.B) {
	_, spec := busy(b)
	b.ReportAllocs()
	for b.Loop() {
		dataplane.PodPlan(spec)
	}
}

// BenchmarkApply is one pod in and out: 10 operations, then 5.
func BenchmarkApply(b *testing.B) {
	k, spec := busy(b)
	in, out := dataplane.PodPlan(spec), dataplane.PodRemoval(spec)
	b.ReportAllocs()
	for b.Loop() {
		k.Apply(in, 0, len(in.Ops))
		k.Apply(out, 0, len(out.Ops))
		k.Changed()
	}
}

func BenchmarkTrace(b *testing.B) {
	k, spec := busy(b)
	apply(b, k, dataplane.PodPlan(spec))
	b.ReportAllocs()
	for b.Loop() {
		if fault, ok := k.Trace(spec.Address, secondaryMAC); !ok {
			b.Fatal(fault)
		}
	}
}

func BenchmarkClone(b *testing.B) {
	k, _ := busy(b)
	b.ReportAllocs()
	for b.Loop() {
		k.Clone()
	}
}

func BenchmarkObserve(b *testing.B) {
	k, _ := busy(b)
	b.ReportAllocs()
	for b.Loop() {
		k.Observe()
	}
}

func BenchmarkIndex(b *testing.B) {
	k, _ := busy(b)
	o := k.Observe()
	b.ReportAllocs()
	for b.Loop() {
		o.Index()
	}
}

func BenchmarkUses(b *testing.B) {
	k, spec := busy(b)
	ix := index(k)
	b.ReportAllocs()
	for b.Loop() {
		ix.Uses(spec.Address)
	}
}

func BenchmarkRepairPod(b *testing.B) {
	k, spec := busy(b)
	apply(b, k, dataplane.PodPlan(spec))
	ix := index(k)
	b.ReportAllocs()
	for b.Loop() {
		dataplane.RepairPod(spec, ix)
	}
}

func BenchmarkResidue(b *testing.B) {
	k, _ := busy(b)
	ix := index(k)
	keep := func(netip.Addr, string) bool { return true }
	b.ReportAllocs()
	for b.Loop() {
		dataplane.Residue(ix, keep)
	}
}
