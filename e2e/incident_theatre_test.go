package e2e

import (
	"context"
	"fmt"
	"sync"
	"time"

	. "github.com/onsi/ginkgo/v2"

	"github.com/enilab/enilab/sim/kind"
)

// theatre lets the lists of incidents go on beside one another, a worker each. A spec waits for its incident.
type theatre struct {
	*bed
	outcomes map[string]*outcome
}

// outcome is how an incident ended.
type outcome struct {
	done chan struct{} // closed when the rest is there
	took time.Duration
	err  error
}

// open begins with those incidents that were asked for.
func (t *theatre) open(ctx SpecContext) {
	t.outcomes = map[string]*outcome{}
	chosen := make([][]incident, len(incidents))
	for n, list := range incidents {
		for _, i := range list {
			if !Label("incident", t.proxy, i.name).MatchesLabelFilter(GinkgoLabelFilter()) {
				continue
			}
			t.outcomes[i.name] = &outcome{done: make(chan struct{})}
			chosen[n] = append(chosen[n], i)
		}
	}
	t.reinstall()
	check(t.clear(ctx))

	running, stop := context.WithCancel(context.Background())
	var all sync.WaitGroup
	DeferCleanup(func(ctx SpecContext) {
		stop()
		all.Wait()
		check(t.restore(ctx))
	}, NodeTimeout(incidentLimit))
	for n, list := range chosen {
		all.Go(func() {
			defer GinkgoRecover()
			t.play(running, t.Workers()[n], list)
		})
	}
}

// play lets incidents happen on a worker, one after another.
func (t *theatre) play(ctx context.Context, worker *kind.Node, list []incident) {
	s := &stage{bed: t.bed, node: worker}
	defer s.close()
	for i := range list {
		o, began := t.outcomes[list[i].name], time.Now()
		if o.err = ctx.Err(); o.err != nil { // the run ends
			close(o.done)
			continue
		}
		bounded, cancel := context.WithTimeoutCause(ctx, incidentLimit, fmt.Errorf("%s lasts longer than %v", list[i].name, incidentLimit))
		o.err = s.play(bounded, &list[i])
		cancel()
		o.took = time.Since(began)
		say(fmt.Sprintf("%s took %v: %v", list[i].name, o.took.Round(100*time.Millisecond), o.err))
		close(o.done)
	}
}

// await waits for an incident's end.
func (t *theatre) await(ctx context.Context, name string) *outcome {
	GinkgoHelper()
	o := t.outcomes[name]
	select {
	case <-o.done:
	case <-ctx.Done():
		Fail("waited for the incident " + name + " to end")
	}
	return o
}
