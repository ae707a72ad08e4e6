package virtual_test

import (
	"runtime"
	"testing"
)

// One seed is one trace, whatever the machine does meanwhile: 1,000 runs, half of them with one processor and half with two.
func TestAThousandRunsAreOneTrace(t *testing.T) {
	runs := 500
	if testing.Short() {
		runs = 20
	}
	var want uint64
	for _, procs := range []int{1, 2} {
		before := runtime.GOMAXPROCS(procs)
		for i := range runs {
			r, w := open(t, "force-delete")
			if v := r.Finish(nil); !v.Held() {
				t.Fatalf("the scenario does not hold: %v %v %v", v.Violations, v.Failures, v.Missed)
			}
			if want == 0 {
				want = w.Hash()
			}
			if w.Hash() != want {
				t.Fatalf("run %d with GOMAXPROCS=%d: trace %016x, expected %016x as in the first run", i+1, procs, w.Hash(), want)
			}
		}
		runtime.GOMAXPROCS(before)
	}
	t.Logf("%d runs, trace %016x", 2*runs, want)
}

// Another seed is another trace: the hash sees something.
func TestAnotherSeedIsAnotherTrace(t *testing.T) {
	_, one := openSeed(t, "force-delete", 1)
	_, two := openSeed(t, "force-delete", 2)
	if one.Hash() == two.Hash() {
		t.Fatalf("seeds 1 and 2 have the same trace %016x", one.Hash())
	}
}

// A fork goes the way its original goes, and neither sees the other.
func TestAForkIsTheSameWorld(t *testing.T) {
	r, w := open(t, "upgrade")
	r.To(r.LastLine()/2, nil)
	fork := w.Clone()
	other := r.Clone(fork)
	half := w.Hash()
	if v := other.Finish(nil); !v.Held() {
		t.Fatalf("the fork does not hold: %v %v", v.Violations, v.Failures)
	}
	if w.Hash() != half {
		t.Fatal("running the fork has moved the original")
	}
	r.Finish(nil)
	if w.Hash() != fork.Hash() {
		t.Fatalf("the original ends with trace %016x, its fork with %016x", w.Hash(), fork.Hash())
	}
}
