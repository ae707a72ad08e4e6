// Package series is what benchmarks say of many times.
package series

import (
	"slices"
	"time"
)

// Series are the times of one kind of run, in any order.
type Series []time.Duration

// At is the time that a share of the runs did not exceed: the nearest rank. It is 0 of no runs.
func (s Series) At(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	rank := int(share*float64(len(sorted)) + 0.9999)
	return sorted[min(max(rank-1, 0), len(sorted)-1)]
}

// P50 is the median.
func (s Series) P50() time.Duration { return s.At(0.50) }

// P99 is what one run in a hundred exceeds.
func (s Series) P99() time.Duration { return s.At(0.99) }
