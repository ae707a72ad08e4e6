package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/virtual"
)

// Report is what a person reads of a result: one line when all is well; otherwise one sentence, what led to it, the script
// until then, and the command that shows it again.
func (r *Result) Report() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s  %s", r.Status, r.Case.Name())
	if s := r.Case.Place.System; s != "" {
		b.WriteString("  (" + s + ")")
	}
	switch r.Status {
	case Held, Skipped:
		b.WriteString("  " + r.summary() + "\n")
		r.warn(&b)
		return b.String()
	case Interrupted:
		b.WriteString("  " + r.cut() + "\n")
		for _, x := range r.troubles() {
			b.WriteString("until then  " + x + "\n")
		}
		if told := r.broke(); told != nil {
			told.tell(&b)
		}
		return b.String()
	}
	told := r.tell(&b)
	for _, x := range r.troubles()[min(1, len(r.troubles())):] {
		b.WriteString("also  " + x + "\n")
	}
	r.warn(&b)
	if told != nil {
		told.tell(&b)
	} else if f := r.brokenFork(); f != nil {
		list(&b, "what happened around the crash", around(f.Story))
	}
	fmt.Fprintf(&b, "again: %s\n", r.Command())
	return b.String()
}

// warn tells which tools the system was given, which settings the system does not know, and which expectations were not judged for that.
func (r *Result) warn(b *strings.Builder) {
	if given := r.Case.Place.Given; len(given) > 0 {
		fmt.Fprintf(b, "given  %s\n", strings.Join(given, "; "))
	}
	var names []string
	for _, u := range r.Unknown {
		fmt.Fprintf(b, "warning  line %d: %s does not know %s\n", u.Pos.Line, u.System, strings.Join(u.Settings, ", "))
		for _, n := range u.Settings {
			if !slices.Contains(names, n) {
				names = append(names, n)
			}
		}
	}
	for i := range r.Runs {
		if v := r.Runs[i].Verdict; v != nil {
			for _, f := range v.Unjudged {
				fmt.Fprintf(b, "not judged  %sline %d, %s: %s: %s unknown to %s\n", in(r.Runs[i].Variant), f.Pos.Line, Instant(f.At), f.Text,
					strings.Join(names, ", ")+map[bool]string{true: " is", false: " are"}[len(names) == 1], r.Case.Place.System)
			}
		}
	}
}

// tell writes the first trouble's sentence and gives the break behind it, if there is one.
func (r *Result) tell(b *strings.Builder) *Break {
	if t := r.troubles(); len(t) > 0 {
		b.WriteString("  " + t[0] + "\n")
	}
	return r.broke()
}

// broke is what broke first of all that should hold.
func (r *Result) broke() *Break {
	for i := range r.Runs {
		if r.Runs[i].Break != nil {
			return r.Runs[i].Break
		}
	}
	for i := range r.Bites {
		if b := &r.Bites[i]; b.Why != "" && !b.Outcome.Cut {
			return b.Outcome.Break
		}
	}
	return nil
}

// Troubles are sentences about what is not as it should be, the gravest first.
func (r *Result) Troubles() []string { return r.troubles() }

