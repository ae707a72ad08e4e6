package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/verb"
)

// Of is what a result has of each run: the variants first, then the mutants that the file names. Runs that were played with
// runner.Options.Record have lanes, curves and faults. A file of which nothing was played is one run without them.
func Of(r *runner.Result) []Run {
	var out []Run
	for i := range r.Runs {
		out = append(out, of(r, r.One(i)))
	}
	for i := range r.Bites {
		b := &r.Bites[i]
		run := of(r, r.Bitten(i))
		run.Claim, run.Meant = b.Against.Claim.Invariant, b.Why == ""
		if !run.Meant {
			run.Also = append([]string{"line " + fmt.Sprint(b.Against.Pos.Line) + ": the mutant was not caught: " + b.Why}, run.Also...)
			run.Remedy = "let the scenario bring out what the mutant does wrong, or say in its against line what it breaks"
		}
		out = append(out, run)
	}
	for i := range r.Crashes {
		out = append(out, crashes(r, &r.Crashes[i]))
	}
	if len(out) == 0 {
		run := head(r)
		run.Verdict, run.Also = r.Status.String(), []string{r.Case.NotHere()}
		if r.Status == runner.Interrupted {
			run.Also = []string{"interrupted before it began"}
		}
		out = append(out, run)
	}
	return out
}

// head is what all runs of a file have in common.
func head(r *runner.Result) Run {
	f := r.Case.File
	return Run{Scenario: r.Case.Name(), File: f.Name, Headline: f.Headline(), Source: f.Source, Seed: r.Seed, World: r.Case.Place.Name,
		System: r.Case.Place.System, Mutant: r.Mutant, Command: r.Command()}
}

// of is one run; one is the result of it alone.
func of(r, one *runner.Result) Run {
	o := &one.Runs[0]
	run := head(one)
	run.Variant, run.Verdict, run.Wall, run.Also = o.Variant, one.Status.String(), o.Wall, one.Troubles()
	run.Judged = one.Judged
	if o.Verdict != nil {
		run.Ended = o.Verdict.Ended
		for _, s := range o.Verdict.Skipped {
			run.Skipped = append(run.Skipped, Skip{s.Pos.Line, s.Why})
		}
	}
	if b := o.Break; b != nil {
		run.First = &Break{At: b.At, Node: b.Node, Invariant: b.Invariant, Line: b.Pos.Line, Text: b.Text}
		run.Also = slices.DeleteFunc(run.Also, func(s string) bool { return strings.HasSuffix(s, b.Sentence()) })
	}
	run.Remedy = remedy(one.Status, o)
	run.follow(o.Record)
	run.looks(one, o.Record)
	run.script(r, o)
	return run
}

// remedy says what to do about a run.
func remedy(s runner.Status, o *runner.Outcome) string {
	switch {
	case o.Break != nil && o.Break.Invariant != "":
		return "read what happened before the violation, and play it again with the command; enilab invariants says what the invariant holds the CNI to"
	case o.Break != nil:
		return "compare what the line expects with what was found, and play it again with the command"
	}
	switch s {
	case runner.Violated:
		return "compare the two, and take the new timeline with --update if it is right"
	case runner.Bad:
		return "start fewer pods, or give the cluster a larger subnet, type or more nodes"
	case runner.Skipped:
		return "play it where this machine has what it lacks, or in another world"
	case runner.NotPlayed:
		return "mend the line, so that its action meets what it is about, or begin it with maybe"
	case runner.NotSettled:
		return "give it more time in its finally line, or say why it never settles"
	case runner.TooSlow:
		return "play it on a machine that has less to do"
	case runner.Unrepeatable:
		return "report it: the simulator has to be deterministic"
	}
	return ""
}

// follow takes what was recorded.
func (run *Run) follow(rec *runner.Record) {
	if rec == nil {
		return
	}
	run.Nodes = rec.Nodes
	run.faults(rec)
	touched := run.touched()
	for _, e := range rec.Events {
		if e.Node > 0 && !touched(int(e.Node)) {
			continue
		}
		run.Timeline = append(run.Timeline, Event{e.At, e.Last, int(e.Node), e.Text})
	}
	run.Timeline = around(run.Timeline, run.First)
	others, pods, enis, odd := map[int32]bool{}, 0, 0, 0
	for i := range rec.Tracks.Subjects {
		s := &rec.Tracks.Subjects[i]
		if touched(int(s.Node)) {
			run.Lanes = append(run.Lanes, lane(s))
			continue
		}
		others[s.Node] = true
		switch s.Kind {
		case timeline.KindPod:
			pods++
			odd += oddities(s)
		case timeline.KindENI:
			enis++
		}
	}
	if n := len(others); n > 0 {
		run.Others = fmt.Sprintf("%d more nodes, with %s pods and %s ENIs over time; %s of these pods were out of reach for a while",
			n, runner.Number(uint64(pods)), runner.Number(uint64(enis)), runner.Number(uint64(odd)))
	}
	for i := range rec.Tracks.Curves {
		if c := &rec.Tracks.Curves[i]; c.Node == timeline.Cluster || touched(int(c.Node)) {
			run.Curves = append(run.Curves, curve(c))
		}
	}
}

