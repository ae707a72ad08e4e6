package runner

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
)

// Head is what every document of the laboratory begins with. Field names are kept: programs read them.
type Head struct {
	Enilab string `json:"enilab"` // its kind and version, such as run/1
	World  string `json:"world,omitempty"`
	Exit   int    `json:"exit"`
	// Errors are why nothing was run.
	Errors []Mistake `json:"errors,omitempty"`
}

// The kinds of documents of runs.
const (
	RunFormat   = "run/1"
	SweepFormat = "seeds/1"
)

// Mistake is one in a scenario's file.
type Mistake struct {
	File    string `json:"file"`
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// Refuse takes the mistakes of files of which nothing was run.
func (h *Head) Refuse(err error) {
	list, _ := errors.AsType[scn.ErrorList](err)
	for _, e := range list {
		h.Errors = append(h.Errors, Mistake{e.Pos.File, e.Pos.Line, e.Pos.Col, e.Msg, e.Hint})
	}
}

// Document is what came of files with one seed. It is what `enilab run --json` writes, and goes through JSON unharmed.
type Document struct {
	Head
	Seed     uint64         `json:"seed"`
	Verdict  string         `json:"verdict"` // of all files together
	Verdicts []MeaningJSON  `json:"verdicts"`
	Files    []FileDocument `json:"files"`
}

// OnlyFile reads the document that a run of one file wrote. A run that was refused is an error, in its own words.
func OnlyFile(document []byte) (*FileDocument, error) {
	var d Document
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("what enilab run --json wrote cannot be read: %w", err)
	}
	if len(d.Errors) > 0 {
		return nil, errors.New(d.Errors[0].Message)
	}
	if len(d.Files) != 1 {
		return nil, fmt.Errorf("the document of a run: expected one file, found %d", len(d.Files))
	}
	return &d.Files[0], nil
}

// Reasons are why lines were skipped, each once.
func (f *FileDocument) Reasons() (out []string) {
	for _, s := range f.Skipped {
		if !slices.Contains(out, s.Why) {
			out = append(out, s.Why)
		}
	}
	return out
}

// MeaningJSON is a verdict that there is.
type MeaningJSON struct {
	Verdict string `json:"verdict"`
	Exit    int    `json:"exit"`
	Means   string `json:"means"`
}

// NewDocument is the document of results. exit is the exit code of all files together.
func NewDocument(world string, seed uint64, exit int, results ...*Result) *Document {
	d := &Document{Head: Head{Enilab: RunFormat, World: world, Exit: exit}, Seed: seed, Files: []FileDocument{}}
	for _, m := range Meanings() {
		d.Verdicts = append(d.Verdicts, MeaningJSON{m.Word, m.Exit, m.Doc})
		if m.Exit == exit {
			d.Verdict = m.Word
		}
	}
	for _, r := range results {
		d.Files = append(d.Files, *r.Document())
	}
	return d
}

// SweepDocument is what came of files with a range of seeds.
type SweepDocument struct {
	Head
	From  uint64      `json:"from"`
	To    uint64      `json:"to"`
	Files []SweptFile `json:"files"`
}

// SweptFile is what came of one of these files.
type SweptFile struct {
	File     string        `json:"file"`
	Name     string        `json:"name"`
	Status   string        `json:"status"`
	Ran      int           `json:"ran"`
	Failed   []uint64      `json:"failed"` // seeds
	Variants int           `json:"variants"`
	Mutants  int           `json:"mutants"`
	Events   uint64        `json:"events"`
	Virtual  float64       `json:"virtual"`
	Wall     float64       `json:"wall"`
	Report   string        `json:"report"`
	First    *FileDocument `json:"first,omitempty"` // of the first seed that failed
}

// Document is what came of the file, for programs.
func (f *Sweep) Document() SweptFile {
	return SweptFile{File: f.Case.File.Name, Name: f.Case.Name(), Status: f.Status.String(), Ran: f.Ran,
		Failed: append([]uint64{}, f.Failed...), Variants: len(f.Case.Variants), Mutants: len(f.Case.Against),
		Events: f.Events, Virtual: f.Virtual.Seconds(), Wall: f.Wall.Seconds(), Report: f.Report(),
		First: f.First}
}

// FileDocument is what came of one file with one seed. Instants and durations are seconds.
type FileDocument struct {
	File      string            `json:"file"`
	Name      string            `json:"name"`
	Headline  string            `json:"headline,omitempty"`
	Source    string            `json:"source,omitempty"`
	System    string            `json:"system,omitempty"` // "NAME VERSION" of what was played in enilab's place
	Given     []string          `json:"given,omitempty"`  // tools that its machine has for it
	Status    string            `json:"status"`
	Judged    int               `json:"judged"`
	Skipped   []SkippedLine     `json:"skipped"`
	NotJudged []notJudgedJSON   `json:"notJudged"` // invariants for which the world lacks a source
	Unknown   []unknownJSON     `json:"unknown,omitempty"`
	Events    uint64            `json:"events"`
	Virtual   float64           `json:"virtual"`
	Wall      float64           `json:"wall"`
	Report    string            `json:"report"`
	Command   string            `json:"command"`
	Variants  []VariantDocument `json:"variants"`
	Mutants   []mutantJSON      `json:"mutants"`
	Crashes   []crashJSON       `json:"crashes,omitempty"`
	Story     string            `json:"story"`
	Differs   *diffJSON         `json:"storyDiffers,omitempty"`
	Updated   bool              `json:"updated"`
}

