package cli

import (
	"fmt"
	"slices"
	"strings"

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
	o := p.Outcome()
	page.Banner = &report.Banner{Word: o.Word, Class: report.Class(o.Level), Line: p.Headline(), Also: p.Summary()}
	pairs := map[runKey]int{} // from 1
	for i := range g.results {
		r := &g.results[i]
		if r.Play == gate.Old || g.isLoad(r.Scenario) {
			continue
		}
		key := runKey{r.Scenario, r.Variant, r.Play, r.Seed}
		old := key
		old.play = gate.Old
		x := report.Pair{Scenario: r.Scenario, Play: r.Play.Doc(), Change: report.Same, New: g.runs[key]}
		if r.Variant != "" {
			x.Scenario += " (" + r.Variant + ")"
		}
		x.Old = g.runs[old]
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
		for _, run := range []struct {
			of   **report.Run
			play gate.Play
		}{{&x.Old, gate.Old}, {&x.New, r.Play}} {
			if *run.of != nil { // inside of the machine it has another command line, which knows of one system alone
				c := **run.of
				c.Command = g.again(r.Scenario, run.play, r.Seed)
				*run.of = &c
			}
		}
		page.Pairs = append(page.Pairs, x)
		pairs[key] = len(page.Pairs)
	}
	g.findings(page, p, pairs)
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

// findings are the matrix, and each finding once.
func (g *gating) findings(page *report.Page, p *gate.Page, pairs map[runKey]int) {
	for _, play := range gate.Plays() {
		page.Columns = append(page.Columns, strings.ReplaceAll(string(play), "-", " "))
	}
	for _, row := range p.Matrix() {
		out := report.Row{Name: row.Name}
		for _, c := range row.Cells {
			cell := report.Cell{Class: report.None, Text: c.Text}
			if c.Level != "" {
				cell.Class = report.Class(c.Level)
				cell.Seeds = "seed " + strings.Trim(strings.ReplaceAll(fmt.Sprint(c.Seeds), " ", ", "), "[]")
				if c.Of > len(c.Seeds) {
					cell.Seeds += fmt.Sprintf(" of %d seeds", c.Of)
				}
			}
			out.Cells = append(out.Cells, cell)
		}
		page.Matrix = append(page.Matrix, out)
	}
	for _, f := range p.Verdict.Ranked() {
		x := report.Finding{Kind: string(f.Kind), Class: classes[f.Kind], Line: p.Sentence(f), Command: f.Again, Folded: f.Kind == gate.Mended || f.Kind == gate.Before, Text: f.Text}
		x.Facts = append(x.Facts, fmt.Sprintf("%s: %s", f.Name(), f.Check), "cause: "+f.Cause)
		if !x.Folded {
			x.Facts = append(x.Facts, "plays: "+f.Where(), fmt.Sprintf("seeds: it broke with %d of %d, %s", len(f.Seeds), f.Of, strings.Trim(fmt.Sprint(f.Seeds), "[]")),
				fmt.Sprintf("first at %s, the change is at %s", clockOf(f.At), clockOf(f.Change)))
		}
		if f.Reason != "" {
			x.Facts = append(x.Facts, "accepted, because "+f.Reason)
		}
		if len(f.Plays) > 0 {
			x.Pair = pairs[runKey{f.Scenario, f.Variant, f.Plays[0], f.Seed}]
		}
		page.Findings = append(page.Findings, x)
	}
}

// classes are how findings look.
var classes = map[gate.Kind]report.Class{gate.Regression: report.Bad, gate.Accepted: report.Warn, gate.Seldom: report.Warn, gate.Unsure: report.Warn, gate.Mended: report.Good, gate.Before: report.None}

func clockOf(seconds float64) string { return report.Clock(spell(seconds)) }
