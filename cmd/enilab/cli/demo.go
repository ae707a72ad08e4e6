package cli

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
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

func (l *cli) demoCommand() *cobra.Command {
	var f demoFlags
	c := &cobra.Command{
		Use:   "demo [DIR | FILE...]",
		Short: "replays all incidents and says what used to happen and what happens now",
		Long: `demo replays incidents, in every variant, and then lets each mutant that an incident names play the daemon. Its table says what used to
happen, what happens now, how it ended in virtual time (sim) and on this machine's kernel, and when each mutant was caught. Without arguments it
replays the incidents that are part of this binary, and on the kernel those of them of which it shows most; --on netns replays all there. Its exit
code is that of enilab run.

The kernel needs root on Linux: there the real daemon and plugin run, two incidents at a time. Where that cannot be the table says why. While
it runs it says on standard error which incidents have ended.

--html FILE writes a page of the most telling thing that a mutant did, beside the same run with enilab's daemon; of what is not as it should be, if there
is anything. --junit FILE has every run. --json prints one document instead of the table: enilab "demo/1", exit, stages[] {world, absent, files[] as of
enilab run --json}.`,
		Example: `  enilab demo
  enilab demo --on sim scenarios/
  enilab demo scenarios/socket-mismatch.scn
  enilab demo --html demo.html`,
		RunE: func(_ *cobra.Command, args []string) error { return l.demo(&f, args) },
	}
	f.on = "all"
	f.reports.flags(c)
	c.Flags().BoolVar(&f.json, "json", false, "print one JSON document instead of text")
	c.Flags().Var(worldFlag{&f.on}, "on", "where: sim, netns (this machine's kernel), or all that this machine can")
	return c
}

// demoFlags are what a demonstration was asked for.
type demoFlags struct {
	on      string
	json    bool
	reports reports
}

// stage is one of the worlds that a demonstration plays in, and what came of each incident there.
type stage struct {
	head   string
	cases  []*runner.Case
	done   []*runner.Result // nil: it was not begun
	absent error            // why this machine cannot play there
	some   []string         // of the incidents, those that were asked for; nil: all
}

// onKernel are the incidents of which a kernel shows most: its rules, routes, neighbours and flows are what breaks, or a daemon has to find the truth
// in it. A demonstration that was told nothing replays these there; all take a quarter of an hour.
var onKernel = []string{"arp-dropped", "custom-networking", "del-any-phase", "del-retries", "drift", "flows", "force-delete", "prefix", "reboot",
	"runtime-restart", "socket-mismatch", "statefulset-name-reuse", "subnets", "takeover", "third-party"}

func (s *stage) plays(i int) bool { return s.some == nil || slices.Contains(s.some, s.cases[i].Name()) }

func (l *cli) demo(f *demoFlags, args []string) error {
	on := f.on
	if names := []string{"sim", "netns", "all"}; !slices.Contains(names, on) {
		return usage("unknown world %q (%s)", on, hint(on, names))
	}
	if err := f.reports.check(args); err != nil {
		return err
	}
	began := time.Now()
	var stages []*stage
	if on != "netns" {
		s, err := l.stage("SIM", runner.Sim(), args)
		if err != nil {
			return err
		}
		stages = append(stages, s)
	}
	if on != "sim" {
		place, absent := l.laboratory(&runFlags{}, nil)
		if absent != nil && on == "netns" {
			return &exit{runner.ExitLacking, absent.Error()}
		}
		s := &stage{head: "KERNEL", absent: absent}
		if absent == nil {
			var err error
			if s, err = l.stage(s.head, place, args); err != nil {
				return err
			}
		}
		if on == "all" && len(args) == 0 {
			s.some = onKernel
		}
		stages = append(stages, s)
	}
	for _, s := range stages {
		atOnce := 1
		if s.head == "KERNEL" {
			atOnce = labsAtOnce
		}
		s.done = l.replayAll(s, atOnce)
	}
	wall := time.Since(began)
	if err := l.demoReports(f, stages); err != nil {
		return err
	}
	if f.json {
		return l.demoJSON(stages)
	}
	if err := l.show(stages, wall); err != nil {
		return err
	}
	l.named(&f.reports)
	return ended(demoCode(stages))
}

