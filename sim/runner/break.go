package runner

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// Break is what broke first in a run.
type Break struct {
	At        time.Duration // of the scenario; negative is before time began
	Node      int           // 0: the cluster
	Invariant string        // phrase; "" for an expectation or a mark
	Pos       scn.Pos       // of the expectation or mark
	Text      string
	Before    []string // the last lines of the story until then
	Script    []string // the scenario's lines until then
}

// storyShown is how many lines of a story a report quotes: what fits on a screen beside the script.
const storyShown = 12

// first finds what broke first. A mutant need not come through the marks.
func first(v *Variant, verdict *sim.Verdict, mutant bool) *Break {
	var b *Break
	if len(verdict.Violations) > 0 {
		x := verdict.Violations[0]
		b = &Break{At: x.At, Node: x.Node, Invariant: x.Invariant.Phrase(), Text: x.Text}
	}
	if len(verdict.Failures) > 0 && (b == nil || verdict.Failures[0].At < b.At) {
		x := verdict.Failures[0]
		b = &Break{At: x.At, Pos: x.Pos, Text: x.Text}
	}
	if b == nil && len(verdict.Missed) > 0 && !mutant {
		b = &Break{At: verdict.Ended, Text: "the run never came through " + strings.Join(verdict.Missed, ", "), Pos: reaches(v.File, verdict.Missed[0])}
	}
	if b != nil {
		b.Script = v.script(b)
	}
	return b
}

func reaches(f *scn.File, mark string) scn.Pos {
	for _, l := range f.Lines {
		if r, ok := l.Stmt.(*scn.Reaches); ok && r.Point == mark {
			return l.Pos
		}
	}
	return scn.Pos{}
}

// script is what the file had done until then: the cluster, the line that broke, and every action that was due.
func (v *Variant) script(b *Break) []string {
	var out []string
	for _, l := range v.File.Lines {
		if l.Guard.Allows(v.place.Name) && tells(l, b) {
			out = append(out, l.String())
		}
	}
	return out
}

func tells(l scn.Line, b *Break) bool {
	switch s := l.Stmt.(type) {
	case *scn.Cluster, *scn.Config, *scn.Start, *scn.Vary:
		return true
	case *scn.Always:
		return s.Invariant == b.Invariant
	case *scn.Reaches:
		return l.Pos == b.Pos
	case *scn.At:
		return s.When <= b.At && s.Action != nil || l.Pos == b.Pos
	}
	return false
}

// name gives what a verdict says the names of the timeline. The auditor keeps its own texts.
func (o *Outcome) name(named func(string) string) {
	v := o.Verdict
	v.Violations, v.Failures, v.UnderWay = slices.Clone(v.Violations), slices.Clone(v.Failures), slices.Clone(v.UnderWay)
	v.Unjudged = slices.Clone(v.Unjudged)
	for i := range v.Unjudged {
		v.Unjudged[i].Text = named(v.Unjudged[i].Text)
	}
	for i := range v.Violations {
		v.Violations[i].Text = named(v.Violations[i].Text)
	}
	for i := range v.Failures {
		v.Failures[i].Text = named(v.Failures[i].Text)
	}
	for i := range v.UnderWay {
		v.UnderWay[i] = named(v.UnderWay[i])
	}
	for i := range o.Differ {
		o.Differ[i] = named(o.Differ[i])
	}
}

// Sentence says what broke, where and when.
func (b *Break) Sentence() string {
	where := ""
	if b.Node > 0 {
		where = fmt.Sprintf(" on node-%d", b.Node)
	}
	if b.Invariant != "" {
		return fmt.Sprintf("%q broke %s%s: %s", b.Invariant, Instant(b.At), where, b.Text)
	}
	if b.Pos.Line == 0 { // no line asked for it
		return fmt.Sprintf("%s: %s", Instant(b.At), b.Text)
	}
	return fmt.Sprintf("line %d, %s: %s", b.Pos.Line, Instant(b.At), b.Text)
}

// Instant is a time of a scenario for people: "at 1m2s", "3s before t=0".
func Instant(d time.Duration) string {
	if d < 0 {
		return Short(-d) + " before t=0"
	}
	return "at " + Short(d)
}

// Short prints a duration to a tenth of a second, and without the zeros at its end: 20m, 1h5m, 18.3s.
func Short(d time.Duration) string {
	unit := 100 * time.Millisecond
	if d < unit {
		unit = time.Millisecond
	}
	s := d.Round(unit).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// last gives the last n lines of a text.
func last(text string, n int) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	return lines[max(0, len(lines)-n):]
}