// SkippedLine is a line that was not carried out.
type SkippedLine struct {
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
	Settings []string `json:"settings"` // that the system does not know
}

// VariantDocument is what came of one variant.
type VariantDocument struct {
	Name     string         `json:"name"`
	Error    string         `json:"error,omitempty"`
	Ended    float64        `json:"ended"`
	Events   uint64         `json:"events"`
	Hash     string         `json:"hash"`
	Judged   int            `json:"judged"`
	Twice    bool           `json:"twice"`
	Same     bool           `json:"same"` // true when it was not run twice
	Broke    *BreakDocument `json:"broke,omitempty"`
	Missed   []MissedLine   `json:"missed"`
	Maybe    []MaybeLine    `json:"maybe,omitempty"`
	UnderWay []string       `json:"underWay"` // what had not settled
	// Unjudged are expectations that failed where a setting is unknown.
	Unjudged []unjudgedJSON   `json:"unjudged,omitempty"`
	All      []BrokenDocument `json:"all,omitempty"`   // all that broke, of each invariant the first ones
	Times    map[string]int   `json:"times,omitempty"` // how often each invariant broke
	Figures  *FiguresDocument `json:"figures,omitempty"`
	Timeline []string         `json:"timeline,omitempty"` // with Options.Timeline
}

// BrokenDocument is a violation, an expectation that was not met, or, with neither invariant nor line, a daemon that
// ended by itself.
type BrokenDocument struct {
	At        float64 `json:"at"`
	Node      int     `json:"node,omitempty"`
	Invariant string  `json:"invariant,omitempty"`
	Line      int     `json:"line,omitempty"`
	Text      string  `json:"text"`
}

// BreakDocument is what broke first.
type BreakDocument struct {
	BrokenDocument
	Before []string `json:"before"`
	Script []string `json:"script"`
}

// MissedLine is a line whose action missed, Times of Of.
type MissedLine struct {
	Line  int     `json:"line"`
	At    float64 `json:"at"`
	Text  string  `json:"text"`
	Times int     `json:"times"`
	Of    int     `json:"of"`
}

// MaybeLine is one that may miss.
type MaybeLine struct {
	Line   int  `json:"line"`
	Struck bool `json:"struck"`
}

type unjudgedJSON struct {
	Line int     `json:"line"`
	At   float64 `json:"at"`
	Text string  `json:"text"`
}

// FiguresDocument is what a run has cost: sim.Figures with durations in seconds.
type FiguresDocument struct {
	*sim.Figures
	Add   float64          `json:"add"`
	Del   float64          `json:"del"`
	Start float64          `json:"start"`
	Ready float64          `json:"ready"`
	Calls map[string]int64 `json:"calls"`
	Pods  []podJSON        `json:"pods"`
}

// podJSON is from a pod's ADD to its DEL.
type podJSON struct {
	Made  float64  `json:"made"`
	Ended *float64 `json:"ended,omitempty"` // left out: it was not deleted
}