// troubles are sentences, the gravest kind first.
func (r *Result) troubles() []string {
	var out []string
	for i := range r.Runs {
		o := &r.Runs[i]
		switch {
		case o.Cut:
		case tooSlow(o.Err):
			out = append(out, in(o.Variant)+"this machine did not keep up: "+o.Err.Error())
		case o.Err != nil && o.Verdict != nil:
			out = append(out, in(o.Variant)+"the laboratory itself broke: "+o.Err.Error())
		case lacks(o.Err):
			out = append(out, in(o.Variant)+o.Err.Error())
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
	for i := range r.Runs {
		for _, d := range r.Runs[i].Differ {
			out = append(out, in(r.Runs[i].Variant)+"world "+r.Case.Place.Name+" contradicts the simulator: "+d)
		}
	}
	if d := r.Diff; d != nil {
		out = append(out, fmt.Sprintf("line %d of the timeline is not the golden one (--update takes the new one)\n  golden  %s\n  now     %s", d.Line, d.Want, d.Got))
	}
	for i := range r.Crashes {
		x := &r.Crashes[i]
		if x.Err != nil {
			out = append(out, in(x.Variant)+x.Err.Error())
		}
		for j := range x.Report.Broken {
			out = append(out, in(x.Variant)+x.Report.Broken[j].String())
		}
	}
	for i := range r.Runs {
		if v := r.Runs[i].Verdict; v != nil && !v.Settled() {
			out = append(out, in(r.Runs[i].Variant)+"something is still under way "+Instant(v.Ended)+": "+strings.Join(v.UnderWay, "; "))
		}
	}
	for i := range r.Bites {
		if b := &r.Bites[i]; b.Why != "" && !b.Outcome.Cut {
			out = append(out, fmt.Sprintf("%sline %d: the CNI held, but mutant %s was not caught: expected %q to break first; found that %s", in(b.Outcome.Variant), b.Against.Pos.Line, b.Against.Mutant.Name, b.Against.Claim.Invariant, b.Why))
		}
	}
	for i := range r.Runs {
		if v := r.Runs[i].Verdict; v != nil && !v.Cut {
			for j := range v.Unplayed {
				out = append(out, in(r.Runs[i].Variant)+missed(&v.Unplayed[j]))
			}
		}
	}
	return out
}

// missed says which action missed.
func missed(u *sim.Unplayed) string {
	s := fmt.Sprintf("line %d, %s: the action missed: %s", u.Pos.Line, Instant(u.At), u.Text)
	if u.Of > 1 {
		s += fmt.Sprintf(" (%d of %d times)", u.Times, u.Of)
	}
	return s
}

// brokenFork is the first crash after which something was otherwise.
func (r *Result) brokenFork() *virtual.BrokenFork {
	for i := range r.Crashes {
		if b := r.Crashes[i].Report.Broken; len(b) > 0 {
			return &b[0]
		}
	}
	return nil
}

// around is what a report quotes of a story that goes on after a crash.
func around(story string) []string {
	lines := strings.Split(strings.TrimSuffix(story, "\n"), "\n")
	at := max(0, slices.IndexFunc(lines, func(l string) bool { return strings.Contains(l, "ipamd is killed") }))
	return lines[max(0, at-storyShown):min(len(lines), at+storyShown)]
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
	s := fmt.Sprintf("%s, %s judged, %d skipped, %s in %s", Count(len(r.Runs), "variant"),
		Count(r.Judged, "expectation"), len(r.Skipped), Count(int(r.Events), "event"), Short(r.Virtual))
	if len(r.Skipped) > 0 {
		s += " (" + r.reasons() + ")"
	}
	s += r.notJudged()
	for i := range r.Runs {
		if why := r.Runs[i].Uncompared; why != "" {
			s += "; not compared with the simulator: " + why
			break // variants have the same reason
		}
	}
	if r.Status == Skipped && len(r.Runs) == 0 {
		return r.Case.NotHere()
	}
	for i := range r.Runs {
		if err := r.Runs[i].Err; r.Status == Skipped && lacks(err) {
			return err.Error()
		}
	}
	if r.Status == Skipped {
		return s + "; nothing was judged: write an always or expect line for world " + r.Case.Place.Name
	}
	if len(r.Crashes) > 0 {
		points, forks := r.crashed()
		s += fmt.Sprintf("; %s, %s, all settled like no crash", Count(points, "crash point"), Count(forks, "fork"))
	}
	if r.Mutant != "" {
		return s + "; under mutant " + r.Mutant
	}
	if len(r.Crashes) > 0 {
		return s
	}
	if len(r.Case.Against) > 0 {
		s += "; mutants: " + r.proved()
	}
	return s
}

// notJudged counts and names the invariants that were not judged, first those that lines expect always.
func (r *Result) notJudged() string {
	if len(r.NotJudged) == 0 {
		return ""
	}
	var expected, others []string
	for _, n := range r.NotJudged {
		if n.Pos.Line > 0 {
			expected = append(expected, fmt.Sprintf("line %d: always %q", n.Pos.Line, n.Invariant.Phrase()))
		} else {
			others = append(others, fmt.Sprintf("%q", n.Invariant.Phrase()))
		}
	}
	return fmt.Sprintf("; not judged without %v: %s, %d of which the file expects always (%s)", r.Case.Place.Without,
		Count(len(r.NotJudged), "invariant"), len(expected), strings.Join(append(expected, others...), "; "))
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

func (r *Result) proved() string {
	var out []string
	for _, p := range r.Proofs() {
		out = append(out, fmt.Sprintf("%s broke %q %s", p.Mutant, p.Invariant, p.When))
	}
	return strings.Join(out, "; ")
}

// Proof is what a mutant that the file names did.
type Proof struct {
	Mutant, Invariant string
	When              string // "at 1m2s"; "" when it did not break that first, in every variant and in time
}

// Proofs are what the mutants did that came to run, in the order of the file.
func (r *Result) Proofs() []Proof {
	var out []Proof
	for i := range r.Case.Against {
		a := &r.Case.Against[i]
		if when, ran := r.span(a); ran {
			out = append(out, Proof{a.Mutant.Name, a.Claim.Invariant, when})
		}
	}
	return out
}

// span is when a mutant broke what the file says: two instants if variants differ.
func (r *Result) span(a *Against) (when string, ran bool) {
	var from, to time.Duration
	for i := range r.Bites {
		b := &r.Bites[i]
		if b.Against != a {
			continue
		}
		if b.Why != "" {
			return "", true
		}
		at := b.Outcome.Verdict.Violations[0].At
		if !ran {
			from, to = at, at
		}
		from, to, ran = min(from, at), max(to, at), true
	}
	if when = Instant(from); when != Instant(to) {
		when += " to " + Short(to)
	}
	return when, ran
}

// cut says how far an interrupted file came, and what was known by then.
func (r *Result) cut() string {
	points, forks := r.crashed()
	if len(r.Runs) == 0 && forks == 0 {
		return "before it began"
	}
	proved := 0
	for i := range r.Bites {
		if r.Bites[i].Why == "" {
			proved++
		}
	}
	known := Count(r.Judged, "expectation") + " judged"
	if len(r.Bites) > 0 {
		known += fmt.Sprintf(", %s as the file says", Count(proved, "mutant"))
	}
	if forks > 0 {
		known += fmt.Sprintf(", %s, %s", Count(points, "crash point"), Count(forks, "fork"))
	}
	if len(r.troubles()) == 0 {
		known += ", nothing wrong"
	}
	return r.where() + "; until then " + known
}

// where is the run that was interrupted, and how far it was.
func (r *Result) where() string {
	run, of := len(r.Runs)+len(r.Bites), len(r.Case.Variants)*(1+len(r.Case.Against))
	if r.Mutant != "" || len(r.Crashes) > 0 {
		of = len(r.Case.Variants)
	}
	s := fmt.Sprintf(", run %d of %d", run, of)
	if r.Mutant != "" {
		s = ", under mutant " + r.Mutant + s
	}
	for i := range r.Runs {
		if o := &r.Runs[i]; o.Cut {
			return o.cut() + s
		}
	}
	for i := range r.Bites {
		if b := &r.Bites[i]; b.Outcome.Cut {
			return b.Outcome.cut() + ", under mutant " + b.Against.Mutant.Name + s
		}
	}
	return "between two runs" + s // or of a crash, which says itself how far it was
}

// cut is where a run was interrupted.
func (o *Outcome) cut() string {
	if o.Verdict == nil {
		return in(o.Variant) + "while its cluster started"
	}
	return in(o.Variant) + Instant(o.Verdict.Ended) + " of " + Short(o.End)
}

// Command is a command line that shows the result again.
func (r *Result) Command() string {
	s := fmt.Sprintf("enilab run %s --seed %d", r.Case.File.Name, r.Seed)
	if r.Case.Place.Name != "sim" {
		s += " --on " + r.Case.Place.Name
	}
	if r.Case.Place.In != "" {
		s += " --in " + r.Case.Place.In
	}
	switch {
	case r.Case.Place.CNI != "":
		s += " --cni " + r.Case.Place.CNI
	case r.Case.Place.Without&judge.Books != 0:
		s += " --without-books"
	}
	if r.Mutant != "" {
		s += " --against " + r.Mutant
	}
	if len(r.Crashes) > 0 {
		s += " --crash-everywhere"
	}
	return s
}

// Count is a number of things, with its noun as grammar has it.
func Count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return Number(uint64(n)) + " " + noun + "s"
}

// Number prints a number with a comma every three digits.
func Number(n uint64) string {
	s := strconv.FormatUint(n, 10)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
