// Package percentiles is what benchmarks say of many times.
package percentiles

import (
	"slices"
	"time"
)

// Times are those of one kind of run, in any order.
type Times []time.Duration

// At is the time that a share of the runs did not exceed: the nearest rank. It is 0 of no runs.
func (t Times) At(share float64) time.Duration {
	if len(t) == 0 {
		return 0
	}
	sorted := slices.Clone(t)
	slices.Sort(sorted)
	rank := int(share*float64(len(sorted)) + 0.9999)
	return sorted[min(max(rank-1, 0), len(sorted)-1)]
}

// P50 is the median.
func (t Times) P50() time.Duration { return t.At(0.50) }

// P99 is what one run in a hundred exceeds.
func (t Times) P99() time.Duration { return t.At(0.99) }
