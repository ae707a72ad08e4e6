package actions

import (
	"fmt"
	"slices"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// Gaps compares a world's tables of handlers with the verbs, both ways: verbs of nodes and pods that it neither carries out nor skips, and
// handlers of verbs that there are not, or that it skips. Those of the API server are apiVerbs unless the world has others.
func Gaps(world string, node, pod []string) (gaps []string) {
	say := func(format string, args ...any) { gaps = append(gaps, fmt.Sprintf(format, args...)) }
	known := map[scn.SubjectKind][]string{scn.Node: node, scn.Pod: pod}
	kinds := []scn.SubjectKind{scn.Node, scn.Pod}
	for _, v := range sim.Verbs() {
		for _, k := range kinds {
			if !slices.Contains(v.On, k) {
				continue
			}
			has, skips := slices.Contains(known[k], v.Name) || apiVerbs[verb{k, v.Name}] != nil, sim.Cannot(world, v.Name) != nil
			if has == skips {
				say("%s: a handler: %v, a skip: %v; expected exactly one of them", v.Name, has, skips)
			}
		}
	}
	for _, k := range kinds {
		for _, name := range known[k] {
			if !slices.ContainsFunc(sim.Verbs(), func(v sim.Verb) bool { return v.Name == name && slices.Contains(v.On, k) }) {
				say("%s has a handler and is no verb", name)
			}
		}
	}
	slices.Sort(gaps)
	return gaps
}
