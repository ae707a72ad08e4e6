package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/suite"
)

func (l *lab) demoCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "demo [DIR | FILE...]",
		Short: "replays all incidents and says what used to happen and what happens now",
		Long: `demo replays incidents, in every variant, and then lets each mistake that an incident names play the daemon. It prints what
used to happen, what happens now, and which mistake broke what and when. Without arguments it replays the incidents that are
part of this binary. Its exit code is that of enilab run.`,
		Example: `  enilab demo
  enilab demo scenarios/
  enilab demo scenarios/socket-mismatch.scn`,
		RunE: func(_ *cobra.Command, args []string) error { return l.demo(args) },
	}
}

func (l *lab) demo(args []string) error {
	cases, err := l.incidents(suite.Sim(), args)
	if err != nil {
		return l.refuse(err)
	}
	began := time.Now()
	done := l.replayAll(cases)
	var rows [][]string
	for i := range done {
		rows = append(rows, demoRow(&done[i]))
	}
	columns := []column{{"INCIDENT", 14}, {"SOURCE", 17}, {"WHAT USED TO HAPPEN", 27}, {"WHAT HAPPENS NOW", 22}, {"MISTAKES THAT BROKE IT", 24}, {"TIME", 6}}
	if err := table(l.out, columns, rows); err != nil {
		return &exit{suite.ExitLacking, err.Error()}
	}
	for i := range done {
		if done[i].Status != suite.Held {
			fmt.Fprintln(l.out)
			l.report(&done[i])
		}
	}
	code := together(done, len(cases))
	l.sums(done, len(cases), time.Since(began), code)
	return ended(code)
}

func (l *lab) replayAll(cases []*suite.Case) []timed {
	p := newProgress(l.err)
	defer p.clear()
	var done []timed
	for _, c := range cases {
		if l.interrupted() {
			break
		}
		began := time.Now()
		r := c.Run(suite.Options{Seed: suite.DefaultSeed, Interrupted: l.interrupted, Progress: p.tell})
		done = append(done, timed{Result: r, wall: time.Since(began)})
	}
	return done
}

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
