package suite

import (
	"slices"
	"time"

	"github.com/enilab/enilab/sim"
)

// Status is how a file ended.
type Status uint8

const (
	Held         Status = iota
	Skipped             // nothing was judged
	Violated            // the scenario, its story or one of its mutants
	Unrepeatable        // run twice, and not the same
	Bad                 // the cluster that the file asks for cannot start
	Interrupted         // by a signal, before it was known
	Lacking             // the world itself broke: nothing is known
)

var statusNames = [...]string{"held", "SKIPPED", "violated", "not deterministic", "bad", "interrupted", "broken"}

func (s Status) String() string { return statusNames[s] }

// Exit codes of the laboratory.
const (
	ExitHeld         = 0
	ExitViolated     = 1
	ExitBad          = 2
	ExitLacking      = 3
	ExitUnrepeatable = 4
	ExitInterrupted  = 130 // as shells say it of SIGINT
)

var exits = [...]int{ExitHeld, ExitLacking, ExitViolated, ExitUnrepeatable, ExitBad, ExitInterrupted, ExitLacking}

// Exit is the exit code of a file that ended so.
func (s Status) Exit() int { return exits[s] }

// severity is the order in which several files' codes cover each other.
var severity = []int{ExitHeld, ExitLacking, ExitViolated, ExitUnrepeatable, ExitBad, ExitInterrupted}

// Worst is the exit code of several files together.
func Worst(codes ...int) int {
	worst := 0
	for _, c := range codes {
		worst = max(worst, slices.Index(severity, c))
	}
	return severity[worst]
}

// Result of a file.
type Result struct {
	Case    *Case
	Seed    uint64
	Status  Status
	Runs    []Outcome // a variant each
	Bites   []Bite    // a mutant and variant each
	Crashes []Crashes // a variant each, with Options.Crash
	Mutant  string    // the one that was run alone
	Story   string    // of the first variant
	Diff    *Diff     // from the golden story
	Judged  int       // expectations
	Skipped []sim.Skip
	Events  uint64
	Virtual time.Duration // of the scenario, all runs together
}

// Bite is a mutant's run.
type Bite struct {
	Against *Against
	Outcome Outcome
	Why     string // why it does not prove what the file says; "" when it does
}

// Diff is the first line in which a story differs from the golden one.
type Diff struct {
	Line      int // of the story, from 1
	Want, Got string
}

// count adds up what a run did.
func (r *Result) count(out *Outcome) {
	r.Events += out.Events
	if out.Verdict != nil {
		r.Virtual += max(0, out.Verdict.Ended)
	}
}

// worsen keeps the status that matters most.
func (r *Result) worsen(s Status) {
	if slices.Index(severity, s.Exit()) > slices.Index(severity, r.Status.Exit()) {
		r.Status = s
	}
}
