package netns

import (
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/vpc"
)

// World is a cluster of real nodes. One goroutine uses it: the one that calls its methods.
type World struct {
	models.Host
	loop
	observer
	findings
	timeline.Telling
	parts  Parts
	keeper keeper
	mutant *mutants.Mutant

	begun  bool // t=0 has been
	doomed bool // a daemon has not served, and so there will be no t=0
	around *outskirts
	byHand bool // a user ended a daemon
	events uint64

	network *vpc.Network
	witness *judge.Witness
	book    *timeline.Book // since t=0
	api     wholeCluster
	entry   string // its file in the registry
	record  *record
	costs   costs
}

// pump lets the models say what they have to say, and makes sure that it is judged.
func (w *World) pump() {
	w.events++
	if w.broken == nil {
		w.Pump()
	}
	w.arm()
}

// Clock is the models' time.
func (w *World) Clock() time.Duration { return w.now() }

// AdvanceAt lets EC2 go on by itself at an instant.
func (w *World) AdvanceAt(at time.Duration) { w.at(at, w.Advance) }

// Did tells what an action has done.
func (w *World) Did(line string) { w.Lines.Add(w.Now(), timeline.Scenario, line) }

// Audit is the world's auditor. Its instants are the world's: subtract Epoch for the scenario's.
func (w *World) Audit() *judge.Auditor { return w.Auditor }

// Unlike says why virtual time cannot tell the same; "" is nothing.
func (w *World) Unlike() string {
	switch {
	case w.parts.WithoutBooks:
		return "there are no books"
	case w.byHand:
		return "somebody ended a daemon, and no line asks for that"
	case len(w.crashes) > 0:
		return "a daemon ended by itself"
	}
	return ""
}

// Popped is how many things happened.
func (w *World) Popped() uint64 { return w.events }

// Reached says whether a daemon came through a coverage point since t=0.
func (w *World) Reached(mark string) bool { return w.witness.Reached(mark) }

func (w *World) log(format string, args ...any) {
	if w.parts.Log != nil {
		w.parts.Log(w.Now(), fmt.Sprintf(format, args...))
	}
}

// Close ends every process and removes everything. The error says what would not go.
func (w *World) Close() error {
	if !w.mail.Close() {
		return nil
	}
	w.mail.End()
	if w.entry != "" {
		labs.Forget(w.entry)
	}
	errs := make([]error, len(w.nodes)) // that of the VPC is the first
	var all sync.WaitGroup
	for i, n := range w.nodes[1:] {
		all.Go(func() { errs[1+i] = n.close(w.unwanted()) })
	}
	all.Wait()
	errs = append(errs, w.record.close(w.Timeline()))
	if w.network != nil {
		errs[0] = w.network.Close()
	}
	return errors.Join(errs...)
}
