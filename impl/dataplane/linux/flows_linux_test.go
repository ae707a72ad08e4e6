package linux

import (
	"net/netip"
	"slices"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
)

// BenchmarkFlows is a node whose conntrack has 200,000 flows of others, beside one that has none: what a DEL waits for (ratio 1: nothing of the
// table), and what a walk for one address, and for fifty, takes.
func BenchmarkFlows(b *testing.B) {
	k := full(b)
	s := newSpace(b)
	p := s.pod(b)
	w := spec(500, s.inode)
	median := func() time.Duration {
		var took []time.Duration
		for range 50 {
			apply(b, k, dataplane.PodPlan(w), p)
			began := time.Now()
			apply(b, k, dataplane.PodRemoval(w), nil)
			took = append(took, time.Since(began))
			k.deleting.Wait()
		}
		slices.Sort(took)
		return took[len(took)/2]
	}
	walk := func(addresses int) time.Duration {
		plan := dataplane.Plan{}
		for i := range addresses {
			plan.Ops = append(plan.Ops, dataplane.Op{Kind: dataplane.FlushConntrack, Addr: netip.AddrFrom4([4]byte{10, 0, 99, byte(i)})})
		}
		began := time.Now()
		apply(b, k, plan, nil)
		return time.Since(began)
	}
	without := median()
	for i := range 200_000 {
		k.foreignFlow(b, netip.AddrFrom4([4]byte{100, 64, byte(i >> 8 & 31), byte(i)}), uint16(1024+i%60_000))
	}
	if n, err := k.countFlows(); err != nil || n < 150_000 {
		b.Skipf("%d flows, %v: expected 200,000; net.netfilter.nf_conntrack_max has to allow that", n, err)
	}
	for b.Loop() {
		with := median()
		b.ReportMetric(with.Seconds()*1e3, "ms-removal")
		b.ReportMetric(float64(with)/float64(without), "beside-none")
		b.ReportMetric(walk(1).Seconds()*1e3, "ms-walk-1")
		b.ReportMetric(walk(50).Seconds()*1e3, "ms-walk-50")
	}
}

// foreignFlow enters a flow of UDP that no packet made.
func (k *Kernel) foreignFlow(b *testing.B, from netip.Addr, port uint16) {
	to := netip.AddrFrom4([4]byte{100, 127, 0, 1})
	r := k.ct.reset()
	r.netfilter(unix.NFNL_SUBSYS_CTNETLINK<<8, unix.NLM_F_ACK|unix.NLM_F_CREATE, unix.AF_INET, 0)
	side := func(kind uint16, source, destination netip.Addr, sourcePort, destinationPort uint16) {
		tuple := r.nest(kind)
		ip := r.nest(ctaTupleIP)
		r.ip(ctaIPv4Src, source)
		r.ip(2, destination) // CTA_IP_V4_DST
		r.end(ip)
		proto := r.nest(2) // CTA_TUPLE_PROTO: number and ports
		r.bytes(1, []byte{unix.IPPROTO_UDP})
		r.bytes(2, []byte{byte(sourcePort >> 8), byte(sourcePort)})
		r.bytes(3, []byte{byte(destinationPort >> 8), byte(destinationPort)})
		r.end(proto)
		r.end(tuple)
	}
	side(ctaTupleOriginal, from, to, port, 53)
	side(ctaTupleReply, to, from, 53, port)
	r.be32(7, 3600) // CTA_TIMEOUT, seconds
	if err := k.flows.do(r); err != nil && !is(err, unix.EEXIST) && !is(err, unix.ENOMEM) {
		b.Fatal(err)
	}
}
