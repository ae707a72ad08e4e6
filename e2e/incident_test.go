package e2e

import (
	"context"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

// incident is what happens to a node, where no scenario file plays it (files_test.go). It is a function that returns what broke, if anything:
// an invariant (violation), or the laboratory (any other error).
type incident struct {
	name string // a label of its spec, and its pods' namespace
	text string
	env  map[string]string // of the daemon
	run  func(ctx context.Context, s *scene) error
}

// incidents, a list for each worker: lists go on beside one another, for most of an incident is waiting for kubelet.
var incidents = [][]incident{
	{runtimeRestart},
	{killLoop},
}

// incidentLimit bounds an incident with everything around it.
const incidentLimit = 4 * time.Minute

// Registered after all others: incidents leave much behind in nodes' logs and counters.
func init() {
	specs("an incident", Label("incident"), func(b *bed) {
		t := &theatre{bed: b}
		BeforeAll(t.open, NodeTimeout(incidentLimit))
		for _, list := range incidents {
			for _, i := range list {
				It(i.text, Label(i.name), func(ctx SpecContext) {
					o := t.await(ctx, i.name)
					AddReportEntry("took", o.took.Round(100*time.Millisecond).String())
					check(o.err)
				}, NodeTimeout(time.Duration(len(list))*incidentLimit))
			}
		}
	})
}
