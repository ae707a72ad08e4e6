package gate

import (
	"slices"

	"github.com/enilab/enilab/sim/runner"
)

// Verdict is what came of a gate.
type Verdict struct {
	Findings []Finding `json:"findings"`
	Figures  []Figure  `json:"figures"`
	// Unknown is what was not played, and what nothing can be said of, a sentence each.
	Unknown []string `json:"unknown"`
	// Notes are sentences that change nothing.
	Notes []string `json:"notes,omitempty"`
	// Stale are acceptances that match nothing.
	Stale []string `json:"stale,omitempty"`
}

// Red says whether something regressed.
func (v *Verdict) Red() bool {
	return slices.ContainsFunc(v.Findings, func(f Finding) bool { return f.Kind == Regression }) ||
		slices.ContainsFunc(v.Figures, func(f Figure) bool { return f.Beyond && f.Reason == "" })
}

// Outcome is the judgement of a gate as a whole. Terminal, page, JUnit, JSON and exit code are all made from it.
type Outcome struct {
	// Word is red, not red, not known or interrupted.
	Word string
	// Exit is the exit code.
	Exit int
	// Level is how it looks: only Good may be green.
	Level Level
}

// Level is how an outcome looks.
type Level string

// The levels there are.
const (
	Good Level = "good"
	Bad  Level = "bad"
	Warn Level = "warn" // not known: neither green nor red
)

// The words of outcomes.
const (
	WordRed         = "red"
	WordNotRed      = "not red"
	WordNotKnown    = "not known"
	WordInterrupted = "interrupted"
)

// Outcome judges the gate. It is red when anything regressed, whatever else is not known; and not red only if all was played to its end.
func (p *Page) Outcome() Outcome {
	switch {
	case p.Verdict.Red():
		return Outcome{WordRed, runner.ExitViolated, Bad}
	case p.Interrupted:
		return Outcome{WordInterrupted, runner.ExitInterrupted, Warn}
	case len(p.Verdict.Unknown) > 0 || len(p.Results) == 0:
		return Outcome{WordNotKnown, runner.ExitNotPlayed, Warn}
	}
	return Outcome{WordNotRed, runner.ExitHeld, Good}
}
