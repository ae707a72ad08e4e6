package linux

import (
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/percentiles"
)

// BenchmarkDying is a removal while pods' namespaces end beside it, and alone: the end of a namespace has the kernel's one lock for as long as its links
// take. What it reports are medians of one run, and their ratio to those of an addition in the same run.
func BenchmarkDying(b *testing.B) {
	k := full(b)
	var pods []*Pod
	var specs []dataplane.PodSpec
	for i := range 60 {
		s := newSpace(b)
		pods, specs = append(pods, s.pod(b)), append(specs, spec(500+i, s.inode))
	}
	median := func(plan func(dataplane.PodSpec) dataplane.Plan) float64 {
		var took percentiles.Times
		for i, w := range specs {
			began := time.Now()
			apply(b, k, plan(w), pods[i])
			took = append(took, time.Since(began))
		}
		return took.P50().Seconds() * 1e3
	}
	for b.Loop() {
		add, del := median(dataplane.PodPlan), median(dataplane.PodRemoval)
		b.ReportMetric(add, "ms-add")
		b.ReportMetric(del, "ms-del")
		b.ReportMetric(del/add, "del/add")
		k.deleting.Wait()
		stop := dying(6)
		time.Sleep(300 * time.Millisecond) // the first of them have to be on their way out
		b.ReportMetric(median(dataplane.PodPlan), "ms-add-beside")
		b.ReportMetric(median(dataplane.PodRemoval), "ms-del-beside")
		stop()
		k.deleting.Wait()
	}
}

// dying makes namespaces with a veth each and lets them end, as fast as that many workers can.
func dying(workers int) (stop func()) {
	end := make(chan struct{})
	var wait sync.WaitGroup
	for range workers {
		wait.Go(func() {
			for {
				select {
				case <-end:
					return
				default:
				}
				_ = onThread(func() error { // the machine may have enough of them
					if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
						return err
					}
					attrs := netlink.NewLinkAttrs()
					attrs.Name = "v0"
					return netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: "v1"})
				})
			}
		})
	}
	return func() { close(end); wait.Wait() }
}