// stage loads the incidents for one world. All are checked before any is played.
func (l *cli) stage(head string, p *runner.Place, args []string) (*stage, error) {
	cases, err := l.incidents(p, args)
	if err != nil {
		return nil, l.refuse(err)
	}
	return &stage{head: head, cases: cases}, nil
}

// labsAtOnce is how many laboratories run side by side: each waits for its own kernel half of the time.
const labsAtOnce = 2

// show prints the table, what is not as it should be, and a sentence.
func (l *cli) show(stages []*stage, wall time.Duration) error {
	columns := []column{{"INCIDENT", 16}, {"WHAT USED TO HAPPEN", 26}, {"WHAT HAPPENS NOW", 20}}
	for _, s := range stages {
		columns = append(columns, column{s.head, 12})
	}
	columns = append(columns, column{"MUTANTS CAUGHT", pageWidth - 2})
	for _, c := range columns[:len(columns)-1] {
		columns[len(columns)-1].width -= c.width + 2
	}
	var rows [][]string
	for i, c := range stages[0].cases {
		rows = append(rows, demoRow(c, i, stages))
	}
	if err := table(l.out, columns, rows); err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	for _, s := range stages {
		for i := range s.done {
			if t := s.done[i]; t != nil && !elsewhere(t) && t.Status != runner.Held {
				fmt.Fprintln(l.out)
				l.report(t)
			}
		}
		if s.absent != nil {
			fmt.Fprintln(l.out, "\n"+strings.Join(wrap("not replayed on a real kernel: "+s.absent.Error(), pageWidth), "\n"))
		}
	}
	l.sums(stages, wall, demoCode(stages))
	return nil
}

// demoCode is the exit code of all stages.
func demoCode(stages []*stage) int {
	code := runner.ExitHeld
	for _, s := range stages {
		code = runner.Worst(code, s.code())
	}
	return code
}

// elsewhere says that a file is for another world, which is no failure of a demonstration.
func elsewhere(t *runner.Result) bool { return t.Status == runner.Skipped && len(t.Runs) == 0 }

// code is the exit code of all that was played here. Files that are all for other worlds are nothing judged.
func (s *stage) code() int {
	code, there := runner.ExitHeld, false
	for i := range s.cases {
		switch t := s.done[i]; {
		case !s.plays(i):
		case t == nil:
			return runner.ExitInterrupted
		case !elsewhere(t):
			there = true
			code = runner.Worst(code, t.Status.Exit())
		}
	}
	if !there && s.absent == nil {
		return runner.ExitLacking
	}
	return code
}

// replayAll runs a stage's incidents, some of them at once, and gives what came of each. It says which have ended.
func (l *cli) replayAll(s *stage, atOnce int) []*runner.Result {
	cases, order := s.cases, slices.DeleteFunc(longestFirst(s.cases), func(i int) bool { return !s.plays(i) })
	p := newProgress(l.err)
	defer p.clear()
	defer l.deadline(p, "")()
	o := runner.Options{Seed: runner.DefaultSeed, Interrupted: l.interrupted}
	if atOnce == 1 {
		o.Progress = p.tell
	}
	results := make([]*runner.Result, len(cases))
	next := make(chan int)
	var all sync.WaitGroup
	var mu sync.Mutex // guards p and ended
	over := 0
	for range atOnce {
		all.Go(func() {
			for i := range next {
				r := cases[i].Run(o)
				results[i] = r
				mu.Lock()
				over++
				p.passed(fmt.Sprintf("%s: %d of %s over: %s %s", strings.ToLower(s.head), over, runner.Count(len(order), "incident"),
					cases[i].Name(), r.Status), over == len(order))
				mu.Unlock()
			}
		})
	}
	for _, i := range order {
		if l.interrupted() {
			break
		}
		next <- i
	}
	close(next)
	all.Wait()
	return results
}

// longestFirst is an order in which the files with the most runs begin, so that none of them runs alone at the end.
func longestFirst(cases []*runner.Case) []int {
	order := make([]int, len(cases))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return runs(cases[b]) - runs(cases[a]) })
	return order
}

