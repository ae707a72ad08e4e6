package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/campaign"
)

// outcome is what came of a pair.
type outcome struct {
	Why   string // there is no verdict
	Page  *gate.Page
	Build string
	Took  time.Duration
}

// outcomeOf reads what a gate wrote.
func outcomeOf(r *campaign.Result) *outcome {
	if r.Why != "" {
		return &outcome{Why: r.Why}
	}
	p := &gate.Page{}
	switch err := json.Unmarshal(r.Stdout, p); {
	case err != nil:
		return &outcome{Why: fmt.Sprintf("what enilab gate --json wrote cannot be read: %v", err)}
	case p.Enilab != gate.Format || p.Verdict == nil:
		return &outcome{Why: fmt.Sprintf("expected what enilab gate --json writes (%s), found %.60q", gate.Format, r.Stdout)}
	}
	return &outcome{Page: p, Build: r.Build, Took: r.Took}
}

// red says whether a gate that was read is.
func (o *outcome) red() bool { return o.Page != nil && o.Page.Outcome().Word == gate.WordRed }

// cutShort says whether plays were left out: it was interrupted, or its time was over.
func (o *outcome) cutShort() bool {
	return o.Page.Interrupted || slices.ContainsFunc(o.Page.Results, func(r gate.Result) bool { return strings.HasPrefix(r.Unknown, "not played: ") })
}

// word is the verdict.
func (o *outcome) word() string {
	switch {
	case o.Page == nil:
		return o.Why
	case !o.red() && o.Page.Exit != o.Page.Outcome().Exit:
		return gate.WordNotKnown // it ended otherwise than it says
	}
	return o.Page.Outcome().Word
}

// findings are those of a kind.
func (o *outcome) findings(kinds ...gate.Kind) (out []gate.Finding) {
	if o.Page == nil {
		return nil
	}
	for _, k := range kinds {
		for _, f := range o.Page.Verdict.Findings {
			if f.Kind == k {
				out = append(out, f)
			}
		}
	}
	return out
}

func (o *outcome) dearer() []gate.Figure {
	if o.Page == nil {
		return nil
	}
	return o.Page.Verdict.Dearer()
}

// brief is the outcome for who waits.
func (o *outcome) brief() string {
	s := o.word()
	for _, f := range o.findings(gate.Regression) {
		s += fmt.Sprintf(", %q at %s", f.Check, campaign.Clock(seconds(f.At)))
	}
	for _, f := range o.dearer() {
		s += ", " + f.String()
	}
	if o.Page != nil && o.cutShort() {
		s += ", not played to its end"
	}
	return s
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
