package runner

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/verb"
	"github.com/enilab/enilab/sim/virtual"
)

// Outcome is one run of one variant.
type Outcome struct {
	Variant string
	Verdict *sim.Verdict // nil when the world could not be opened
	Err     error        // why not; or why the world itself broke
	Differ  []string     // where the world contradicts the simulator's core or model
	Break   *Break       // what broke first; nil when nothing did
	// End is the instant of the scenario at which the run would have been over.
	End time.Duration
	Cut bool // interrupted, perhaps before t=0
	// Uncompared is why the run cannot be compared with virtual time.
	Uncompared string
	// Slow is why what failed counts for nothing: this machine did not keep up. It has a method TooSlow.
	Slow error
	// Timeline is all that happened, a line each, with Options.Timeline.
	Timeline string
	// Record is what a report shows, with Options.Record.
	Record  *Record
	Figures *sim.Figures // what it has cost; nil: unknown
	Events  uint64
	Wall    time.Duration // this machine's
	Hash    uint64        // of the trace
	Twice   bool          // it was run twice
	Differs bool          // and the two were not the same
}

// Open makes the variant's world and the run through it.
func (v *Variant) Open(seed uint64, m *mutants.Mutant) (*sim.Run, World, error) {
	w, err := v.place.Open(v.Cluster, seed, m)
	if err != nil {
		return nil, nil, err
	}
	r, err := sim.NewRun(v.File, w, v.place.Name)
	if err != nil {
		return nil, nil, errors.Join(err, w.Close())
	}
	r.StopAtFirst = m != nil
	return r, w, nil
}

// OpenSim is Open for a place in virtual time, whose world can do more.
func (v *Variant) OpenSim(seed uint64, m *mutants.Mutant) (*sim.Run, *virtual.World, error) {
	r, w, err := v.Open(seed, m)
	if err != nil {
		return nil, nil, err
	}
	vw, ok := w.(*virtual.World)
	if !ok {
		return nil, nil, errors.Join(fmt.Errorf("world %s cannot be forked or recorded: use sim", v.place.Name), w.Close())
	}
	return r, vw, nil
}

// once runs a variant from its begin to its end.
func (v *Variant) once(o *Options, m *mutants.Mutant, p Progress) (out Outcome) {
	out = Outcome{Variant: v.Name}
	o.tell(p)
	began := time.Now()
	defer func() { out.Wall = time.Since(began) }()
	if o.Begins != nil {
		o.Begins(p, o.Seed)
	}
	r, w, err := v.Open(o.Seed, m)
	if u, ok := errors.AsType[violatedEarly](err); ok {
		out.Verdict = &sim.Verdict{Violations: u.Violations()}
		out.Break = first(v, out.Verdict, m != nil)
		return out
	}
	if err != nil {
		out.Err, out.Cut = err, o.interrupted()
		return out
	}
	defer func() { out.Err = errors.Join(out.Err, w.Close()) }()
	p.End = r.End()
	r.StopAtFirst = r.StopAtFirst || o.StopAtFirst
	watch := o.watch(p, w, v.place.Repeatable)
	rec := o.record(r, w, v)
	over := func() {}
	if o.Opened != nil {
		over = o.Opened(v, w, r)
	}
	out.Verdict = r.Finish(rec.watch(watch))
	over()
	if out.Err = r.Err(); out.Err != nil {
		return out
	}
	out.Record = rec.end()
	out.End, out.Cut = r.End(), out.Verdict.Cut
	out.Events = w.Popped()
	can := w.Capabilities()
	if can.Figures != nil && !out.Cut {
		out.Figures = can.Figures()
	}
	if can.Crashes != nil {
		out.Verdict.Failures = append(out.Verdict.Failures, can.Crashes()...)
		slices.SortStableFunc(out.Verdict.Failures, func(a, b sim.Failure) int { return cmp.Compare(a.At, b.At) })
	}
	if can.Book != nil && m == nil && !out.Cut {
		out.Differ, out.Uncompared = v.compared(o, out.Verdict, &can)
	}
	if o.Linger != nil {
		o.Linger(w)
		out.Verdict.Violations = violations(w) // people do things, and they are judged
	}
	if can.Disagreements != nil {
		out.Differ = append(can.Disagreements(), out.Differ...)
	}
	if can.Broken != nil && !out.Cut { // what breaks at the end of an interrupted run is its end
		out.Err = can.Broken()
	}
	if h, ok := w.(*virtual.World); ok {
		out.Hash = h.Hash()
	}
	out.Record.name(w.Named)
	out.name(w.Named)
	if out.Break = first(v, out.Verdict, m != nil); out.Break != nil {
		out.Break.Before = last(w.TimelineUntil(out.Break.At), storyShown)
	}
	if o.Timeline {
		out.Timeline = w.Timeline()
	}
	if can.TooSlow != nil && !out.Cut && (m != nil || out.Break != nil || len(out.Differ) > 0) {
		out.Slow = can.TooSlow()
	}
	return out
}

