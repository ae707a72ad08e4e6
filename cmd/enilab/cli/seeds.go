package cli

import (
	"cmp"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
)

const seedsJSONManual = `With --seeds the document is a smaller one:
  enilab "seeds/1", world, from, to, exit, errors[] (as above)
  files[]    file, name, status, ran, failed[] (seeds), variants, mutants, events, virtual, wall, report, first (the first failed seed's
             entry of "run/1" files)`

// seedRange judges --seeds beside the other flags.
func (f *runFlags) seedRange() (seeds runner.Seeds, err error) {
	switch {
	case f.seeded:
		return seeds, usage("--seed is one run and --seeds a range: leave one of them out (--seeds 7 is seed 7 alone)")
	case f.update:
		return seeds, usage("--update takes the timeline of seed %d: leave --seeds out", runner.DefaultSeed)
	case f.crash:
		return seeds, usage("--crash-everywhere is for one seed: leave --seeds out, and name it with --seed")
	case f.keep:
		return seeds, usage("--keep leaves one laboratory up: leave --seeds out, and name its seed with --seed")
	}
	if seeds, err = runner.ParseSeeds(f.seeds); err != nil {
		return seeds, usage("--seeds: %v", err)
	}
	return seeds, nil
}

// sweepFiles runs all files under all seeds of the range.
func (l *cli) sweepFiles(f *runFlags, seeds runner.Seeds, o runner.Options, cases []*runner.Case, p *progress) error {
	page := l.page("run with seeds " + seeds.String())
	reds := 0
	each := func(r *runner.Result) {
		if f.outputs != nil {
			f.outputs.report(r)
		}
		if f.reports.wanted() {
			page.Runs = append(page.Runs, sweptRuns(r, reds < mostReds)...)
			if r.Status.Fails() {
				reds++
			}
		}
	}
	files := runner.SweepAll(cases, runner.SweepOptions{Ended: each, Options: o, Seeds: seeds, AtOnce: runtime.GOMAXPROCS(0),
		Swept: func(x runner.SweepProgress) {
			line := fmt.Sprintf("run %s of %s: %s, seed %d", runner.Number(uint64(x.Done)), runner.Number(uint64(x.Total)), x.Scenario, x.Seed)
			if x.Failed > 0 {
				line += fmt.Sprintf("; %d failed", x.Failed)
			}
			p.say(line)
		},
		Done: func(s *runner.Sweep) {
			p.clear()
			if !f.json {
				l.verdict(s.Status, s.Report())
			}
		}})
	p.clear()
	if f.outputs != nil && f.outputs.err != nil {
		return &exit{runner.ExitLacking, f.outputs.err.Error()}
	}
	sortRuns(page.Runs, cases)
	if err := f.reports.write(page); err != nil {
		return err
	}
	return l.tellSweeps(f, seeds, files)
}

// tellSweeps sums up files whose verdicts have been told, and ends with the exit code of all.
func (l *cli) tellSweeps(f *runFlags, seeds runner.Seeds, files []*runner.Sweep) error {
	code := runner.ExitHeld
	for _, s := range files {
		code = runner.Worst(code, s.Status.Exit())
	}
	if f.json {
		return l.writeJSON(sweepOf(f, seeds, files, code), code)
	}
	if len(files) > 1 {
		l.sweptTotal(seeds, files)
	}
	l.named(&f.reports)
	return ended(code)
}

// sweptTotal sums up several files.
func (l *cli) sweptTotal(seeds runner.Seeds, files []*runner.Sweep) {
	n, runs, failed := map[runner.Status]int{}, 0, 0
	var order []runner.Status
	for _, s := range files {
		if n[s.Status]++; n[s.Status] == 1 {
			order = append(order, s.Status)
		}
		runs += s.Ran
		failed += len(s.Failed)
	}
	var kinds []string
	for _, s := range order {
		kinds = append(kinds, fmt.Sprintf("%d %s", n[s], s))
	}
	fmt.Fprintf(l.out, "%s, seeds %s: %s; %d of %s failed\n", runner.Count(len(files), "file"), seeds,
		strings.Join(kinds, ", "), failed, runner.Count(runs, "run"))
}

func sweepOf(f *runFlags, seeds runner.Seeds, files []*runner.Sweep, code int) *runner.SweepDocument {
	d := &runner.SweepDocument{Head: runner.Head{Enilab: runner.SweepFormat, World: f.on, Exit: code},
		From: seeds.From, To: seeds.To, Files: []runner.SweptFile{}}
	for _, s := range files {
		d.Files = append(d.Files, s.Document())
	}
	return d
}

// mostReds is how many seeds that failed a report of a sweep has details of.
const mostReds = 50

// sweptRuns are a result's runs for a report. Of what is as it should be only the sentence stays: a thousand seeds have too many details.
func sweptRuns(r *runner.Result, details bool) []report.Run {
	runs := report.Of(r)
	for i := range runs {
		if x := &runs[i]; !x.Red() || !details {
			*x = *x.Bare()
		}
	}
	r.Forget()
	return runs
}

// sortRuns orders runs by file and seed: those of a sweep end in any order.
func sortRuns(runs []report.Run, cases []*runner.Case) {
	place := map[string]int{}
	for i, c := range cases {
		place[c.File.Name] = i
	}
	slices.SortStableFunc(runs, func(a, b report.Run) int {
		return cmp.Or(cmp.Compare(place[a.File], place[b.File]), cmp.Compare(a.Seed, b.Seed))
	})
}
