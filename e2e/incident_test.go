package e2e

import (
	"context"
	"errors"
	"fmt"
	"time"

	. "github.com/onsi/ginkgo/v2"
)

// incident is what happens to a node, where no scenario file plays it for every change (files_test.go). It is a function that returns what broke, if anything: an invariant (violation), or the laboratory
// (any other error). With a sound daemon nothing may; once more with the matching mutant in its place exactly the mutant's
// invariant has to.
type incident struct {
	name     string // a label of its spec, and its pods' namespace
	text     string
	env      map[string]string // of the daemon
	realtime bool              // the daemon's clock is the kernel's, as no other one survives the machine
	run      func(ctx context.Context, s *scene) error

	mutant string // plays the daemon; empty: nobody does
	breaks string // the mutant's invariant
}

// as is the incident with a mutant.
func (i incident) as(mutant, breaks string) incident {
	i.name, i.mutant, i.breaks = i.name+"-"+mutant, mutant, breaks
	return i
}

// incidents, a list for each worker: lists go on beside one another, for most of an incident is waiting for kubelet. What needs the kernel's
// own clock comes first: a daemon's clock never goes back.
var incidents = [][]incident{
	{nodeRestart, socketMismatch, socketMismatch.as("recover-from-runtime-only", "no eni is freed with a live pod on it"), delRetries},
	{runtimeRestart, killLoop},
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
				It(i.says(), Label(i.name), func(ctx SpecContext) {
					o := t.await(ctx, i.name)
					AddReportEntry("took", o.took.Round(100*time.Millisecond).String())
					check(i.judge(o.err))
				}, NodeTimeout(time.Duration(len(list))*incidentLimit))
			}
		}
	})
}

func (i *incident) says() string {
	if i.mutant == "" {
		return i.text
	}
	return fmt.Sprintf("%s: %s breaks %q", i.text, i.mutant, i.breaks)
}

// judge says what is wrong about how the incident ended.
func (i *incident) judge(err error) error {
	var v *violation
	switch {
	case i.mutant == "":
		return err
	case err == nil:
		return fmt.Errorf("expected %q to break, found everything whole", i.breaks)
	case !errors.As(err, &v) || v.phrase() != i.breaks:
		return fmt.Errorf("expected %q to break, found %w", i.breaks, err)
	}
	say("as expected " + err.Error())
	return nil
}