type mutantJSON struct {
	Mutant   string         `json:"mutant"`
	Variant  string         `json:"variant"`
	Line     int            `json:"line"`
	Expected string         `json:"expected"`
	By       *float64       `json:"by,omitempty"`
	Proved   bool           `json:"proved"`
	Why      string         `json:"why,omitempty"`
	Broke    *BreakDocument `json:"broke,omitempty"`
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

type diffJSON struct {
	Line   int    `json:"line"`
	Golden string `json:"golden"`
	Now    string `json:"now"`
}

// Document is what came of the file, for programs.
func (r *Result) Document() *FileDocument {
	f := r.Case.File
	d := &FileDocument{File: f.Name, Name: r.Case.Name(), Headline: f.Headline(), Source: f.Source,
		System: r.Case.Place.System, Given: r.Case.Place.Given, Status: r.Status.String(), Judged: r.Judged,
		Skipped: []SkippedLine{}, NotJudged: []notJudgedJSON{}, Events: r.Events, Virtual: r.Virtual.Seconds(),
		Wall: r.Wall.Seconds(), Report: r.Report(), Command: r.Command(), Variants: []VariantDocument{},
		Mutants: []mutantJSON{}, Story: r.Story, Updated: r.Updated}
	for _, s := range r.Skipped {
		d.Skipped = append(d.Skipped, SkippedLine{s.Pos.Line, s.Why})
	}
	for _, n := range r.NotJudged {
		i, _ := judge.ByPhrase(n.Invariant.Phrase())
		d.NotJudged = append(d.NotJudged, notJudgedJSON{i.Phrase, (i.Needs & r.Case.Place.Without).Names(),
			n.Pos.Line})
	}
	for _, u := range r.Unknown {
		d.Unknown = append(d.Unknown, unknownJSON{u.Pos.Line, u.System, u.Settings})
	}
	for i := range r.Runs {
		d.Variants = append(d.Variants, r.Runs[i].document())
	}
	for i := range r.Bites {
		d.Mutants = append(d.Mutants, r.Bites[i].document())
	}
	for i := range r.Crashes {
		d.Crashes = append(d.Crashes, r.Crashes[i].document())
	}
	if x := r.Diff; x != nil {
		d.Differs = &diffJSON{x.Line, x.Want, x.Got}
	}
	return d
}

func (o *Outcome) document() VariantDocument {
	// JSON's numbers would round it
	d := VariantDocument{Name: o.Variant, Events: o.Events, Hash: fmt.Sprintf("%016x", o.Hash),
		Twice: o.Twice, Same: !o.Differs, Broke: o.Break.document(), Missed: []MissedLine{}, UnderWay: []string{},
		Figures: figures(o.Figures)}
	if o.Err != nil {
		d.Error = o.Err.Error()
	}
	if o.Timeline != "" {
		d.Timeline = strings.Split(strings.TrimSuffix(o.Timeline, "\n"), "\n")
	}
	v := o.Verdict
	if v == nil {
		return d
	}
	d.Ended, d.Judged = v.Ended.Seconds(), v.Judged
	for _, u := range v.Unplayed {
		d.Missed = append(d.Missed, MissedLine{u.Pos.Line, u.At.Seconds(), u.Text, u.Times, u.Of})
	}
	for _, m := range v.Maybe {
		d.Maybe = append(d.Maybe, MaybeLine{m.Pos.Line, m.Struck})
	}
	d.UnderWay = append(d.UnderWay, v.UnderWay...)
	for _, u := range v.Unjudged {
		d.Unjudged = append(d.Unjudged, unjudgedJSON{u.Pos.Line, u.At.Seconds(), u.Text})
	}
	d.broken(v)
	return d
}

// mostAll is how many violations of one invariant are told: they are alike.
const mostAll = 40

func (d *VariantDocument) broken(v *sim.Verdict) {
	d.Times = map[string]int{}
	for _, b := range v.Violations {
		phrase := b.Invariant.Phrase()
		if d.Times[phrase]++; d.Times[phrase] <= mostAll {
			d.All = append(d.All, BrokenDocument{At: b.At.Seconds(), Node: b.Node, Invariant: phrase, Text: b.Text})
		}
	}
	for _, f := range v.Failures {
		d.All = append(d.All, BrokenDocument{At: f.At.Seconds(), Line: f.Pos.Line, Text: f.Text})
	}
}

func figures(f *sim.Figures) *FiguresDocument {
	if f == nil {
		return nil
	}
	d := &FiguresDocument{f, f.Add.Seconds(), f.Del.Seconds(), f.Start.Seconds(), f.Ready.Seconds(), f.Calls,
		[]podJSON{}}
	for _, p := range f.Pods {
		one := podJSON{Made: p.Made.Seconds()}
		if ended := p.Ended.Seconds(); p.Deleted {
			one.Ended = &ended
		}
		d.Pods = append(d.Pods, one)
	}
	return d
}

// Told are the figures of a document that came through JSON.
func (d *FiguresDocument) Told() *sim.Figures {
	if d == nil {
		return nil
	}
	f := sim.Figures{}
	if d.Figures != nil {
		f = *d.Figures
	}
	f.Add, f.Del, f.Start, f.Ready, f.Calls, f.Pods = duration(d.Add), duration(d.Del), duration(d.Start),
		duration(d.Ready), d.Calls, nil
	for _, p := range d.Pods {
		one := sim.PodLife{Made: duration(p.Made)}
		if p.Ended != nil {
			one.Ended, one.Deleted = duration(*p.Ended), true
		}
		f.Pods = append(f.Pods, one)
	}
	return &f
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

func (b *Bite) document() mutantJSON {
	d := mutantJSON{Mutant: b.Against.Mutant.Name, Variant: b.Outcome.Variant, Line: b.Against.Pos.Line,
		Expected: b.Against.Claim.Invariant, Proved: b.Why == "", Why: b.Why, Broke: b.Outcome.Break.document()}
	if by := b.Against.Claim.By.Seconds(); b.Against.Claim.HasBy {
		d.By = &by
	}
	return d
}

func (c *Crashes) document() crashJSON {
	d := crashJSON{Variant: c.Variant, Points: c.Report.Points, Forks: c.Report.Forks, Broken: []forkJSON{}}
	if c.Err != nil {
		d.Error = c.Err.Error()
	}
	for _, b := range c.Report.Broken {
		d.Broken = append(d.Broken, forkJSON{b.At.Seconds(), b.Node, b.Event, append([]string{}, b.InFlight...),
			b.Choice, b.What})
	}
	return d
}

func (b *Break) document() *BreakDocument {
	if b == nil {
		return nil
	}
	return &BreakDocument{BrokenDocument{b.At.Seconds(), b.Node, b.Invariant, b.Pos.Line, b.Text},
		append([]string{}, b.Before...), append([]string{}, b.Script...)}
}
