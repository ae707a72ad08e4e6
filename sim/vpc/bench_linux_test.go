package vpc

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// crowd is n addresses on four nodes with two ENIs each.
func crowd(t testing.TB, n int) (*Network, []netip.Addr) {
	f := newNetwork(t)
	var all []netip.Addr
	a := [2]netip.Addr{ip("10.0.1.10"), ip("10.0.2.10")}
	for i := range 4 {
		node := newInstance(t, f)
		for d := range 2 {
			var addrs []string
			for range n / 8 {
				a[d] = a[d].Next()
				addrs, all = append(addrs, a[d].String()), append(all, a[d])
			}
			node.eth(d, fmt.Sprintf("02:00:00:00:%02x:%02x", i, d), []string{sn1, sn2}[d], addrs...)
		}
	}
	return f, all
}

func BenchmarkPing(b *testing.B) {
	for _, n := range []int{20, 60, 480} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			f, addrs := crowd(b, n/8*8)
			addrs = append(addrs, addrs[:n%8]...)
			f.Ping(addrs, patience)
			for b.Loop() {
				for i, ok := range f.Ping(addrs, patience) {
					if !ok {
						b.Fatalf("%v is silent", addrs[i])
					}
				}
			}
		})
	}
}

func BenchmarkAssign(b *testing.B) {
	f, _ := crowd(b, 480)
	for b.Loop() {
		must.Do(b, f.Assign("02:00:00:00:00:00", ip("10.0.1.253")))
		must.Do(b, f.Unassign(ip("10.0.1.253")))
	}
}

func BenchmarkSegmentAssign(b *testing.B) {
	s := newShared(b)
	for i := range 200 {
		must.Do(b, s.f.Assign([]string{macA, macB}[i%2], netip.AddrFrom4([4]byte{10, 0, 2, byte(20 + i)})))
	}
	for b.Loop() {
		must.Do(b, s.f.Assign(macA, ip("10.0.1.253")))
		must.Do(b, s.f.Unassign(ip("10.0.1.253")))
	}
}

func BenchmarkJoin(b *testing.B) {
	s := newShared(b)
	for i := range 60 {
		must.Do(b, s.f.Assign(macB, netip.AddrFrom4([4]byte{10, 0, 1, byte(100 + i)})))
	}
	for b.Loop() {
		must.Do(b, s.f.Leave(macB))
		must.Do(b, s.f.Join(macB))
	}
}

func BenchmarkBorrow(b *testing.B) {
	w := newWire(b)
	r := w.routerSpace()
	for b.Loop() {
		f := must.Get(New(sharedConfig(r.ns)))(b)
		must.Do(b, f.Close())
	}
}

func BenchmarkPlug(b *testing.B) {
	f, _ := crowd(b, 480)
	node := newInstance(b, f)
	for b.Loop() {
		must.Do(b, f.Plug(node.ns, "eth0", macA, 9001))
		must.Do(b, f.Unplug(macA))
	}
}

func BenchmarkNew(b *testing.B) {
	needRoot(b)
	for b.Loop() {
		f := must.Get(New(config()))(b)
		must.Do(b, f.Close())
	}
}

func BenchmarkDo(b *testing.B) {
	f := newNetwork(b)
	for b.Loop() {
		must.Do(b, Do(f.ns, func() error { return nil }))
	}
}