// SoFar is what is known of a run that is under way, as of one that ends now.
func SoFar(v *Variant, w World, r *sim.Run) Outcome {
	verdict := r.SoFar()
	out := Outcome{Variant: v.Name, Verdict: &verdict, End: r.End(), Cut: true, Events: w.Popped(), Timeline: w.Timeline()}
	out.name(w.Named)
	if out.Break = first(v, &verdict, false); out.Break != nil {
		out.Break.Before = last(w.TimelineUntil(out.Break.At), storyShown)
	}
	return out
}

// violations are a world's, at instants of the scenario.
func violations(w World) []judge.Violation {
	out := slices.Clone(w.Audit().Violations())
	for i := range out {
		out[i].At -= w.Epoch()
	}
	return out
}

// compared holds what happened to each ENI and attachment against virtual time, or says why that cannot be known.
func (v *Variant) compared(o *Options, verdict *sim.Verdict, can *sim.Capabilities) (differ []string, not string) {
	switch {
	case o.Seed != DefaultSeed:
		return nil, fmt.Sprintf("only seed %d is, others draw delays that hit whoever comes first by a millisecond", DefaultSeed)
	case len(verdict.Violations)+len(verdict.Failures) > 0:
		return nil, "it did not hold"
	case v.draws():
		return nil, "it draws faults, which hit whoever comes first by a millisecond"
	}
	if why := can.Incomparable(); why != "" {
		return nil, why
	}
	return v.otherwiseTold(o, verdict.Skipped, can.Book())
}

// draws says whether a line of this world draws faults at random.
func (v *Variant) draws() bool {
	return slices.ContainsFunc(v.File.Lines, func(l scn.Line) bool {
		at, ok := l.Stmt.(*scn.At)
		return ok && at.Action != nil && verb.Of(at.Action).AtRandom && l.Guard.Allows(v.place.Name)
	})
}

// otherwiseTold runs the same lines in virtual time, and gives what happened to an ENI or an attachment in only one of the two worlds.
func (v *Variant) otherwiseTold(o *Options, skipped []sim.Skip, told *timeline.Book) (differ []string, not string) {
	f := v.File
	for _, s := range skipped {
		for _, l := range f.Lines {
			if l.Pos == s.Pos {
				f = f.Without(l.Number)
			}
		}
	}
	book := timeline.NewBook()
	w, err := virtual.OpenWith(v.Cluster, o.Seed, nil, book)
	if err != nil {
		return []string{"timeline: virtual time cannot tell it: " + err.Error()}, ""
	}
	r, err := sim.NewRun(f, w, v.place.Name)
	if err != nil {
		return []string{"timeline: virtual time cannot tell it: " + err.Error()}, ""
	}
	verdict := r.Finish(o.Interrupted)
	switch d := book.Diff(told); {
	case verdict.Cut:
		return nil, "it was interrupted"
	case len(verdict.Violations)+len(verdict.Failures) > 0:
		return []string{"timeline: in virtual time it does not hold"}, ""
	case len(d) > 0:
		return []string{"timeline: what happened in virtual time only (-), and here only (+):\n  " + strings.Join(d, "\n  ")}, ""
	}
	return nil, ""
}

// ordinary runs a variant without a mutant, and once more when it is chosen for that.
func (v *Variant) ordinary(o *Options, file string, p Progress) Outcome {
	out := v.once(o, nil, p)
	if out.Err != nil || out.Verdict.Cut || !v.place.Repeatable || !o.twice(file, v.Name) {
		return out
	}
	p.Doing = "again, to compare"
	again := v.once(o, nil, p)
	if again.Verdict != nil && again.Verdict.Cut {
		out.Verdict.Cut = true
		return out
	}
	out.Twice, out.Differs = true, !same(&out, &again)
	return out
}

// same compares two runs with the same seed.
func same(a, b *Outcome) bool {
	return b.Err == nil && a.Hash == b.Hash && a.Events == b.Events && a.Verdict.Story == b.Verdict.Story
}
