package cli

import (
	"errors"
	"strings"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

const jsonManual = `--json writes one document; times are seconds, "at" is an instant of the scenario:
  enilab "run/1", world, seed, exit (the exit code)
  errors[]   file, line, column, message, hint: why nothing was run (then exit is 2 and files is empty)
  verdicts[] verdict, exit, means: the table above; verdict is that of all files together
  files[]    file, name, headline, source, system (with --cni), given[] (tools that its machine has for it), status (a verdict),
             judged, skipped[] {line, why}, notJudged[] {invariant, needs[], line (of an always)}, unknown[] {line, system, settings[]},
             events, virtual, wall, report (the text for people), command,
             variants[] {name, error, ended, events, hash, judged, twice, same, broke, missed[] {line, at, text, times, of}, maybe[] {line, struck}, underWay[],
             unjudged[] {line, at, text} (expectations that failed, where the system does not know a setting),
             all[] {at, node, invariant, line, text}: all that broke, of each invariant the first ones, times {invariant: how
             often}, figures (world netns; durations in seconds) {adds,
             dels, failed (ADDs), add, del, start, ready, memory, calls, pods[] {made, ended (left out: it lives)}, flows, pairs},
             timeline[] (with --timeline)},
             mutants[]  {mutant, variant, line, expected, by, proved, why, broke},
             crashes[]  {variant, error, points, forks, broken[] {at, node, event, inFlight[], choice, what}},
             story, storyDiffers {line, golden, now}, updated
  broke      at, node, invariant (or line, of an expectation), text, before[], script[]`

// document is the JSON form of a run. Field names are kept: programs read them.
type document struct {
	Enilab string `json:"enilab"`
	World  string `json:"world"`
	Seed   uint64 `json:"seed"`
	Exit   int    `json:"exit"`
	// Verdict is that of all files together.
	Verdict  string     `json:"verdict"`
	Verdicts []meaning  `json:"verdicts"`
	Errors   []mistake  `json:"errors,omitempty"`
	Files    []fileJSON `json:"files"`
}

// meaning is a verdict there is.
type meaning struct {
	Verdict string `json:"verdict"`
	Exit    int    `json:"exit"`
	Means   string `json:"means"`
}

// newDocument is a document without files.
func newDocument(f *runFlags, code int) *document {
	d := &document{Enilab: "run/1", World: f.on, Seed: f.seed, Exit: code, Files: []fileJSON{}}
	for _, m := range runner.Meanings() {
		d.Verdicts = append(d.Verdicts, meaning{m.Word, m.Exit, m.Doc})
		if m.Exit == code {
			d.Verdict = m.Word
		}
	}
	return d
}

type mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

type fileJSON struct {
	File     string `json:"file"`
	Name     string `json:"name"`
	Headline string `json:"headline,omitempty"`
	Source   string `json:"source,omitempty"`
	// System is what was played in enilab's place, "NAME VERSION".
	System string `json:"system,omitempty"`
	// Given are the tools that its machine has for it.
	Given   []string   `json:"given,omitempty"`
	Status  string     `json:"status"`
	Judged  int        `json:"judged"`
	Skipped []skipJSON `json:"skipped"`
	// NotJudged are the invariants for which the world lacks a source.
	NotJudged []notJudgedJSON `json:"notJudged"`
	// Unknown are the settings that the system does not know.
	Unknown  []unknownJSON `json:"unknown,omitempty"`
	Events   uint64        `json:"events"`
	Virtual  float64       `json:"virtual"`
	Wall     float64       `json:"wall"`
	Report   string        `json:"report"`
	Command  string        `json:"command"`
	Variants []variantJSON `json:"variants"`
	Mutants  []mutantJSON  `json:"mutants"`
	Crashes  []crashJSON   `json:"crashes,omitempty"`
	Story    string        `json:"story"`
	Differs  *diffJSON     `json:"storyDiffers,omitempty"`
	Updated  bool          `json:"updated"`
}

type skipJSON struct {
	Line int    `json:"line"`
	Why  string `json:"why"`
}

type notJudgedJSON struct {
	Invariant string   `json:"invariant"`
	Needs     []string `json:"needs"`          // what the world lacks of it
	Line      int      `json:"line,omitempty"` // of the line that expects it always
}

type unknownJSON struct {
	Line     int      `json:"line"`
	System   string   `json:"system"`
	Settings []string `json:"settings"`
}

// unjudgedJSON is an expectation that failed, where an unknown setting may be why.
type unjudgedJSON struct {
	Line int     `json:"line"`
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

type variantJSON struct {
	Name   string     `json:"name"`
	Error  string     `json:"error,omitempty"`
	Ended  float64    `json:"ended"`
	Events uint64     `json:"events"`
	Hash   string     `json:"hash"`
	Judged int        `json:"judged"`
	Twice  bool       `json:"twice"`
	Same   bool       `json:"same"` // true when it was not run twice
	Broke  *breakJSON `json:"broke,omitempty"`
	// Missed are the actions that missed, UnderWay is what had not settled.
	Missed []missedJSON `json:"missed"`
	// Maybe are the lines that may miss.
	Maybe    []maybeJSON `json:"maybe,omitempty"`
	UnderWay []string    `json:"underWay"`
	// Unjudged are expectations that failed where a setting is unknown.
	Unjudged []unjudgedJSON `json:"unjudged,omitempty"`
	// All is all that broke.
	All []brokenJSON `json:"all,omitempty"`
	// Times is how often each invariant broke.
	Times   map[string]int `json:"times,omitempty"`
	Figures *figuresJSON   `json:"figures,omitempty"`
	// Timeline is all that happened, with --timeline.
	Timeline []string `json:"timeline,omitempty"`
}

// brokenJSON is a violation, an expectation that was not met, or, with neither invariant nor line, a daemon that ended by itself.
type brokenJSON struct {
	At        float64 `json:"at"`
	Node      int     `json:"node,omitempty"`
	Invariant string  `json:"invariant,omitempty"`
	Line      int     `json:"line,omitempty"`
	Text      string  `json:"text"`
}

type figuresJSON struct {
	Adds   int               `json:"adds"`
	Dels   int               `json:"dels"`
	Failed int               `json:"failed"`
	Add    float64           `json:"add"`
	Del    float64           `json:"del"`
	Start  float64           `json:"start"`
	Ready  float64           `json:"ready"`
	Memory int64             `json:"memory"`
	Calls  map[string]int64  `json:"calls"`
	ENIs   int               `json:"enis"`
	Errors map[string]int64  `json:"errors,omitempty"`
	Facts  map[string]string `json:"facts,omitempty"`
	Pods   []podJSON         `json:"pods"`
	Flows  int               `json:"flows"`
	Pairs  int               `json:"pairs"`
}

// podJSON is from a pod's ADD to its DEL.
type podJSON struct {
	Made  float64  `json:"made"`
	Ended *float64 `json:"ended,omitempty"` // left out: it was not deleted
}

type missedJSON struct {
	Line  int     `json:"line"`
	At    float64 `json:"at"`
	Text  string  `json:"text"`
	Times int     `json:"times"`
	Of    int     `json:"of"`
}

type maybeJSON struct {
	Line   int  `json:"line"`
	Struck bool `json:"struck"`
}

type mutantJSON struct {
	Mutant   string     `json:"mutant"`
	Variant  string     `json:"variant"`
	Line     int        `json:"line"`
	Expected string     `json:"expected"`
	By       *float64   `json:"by,omitempty"`
	Proved   bool       `json:"proved"`
	Why      string     `json:"why,omitempty"`
	Broke    *breakJSON `json:"broke,omitempty"`
}

type crashJSON struct {
	Variant string     `json:"variant"`
	Error   string     `json:"error,omitempty"`
	Points  int        `json:"points"`
	Forks   int        `json:"forks"`
	Broken  []forkJSON `json:"broken"`
}

type forkJSON struct {
	At       float64  `json:"at"`
	Node     int      `json:"node"`
	Event    string   `json:"event"`
	InFlight []string `json:"inFlight"`
	Choice   string   `json:"choice"`
	What     string   `json:"what"`
}

type breakJSON struct {
	At        float64  `json:"at"`
	Node      int      `json:"node,omitempty"`
	Invariant string   `json:"invariant,omitempty"`
	Line      int      `json:"line,omitempty"`
	Text      string   `json:"text"`
	Before    []string `json:"before"`
	Script    []string `json:"script"`
}

type diffJSON struct {
	Line   int    `json:"line"`
	Golden string `json:"golden"`
	Now    string `json:"now"`
}

// writeJSON writes a document and ends with the code.
func (l *cli) writeJSON(v any, code int) error {
	if err := indented(l.out, v); err != nil {
		return &exit{runner.ExitLacking, "write JSON: " + err.Error()}
	}
	return ended(code)
}

// refused is the document of files with mistakes.
func refused(err error, f *runFlags) *document {
	list, _ := errors.AsType[scn.ErrorList](err)
	d := newDocument(f, runner.ExitBad)
	for _, e := range list {
		d.Errors = append(d.Errors, mistake{e.Pos.File, e.Pos.Line, e.Pos.Col, e.Msg, e.Hint})
	}
	return d
}

func documentOf(f *runFlags, done []timed, code int) *document {
	d := newDocument(f, code)
	for i := range done {
		d.Files = append(d.Files, fileOf(&done[i]))
	}
	return d
}

func fileOf(t *timed) fileJSON {
	f := t.Case.File
	j := fileJSON{File: f.Name, Name: t.Case.Name(), Headline: f.Headline(), Source: f.Source, System: t.Case.Place.System, Given: t.Case.Place.Given, Status: t.Status.String(), Judged: t.Judged,
		Skipped: []skipJSON{}, NotJudged: []notJudgedJSON{}, Events: t.Events, Virtual: t.Virtual.Seconds(), Wall: t.wall.Seconds(), Report: t.Report(), Command: t.Command(),
		Variants: []variantJSON{}, Mutants: []mutantJSON{}, Story: t.Story, Updated: t.updated}
	for _, s := range t.Skipped {
		j.Skipped = append(j.Skipped, skipJSON{s.Pos.Line, s.Why})
	}
	for _, n := range t.NotJudged {
		i, _ := judge.ByPhrase(n.Invariant.Phrase())
		j.NotJudged = append(j.NotJudged, notJudgedJSON{i.Phrase, (i.Needs & t.Case.Place.Without).Names(), n.Pos.Line})
	}
	for _, u := range t.Unknown {
		j.Unknown = append(j.Unknown, unknownJSON{u.Pos.Line, u.System, u.Settings})
	}
	for i := range t.Runs {
		j.Variants = append(j.Variants, variantOf(&t.Runs[i]))
	}
	for i := range t.Bites {
		j.Mutants = append(j.Mutants, mutantOf(&t.Bites[i]))
	}
	for i := range t.Crashes {
		j.Crashes = append(j.Crashes, crashesOf(&t.Crashes[i]))
	}
	if t.Diff != nil {
		j.Differs = &diffJSON{t.Diff.Line, t.Diff.Want, t.Diff.Got}
	}
	return j
}

func variantOf(o *runner.Outcome) variantJSON {
	j := variantJSON{Name: o.Variant, Events: o.Events, Hash: hex(o.Hash), Twice: o.Twice, Same: !o.Differs, Broke: breakOf(o.Break),
		Missed: []missedJSON{}, UnderWay: []string{}}
	if o.Err != nil {
		j.Error = o.Err.Error()
	}
	if o.Timeline != "" {
		j.Timeline = strings.Split(strings.TrimSuffix(o.Timeline, "\n"), "\n")
	}
	if o.Verdict != nil {
		j.Ended, j.Judged = o.Verdict.Ended.Seconds(), o.Verdict.Judged
		for _, u := range o.Verdict.Unplayed {
			j.Missed = append(j.Missed, missedJSON{u.Pos.Line, u.At.Seconds(), u.Text, u.Times, u.Of})
		}
		for _, m := range o.Verdict.Maybe {
			j.Maybe = append(j.Maybe, maybeJSON{m.Pos.Line, m.Struck})
		}
		j.UnderWay = append(j.UnderWay, o.Verdict.UnderWay...)
		for _, u := range o.Verdict.Unjudged {
			j.Unjudged = append(j.Unjudged, unjudgedJSON{u.Pos.Line, u.At.Seconds(), u.Text})
		}
		j.All, j.Times = allOf(o.Verdict)
	}
	if f := o.Figures; f != nil {
		j.Figures = figuresOf(f)
	}
	return j
}

func figuresOf(f *sim.Figures) *figuresJSON {
	j := &figuresJSON{f.Adds, f.Dels, f.Failed, f.Add.Seconds(), f.Del.Seconds(), f.Start.Seconds(), f.Ready.Seconds(), f.Memory, f.Calls, f.ENIs, f.Errors, f.Facts, []podJSON{}, f.Flows, f.Pairs}
	for _, p := range f.Pods {
		one := podJSON{Made: p.Made.Seconds()}
		if p.Deleted {
			ended := p.Ended.Seconds()
			one.Ended = &ended
		}
		j.Pods = append(j.Pods, one)
	}
	return j
}

// figures are those that were told.
func (j *figuresJSON) figures() *sim.Figures {
	f := &sim.Figures{Adds: j.Adds, Dels: j.Dels, Failed: j.Failed, Add: spell(j.Add), Del: spell(j.Del), Start: spell(j.Start), Ready: spell(j.Ready), Memory: j.Memory,
		Calls: j.Calls, ENIs: j.ENIs, Errors: j.Errors, Facts: j.Facts, Flows: j.Flows, Pairs: j.Pairs}
	for _, p := range j.Pods {
		one := sim.PodLife{Made: spell(p.Made)}
		if p.Ended != nil {
			one.Ended, one.Deleted = spell(*p.Ended), true
		}
		f.Pods = append(f.Pods, one)
	}
	return f
}

// mostAll is how many violations of one invariant are told: they are alike.
const mostAll = 40

func allOf(v *sim.Verdict) (out []brokenJSON, times map[string]int) {
	times = map[string]int{}
	for _, b := range v.Violations {
		phrase := b.Invariant.Phrase()
		if times[phrase]++; times[phrase] <= mostAll {
			out = append(out, brokenJSON{At: b.At.Seconds(), Node: b.Node, Invariant: phrase, Text: b.Text})
		}
	}
	for _, f := range v.Failures {
		out = append(out, brokenJSON{At: f.At.Seconds(), Line: f.Pos.Line, Text: f.Text})
	}
	return out, times
}

func mutantOf(b *runner.Bite) mutantJSON {
	j := mutantJSON{Mutant: b.Against.Mutant.Name, Variant: b.Outcome.Variant, Line: b.Against.Pos.Line, Expected: b.Against.Claim.Invariant,
		Proved: b.Why == "", Why: b.Why, Broke: breakOf(b.Outcome.Break)}
	if b.Against.Claim.HasBy {
		by := b.Against.Claim.By.Seconds()
		j.By = &by
	}
	return j
}

func crashesOf(c *runner.Crashes) crashJSON {
	j := crashJSON{Variant: c.Variant, Points: c.Report.Points, Forks: c.Report.Forks, Broken: []forkJSON{}}
	if c.Err != nil {
		j.Error = c.Err.Error()
	}
	for _, b := range c.Report.Broken {
		j.Broken = append(j.Broken, forkJSON{b.At.Seconds(), b.Node, b.Event, append([]string{}, b.InFlight...), b.Choice, b.What})
	}
	return j
}

func breakOf(b *runner.Break) *breakJSON {
	if b == nil {
		return nil
	}
	return &breakJSON{b.At.Seconds(), b.Node, b.Invariant, b.Pos.Line, b.Text, append([]string{}, b.Before...), append([]string{}, b.Script...)}
}

// hex prints a hash as a word: JSON's numbers would round it.
func hex(h uint64) string {
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := range b {
		b[i] = digits[h>>(60-4*i)&15]
	}
	return string(b[:])
}
