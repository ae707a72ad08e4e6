package suite

import (
	"fmt"
	"strings"
)

// Report is what a person reads of a result: one line when all is well; otherwise one sentence, what led to it, the script
// until then, and the command that shows it again.
func (r *Result) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", r.Status, r.Case.Name())
	switch r.Status {
	case Held, Skipped:
		b.WriteString("  " + r.summary() + "\n")
		return b.String()
	case Interrupted:
		b.WriteString("  " + r.cut() + "\n")
		return b.String()
	}
	told := r.tell(&b)
	for _, x := range r.troubles()[min(1, len(r.troubles())):] {
		b.WriteString("also  " + x + "\n")
	}
	if told != nil {
		told.tell(&b)
	}
	fmt.Fprintf(&b, "again: %s\n", r.Command())
	return b.String()
}

// tell writes the first trouble's sentence and gives the break behind it, if there is one.
func (r *Result) tell(b *strings.Builder) *Break {
	if t := r.troubles(); len(t) > 0 {
		b.WriteString("  " + t[0] + "\n")
	}
	for i := range r.Runs {
		if r.Runs[i].Break != nil {
			return r.Runs[i].Break
		}
	}
	for i := range r.Bites {
		if r.Bites[i].Why != "" {
			return r.Bites[i].Outcome.Break
		}
	}
	return nil
}

// troubles are sentences, the gravest kind first.
func (r *Result) troubles() []string {
	var out []string
	for i := range r.Runs {
		o := &r.Runs[i]
		switch {
		case o.Err != nil:
			out = append(out, in(o.Variant)+"the cluster never started: "+o.Err.Error()+" (start fewer pods, or give the cluster a larger subnet, type or more nodes)")
		case o.Differs:
			out = append(out, in(o.Variant)+fmt.Sprintf("two runs with seed %d were not the same", r.Seed))
		}
	}
	for i := range r.Runs {
		if o := &r.Runs[i]; o.Break != nil {
			out = append(out, in(o.Variant)+o.Break.Sentence())
		}
	}
	if d := r.Diff; d != nil {
		out = append(out, fmt.Sprintf("line %d of the story is not the golden one (--update takes the new one)\n  golden  %s\n  now     %s", d.Line, d.Want, d.Got))
	}
	for i := range r.Bites {
		if b := &r.Bites[i]; b.Why != "" {
			out = append(out, fmt.Sprintf("%sline %d: mutant %s should break %q first, but %s", in(b.Outcome.Variant), b.Against.Pos.Line, b.Against.Mutant.Name, b.Against.Claim.Invariant, b.Why))
		}
	}
	return out
}

func in(variant string) string {
	if variant == "" {
		return ""
	}
	return "(" + variant + ") "
}

func (b *Break) tell(to *strings.Builder) {
	list(to, "what happened until then", b.Before)
	list(to, "the script until then", b.Script)
}

func list(to *strings.Builder, title string, lines []string) {
	if len(lines) == 0 {
		return
	}
	to.WriteString(title + "\n")
	for _, l := range lines {
		to.WriteString("  " + l + "\n")
	}
}

// summary is the rest of a held or skipped file's line.
func (r *Result) summary() string {
	s := fmt.Sprintf("%s, %s judged, %d skipped, %s in %s", count(len(r.Runs), "variant"), count(r.Judged, "expectation"), len(r.Skipped), count(int(r.Events), "event"), Short(r.Virtual))
	if len(r.Skipped) > 0 {
		s += " (" + r.reasons() + ")"
	}
	if r.Status == Skipped {
		return s + "; nothing was judged: write an always or expect line for world " + World
	}
	if r.Mutant != "" {
		return s + "; under mutant " + r.Mutant
	}
	if len(r.Case.Against) > 0 {
		s += "; mutants: " + strings.Join(r.Bitten(), "; ")
	}
	return s
}

// reasons of skips, each once.
func (r *Result) reasons() string {
	var out []string
	for _, s := range r.Skipped {
		if text := fmt.Sprintf("line %d: %s", s.Pos.Line, s.Why); !strings.Contains(strings.Join(out, "; "), text) {
			out = append(out, text)
		}
	}
	return strings.Join(out, "; ")
}

// Bitten says of each mutant what it broke and when: a span if variants differ.
func (r *Result) Bitten() []string {
	var out []string
	for i := range r.Case.Against {
		a := &r.Case.Against[i]
		if s := r.span(a); s != "" {
			out = append(out, fmt.Sprintf("%s broke %q %s", a.Mutant.Name, a.Claim.Invariant, s))
		}
	}
	return out
}

// span is when a mutant broke what the file says, "" when it did not in every variant.
func (r *Result) span(a *Against) string {
	from, to := "", ""
	for i := range r.Bites {
		b := &r.Bites[i]
		if b.Against != a {
			continue
		}
		if b.Why != "" {
			return ""
		}
		at := Instant(b.Outcome.Verdict.Violations[0].At)
		if from == "" {
			from = at
		}
		to = at
	}
	if from == to {
		return from
	}
	return from + " or " + to
}

// cut says how far an interrupted file came.
func (r *Result) cut() string {
	for i := range r.Runs {
		if o := &r.Runs[i]; o.Verdict != nil && o.Verdict.Cut {
			return in(o.Variant) + Instant(o.Verdict.Ended)
		}
	}
	for i := range r.Bites {
		if b := &r.Bites[i]; b.Outcome.Verdict != nil && b.Outcome.Verdict.Cut {
			return in(b.Outcome.Variant) + "under mutant " + b.Against.Mutant.Name + ", " + Instant(b.Outcome.Verdict.Ended)
		}
	}
	return "before it began"
}

// Command is a command line that shows the result again.
func (r *Result) Command() string {
	s := fmt.Sprintf("enilab run %s --seed %d", r.Case.File.Name, r.Seed)
	if r.Mutant != "" {
		s += " --against " + r.Mutant
	}
	return s
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
