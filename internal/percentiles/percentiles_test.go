package percentiles

import (
	"testing"
	"time"
)

func TestNearestRank(t *testing.T) {
	var s Times
	for i := 100; i > 0; i-- {
		s = append(s, time.Duration(i))
	}
	for share, want := range map[float64]time.Duration{0: 1, 0.1: 10, 0.5: 50, 0.99: 99, 1: 100} {
		if got := s.At(share); got != want {
			t.Errorf("the time of %v of 1 to 100: %d, expected %d", share, got, want)
		}
	}
	if s[0] != 100 {
		t.Error("the times have been sorted")
	}
	if got := (Times{7}).P99(); got != 7 {
		t.Errorf("p99 of one run of 7: %d", got)
	}
	if got := Times(nil).P50(); got != 0 {
		t.Errorf("p50 of no run: %d", got)
	}
}
