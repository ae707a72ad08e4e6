package main

import "github.com/enilab/enilab/internal/percentiles"

// split sorts the times by series. Runs that failed have none: they are counted, and the first one's error is kept.
func split(all []outcome) (by map[string]percentiles.Times, failed map[string]int, example string) {
	by, failed = map[string]percentiles.Times{}, map[string]int{}
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
