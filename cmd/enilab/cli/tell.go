package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/enilab/enilab/sim/runner"
)

// verdictManual is the table of verdicts.
func verdictManual() string {
	var b strings.Builder
	b.WriteString("Verdicts and exit codes (of several files the first of 2, 4, 1, 7, 6, 5, 8, 3):\n")
	for _, m := range runner.Meanings() {
		fmt.Fprintf(&b, "  %3d  %-18s %s\n", m.Exit, m.Word, m.Doc)
	}
	return b.String()
}

// together is the exit code of all files; those that were not run were interrupted.
func together(done []*runner.Result, files int) int {
	code := runner.ExitHeld
	for _, r := range done {
		code = runner.Worst(code, r.Status.Exit())
	}
	if len(done) < files {
		code = runner.ExitInterrupted
	}
	return code
}

func (l *cli) report(r *runner.Result) {
	l.verdict(r.Status, r.Report())
	if r.Updated {
		fmt.Fprintf(l.out, "      the timeline in %s is new\n", r.Case.File.Name)
	}
}

// verdict prints a report, with the word of its status in colour.
func (l *cli) verdict(s runner.Status, report string) {
	word := s.String()
	fmt.Fprint(l.out, colour(l.out, shade(s), word)+strings.TrimPrefix(report, word))
}

// timelines prints all that happened in each variant's run.
func (l *cli) timelines(r *runner.Result) {
	for i := range r.Runs {
		o := &r.Runs[i]
		if o.Verdict == nil { // its cluster never started
			continue
		}
		what := r.Case.Name()
		if o.Variant != "" {
			what += " (" + o.Variant + ")"
		}
		if r.Mutant != "" {
			what += " under mutant " + r.Mutant
		}
		text := cmp.Or(o.Timeline, "          nothing happened\n")
		fmt.Fprintf(l.out, "timeline of %s, seed %d\n%s", what, r.Seed, text)
	}
}

// total sums up several files, and says what an interruption left.
func (l *cli) total(done []*runner.Result, cases []*runner.Case) {
	if len(cases) == 1 && len(done) == 1 {
		return // its report says it all
	}
	var kinds []string
	for _, m := range runner.Meanings() {
		n := 0
		for _, r := range done {
			if r.Status == m.Status {
				n++
			}
		}
		if n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, m.Word))
		}
	}
	if n := len(cases) - len(done); n > 0 {
		kinds = append(kinds, fmt.Sprintf("%d not run", n))
	}
	fmt.Fprintf(l.out, "%s: %s\n", runner.Count(len(cases), "file"), strings.Join(kinds, ", "))
}
