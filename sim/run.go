package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Run is a scenario on its way through a world. It is plain data beside the world, so that it can be forked with it.
type Run struct {
	File    *scn.File // expanded: no variables are left
	World   World
	world   string // its name, for guards
	steps   []step
	next    int
	open    []pendingCheck
	left    []*scn.Action // actions that the world cannot carry out
	done    []deed
	verdict Verdict
	end     time.Duration // of the last line
	finally time.Duration // how long settling may take; 0 there is no finally line
	never   scn.Pos       // of the line that says why it cannot settle
	// StopAtFirst ends the run at the first violation: enough to know which invariant a mutant breaks first.
	StopAtFirst bool
	stopped     bool
	err         error // of a call
}

// step is one line at one instant, or a call.
type step struct {
	at    time.Duration
	line  int // index into File.Lines
	act   *verb.Act
	check *scn.Check
	call  func() error
}

// deed is an action that was carried out.
type deed struct {
	step
	id int // as the world calls it
}

// Deed is an action that was carried out, and what has become of it.
type Deed struct {
	At     time.Duration
	Line   int // of the file
	Act    *verb.Act
	Strike verb.Strike
}

// Deeds are the actions that were carried out, in their order.
func (r *Run) Deeds() []Deed {
	out := make([]Deed, len(r.done))
	for i, d := range r.done {
		out[i] = Deed{d.at, r.File.Lines[d.line].Number, d.act, r.World.Strike(d.id)}
	}
	return out
}

// pendingCheck is a `within` that has not come true.
type pendingCheck struct {
	until time.Duration
	step  step
}

// Verdict is how a run ended.
type Verdict struct {
	Violations []judge.Violation // instants are the scenario's
	Failures   []Failure
	Missed     []string // coverage points that were not reached
	Unplayed   []Unplayed
	Maybe      []Maybe
	UnderWay   []string // what had not settled at the end
	NeverMeant string   // why the file says that it never settles
	Judged     int      // expectations judged
	Skipped    []Skip
	NotJudged  []NotJudged
	Unknown    []Unknown
	Unjudged   []Failure     // expectations that did not hold, where Unknown may be the reason
	Ended      time.Duration // instant of the scenario
	Cut        bool          // interrupted
	Story      string
}

// Unplayed is an action that missed, or that nothing met.
type Unplayed struct {
	Pos   scn.Pos
	At    time.Duration // of the first time
	Text  string        // "node-1 flush-routes table=3: the table has no routes"
	Times int           // how often it did, of those that its line asks for
	Of    int
}

// Maybe is a line that may miss, and whether it struck.
type Maybe struct {
	Pos    scn.Pos
	Struck bool
}

// Failure is an expectation that did not hold.
type Failure struct {
	Pos  scn.Pos
	At   time.Duration
	Text string
}

// NotJudged is an invariant that the world lacks a source for. It is never held.
type NotJudged struct {
	Invariant judge.ID
	Pos       scn.Pos // of the line that expects it always; zero when none does
}

// Unknown are the settings of a line that mean nothing to the system that is played, from an instant on.
type Unknown struct {
	Pos      scn.Pos
	From     time.Duration
	System   string // "NAME VERSION"
	Settings []string
}

// Skip is a line that the world cannot carry out.
type Skip struct {
	Pos scn.Pos
	Why string
}

// Held says whether everything was played, settled, and held. A run of which nothing was judged is not held, it is skipped.
func (v *Verdict) Held() bool {
	return len(v.Violations) == 0 && len(v.Failures) == 0 && len(v.Missed) == 0 && len(v.Unplayed) == 0 && v.Settled() && !v.Cut
}

// Settled says whether nothing was under way at the end, or the file says that something is.
func (v *Verdict) Settled() bool { return len(v.UnderWay) == 0 || v.NeverMeant != "" }

