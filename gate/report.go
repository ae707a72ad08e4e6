package gate

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

// page compares what was played.
func (g *gating) page() *Page {
	var loads []Result
	for _, r := range g.results {
		if g.isLoad(r.Scenario) {
			loads = append(loads, r)
		}
	}
	v := Compare(g.results)
	if v.Figures = Measure(loads); v.Figures == nil && !g.NoFigures && len(loads) > 0 {
		v.Notes = append(v.Notes, "figures were not compared: one of the versions carried the load with no seed")
	}
	v.Accept(g.allowed, g.Allow)
	for i := range v.Findings {
		if f := &v.Findings[i]; len(f.Plays) > 0 {
			f.Again = g.again(f.Scenario, f.Plays[0], f.Seed)
		}
	}
	p := &Page{Head: runner.Head{Enilab: Format, World: "netns"}, From: called(g.from), To: called(g.to), Verdict: v,
		Scenarios: g.scenarios(), Results: g.results, Key: g.key(), Took: time.Since(g.began).Round(time.Second),
		Given:       vm.Given(map[string]*systems.System{g.From: g.from, g.To: g.to}),
		Interrupted: g.over != nil && !errors.Is(g.over, errTime), Played: g.stage.played, Cached: g.stage.cached,
		of: g}
	o := p.Outcome()
	p.Red, p.Word, p.Exit = o.Level == Bad, o.Word, o.Exit
	return p
}

// changes are what a report calls what a gate finds, the gravest one first, and classes how findings look.
var (
	changes = []struct {
		kind Kind
		as   report.Change
	}{{Regression, report.Regression}, {Accepted, report.Accepted}, {Seldom, report.Same}, {Unsure, report.Same},
		{Mended, report.Mended}}
	classes = map[Kind]report.Class{Regression: report.Bad, Accepted: report.Warn, Seldom: report.Warn,
		Unsure: report.Warn, Mended: report.Good, Before: report.None}
)

// Report is the page for people and pipelines: each play beside the old version alone. What did not change is shown
// without its details. Of a Page that came through JSON there are no details at all.
func (p *Page) Report() *report.Page {
	g := p.of
	if g == nil {
		g = &gating{results: p.Results}
	}
	o := p.Outcome()
	page := &report.Page{Title: "gate from " + p.From + " to " + p.To, Command: p.Command,
		Banner: &report.Banner{Word: o.Word, Class: report.Class(o.Level), Line: p.Headline(), Also: p.Summary()},
		Notes:  slices.Concat(p.Verdict.Unknown, p.Verdict.Notes, p.Verdict.Stale)}
	pairs := map[runKey]int{} // from 1
	for i := range p.Results {
		r := &p.Results[i]
		if r.Play == Old || g.isLoad(r.Scenario) {
			continue
		}
		page.Pairs = append(page.Pairs, p.beside(g, r))
		pairs[runKey{r.Scenario, r.Variant, r.Play, r.Seed}] = len(page.Pairs)
	}
	p.matrixOf(page)
	for _, f := range p.Verdict.Ranked() {
		x := p.told(f)
		if len(f.Plays) > 0 {
			x.Pair = pairs[runKey{f.Scenario, f.Variant, f.Plays[0], f.Seed}]
		}
		page.Findings = append(page.Findings, x)
	}
	for _, f := range p.Verdict.Figures {
		page.Figures = append(page.Figures, report.Figure{Name: f.Name, Unit: f.Unit, Old: f.Old, New: f.New,
			Band: f.Share, Beyond: f.Beyond && f.Reason == ""})
	}
	return page
}

// beside is a result beside that of the old version alone, with the gravest that was found of it.
func (p *Page) beside(g *gating, r *Result) report.Pair {
	x := report.Pair{Scenario: (&group{scenario: r.Scenario, variant: r.Variant}).name(), Play: r.Play.Doc(),
		Change: report.Same}
	if r.Unknown != "" {
		x.Change, x.Why = report.Unknown, r.Unknown
	}
	for _, c := range slices.Backward(changes) {
		for _, f := range slices.Backward(p.Verdict.Findings) {
			if f.Kind == c.kind && f.Scenario == r.Scenario && f.Variant == r.Variant && r.has(&f) {
				x.Change, x.Why = c.as, f.Check+": "+f.Cause
				if f.Reason != "" {
					x.Why += "; accepted, because " + f.Reason
				}
			}
		}
	}
	run := func(play Play) *report.Run {
		run := g.runs[runKey{r.Scenario, r.Variant, play, r.Seed}]
		if run == nil {
			return nil
		}
		c := *run
		if x.Change == report.Same || x.Change == report.Mended {
			c = *run.Bare()
		}
		// inside of the machine it has another command line, which knows of one system alone
		c.Command = g.again(r.Scenario, play, r.Seed)
		return &c
	}
	x.Old, x.New = run(Old), run(r.Play)
	return x
}

// has says whether a finding is about a result: a difference where it broke, what is mended in the new version alone.
func (r *Result) has(f *Finding) bool {
	if f.Kind == Mended {
		return r.Play == New
	}
	return slices.Contains(f.Plays, r.Play) && r.broke(f.Check) != nil
}

func (p *Page) matrixOf(page *report.Page) {
	for _, play := range Plays() {
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
}

// told is a finding as a report has it.
func (p *Page) told(f *Finding) report.Finding {
	x := report.Finding{Kind: string(f.Kind), Class: classes[f.Kind], Line: p.Sentence(f), Command: f.Again,
		Text: f.Text, Folded: f.Kind == Mended || f.Kind == Before,
		Facts: []string{fmt.Sprintf("%s: %s", f.Name(), f.Check), "cause: " + f.Cause}}
	if !x.Folded {
		x.Facts = append(x.Facts, "plays: "+f.Where(),
			fmt.Sprintf("seeds: it broke with %d of %d, %s", len(f.Seeds), f.Of,
				strings.Trim(fmt.Sprint(f.Seeds), "[]")),
			fmt.Sprintf("first at %s, the change is at %s", clock(f.At), clock(f.Change)))
	}
	if f.Reason != "" {
		x.Facts = append(x.Facts, "accepted, because "+f.Reason)
	}
	return x
}

func clock(seconds float64) string {
	return report.Clock(time.Duration(seconds * float64(time.Second)))
}