func runs(c *runner.Case) int { return len(c.Variants) * (1 + len(c.Against)) }

// incidents are the scenarios to be replayed: those of the binary, of a folder, or the files named.
func (l *cli) incidents(p *runner.Place, args []string) ([]*runner.Case, error) {
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

func embedded(p *runner.Place) ([]*runner.Case, error) {
	names, err := fs.Glob(scenarios.Files, "*.scn")
	if err != nil {
		return nil, err
	}
	var cases []*runner.Case
	var errs scn.ErrorList
	for _, name := range names {
		data, err := fs.ReadFile(scenarios.Files, name)
		if err != nil {
			return nil, err
		}
		c, err := runner.Load(p, "scenarios/"+name, data)
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

// demoRow is a row of the table: an incident in all its worlds.
func demoRow(c *runner.Case, i int, stages []*stage) []string {
	row := []string{c.Name(), c.File.Headline(), nowCell(c)}
	for _, s := range stages {
		row = append(row, s.cell(i))
	}
	return append(row, mutantsCell(i, stages))
}

// nowCell says what happens now: what the file holds the CNI to.
func nowCell(c *runner.Case) string {
	var parts []string
	for _, l := range c.File.Lines {
		if a, ok := l.Stmt.(*scn.Always); ok && l.Guard.Allows(c.Place.Name) {
			parts = append(parts, a.Invariant)
		}
	}
	return strings.Join(parts, "; ")
}

// cell says how an incident ended in this world.
func (s *stage) cell(i int) string {
	if s.absent != nil {
		return "skipped"
	}
	t := s.done[i]
	switch {
	case !s.plays(i):
		return "–"
	case t == nil:
		return "not begun"
	case elsewhere(t):
		return "skipped: " + t.Case.NotHere()
	case t.Status != runner.Held:
		return strings.ToUpper(t.Status.String()) + ", see below"
	}
	text := "held"
	if n := len(t.Runs); n > 1 {
		text += " in " + runner.Count(n, "variant")
	}
	if n := len(t.Proofs()); n > 0 {
		text += ", " + runner.Count(n, "mutant") + " caught"
	}
	return text
}

// mutantsCell says when each mutant was caught, in the first of the worlds in which it played.
func mutantsCell(i int, stages []*stage) string {
	var out, told []string
	for _, s := range stages {
		if s.absent != nil || s.done[i] == nil {
			continue
		}
		for _, p := range s.done[i].Proofs() {
			switch {
			case p.When == "":
				out = append(out, p.Mutant+" was NOT")
			case !slices.Contains(told, p.Mutant):
				out = append(out, p.Mutant+" "+p.When)
			}
			told = append(told, p.Mutant)
		}
	}
	return strings.Join(out, "\n")
}

// sums is the last sentence.
func (l *cli) sums(stages []*stage, wall time.Duration, code int) {
	var events uint64
	var virtual time.Duration
	var parts []string
	held, of, caught, mutants := 0, 0, 0, 0
	for _, s := range stages {
		if s.absent != nil {
			continue
		}
		here := 0
		for i := range s.done {
			t := s.done[i]
			if t != nil && elsewhere(t) || !s.plays(i) {
				continue
			}
			here++
			if t == nil {
				continue
			}
			if events, virtual = events+t.Events, virtual+t.Virtual; t.Status == runner.Held {
				held++
			}
			for _, p := range t.Proofs() {
				if mutants++; p.When != "" {
					caught++
				}
			}
		}
		of += here
		where := "in virtual time"
		if s.head == "KERNEL" {
			where = "on this machine's kernel"
		}
		if s.some != nil {
			where += " (all there: enilab demo --on netns)"
		}
		parts = append(parts, runner.Count(here, "incident")+" "+where)
	}
	word := colour(l.out, green, "all held")
	if code != runner.ExitHeld {
		word = colour(l.out, red, fmt.Sprintf("%d of %d held", held, of))
	}
	fmt.Fprintf(l.out, "\n%s: %s; %d of %s caught; %s events, %s replayed in %s\n", word, strings.Join(parts, ", "),
		caught, runner.Count(mutants, "mutant"), runner.Number(events), runner.Short(virtual), runner.Short(wall))
}