// NewRun prepares a checked, expanded scenario for a world of that name.
func NewRun(f *scn.File, w World, world string) (*Run, error) {
	r := &Run{File: f, World: w, world: world}
	for i := range f.Lines {
		l := &f.Lines[i]
		if l.Stmt == nil {
			continue
		}
		if !l.Guard.Allows(world) {
			r.skip(l, "the line is not for world "+world)
			continue
		}
		r.unknown(l)
		if err := w.Can(l); err != nil {
			r.skip(l, err.Error())
			if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil {
				r.left = append(r.left, at.Action)
			}
			continue
		}
		switch s := l.Stmt.(type) {
		case *scn.At:
			if err := r.schedule(i, s); err != nil {
				return nil, err
			}
		case *scn.Finally:
			r.finally = s.Within
		case *scn.Never:
			r.verdict.NeverMeant, r.never = s.Reason, s.Pos
		case *scn.Compare:
			r.skip(l, "compare needs two worlds, and there is one")
		}
	}
	r.notJudged()
	slices.SortStableFunc(r.steps, func(a, b step) int { return int(a.at - b.at) })
	return r, nil
}

// notJudged notes what the world cannot judge, and which lines expect it.
func (r *Run) notJudged() {
	for _, id := range r.World.Audit().NotJudged() {
		n := NotJudged{Invariant: id}
		for _, l := range r.File.Lines {
			if a, ok := l.Stmt.(*scn.Always); ok && l.Guard.Allows(r.world) && a.Invariant == id.Phrase() {
				n.Pos = l.Pos
			}
		}
		r.verdict.NotJudged = append(r.verdict.NotJudged, n)
	}
}

// unknown notes which settings of a line the system does not know.
func (r *Run) unknown(l *scn.Line) {
	unknown := r.World.Capabilities().Unknown
	if unknown == nil {
		return
	}
	system, settings := unknown(l)
	if len(settings) == 0 {
		return
	}
	u := Unknown{Pos: l.Pos, System: system, Settings: settings}
	if at, ok := l.Stmt.(*scn.At); ok {
		u.From = at.When
	}
	r.verdict.Unknown = append(r.verdict.Unknown, u)
}

func (r *Run) skip(l *scn.Line, why string) {
	r.verdict.Skipped = append(r.verdict.Skipped, Skip{l.Pos, why})
}

func (r *Run) schedule(line int, s *scn.At) error {
	st := step{at: s.When, line: line, check: s.Check}
	if s.Action != nil {
		act, err := verb.Bind(s.Action)
		if err != nil {
			return err
		}
		st.act = act
	}
	for {
		r.steps = append(r.steps, st)
		r.end = max(r.end, st.at)
		if s.Check != nil && s.Check.HasWithin {
			r.end = max(r.end, st.at+s.Check.Within)
		}
		if st.at += s.Every; !s.HasEvery || st.at > s.Until {
			return nil
		}
	}
}

// Call lets f happen at an instant that is still to come, before the lines of that instant. An error ends the run: Err
// returns it.
func (r *Run) Call(at time.Duration, f func() error) {
	i := r.next
	for i < len(r.steps) && r.steps[i].at < at {
		i++
	}
	r.steps = slices.Insert(r.steps, i, step{at: at, call: f})
}

// Err is the error of the call that ended the run.
func (r *Run) Err() error { return r.err }

