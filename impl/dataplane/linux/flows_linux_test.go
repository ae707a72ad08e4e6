package linux

import (
	"errors"
	"net"
	"net/netip"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/percentiles"
)

// BenchmarkFlows is a node whose conntrack has 200,000 flows of others, beside one that has none: what a DEL waits for (ratio 1: nothing of the
// table), and what a walk for one address, and for fifty, takes.
func BenchmarkFlows(b *testing.B) {
	k, p, w := another(b)
	median := func() time.Duration {
		var took percentiles.Times
		for range 50 {
			apply(b, k, dataplane.PodPlan(w), p)
			began := time.Now()
			apply(b, k, dataplane.PodRemoval(w), nil)
			took = append(took, time.Since(began))
			k.deleting.Wait()
		}
		return took.P50()
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
	foreignFlows(b, 200_000)
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

// foreignFlows enters flows of UDP that no packet made. The machine may take fewer.
func foreignFlows(b *testing.B, n int) {
	h := must.Get(netlink.NewHandle(unix.NETLINK_NETFILTER))(b)
	defer h.Close()
	to := net.IPv4(100, 127, 0, 1).To4()
	for i := range n {
		from, port := net.IPv4(100, 64, byte(i>>8&31), byte(i)).To4(), uint16(1024+i%60_000)
		err := h.ConntrackCreate(netlink.ConntrackTable, netlink.FAMILY_V4, &netlink.ConntrackFlow{FamilyType: unix.AF_INET, TimeOut: 3600,
			Forward: netlink.IPTuple{Protocol: unix.IPPROTO_UDP, SrcIP: from, DstIP: to, SrcPort: port, DstPort: 53},
			Reverse: netlink.IPTuple{Protocol: unix.IPPROTO_UDP, SrcIP: to, DstIP: from, SrcPort: 53, DstPort: port}})
		if err != nil && !errors.Is(err, unix.EEXIST) && !errors.Is(err, unix.ENOMEM) {
			b.Fatal(err)
		}
	}
}
