package cli

import (
	"fmt"
	"slices"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/runner"
)

// demoReports writes the reports of a demonstration: JUnit has every run, the page one that says most.
func (l *cli) demoReports(f *demoFlags, stages []*stage) error {
	if !f.reports.wanted() {
		return nil
	}
	all := l.page("demo")
	red := false
	for _, s := range stages {
		for i := range s.done {
			if !s.plays(i) {
				continue
			}
			if s.done[i] == nil {
				all.Runs = append(all.Runs, notPlayed(s.cases[i:i+1], runner.DefaultSeed, runner.Interrupted, "interrupted before it began")...)
				continue
			}
			all.Runs = append(all.Runs, report.Of(s.done[i])...)
		}
		if s.absent != nil {
			all.Notes = append(all.Notes, "not replayed on a real kernel: "+s.absent.Error())
		}
	}
	for i := range all.Runs {
		red = red || all.Runs[i].Red()
	}
	junit, html := f.reports, f.reports
	junit.html, html.junit = "", ""
	if err := junit.write(all); err != nil {
		return err
	}
	page := all
	if told := l.telling(stages); !red && told != nil {
		page = l.page("demo: what one of the mutants does")
		page.Runs = told
		page.Notes = append(all.Notes, fmt.Sprintf("%s is a mutant: a daemon with a mistake that somebody's daemon had. The other run is the same scenario with enilab's daemon, which held, as it did in every incident of the demonstration.", told[0].Mutant))
	}
	return html.write(page)
}

// tells are the invariants whose break says most to a first-time reader, the best first.
var tells = []judge.ID{judge.I4, judge.I1, judge.I10, judge.I7}

// telling plays again, in virtual time, the mutant that says most of those that were caught: once as if it alone had been asked for, and once the
// same scenario without it. Nil is that there is none.
func (l *cli) telling(stages []*stage) []report.Run {
	var best *runner.Bite
	var of *runner.Case
	for _, s := range stages {
		for i := range s.done {
			if s.done[i] == nil {
				continue
			}
			for j := range s.done[i].Bites {
				if b := &s.done[i].Bites[j]; b.Why == "" && (best == nil || worth(b, s.cases[i]) < worth(best, of)) {
					best, of = b, s.cases[i]
				}
			}
		}
	}
	if best == nil {
		return nil
	}
	c, err := runner.Load(runner.Sim(), of.File.Name, []byte(of.File.String()))
	if err != nil { // it is for kernels alone
		return nil
	}
	c.Variants = slices.DeleteFunc(c.Variants, func(v runner.Variant) bool { return v.Name != best.Outcome.Variant })
	c.Against = nil
	o := runner.Options{Seed: runner.DefaultSeed, Record: true, Against: &best.Against.Mutant, Interrupted: l.interrupted}
	runs := report.Of(c.Run(o))
	o.Against, o.NoStory = nil, true
	return append(runs, report.Of(c.Run(o))...)
}

// worth ranks a mutant's run: by the invariant that it breaks, then small clusters before large ones.
func worth(b *runner.Bite, c *runner.Case) int {
	rank := len(tells)
	if id, ok := judge.ByPhrase(b.Against.Claim.Invariant); ok {
		if i := slices.Index(tells, id.ID); i >= 0 {
			rank = i
		}
	}
	const large = 1000 // more nodes than there are
	nodes := c.Variants[0].Cluster.Nodes
	return rank*large + min(nodes, large-1)
}

// demoDocument is the JSON form of a demonstration.
type demoDocument struct {
	runner.Head
	Stages []stageDocument `json:"stages"`
}

type stageDocument struct {
	World  string                 `json:"world"`
	Absent string                 `json:"absent,omitempty"` // why this machine cannot play there
	Files  []*runner.FileDocument `json:"files"`
}

// demoJSON prints a demonstration as a document.
func (l *cli) demoJSON(stages []*stage) error {
	d := demoDocument{Head: runner.Head{Enilab: "demo/1", Exit: demoCode(stages)}}
	for _, s := range stages {
		j := stageDocument{World: map[string]string{"SIM": "sim", "KERNEL": "netns"}[s.head],
			Files: []*runner.FileDocument{}}
		if s.absent != nil {
			j.Absent = s.absent.Error()
		}
		for _, r := range s.done {
			if r != nil {
				j.Files = append(j.Files, r.Document())
			}
		}
		d.Stages = append(d.Stages, j)
	}
	return l.writeJSON(d, d.Exit)
}