// Become exchanges the actions that are still to come for those of another scenario, which has the same lines but for
// what these actions do. A line that has begun, or anything else that differs, is an error, and nothing is exchanged.
func (r *Run) Become(f *scn.File) error {
	if len(f.Lines) != len(r.File.Lines) {
		return fmt.Errorf("the other scenario has %d lines, expected %d", len(f.Lines), len(r.File.Lines))
	}
	acts := map[int]*verb.Act{}
	for i := range f.Lines {
		was, is := &r.File.Lines[i], &f.Lines[i]
		if was.String() == is.String() {
			continue
		}
		a, ok := was.Stmt.(*scn.At)
		b, ok2 := is.Stmt.(*scn.At)
		begun := slices.ContainsFunc(r.steps[:r.next], func(s step) bool { return s.act != nil && s.line == i })
		if !ok || !ok2 || a.Action == nil || b.Action == nil || a.When != b.When || a.HasEvery || b.HasEvery || begun {
			return fmt.Errorf("line %d is %q in the other scenario, expected %q: only actions that are still to come "+
				"can be exchanged", is.Number, is.String(), was.String())
		}
		act, err := verb.Bind(b.Action)
		if err != nil {
			return err
		}
		acts[i] = act
	}
	for _, i := range slices.Sorted(maps.Keys(acts)) {
		r.File.Lines[i] = f.Lines[i]
		r.unknown(&r.File.Lines[i])
		for k := r.next; k < len(r.steps); k++ {
			if s := &r.steps[k]; s.line == i && s.act != nil {
				s.act = acts[i]
			}
		}
	}
	return nil
}

// Clone forks the run with its world.
func (r *Run) Clone(w World) *Run {
	c := *r
	c.World = w
	c.open, c.done = slices.Clone(r.open), slices.Clone(r.done)
	c.verdict.Failures = slices.Clone(r.verdict.Failures)
	c.verdict.Skipped = slices.Clone(r.verdict.Skipped)
	c.verdict.Unjudged = slices.Clone(r.verdict.Unjudged)
	return &c
}

// To carries out every line up to instant t. interrupted, if any, is asked between events and ends the run.
func (r *Run) To(t time.Duration, interrupted func() bool) {
	for !r.stopped {
		at := min(t, r.nextStop())
		r.World.Until(at, r.each(interrupted))
		if r.stopped {
			return
		}
		r.expired(at)
		for r.next < len(r.steps) && r.steps[r.next].at <= at {
			r.take(r.steps[r.next], interrupted)
			if r.stopped {
				return
			}
			r.next++
		}
		if at >= t {
			return
		}
	}
}

// nextStop is the instant of the next line or the end of a `within`; far away when there is none.
func (r *Run) nextStop() time.Duration {
	at := time.Duration(math.MaxInt64)
	if r.next < len(r.steps) {
		at = r.steps[r.next].at
	}
	for i := range r.open {
		at = min(at, r.open[i].until)
	}
	return at
}

// each is what has to be looked at after every event: nothing, if nothing waits for anything.
func (r *Run) each(interrupted func() bool) func() bool {
	if len(r.open) == 0 && interrupted == nil && !r.StopAtFirst {
		return nil
	}
	return func() bool {
		if r.cut(interrupted) {
			return true
		}
		if r.StopAtFirst {
			if _, broken := r.World.Audit().First(); broken {
				r.stopped = true
				return true
			}
		}
		r.settleChecks()
		return false
	}
}

// cut ends the run if it was interrupted.
func (r *Run) cut(interrupted func() bool) bool {
	if interrupted == nil || !interrupted() {
		return false
	}
	r.verdict.Cut, r.stopped = true, true
	return true
}

// settleChecks drops the checks that have come true.
func (r *Run) settleChecks() {
	r.open = slices.DeleteFunc(r.open, func(p pendingCheck) bool {
		ok := r.holds(p.step.check)
		if ok {
			r.verdict.Judged++
		}
		return ok
	})
}

// expired fails the checks whose time is up.
func (r *Run) expired(at time.Duration) {
	r.settleChecks()
	r.open = slices.DeleteFunc(r.open, func(p pendingCheck) bool {
		if p.until > at {
			return false
		}
		r.verdict.Judged++
		r.fail(p.step, fmt.Sprintf("expected within %v: %s; %s", p.step.check.Within, describeCheck(p.step.check), r.found(p.step.check)))
		return true
	})
}

