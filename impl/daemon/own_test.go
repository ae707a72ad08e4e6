package daemon

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/clock"
)

// TestWaitPausesLongerAndLonger: who waits for the node does not keep the machine busy.
func TestWaitPausesLongerAndLonger(t *testing.T) {
	d := &daemon{life: life{log: slog.New(slog.DiscardHandler), clock: clock.Boot()}}
	var tried []time.Duration
	if !d.wait(t.Context(), func() error {
		if tried = append(tried, d.clock.Now()); len(tried) < 3 {
			return errors.New("somebody has it")
		}
		return nil
	}) {
		t.Error("it gave up")
	}
	if first, second := tried[1]-tried[0], tried[2]-tried[1]; first < retryFirst || second < 2*retryFirst {
		t.Errorf("the pauses are %v and %v, expected at least %v and twice that", first, second, retryFirst)
	}
}
