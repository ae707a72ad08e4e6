package ipam_test

import (
	"strconv"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// BenchmarkAddDel is the life of one pod on a node with 46 others: ADD and DEL through all their outcomes, and the end of
// the cool-down. The kernel's observation is made before; what is measured are the node's steps.
func BenchmarkAddDel(b *testing.B) {
	w := newWorld(b, ipam.Sound())
	w.lax, w.limits = true, ipam.Limits{ENIs: 4, Addresses: 15}
	w.start()
	w.live(30 * time.Second)
	for i := range 46 {
		w.up("c"+strconv.Itoa(i), "web-"+strconv.Itoa(i))
		w.live(time.Second)
	}
	w.live(5 * time.Minute)
	n, now, steps := w.node, w.now, 0
	o := w.kernel.Observe()
	var applyID ipam.ID
	var walks []ipam.ID // of conntrack
	var looks []*ipam.Look
	var seq uint64
	step := func(in ipam.Input) {
		steps++
		for _, e := range n.Step(now, in) {
			switch e := e.(type) {
			case *ipam.Apply:
				if e.Lane.Kind == ipam.FlowLane {
					walks = append(walks, e.ID)
				} else {
					applyID = e.ID
				}
			case *ipam.Save:
				seq = e.Seq
			case *ipam.Look:
				looks = append(looks, e)
			case *ipam.Reply:
				if e.Err != nil {
					b.Fatal(e.Err)
				}
			}
		}
	}
	pod := ipam.Pod{Namespace: "default", Name: "churn"}
	var req ipam.Req = 1 << 20
	b.ReportAllocs()
	for b.Loop() {
		now += time.Millisecond
		req += 2
		step(ipam.Add{Req: req, Att: att("churn"), Pod: pod, Netns: 4026531999})
		step(ipam.Saved{Store: ipam.RunStore, Seq: seq})
		step(ipam.Applied{ID: applyID})
		step(ipam.Del{Req: req + 1, Att: att("churn"), Pod: pod})
		step(ipam.Saved{Store: ipam.RunStore, Seq: seq})
		step(ipam.Applied{ID: applyID})
		now += 31 * time.Second
		for step(nil); len(walks)+len(looks) > 0; {
			if len(walks) > 0 {
				id := walks[0]
				walks = append(walks[:0], walks[1:]...)
				step(ipam.Applied{ID: id})
				continue
			}
			l := looks[0]
			looks = append(looks[:0], looks[1:]...)
			step(w.seen(l, &o))
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
	b.ReportMetric(float64(steps)/float64(b.N), "steps/op")
}

// seen answers a Look with an observation that was made before.
func (w *world) seen(l *ipam.Look, o *dataplane.Observation) ipam.Seen {
	if l.What == ipam.LookKernel {
		return ipam.Seen{ID: l.ID, What: l.What, Complete: true, Kernel: o}
	}
	return w.look(l)
}
