package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/suite"
)

func (l *lab) demoCommand() *cobra.Command {
	on := "all"
	c := &cobra.Command{
		Use:   "demo [DIR | FILE...]",
		Short: "replays all incidents and says what used to happen and what happens now",
		Long: `demo replays incidents, in every variant, and then lets each mistake that an incident names play the daemon. It prints what
used to happen, what happens now, and which mistake broke what and when. Without arguments it replays the incidents that are
part of this binary. Its exit code is that of enilab run.

It does so in virtual time, and then, as root on Linux, in the laboratory: the real daemon and plugin on this machine's kernel, two
incidents at a time. Where that cannot be it says why.`,
		Example: `  enilab demo
  enilab demo --on sim scenarios/
  enilab demo scenarios/socket-mismatch.scn`,
		RunE: func(_ *cobra.Command, args []string) error { return l.demo(on, args) },
	}
	c.Flags().StringVar(&on, "on", on, "where: sim, lab, or all that this machine can")
	return c
}

func (l *lab) demo(on string, args []string) error {
	var codes []int
	switch on {
	case "all", "sim":
		code, err := l.show(suite.Sim(), 1, args)
		if err != nil {
			return err
		}
		if codes = append(codes, code); on == "sim" {
			return ended(code)
		}
	case "lab":
	default:
		return usage("demo has no place %q (%s)", on, hint(on, []string{"sim", "lab", "all"}))
	}
	place, err := l.laboratory()
	switch {
	case err != nil && on == "lab":
		return &exit{suite.ExitLacking, err.Error()}
	case err != nil:
		fmt.Fprintln(l.out, "\n"+strings.Join(wrap("not replayed on a real kernel: "+err.Error(), pageWidth), "\n"))
		return ended(suite.Worst(codes...))
	case l.interrupted():
		return ended(suite.ExitInterrupted)
	}
	fmt.Fprintf(l.out, "\nThe same on this machine's kernel, with real daemons, plugins and packets:\n\n")
	code, err := l.show(place, labsAtOnce, args)
	if err != nil {
		return err
	}
	return ended(suite.Worst(append(codes, code)...))
}

// labsAtOnce is how many laboratories run side by side: each waits for its own kernel half of the time.
const labsAtOnce = 2

// show replays the incidents in one place and prints the table.
func (l *lab) show(p *suite.Place, atOnce int, args []string) (int, error) {
	cases, err := l.incidents(p, args)
	if err != nil {
		return suite.ExitBad, l.refuse(err)
	}
	began := time.Now()
	done := l.replayAll(cases, atOnce)
	var rows [][]string
	for i := range done {
		rows = append(rows, demoRow(&done[i]))
	}
	columns := []column{{"INCIDENT", 14}, {"SOURCE", 17}, {"WHAT USED TO HAPPEN", 27}, {"WHAT HAPPENS NOW", 22}, {"MISTAKES THAT BROKE IT", 24}, {"TIME", 6}}
	if err := table(l.out, columns, rows); err != nil {
		return 0, &exit{suite.ExitLacking, err.Error()}
	}
	elsewhere := 0
	for i := range done {
		switch s := done[i].Status; {
		case s == suite.Skipped && len(done[i].Runs) == 0:
			elsewhere++
		case s != suite.Held:
			fmt.Fprintln(l.out)
			l.report(&done[i])
		}
	}
	code := together(done, len(cases))
	if elsewhere > 0 && code == suite.ExitLacking { // a file that is for another world is no failure of a demonstration
		code = suite.ExitHeld
		for i := range done {
			if t := &done[i]; t.Status != suite.Skipped || len(t.Runs) > 0 {
				code = suite.Worst(code, t.Status.Exit())
			}
		}
	}
	l.sums(done, len(cases)-elsewhere, time.Since(began), code)
	return code, nil
}

// replayAll runs the files, some of them at once, and gives them in their order.
func (l *lab) replayAll(cases []*suite.Case, atOnce int) []timed {
	p := newProgress(l.err)
	defer p.clear()
	defer l.deadline(p)()
	o := suite.Options{Seed: suite.DefaultSeed, Interrupted: l.interrupted}
	if atOnce == 1 {
		o.Progress = p.tell
	}
	results := make([]timed, len(cases))
	next := make(chan int)
	var all sync.WaitGroup
	for range atOnce {
		all.Go(func() {
			for i := range next {
				began := time.Now()
				r := cases[i].Run(o)
				results[i] = timed{Result: r, wall: time.Since(began)}
			}
		})
	}
	for _, i := range longestFirst(cases) {
		if l.interrupted() {
			break
		}
		next <- i
	}
	close(next)
	all.Wait()
	return slices.DeleteFunc(results, func(t timed) bool { return t.Result == nil })
}