func (r *Run) take(s step, interrupted func() bool) {
	if s.call != nil {
		if r.err = s.call(); r.err != nil {
			r.stopped = true
		}
		return
	}
	if s.act != nil {
		r.done = append(r.done, deed{s, r.World.Do(s.act)})
		return
	}
	if s.check.HasWithin {
		r.open = append(r.open, pendingCheck{s.at + s.check.Within, s})
		r.settleChecks()
		return
	}
	r.World.Steady()
	if r.cut(interrupted) { // perhaps on the way to a steady cluster
		return
	}
	r.verdict.Judged++
	if !r.holds(s.check) {
		r.fail(s, "expected "+describeCheck(s.check)+"; "+r.found(s.check))
	}
}

// fail is an expectation that did not hold. It is not judged where the system lacks a setting that was to bring it about: invariants are all the same.
func (r *Run) fail(s step, text string) {
	f := Failure{r.File.Lines[s.line].Pos, r.World.Now(), text}
	if slices.ContainsFunc(r.verdict.Unknown, func(u Unknown) bool { return u.From <= s.at }) {
		r.verdict.Judged--
		r.verdict.Unjudged = append(r.verdict.Unjudged, f)
		return
	}
	r.verdict.Failures = append(r.verdict.Failures, f)
}

func describeCheck(c *scn.Check) string {
	s := c.Subject.String() + " " + c.Metric
	if c.Op != "" {
		s += " " + c.Op + " " + c.Value
	}
	return s
}

// holds judges a check, now. It is asked after every event, so it builds no text.
func (r *Run) holds(c *scn.Check) bool {
	v, measured := r.World.Measure(c.Subject, c.Metric)
	if !measured {
		return false
	}
	switch c.Value {
	case "", "true":
		return compare(v, c.Op, 1)
	case "false":
		return compare(v, c.Op, 0)
	}
	want, _ := strconv.ParseInt(c.Value, 10, 64) // checked by Check
	return compare(v, c.Op, want)
}

func compare(v int64, op string, want int64) bool {
	switch op {
	case "", "==":
		return v == want
	case "!=":
		return v != want
	case "<":
		return v < want
	case "<=":
		return v <= want
	case ">":
		return v > want
	case ">=":
		return v >= want
	}
	return false
}

// found says what a check that does not hold met instead.
func (r *Run) found(c *scn.Check) string {
	v, measured := r.World.Measure(c.Subject, c.Metric)
	switch {
	case !measured:
		return "it could not be measured"
	case isFlag(c):
		return "found " + strconv.FormatBool(v != 0)
	}
	return "found " + strconv.FormatInt(v, 10)
}

func isFlag(c *scn.Check) bool {
	return slices.ContainsFunc(Metrics(), func(m Metric) bool { return m.Flag && m.Name == c.Metric })
}

// End is the instant at which the run is over.
func (r *Run) End() time.Duration { return r.end + r.finally }

// EndOf is when a run of an expanded file is over at the latest, in a world that can do all of it.
func EndOf(f *scn.File) time.Duration {
	var end, finally time.Duration
	for _, l := range f.Lines {
		switch s := l.Stmt.(type) {
		case *scn.At:
			at := s.When
			if s.HasEvery {
				at = max(at, s.Until)
			}
			if s.Check != nil && s.Check.HasWithin {
				at += s.Check.Within
			}
			end = max(end, at)
		case *scn.Finally:
			finally = s.Within
		}
	}
	return end + finally
}

// LastLine is the instant after which no line does anything.
func (r *Run) LastLine() time.Duration { return r.end }

// Finish runs to the end, settles, and says how it was.
func (r *Run) Finish(interrupted func() bool) *Verdict {
	r.To(r.end, interrupted)
	if !r.stopped {
		r.World.EndFaults()
		r.To(r.End(), interrupted)
	}
	if !r.stopped && r.finally > 0 {
		r.settle()
		r.cut(interrupted)
	}
	v := &r.verdict
	v.Ended, v.Story = r.World.Now(), r.World.Story()
	for _, b := range r.World.Audit().Violations() {
		b.At -= r.World.Epoch()
		v.Violations = append(v.Violations, b)
	}
	if !r.stopped {
		r.missed()
		r.unplayed()
	}
	return v
}

