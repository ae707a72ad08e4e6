package runner

import (
	"slices"
	"time"

	"github.com/enilab/enilab/sim"
)

// Status is how a file ended.
type Status uint8

const (
	Held Status = iota
	Skipped
	TooSlow
	NotPlayed
	Unproven
	NotSettled
	Violated
	Unrepeatable
	Bad
	Interrupted
)

// Exit codes of the laboratory.
const (
	ExitHeld         = 0
	ExitViolated     = 1
	ExitBad          = 2
	ExitLacking      = 3
	ExitUnrepeatable = 4
	ExitNotPlayed    = 5
	ExitUnproven     = 6
	ExitNotSettled   = 7
	ExitTooSlow      = 8
	ExitInterrupted  = 130 // as shells say it of SIGINT
)

// Meaning is a verdict: its word, its exit code, and what it says.
type Meaning struct {
	Status Status
	Word   string
	Exit   int
	Doc    string
}

// Meanings are all verdicts, in the order of their exit codes. README, --help and --json have this table.
func Meanings() []Meaning {
	return []Meaning{
		{Held, "held", ExitHeld, "every fault struck, nothing that was judged broke, all settled, every mutant was caught"},
		{Violated, "violated", ExitViolated, "an invariant broke, an expectation was not met, or the timeline is not the golden one"},
		{Bad, "bad", ExitBad, "nothing was run: a mistake in the file, or its cluster cannot start"},
		{Skipped, "skipped", ExitLacking, "nothing was judged: this world or this machine lacks something"},
		{Unrepeatable, "not deterministic", ExitUnrepeatable, "two runs with one seed were not the same"},
		{NotPlayed, "not played", ExitNotPlayed, "an action missed its target, or nobody met it by the end; or the laboratory itself broke"},
		{Unproven, "unproven", ExitUnproven, "the CNI held, but a mutant that the file names was not caught"},
		{NotSettled, "not settled", ExitNotSettled, "something was still under way at the end"},
		{TooSlow, "too slow", ExitTooSlow, "this machine did not keep up, so nothing is known"},
		{Interrupted, "interrupted", ExitInterrupted, "ended by a signal before it was known"},
	}
}

// meaning is a status's row of the table.
func (s Status) meaning() Meaning {
	for _, m := range Meanings() {
		if m.Status == s {
			return m
		}
	}
	return Meaning{Word: "unknown", Exit: ExitNotPlayed}
}

func (s Status) String() string { return s.meaning().Word }

// StatusOf is the status that a word of the table says.
func StatusOf(word string) (Status, bool) {
	for _, m := range Meanings() {
		if m.Word == word {
			return m.Status, true
		}
	}
	return NotPlayed, false
}

// Exit is the exit code of a file that ended so.
func (s Status) Exit() int { return s.meaning().Exit }

// severity is the order in which several files' codes cover each other, the last one first.
var severity = []int{ExitHeld, ExitLacking, ExitTooSlow, ExitNotPlayed, ExitUnproven, ExitNotSettled, ExitViolated, ExitUnrepeatable, ExitBad, ExitInterrupted}

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
	// NotJudged are the invariants that the world lacks a source for.
	NotJudged []sim.NotJudged
	// Unknown are the settings that the system does not know.
	Unknown []sim.Unknown
	Events  uint64
	Virtual time.Duration // of the scenario, all runs together
	Wall    time.Duration // this machine's
	Updated bool          // the golden timeline in the file was rewritten
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

// One is a result of one of the variants' runs alone.
func (r *Result) One(i int) *Result {
	one := &Result{Case: r.Case, Seed: r.Seed, Mutant: r.Mutant}
	one.add(r.Runs[i])
	one.NotJudged = r.NotJudged
	if i == 0 && r.Diff != nil {
		one.Diff = r.Diff
		one.worsen(Violated)
	}
	return one
}

// Bitten is a result of one of the mutants' runs alone, as if that mutant had been run alone.
func (r *Result) Bitten(i int) *Result {
	one := &Result{Case: r.Case, Seed: r.Seed, Mutant: r.Bites[i].Against.Mutant.Name}
	one.add(r.Bites[i].Outcome)
	one.NotJudged = r.NotJudged
	return one
}

// worsen keeps the status that matters most.
func (r *Result) worsen(s Status) {
	if slices.Index(severity, s.Exit()) > slices.Index(severity, r.Status.Exit()) {
		r.Status = s
	}
}