// oddities is 1 for a pod that was out of reach for a while.
func oddities(s *timeline.Subject) int {
	for _, p := range s.Spans {
		if p.State == "unreachable" || p.State == "cut off" {
			return 1
		}
	}
	return 0
}

// shown is how many nodes a report has details of at most.
const shown = 6

// touched says of which nodes a report has details: of all, if they are few; else of the one that the violation names, and of those that lines
// name, or of the first.
func (run *Run) touched() func(node int) bool {
	if run.Nodes <= shown {
		return func(int) bool { return true }
	}
	var list []int
	add := func(n int) {
		if n > 0 && len(list) < shown && !slices.Contains(list, n) {
			list = append(list, n)
		}
	}
	if run.First != nil {
		add(run.First.Node)
	}
	for i := range run.Faults {
		if len(list) < 2 || run.First == nil {
			add(run.Faults[i].Node)
		}
	}
	if len(list) == 0 {
		add(1)
	}
	return func(node int) bool { return slices.Contains(list, node) }
}

// mostEvents is how many lines of a timeline a report has at most.
const mostEvents = 400

// around keeps the lines around what broke first: those before matter more. Without a violation it is the first ones.
func around(list []Event, b *Break) []Event {
	if len(list) <= mostEvents {
		return list
	}
	at := mostEvents
	if b != nil {
		at = slices.IndexFunc(list, func(e Event) bool { return e.At > b.At })
		if at < 0 {
			at = len(list)
		}
		at = min(len(list), at+mostEvents/4)
	}
	from := max(0, at-mostEvents)
	return list[from:min(len(list), from+mostEvents)]
}

func lane(s *timeline.Subject) Lane {
	l := Lane{Node: int(s.Node), Kind: LaneKind(s.Kind), Name: s.Name}
	for _, p := range s.Spans {
		l.Spans = append(l.Spans, Span{p.From, p.To, p.State, p.Text})
	}
	return l
}

// mostPoints is how many points of a curve a report has at most: as many as a screen has room for.
const mostPoints = 240

// curve thins a curve out: of each part its first, smallest and largest point stay, so that no dip is lost.
func curve(c *timeline.Curve) Curve {
	out := Curve{Node: max(0, int(c.Node)), Name: c.Name}
	points := c.Points
	if len(points) > mostPoints {
		step := (len(points)*3 + mostPoints - 1) / mostPoints
		var thin []timeline.Point
		for part := range slices.Chunk(points, step) {
			low, high := 0, 0
			for i := range part {
				if part[i].Value < part[low].Value {
					low = i
				}
				if part[i].Value > part[high].Value {
					high = i
				}
			}
			keep := []int{0, low, high}
			slices.Sort(keep)
			for _, i := range slices.Compact(keep) {
				thin = append(thin, part[i])
			}
		}
		points = thin
	}
	for _, p := range points {
		out.Points = append(out.Points, Point{p.At, float64(p.Value)})
	}
	return out
}

// faults are the lines that did something, and until when that lasted.
func (run *Run) faults(rec *runner.Record) {
	end := run.Ended
	text := map[int]string{}
	for i := range rec.File.Lines {
		text[rec.File.Lines[i].Number] = said(&rec.File.Lines[i])
	}
	for i, d := range rec.Deeds {
		f := Fault{From: d.At, To: d.At, Line: d.Line, Text: text[d.Line], Fate: fates[d.Strike.Fate], Did: d.Strike.Text, Kind: kindOf(d.Act), Node: nodeOf(d.Act)}
		f.To = min(max(f.From, until(rec.Deeds, i, end)), max(f.From, end))
		run.Faults = append(run.Faults, f)
	}
}

var fates = [...]string{verb.Missed: "missed", verb.Armed: "armed", verb.Struck: "struck"}

// said is what an action's line says, without its instant.
func said(l *scn.Line) string {
	bare := *l
	bare.Raw, bare.Comment = "", ""
	at, ok := l.Stmt.(*scn.At)
	if !ok || at.Action == nil {
		return bare.String()
	}
	words := []string{at.Action.Subject.String(), at.Action.Verb}
	for _, a := range at.Action.Args {
		if a.Key != "" {
			words = append(words, a.Key+"="+a.Value)
		} else {
			words = append(words, a.Value)
		}
	}
	return strings.Join(words, " ")
}

