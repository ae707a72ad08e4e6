package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/enilab/enilab/impl/clock"
)

// life is what all parts of a daemon share: what it runs with, and how other goroutines and instants reach its loop.
type life struct {
	c        Config // as it was from the beginning
	log      *slog.Logger
	clock    *clock.Clock
	recorder *recorder

	in   chan func()   // what the loop shall do next; closures run on its goroutine
	done chan struct{} // closed when the loop has ended
	ctx  context.Context
	end  context.CancelFunc // ends every effect's context

	running  sync.WaitGroup // every goroutine of this life
	local    int            // effects under way on this machine, answers included
	alarms   []alarm
	stopping bool
}

// alarm is something to do at an instant.
type alarm struct {
	at time.Duration
	do func()
}

// after does something at an instant.
func (l *life) after(at time.Duration, do func()) { l.alarms = append(l.alarms, alarm{at, do}) }

// alarm does the first of the things that are due.
func (l *life) alarm(now time.Duration) bool {
	for i, a := range l.alarms {
		if a.at <= now {
			l.alarms = slices.Delete(l.alarms, i, i+1)
			a.do()
			return true
		}
	}
	return false
}

// post gives the loop something to do. It waits while the inbox is full. It is false, and nothing is done, when the
// daemon has ended.
func (l *life) post(f func()) bool {
	select {
	case l.in <- f:
		return true
	case <-l.done:
		return false
	}
}

// go_ runs f on a goroutine whose panic leaves the flight recorder behind.
func (l *life) go_(f func()) {
	l.running.Go(func() {
		defer l.crash()
		f()
	})
}

// work runs f, which ends, on a goroutine, and then on the loop what f returns. A daemon that stops waits for that.
func (l *life) work(f func() (then func())) {
	l.local++
	l.go_(func() {
		then := f()
		l.post(func() {
			l.local--
			then()
		})
	})
}

// watch runs f on a goroutine until the life ends. When f cannot go on, lost is called on the loop, and after a pause
// f begins again.
func (l *life) watch(pause time.Duration, f func() error, lost func(error)) {
	l.go_(func() {
		err := f()
		if l.ctx.Err() != nil {
			return
		}
		l.post(func() {
			lost(err)
			l.after(l.clock.Now()+pause, func() { l.watch(pause, f, lost) })
		})
	})
}

// crash is deferred where a panic would end the daemon. The panic goes on with the recording's place in its text: what waits in the log may
// never be written.
func (l *life) crash() {
	if r := recover(); r != nil {
		where, err := l.recorder.panicked(l.c.LogDir)
		if err != nil {
			where = "none: " + err.Error()
		}
		l.log.Error("ipamd panics: a bug; please report it with the recording", "panic", fmt.Sprint(r), "recording", where)
		panic(fmt.Sprintf("%v; a bug; please report it with the recording: %s", r, where))
	}
}

// gather ends what this life has started, and waits a little for it: nothing may use the kernel after it was closed.
// It is false when something still hangs: that may yet write a record, so the node stays locked until the process is
// gone.
func (l *life) gather() bool {
	close(l.done)
	l.end()
	ended := make(chan struct{})
	go func() {
		l.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(gatherBound):
		return false
	}
}
