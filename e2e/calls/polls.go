package calls

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// Polls tells the calls that are for no pod, each kind in a line: how many there were, how they ended, and how far apart they
// typically began. It is for people; the numbers differ from one run to the next.
func Polls(runs []Call) string {
	type kind struct{ verb, version string }
	var order []kind
	polled := map[kind][]Call{}
	for _, r := range sorted(runs) {
		if r.Pod != "" {
			continue
		}
		k := kind{r.Verb, r.Version}
		if polled[k] == nil {
			order = append(order, k)
		}
		polled[k] = append(polled[k], r)
	}
	var b strings.Builder
	for _, k := range order {
		var outcomes []string
		for i := range polled[k] {
			if o := polled[k][i].outcome(); !slices.Contains(outcomes, o) {
				outcomes = append(outcomes, o)
			}
		}
		fmt.Fprintf(&b, "%s %s: %d times", k.verb, k.version, len(polled[k]))
		if d := distance(polled[k]); d > 0 {
			fmt.Fprintf(&b, ", about %v apart", d)
		}
		fmt.Fprintf(&b, ": %s\n", strings.Join(outcomes, ", "))
	}
	return b.String()
}

// distance is the median of the distances between beginnings, to a tenth of a second.
func distance(runs []Call) time.Duration {
	var gaps []time.Duration
	for i := 1; i < len(runs); i++ {
		gaps = append(gaps, runs[i].Began.Sub(runs[i-1].Began))
	}
	if len(gaps) == 0 {
		return 0
	}
	slices.Sort(gaps)
	return gaps[len(gaps)/2].Round(100 * time.Millisecond)
}
