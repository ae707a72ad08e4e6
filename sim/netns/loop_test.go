package netns

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestLoopJumps: with nobody who works the clock jumps to what is due, which is done in its order, and the world is told
// after each thing.
func TestLoopJumps(t *testing.T) {
	l, did, done := newLoop(t.Context(), 0), "", 0
	l.then = func() { done++ }
	l.at(2*time.Hour, func() { did += "b" })
	l.at(time.Hour, func() { did += "a"; l.after(time.Minute, func() { did += "+" }) })
	l.mail.Post(func() { did += "!" })
	for l.now() < 3*time.Hour {
		l.Until(3*time.Hour, nil)
	}
	if did != "!a+b" || done != 4 || l.clock.jumps < 4 {
		t.Errorf("%d things were done, %q, with %d jumps", done, did, l.clock.jumps)
	}
}

// TestLoopEnds: a loop that is broken does nothing more and keeps the first reason. Nobody waits for one that is closed.
func TestLoopEnds(t *testing.T) {
	l, first := newLoop(t.Context(), 0), errors.New("the first")
	l.then = func() { t.Error("a broken loop goes on") }
	l.fail(nil)
	l.fail(first)
	l.fail(errors.New("the second"))
	l.at(0, func() {})
	l.Until(time.Hour, nil)
	if l.Err() != first || l.now() > time.Minute {
		t.Errorf("at %v: %v", l.now(), l.Err())
	}
	l.mail.Close()
	if l.mail.Ask(func() {}) {
		t.Error("a closed loop has answered")
	}
}

// What the machine did late excuses a failure, and what the laboratory chose to wait for does not.
func TestTooSlow(t *testing.T) {
	t.Logf("this machine is %.2f times slower than the reference", measureSlowness())
	w := newLoop(t.Context(), 0)
	w.clock.offset += 2 * time.Hour // long under way
	now := w.now()
	w.acted(now - lagSlack/2)
	if w.late.most > lagSlack {
		t.Errorf("half the slack is %v late", w.late.most)
	}
	w.late.rested = now
	w.acted(now - time.Hour)
	if w.late.most > lagSlack {
		t.Errorf("what fell due while a ping was waited for is %v late", w.late.most)
	}
	w.late.rested = 0
	w.acted(now - 3*time.Second)
	err := w.TooSlow()
	if err == nil {
		t.Fatal("three seconds late is in time")
	}
	if _, ok := errors.AsType[interface {
		error
		TooSlow()
	}](err); !ok || !strings.HasPrefix(err.Error(), "this machine did not keep up: ") {
		t.Errorf("it cannot be told from another error: %v", err)
	}
}
