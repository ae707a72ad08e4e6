package kind

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/verb"
)

// journal is what a World's goroutines write together: what daemons tell and the cloud does, what became of actions, and what broke. Recordings
// and the cloud have goroutines of their own; mu guards what all of them share, and its holder must not wait for the cloud.
type journal struct {
	timeline.Telling // its Guard is mu

	ctx    context.Context
	events atomic.Uint64

	mu      sync.Mutex
	audit   *judge.Auditor
	witness *judge.Witness
	traps   models.Traps
	acts    actions.Log
	broken  error
	differ  []string
}

// Now is the instant of the scenario.
func (j *journal) Now() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.witness.Epoch() == 0 {
		return 0
	}
	return j.witness.Now()
}

// Epoch is when t=0 was, by the daemons' clock.
func (j *journal) Epoch() time.Duration {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.witness.Epoch()
}

// Audit is a copy of the world's auditor as it is now: the original is written to beside. Its instants are CLOCK_BOOTTIME's: subtract Epoch
// for the scenario's.
func (j *journal) Audit() *judge.Auditor {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.audit.Clone()
}

// Reached says whether a daemon came through a coverage point since t=0.
func (j *journal) Reached(mark string) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.witness.Reached(mark)
}

// Popped is how many things happened.
func (j *journal) Popped() uint64 { return j.events.Load() }

// Disagreements are the differences between what the daemons decided and what the core does, and what could not be judged.
func (j *journal) Disagreements() []string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return append([]string(nil), j.differ...)
}

// disagree notes one; the first ones say it all. Callers hold mu.
func (j *journal) disagree(who, text string) {
	if len(j.differ) < maxDisagreements {
		j.differ = append(j.differ, fmt.Sprintf("%v %s: %s", j.witness.Now().Round(time.Millisecond), who, text))
	}
}

const maxDisagreements = 10

// fail ends the world: nothing that it says counts any more.
func (j *journal) fail(err error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.failed(err)
}

// failed is fail for who holds mu.
func (j *journal) failed(err error) {
	if err != nil && j.broken == nil && j.ctx.Err() == nil {
		j.broken = err
	}
}

// took enters how an action was taken, and tells what it did.
func (j *journal) took(id int, s verb.Strike) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.did(j.acts.Took(id, s))
}

// met enters that something met an armed action, and tells what that did.
func (j *journal) met(id int, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.metNow(id, text)
}

// metNow is met for who holds mu.
func (j *journal) metNow(id int, text string) {
	if id != 0 {
		j.did(j.acts.Met(id, text))
	}
}

func (j *journal) did(line string) {
	if line != "" {
		j.Lines.Add(j.witness.Now(), timeline.Scenario, line)
	}
}

// persistLimit is how long the API server and the machines may take to do what a scenario asks.
const persistLimit = 30 * time.Second

// persist repeats what fails, for a while: an API server answers again after a moment in which it did not.
func (j *journal) persist(what string, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(j.ctx, persistLimit)
	defer cancel()
	for {
		err := f(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: %w", what, err)
		case <-time.After(cluster.PollPeriod):
		}
	}
}
