package actions

import (
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim/verb"
)

// mostPods bounds how many pods Pending names.
const mostPods = 3

// Pending are the pods that do not run, or are being deleted: the API server's side of what is under way. Nobody acts on those of a node
// that is gone.
func Pending(c *kube.Cluster, gone func(node int) bool) (out []string) {
	n := 0
	for _, l := range c.Workloads() {
		for _, p := range c.Pods(l) {
			if p.Phase == kube.Running && !p.Deleting || gone(p.Node) {
				continue
			}
			if n++; n <= mostPods {
				what := " has not started"
				if p.Deleting {
					what = " is being deleted"
				}
				out = append(out, "pod "+p.Name+what)
			}
		}
	}
	if n > mostPods {
		out = append(out, "and "+verb.Number(n-mostPods, "pod")+" more")
	}
	return out
}
