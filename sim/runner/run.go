package runner

import (
	"fmt"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
)

// Run runs the file: its variants and then each of its mutants, unless Options asks for something else.
func (c *Case) Run(o Options) *Result {
	r := &Result{Case: c, Seed: o.Seed}
	defer func(began time.Time) { r.Wall = time.Since(began) }(time.Now())
	p := Progress{Scenario: c.Name(), Runs: len(c.Variants) * (1 + len(c.Against))}
	if o.Against != nil {
		r.Mutant, p.Runs, p.Doing = o.Against.Name, len(c.Variants), "mutant "+o.Against.Name
	}
	if o.Crash {
		p.Runs = 2 * len(c.Variants)
	}
	if !c.anything() {
		r.Status = Skipped
		return r
	}
	for i := range c.Variants {
		if o.interrupted() {
			r.worsen(Interrupted)
			return r
		}
		v := &c.Variants[i]
		p.Variant = v.Name
		p.Run++
		if o.Against != nil {
			r.add(v.once(&o, o.Against, p))
		} else {
			r.add(v.ordinary(&o, c.Name(), p))
		}
		if r.Runs[len(r.Runs)-1].Cut {
			return r
		}
	}
	switch {
	case r.Status == Interrupted:
	case o.Crash:
		if r.Status == Held { // else there is nothing to compare with
			c.crashEverywhere(r, &o, p)
		}
	case o.Against == nil:
		r.golden(&o)
		c.bite(r, &o, p)
	}
	if r.Status == Held && !c.judges(r) {
		r.Status = Skipped
	}
	return r
}

// add takes the outcome of a variant.
func (r *Result) add(out Outcome) {
	r.count(&out)
	if v := out.Verdict; out.Slow != nil && out.Err == nil && (out.Break != nil || len(out.Differ) > 0 || v != nil && (len(v.Unplayed) > 0 || !v.Settled())) {
		out.Err = out.Slow
	}
	r.Runs = append(r.Runs, out)
	switch {
	case out.Cut:
		r.worsen(Interrupted)
	case tooSlow(out.Err):
		r.worsen(TooSlow)
	case lacks(out.Err):
		r.worsen(Skipped)
	case out.Err != nil && out.Verdict != nil:
		r.worsen(NotPlayed)
	case out.Err != nil && r.Mutant != "":
		r.worsen(Violated) // what the mutant broke is the start
	case out.Err != nil:
		r.worsen(Bad)
	case out.Break != nil:
		r.worsen(Violated)
	case r.Mutant == "" && len(out.Verdict.Unplayed) > 0:
		r.worsen(NotPlayed)
	}
	if v := out.Verdict; v != nil && !v.Settled() {
		r.worsen(NotSettled)
	}
	if out.Differs {
		r.worsen(Unrepeatable)
	}
	if len(out.Differ) > 0 {
		r.worsen(Violated)
	}
	if out.Verdict != nil {
		r.Judged += out.Verdict.Judged
		r.Skipped = append(r.Skipped, out.Verdict.Skipped...)
		if len(r.Runs) == 1 {
			r.NotJudged = out.Verdict.NotJudged // variants have the same
			r.Unknown = out.Verdict.Unknown
			r.Story = out.Verdict.Story
		}
	}
}

// judges says whether anything was judged: an expectation, or an invariant that a line of this world names.
func (c *Case) judges(r *Result) bool {
	if r.Judged > 0 {
		return true
	}
	for _, l := range c.File.Lines {
		if !l.Guard.Allows(c.Place.Name) {
			continue
		}
		switch s := l.Stmt.(type) {
		case *scn.Always:
			if i, _ := judge.ByPhrase(s.Invariant); i.ID.Judged(c.Place.Without) {
				return true
			}
		case *scn.Finally:
			return true
		}
	}
	return false
}

// anything says whether the file asks for anything in its place.
func (c *Case) anything() bool {
	for _, l := range c.File.Lines {
		if _, varies := l.Stmt.(*scn.Vary); l.Stmt != nil && !varies && l.Guard.Allows(c.Place.Name) { // vary takes no guard, and asks for nothing
			return true
		}
	}
	return false
}

// NotHere is why the file is not for its place: what its first line that is not says about it.
func (c *Case) NotHere() string {
	for _, l := range c.File.Lines {
		if l.Stmt != nil && !l.Guard.Allows(c.Place.Name) && l.Comment != "" {
			return l.Comment
		}
	}
	return "its lines are not for world " + c.Place.Name
}

// golden compares the story, if there is one to compare: other seeds tell others.
func (r *Result) golden(o *Options) {
	if o.NoStory || !r.Case.Place.Repeatable || o.Seed != DefaultSeed || !r.Case.File.HasStory || r.Runs[0].Verdict == nil {
		return
	}
	if r.Diff = differ(r.Case.File.Story, r.Case.File.WithStory(r.Story).Story); r.Diff != nil {
		r.worsen(Violated)
	}
}

// differ finds the first line in which two stories differ.
func differ(want, got string) *Diff {
	if want == got {
		return nil
	}
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range max(len(a), len(b)) {
		d := Diff{Line: i + 1, Want: at(a, i), Got: at(b, i)}
		if d.Want != d.Got || i >= len(a) || i >= len(b) {
			return &d
		}
	}
	return nil
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// bite runs each mutant in each variant.
func (c *Case) bite(r *Result, o *Options, p Progress) {
	for i := range c.Against {
		a := &c.Against[i]
		p.Doing = "mutant " + a.Mutant.Name
		for j := range c.Variants {
			if o.interrupted() {
				r.worsen(Interrupted)
				return
			}
			p.Variant = c.Variants[j].Name
			p.Run++
			b := Bite{Against: a, Outcome: c.Variants[j].once(o, &a.Mutant, p)}
			r.count(&b.Outcome)
			if b.Outcome.Cut {
				b.Why = "it was interrupted"
				r.worsen(Interrupted)
			} else if b.Why = a.Judge(&b.Outcome, c.Place.Slack); b.Why != "" {
				if b.Outcome.Slow != nil && b.Outcome.Err == nil {
					b.Outcome.Err, b.Why = b.Outcome.Slow, b.Outcome.Slow.Error()
				}
				if tooSlow(b.Outcome.Err) {
					r.worsen(TooSlow)
				} else {
					r.worsen(Unproven)
				}
			}
			r.Bites = append(r.Bites, b)
		}
	}
}

// Judge says why a mutant's run is not what the file says of it; "" is that it is. slack is how much later it may break.
func (a *Against) Judge(out *Outcome, slack time.Duration) string {
	switch {
	case out.Err != nil && out.Verdict != nil:
		return "the laboratory broke: " + out.Err.Error()
	case out.Err != nil:
		return "its cluster never started: " + out.Err.Error()
	}
	if len(out.Verdict.Violations) == 0 {
		return fmt.Sprintf("it broke no invariant until the end at %s", Short(out.Verdict.Ended))
	}
	v := out.Verdict.Violations[0]
	switch p := v.Invariant.Phrase(); {
	case p != a.Claim.Invariant:
		return fmt.Sprintf("it broke %q first, %s: %s", p, Instant(v.At), v.Text)
	case a.Claim.HasBy && v.At > a.Claim.By+slack:
		return fmt.Sprintf("it broke that %s only, later than %s", Instant(v.At), Short(a.Claim.By))
	}
	return ""
}
