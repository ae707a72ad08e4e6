package main

import (
	"slices"
	"time"
)

// series are the times of one kind of run.
type series []time.Duration

// at is the time that a share of the runs did not exceed: the nearest rank.
func (s series) at(share float64) time.Duration {
	if len(s) == 0 {
		return 0
	}
	sorted := slices.Clone(s)
	slices.Sort(sorted)
	rank := int(share*float64(len(sorted)) + 0.9999)
	return sorted[min(max(rank-1, 0), len(sorted)-1)]
}

func (s series) p50() time.Duration { return s.at(0.50) }
func (s series) p99() time.Duration { return s.at(0.99) }

// split sorts the times by series. Runs that failed have none: they are counted, and the first one's error is kept.
func split(all []outcome) (by map[string]series, failed map[string]int, example string) {
	by, failed = map[string]series{}, map[string]int{}
	for _, o := range all {
		if o.Error == "" {
			by[o.What] = append(by[o.What], o.Took)
			continue
		}
		failed[o.What]++
		if example == "" {
			example = o.What + ": " + o.Error
		}
	}
	return by, failed, example
}
