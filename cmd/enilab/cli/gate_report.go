package cli

import (
	"slices"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/report"
)

// changes are what a report calls what a gate finds, the gravest one first.
var changes = []struct {
	kind gate.Kind
	as   report.Change
}{{gate.Regression, report.Regression}, {gate.Accepted, report.Accepted}, {gate.Seldom, report.Same}, {gate.Unsure, report.Same}, {gate.Mended, report.Mended}}

// reportOf is a gate as a page: each play beside the old version alone. What did not change is shown without its details.
func (g *gating) reportOf(p *gate.Page) *report.Page {
	page := g.page("gate from " + p.From + " to " + p.To)
	for i := range g.results {
		r := &g.results[i]
		if r.Play == gate.Old || g.isLoad(r.Scenario) {
			continue
		}
		key := runKey{r.Scenario, r.Variant, r.Play, r.Seed}
		x := report.Pair{Scenario: r.Scenario, Play: r.Play.Doc(), Change: report.Same, New: g.runs[key]}
		if r.Variant != "" {
			x.Scenario += " (" + r.Variant + ")"
		}
		key.play = gate.Old
		x.Old = g.runs[key]
		if r.Unknown != "" {
			x.Change, x.Why = report.Unknown, r.Unknown
		}
		for _, c := range slices.Backward(changes) {
			for _, f := range slices.Backward(p.Verdict.Findings) {
				if f.Kind == c.kind && f.Scenario == r.Scenario && f.Variant == r.Variant && has(r, &f) {
					x.Change, x.Why = c.as, f.Check+": "+f.Cause
					if f.Reason != "" {
						x.Why += "; accepted, because " + f.Reason
					}
				}
			}
		}
		if x.Change == report.Same || x.Change == report.Mended {
			x.Old, x.New = x.Old.Bare(), x.New.Bare()
		}
		page.Pairs = append(page.Pairs, x)
	}
	for _, f := range p.Verdict.Figures {
		page.Figures = append(page.Figures, report.Figure{Name: f.Name, Unit: f.Unit, Old: f.Old, New: f.New, Band: f.Share, Beyond: f.Beyond && f.Reason == ""})
	}
	page.Notes = slices.Concat(p.Verdict.Unknown, p.Verdict.Notes, p.Verdict.Stale)
	return page
}

// has says whether a finding is about a result: a difference where it broke, what is mended in the new version alone.
func has(r *gate.Result, f *gate.Finding) bool {
	if f.Kind == gate.Mended {
		return r.Play == gate.New
	}
	return slices.Contains(f.Plays, r.Play) && slices.ContainsFunc(r.Broken, func(b gate.Broken) bool { return b.Check == f.Check })
}