func nodeOf(a *verb.Act) int {
	switch a.Subject.Kind {
	case scn.Node:
		return a.Subject.Node
	case scn.EC2, scn.IMDS, scn.Kube:
		return a.Int("node")
	}
	return 0
}

func kindOf(a *verb.Act) FaultKind {
	switch a.Subject.Kind {
	case scn.EC2:
		return AtEC2
	case scn.IMDS:
		return AtIMDS
	case scn.Kube:
		return AtKube
	case scn.Pod:
		return AtPod
	}
	if a.Of.AtDaemon {
		return AtDaemon
	}
	return AtNode
}

// until is when what the i-th deed did was over.
func until(deeds []sim.Deed, i int, end time.Duration) time.Duration {
	d := &deeds[i]
	if d.Strike.Fate == verb.Missed {
		return d.At
	}
	if long := d.Act.Duration("for"); long > 0 {
		return d.At + long
	}
	lasts := d.Act.Of.Lasts != nil && d.Act.Of.Lasts(d.Act)
	if d.Act.Of.Lasts != nil && !lasts {
		return d.At
	}
	if lasts {
		for _, later := range deeds[i+1:] {
			if later.Act.Of.Ends(d.Act.Of) && (later.Act.Subject.String() == d.Act.Subject.String() || later.Act.Subject.Kind == scn.AllNodes) {
				return later.At
			}
		}
	}
	if d.Strike.Fate == verb.Armed || lasts {
		return end
	}
	return d.At
}

// looks are how often each invariant was looked at.
func (run *Run) looks(one *runner.Result, rec *runner.Record) {
	if rec == nil {
		return
	}
	for _, l := range rec.Looks {
		if l.Invariant == judge.I9 && l.Times == 0 { // judged with --crash-everywhere
			continue
		}
		i, _ := judge.ByPhrase(l.Invariant.Phrase())
		look := Look{Invariant: i.Phrase, Times: l.Times, Broke: l.Broke}
		if lacks := i.Needs & one.Case.Place.Without; lacks != 0 {
			look.Why = "there are no " + strings.Join(lacks.Names(), ", no ")
		}
		for j := range rec.File.Lines {
			if a, ok := rec.File.Lines[j].Stmt.(*scn.Always); ok && a.Invariant == i.Phrase && rec.File.Lines[j].Guard.Allows(run.World) {
				look.Expected = rec.File.Lines[j].Number
			}
		}
		run.Looks = append(run.Looks, look)
	}
	slices.SortStableFunc(run.Looks, func(a, b Look) int {
		return cmp.Or(-cmp.Compare(a.Broke, b.Broke), cmp.Compare(btoi(a.Expected == 0), btoi(b.Expected == 0)))
	})
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// script is the file with its marks, and the line that a violation leads to: the last action before it.
func (run *Run) script(r *runner.Result, o *runner.Outcome) {
	f := r.Case.File
	if o.Record != nil {
		f = o.Record.File
	}
	b := run.First
	if b != nil && b.Line == 0 {
		for _, x := range run.Faults {
			if x.From <= b.At && x.Fate != "missed" {
				b.Line = x.Line
			}
		}
	}
	for i := range f.Lines {
		l := &f.Lines[i]
		run.Script = append(run.Script, Line{Number: l.Number, Text: l.String(), Mark: run.mark(l)})
	}
}

func (run *Run) mark(l *scn.Line) Mark {
	if l.Stmt == nil {
		return ""
	}
	for _, s := range run.Skipped {
		if s.Line == l.Number {
			return Left
		}
	}
	b := run.First
	if b == nil {
		return ""
	}
	if l.Number == b.Line {
		return Broke
	}
	switch s := l.Stmt.(type) {
	case *scn.Always:
		if s.Invariant == b.Invariant {
			return Expects
		}
	case *scn.At:
		if s.When <= b.At {
			return Due
		}
		return Later
	}
	return ""
}

// crashes is a run in which daemons were killed at every event.
func crashes(r *runner.Result, c *runner.Crashes) Run {
	run := head(r)
	run.Variant, run.Play, run.Verdict = c.Variant, fmt.Sprintf("killed at each of %s points", runner.Number(uint64(c.Report.Points))), runner.Held.String()
	if c.Err != nil {
		run.Verdict, run.Also = runner.Violated.String(), []string{c.Err.Error()}
	}
	for i := range c.Report.Broken {
		b := &c.Report.Broken[i]
		run.Verdict = runner.Violated.String()
		if i == 0 {
			run.First = &Break{At: b.At, Node: b.Node, Invariant: judge.I9.Phrase(), Text: b.String()}
		} else if i <= mostForks {
			run.Also = append(run.Also, b.String())
		}
	}
	return run
}

// mostForks is how many crashes that did not settle are told.
const mostForks = 20