// longestFirst is an order in which the files with the most runs begin, so that nobody waits for them in the end.
func longestFirst(cases []*suite.Case) []int {
	order := make([]int, len(cases))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return runs(cases[b]) - runs(cases[a]) })
	return order
}

func runs(c *suite.Case) int { return len(c.Variants) * (1 + len(c.Against)) }

// incidents are the scenarios to be replayed: those of the binary, of a folder, or the files named.
func (l *lab) incidents(p *suite.Place, args []string) ([]*suite.Case, error) {
	if len(args) == 0 {
		return embedded(p)
	}
	var names []string
	for _, arg := range args {
		if info, err := os.Stat(arg); err != nil || !info.IsDir() {
			names = append(names, arg)
			continue
		}
		found, err := filepath.Glob(filepath.Join(arg, "*.scn"))
		if err != nil || len(found) == 0 {
			return nil, scn.ErrorList{scn.Errorf(scn.Pos{File: arg}, "name a folder such as scenarios/", "there is no *.scn file in this folder")}
		}
		names = append(names, found...)
	}
	return l.load(p, names)
}

func embedded(p *suite.Place) ([]*suite.Case, error) {
	names, err := fs.Glob(scenarios.Files, "*.scn")
	if err != nil {
		return nil, err
	}
	var cases []*suite.Case
	var errs scn.ErrorList
	for _, name := range names {
		data, err := fs.ReadFile(scenarios.Files, name)
		if err != nil {
			return nil, err
		}
		c, err := suite.Load(p, "scenarios/"+name, data)
		if list, ok := errors.AsType[scn.ErrorList](err); ok {
			errs = append(errs, list...)
			continue
		}
		cases = append(cases, c)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	return cases, nil
}

func demoRow(t *timed) []string {
	f := t.Case.File
	return []string{t.Case.Name(), f.Source, f.Headline(), nowCell(t), mistakesCell(t), suite.Short(t.wall.Round(time.Millisecond))}
}

// nowCell says what happens now: what was judged and held, or what did not.
func nowCell(t *timed) string {
	if t.Status == suite.Skipped && len(t.Runs) == 0 {
		return "not here: " + t.Case.NotHere()
	}
	if t.Status != suite.Held {
		return strings.ToUpper(t.Status.String()) + ", see below"
	}
	var parts []string
	for _, l := range t.Case.File.Lines {
		if a, ok := l.Stmt.(*scn.Always); ok && l.Guard.Allows(t.Case.Place.Name) {
			parts = append(parts, a.Invariant)
		}
	}
	s := "held: " + strings.Join(parts, "; ")
	if t.Judged > 0 {
		s += "; " + plural(t.Judged, "expectation")
	}
	if n := len(t.Runs); n > 1 {
		s += " in " + plural(n, "variant")
	}
	return s
}

// mistakesCell says which mutants broke what the incident says, and when.
func mistakesCell(t *timed) string {
	var out []string
	for _, b := range t.Proofs() {
		if b.When == "" {
			out = append(out, b.Mutant+" did NOT")
		} else {
			out = append(out, b.Mutant+" "+b.When)
		}
	}
	return strings.Join(out, "\n")
}

func (l *lab) sums(done []timed, files int, wall time.Duration, code int) {
	var events uint64
	var virtual time.Duration
	held, bites := 0, 0
	for _, t := range done {
		if len(t.Runs) == 0 {
			continue
		}
		events += t.Events
		virtual += t.Virtual
		bites += len(t.Case.Against)
		if t.Status == suite.Held {
			held++
		}
	}
	word := colour(l.out, green, "all held")
	if code != suite.ExitHeld {
		word = colour(l.out, red, fmt.Sprintf("%d of %d held", held, files))
	}
	fmt.Fprintf(l.out, "\n%s: %s, %s, %s events, %s replayed in %s\n", word, plural(files, "incident"), plural(bites, "mistake"), suite.Number(events), suite.Short(virtual), suite.Short(wall))
}
