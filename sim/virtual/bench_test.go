package virtual_test

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/virtual"
)

// open makes the world and the run of a scenario file's first variant.
func open(tb testing.TB, name string) (*sim.Run, *virtual.World) {
	tb.Helper()
	return openSeed(tb, name, 1)
}

func openSeed(tb testing.TB, name string, seed uint64) (*sim.Run, *virtual.World) {
	tb.Helper()
	data := must.Get(os.ReadFile(filepath.Join("..", "..", "scenarios", name+".scn")))(tb)
	f := must.Get(scn.Parse(name, data))(tb)
	f = must.Get(f.Expand(f.Variants()[0]))(tb)
	c := must.Get(sim.Check(f))(tb)
	w := must.Get(virtual.Open(c, seed, nil))(tb)
	r := must.Get(sim.NewRun(f, w, "sim"))(tb)
	return r, w
}

// BenchmarkFleetBurst is the burst of seeds/004, auditors on, from the first pod to the settled cluster: 500 nodes,
// 23,000 pods. burst-s is until the last pod is ready.
func BenchmarkFleetBurst(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(800)) // as the command does
	var burst, took time.Duration
	var events, runs uint64
	for b.Loop() {
		b.StopTimer()
		r, w := open(b, "fleet-burst")
		before := w.Popped()
		runtime.GC()
		b.StartTimer()
		began := time.Now()
		burst += untilReady(r, 23_000)
		v := r.Finish(nil)
		took += time.Since(began)
		if !v.Held() {
			b.Fatalf("the burst did not hold: %v %v", v.Violations, v.Failures)
		}
		events += w.Popped() - before
		runs++
	}
	b.ReportMetric(burst.Seconds()/float64(runs), "burst-s")
	b.ReportMetric(float64(events)/took.Seconds(), "events/s")
	b.ReportMetric(float64(events)/float64(runs), "events")
}

// BenchmarkThirtiethPod is a lone node with small warm targets that gets thirty pods at once, seed by seed: pod-29-s and pod-30-s are when that
// many are ready, which waits for EC2's word on the primary interface's addresses and for a second interface's link, and what that takes of EC2.
func BenchmarkThirtiethPod(b *testing.B) {
	const step = 10 * time.Millisecond
	var ready [2]time.Duration
	var last time.Duration
	var enis, calls int64
	var runs uint64
	for b.Loop() {
		runs++
		r, w := openSeed(b, "packing", runs)
		measure := func(metric string, of scn.SubjectKind) int64 {
			v, _ := w.Measure(scn.Subject{Kind: of}, metric)
			return v
		}
		at := time.Duration(0)
		for i, pods := range []int64{29, 30} {
			for r.To(at, nil); measure("pods.ready", scn.Kube) < pods; r.To(at, nil) {
				if at += step; at > time.Minute {
					b.Fatalf("%d pods are ready after a minute with seed %d: expected %d", measure("pods.ready", scn.Kube), runs, pods)
				}
			}
			ready[i] += at
		}
		last = max(last, at)
		r.To(time.Minute, nil)
		enis, calls = enis+measure("enis.total", scn.EC2), calls+measure("calls.total", scn.EC2)
	}
	per := func(total float64) float64 { return total / float64(runs) }
	b.ReportMetric(per(ready[0].Seconds()), "pod-29-s")
	b.ReportMetric(per(ready[1].Seconds()), "pod-30-s")
	b.ReportMetric(last.Seconds(), "pod-30-latest-s")
	b.ReportMetric(per(float64(enis)), "ENIs")
	b.ReportMetric(per(float64(calls)), "calls")
}

// untilReady runs until so many pods are ready, to the next five seconds, and says how long that took here.
func untilReady(r *sim.Run, pods int64) time.Duration {
	began := time.Now()
	for at := time.Duration(0); at < r.LastLine(); at += 5 * time.Second {
		r.To(at, nil)
		if ready, _ := r.World.Measure(scn.Subject{Kind: scn.Kube}, "pods.ready"); ready >= pods {
			break
		}
	}
	return time.Since(began)
}

// BenchmarkFleetMemory is what 500 nodes with 46 pods each hold, everything of the world included.
func BenchmarkFleetMemory(b *testing.B) {
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		r, w := open(b, "fleet-burst")
		r.Finish(nil)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		runtime.KeepAlive(w)
	}
}

// BenchmarkEvents is a small world under constant change: a million audited events a second is the aim.
func BenchmarkEvents(b *testing.B) {
	var events uint64
	var spent time.Duration
	for b.Loop() {
		b.StopTimer()
		r, w := open(b, "upgrade")
		before := w.Popped()
		b.StartTimer()
		began := time.Now()
		r.Finish(nil)
		spent += time.Since(began)
		events += w.Popped() - before
	}
	b.ReportMetric(float64(events)/spent.Seconds(), "events/s")
}
