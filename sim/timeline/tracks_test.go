package timeline_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/enilab/enilab/sim/timeline"
)

// TestTracks: what is said again goes on, what is said otherwise begins anew, what is not said has ended, and may come back.
func TestTracks(t *testing.T) {
	var tr timeline.Tracks
	look := func(at time.Duration, said func()) {
		tr.Look(at * time.Second)
		said()
		tr.Seen()
	}
	pod := func(state string) func() {
		return func() {
			tr.Is(1, timeline.KindPod, "c1", "web-0", state, "")
			tr.Is(1, timeline.KindPod, "c1", "web-0", "twice in one look", "")
		}
	}
	nothing := func() {}
	look(0, pod("starts"))
	look(1, pod("runs"))
	look(2, pod("runs"))
	look(3, nothing)
	look(4, nothing)
	look(5, pod("runs"))
	look(6, func() {
		pod("runs")()
		tr.Is(1, timeline.KindDaemon, "", "daemon", "runs", "")
		tr.Counts(1, "free", 3)
	})
	look(7, func() { tr.Counts(1, "free", 3) })
	look(8, func() { tr.Counts(1, "free", 4) })
	tr.Sort()
	if got := fmt.Sprint(tr.Subjects[1].Spans); got != "[{0s 1s starts } {1s 3s runs } {5s 7s runs }]" || tr.Subjects[0].Kind != timeline.KindDaemon {
		t.Errorf("got %s of %+v", got, tr.Subjects)
	}
	if got := fmt.Sprint(tr.Curves); got != "[{1 free [{6s 3} {8s 4}]}]" {
		t.Errorf("got %s", got)
	}
}
