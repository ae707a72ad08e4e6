package virtual_test

import (
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"testing"
	"time"

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
	data, err := os.ReadFile(filepath.Join("..", "..", "scenarios", name+".scn"))
	if err != nil {
		tb.Fatal(err)
	}
	f, err := scn.Parse(name, data)
	if err != nil {
		tb.Fatal(err)
	}
	f, err = f.Expand(f.Variants()[0])
	if err != nil {
		tb.Fatal(err)
	}
	c, err := sim.Check(f)
	if err != nil {
		tb.Fatal(err)
	}
	w, err := virtual.Open(c, seed, nil)
	if err != nil {
		tb.Fatal(err)
	}
	r, err := sim.NewRun(f, w, "sim")
	if err != nil {
		tb.Fatal(err)
	}
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