// SoFar is how the run is while it is under way: what has broken and failed, and what was judged.
func (r *Run) SoFar() Verdict {
	v := r.verdict
	v.Ended, v.Cut, v.Failures = r.World.Now(), true, slices.Clone(v.Failures)
	for _, b := range r.World.Audit().Violations() {
		b.At -= r.World.Epoch()
		v.Violations = append(v.Violations, b)
	}
	return v
}

// Ahead are the positions of the lines that have not been carried out yet, each with its next instant, and of the expectations that have some time
// left to come true, with the end of that.
func (r *Run) Ahead() (lines []Due) {
	for _, p := range r.open {
		lines = append(lines, Due{r.File.Lines[p.step.line].Pos, p.until})
	}
	for _, s := range r.steps[min(r.next, len(r.steps)):] {
		pos := r.File.Lines[s.line].Pos
		if !slices.ContainsFunc(lines, func(d Due) bool { return d.Pos == pos }) {
			lines = append(lines, Due{pos, s.at})
		}
	}
	return lines
}

// Due is a line and an instant of the scenario.
type Due struct {
	Pos scn.Pos
	At  time.Duration
}

// settle judges the end. A file that says that it never settles has to be right.
func (r *Run) settle() {
	r.verdict.UnderWay = r.World.Settle()
	blind := len(r.verdict.NotJudged) > 0 // then it may be the daemon that knows what is under way
	if r.verdict.NeverMeant != "" && len(r.verdict.UnderWay) == 0 && !blind {
		r.verdict.Failures = append(r.verdict.Failures, Failure{r.never, r.World.Now(),
			fmt.Sprintf("expected that it never settles (%s); found nothing under way", r.verdict.NeverMeant)})
	}
}

// unplayed collects the lines whose actions missed. An armed action that nothing has met by the end has missed.
func (r *Run) unplayed() {
	v := &r.verdict
	at, maybe := map[int]int{}, map[int]int{} // line: its place in v.Unplayed and in v.Maybe
	of := map[int]int{}                       // line: how often it was carried out
	var lines []int                           // of v.Unplayed
	for _, d := range r.done {
		of[d.line]++
		l := &r.File.Lines[d.line]
		s := r.World.Strike(d.id)
		if stmt, _ := l.Stmt.(*scn.At); stmt.Maybe {
			if _, known := maybe[d.line]; !known {
				maybe[d.line] = len(v.Maybe)
				v.Maybe = append(v.Maybe, Maybe{Pos: l.Pos})
			}
			m := &v.Maybe[maybe[d.line]]
			m.Struck = m.Struck || s.Fate == verb.Struck
			continue
		}
		if s.Fate == verb.Struck {
			continue
		}
		if i, known := at[d.line]; known {
			v.Unplayed[i].Times++
			continue
		}
		at[d.line], lines = len(v.Unplayed), append(lines, d.line)
		v.Unplayed = append(v.Unplayed, Unplayed{Pos: l.Pos, At: d.at, Text: s.Text, Times: 1})
	}
	for i, line := range lines {
		v.Unplayed[i].Of = of[line]
	}
}

func (r *Run) missed() {
	for i := range r.File.Lines {
		l := &r.File.Lines[i]
		m, ok := l.Stmt.(*scn.Reaches)
		if !ok || !l.Guard.Allows(r.world) || r.World.Reached(m.Point) {
			continue
		}
		if excuse := r.World.Capabilities().Excuse; excuse != nil {
			if err := excuse(m.Point, r.left); err != nil {
				r.skip(l, err.Error())
				continue
			}
		}
		r.verdict.Missed = append(r.verdict.Missed, m.Point)
	}
}
