package ipam

import (
	"testing"
	"time"
)

// TestARequestIsAnsweredOnce: a number that is taken is refused, each has one Reply, and due is the first deadline.
func TestARequestIsAnsweredOnce(t *testing.T) {
	rq := &requests{life: &life{Phase: serving}, due: never}
	att := Attachment{"n", "c", "eth0"}
	if !rq.accept(0, 1, VerbAdd, att, 20*time.Second) || !rq.accept(0, 2, VerbDel, att, 10*time.Second) {
		t.Fatal("requests are not accepted")
	}
	if rq.accept(0, 1, VerbDel, att, time.Second) || rq.accept(0, 0, VerbDel, att, time.Second) {
		t.Error("a number that is taken, or none, is accepted")
	}
	if rq.due != 10*time.Second-replyMargin {
		t.Errorf("the first is due at %v", rq.due)
	}
	rq.end(2, nil)
	rq.end(2, &Error{CodeTryAgain, "again"})
	if len(rq.out) != 1 || rq.out[0].(*Reply).Err != nil || rq.due != 20*time.Second-replyMargin {
		t.Errorf("replies %+v, the next is due at %v", rq.out, rq.due)
	}
	rq.end(1, &Error{CodeTryAgain, "again"})
	if len(rq.out) != 2 || rq.out[1].(*Reply).Verb != VerbAdd || rq.due != never || rq.isOpen(1) {
		t.Errorf("replies %+v, the next is due at %v", rq.out, rq.due)
	}
}

// TestRequestsAreBounded: one more than maxOpen is told to try again, and does not wait.
func TestRequestsAreBounded(t *testing.T) {
	rq := &requests{life: &life{Phase: serving}, due: never}
	for r := Req(1); r <= maxOpen; r++ {
		if !rq.accept(0, r, VerbAdd, Attachment{}, 0) {
			t.Fatalf("request %d is refused", r)
		}
	}
	if rq.accept(0, maxOpen+1, VerbAdd, Attachment{}, 0) || len(rq.Open) != maxOpen || len(rq.out) != 1 {
		t.Errorf("%d are open, %d answered", len(rq.Open), len(rq.out))
	}
}

// TestADelEndsItsADDsInEveryQueue: those that wait for an address, another operation or a look at the kernel; no
// other's.
func TestADelEndsItsADDsInEveryQueue(t *testing.T) {
	for _, first := range []Req{0, 1} { // whether its own comes first
		cancelWaitingOf(t, first)
	}
}

// cancelWaitingOf asks this with its own ADDs before the others or, with 1, behind them.
func cancelWaitingOf(t *testing.T, first Req) {
	t.Helper()
	rq := &requests{life: &life{Phase: serving}, due: never}
	mine, other := Attachment{"n", "c1", "eth0"}, Attachment{"n", "c2", "eth0"}
	for r := Req(1); r <= 6; r++ {
		att := mine
		if (r+first)%2 == 0 {
			att = other
		}
		rq.accept(0, r, VerbAdd, att, 0)
		in := Add{Req: r, Att: att}
		switch {
		case r <= 2:
			rq.Waiting = append(rq.Waiting, in)
		case r <= 4:
			rq.enqueue(queued{Add: &in})
		default:
			rq.Agains = append(rq.Agains, again{Add: in})
		}
	}
	rq.cancelWaiting(mine)
	for r := Req(1); r <= 6; r++ {
		if rq.isOpen(r) != ((r+first)%2 == 0) {
			t.Errorf("%d of 6 is open: %v", r, rq.isOpen(r))
		}
	}
	if len(rq.Waiting) != 1 || len(rq.Queued) != 1 || len(rq.Agains) != 1 || rq.waits(mine) || !rq.waits(other) {
		t.Errorf("queues %v, %v, %v", rq.Waiting, rq.Queued, rq.Agains)
	}
}
