package timeline

import (
	"strings"
	"testing"
	"time"
)

// lock is held between Lock and Unlock.
type lock struct{ held, taken int }

func (l *lock) Lock()   { l.held++; l.taken++ }
func (l *lock) Unlock() { l.held-- }

// What a run asks for is read under the guard, which is given back, and needs none.
func TestTelling(t *testing.T) {
	var l lock
	for _, told := range []*Telling{{}, {Guard: &l}} {
		told.Lines.Add(time.Second, 1, "an ENI comes")
		told.Lines.Add(time.Minute, Scenario, "kill")
		got := told.Timeline()
		if lines := strings.SplitAfter(got, "\n"); got != told.Story() || len(lines) != 3 || told.TimelineUntil(time.Second) != lines[0] {
			t.Errorf("found %q", got)
		}
		if told.Told() != 2 || len(told.Events()) != 2 || told.Named("eni-7") != "eni-7" {
			t.Errorf("%d lines are told, and %d events", told.Told(), len(told.Events()))
		}
	}
	if l.held != 0 || l.taken != 6 {
		t.Errorf("the guard was taken %d times, expected 6, and is held %d times", l.taken, l.held)
	}
}
