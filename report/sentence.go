package report

import (
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/runner"
)

// Clock is an instant of a scenario as a report says it: 3:05, 3:02.4, 1:03:05, -0:12.
func Clock(d time.Duration) string {
	sign := ""
	if d < 0 {
		sign, d = "-", -d
	}
	d = d.Round(100 * time.Millisecond)
	s := fmt.Sprintf("%02d", int(d/time.Second)%60)
	if tenth := d % time.Second / (100 * time.Millisecond); tenth > 0 {
		s += "." + strconv.Itoa(int(tenth))
	}
	if d >= time.Hour {
		return fmt.Sprintf("%s%d:%02d:%s", sign, int(d/time.Hour), int(d/time.Minute)%60, s)
	}
	return fmt.Sprintf("%s%d:%s", sign, int(d/time.Minute), s)
}

// Sentence says what came of a run: what broke, where and when, and which line of the script led to it.
func (r *Run) Sentence() string {
	switch {
	case r.First != nil:
		head, tail := r.parts()
		return head + tail
	case len(r.Also) > 0:
		return r.word() + ": " + r.Also[0]
	case r.Mutant != "" && r.Claim != "" && !r.Meant:
		return r.word() + ": the mutant was not caught"
	}
	return r.word() + ": " + r.held()
}

// word is the verdict, aloud.
func (r *Run) word() string {
	if r.Meant {
		return "CAUGHT"
	}
	return strings.ToUpper(r.Verdict)
}

// parts are the sentence about what broke in two: what, where and when; and what was found and where it comes from.
func (r *Run) parts() (head, tail string) {
	b := r.First
	head = r.word() + " " + r.when()
	text := strings.TrimPrefix(b.Text, fmt.Sprintf("node-%d ", b.Node))
	if b.Invariant == "" {
		head += text
	} else {
		head, tail = head+b.Invariant, " – "+text
	}
	return head, tail + r.after() + r.place()
}

func (r *Run) when() string {
	where := "the cluster"
	if r.First.Node > 0 {
		where = fmt.Sprintf("node-%d", r.First.Node)
	}
	return Clock(r.First.At) + " " + where + ": "
}

// after names the last action before, and how long ago it was.
func (r *Run) after() string {
	b := r.First
	for i := len(r.Faults) - 1; i >= 0; i-- {
		if f := &r.Faults[i]; f.Line == b.Line && f.From <= b.At {
			return fmt.Sprintf("; %s after %s", runner.Short(b.At-f.From), f.Text)
		}
	}
	return ""
}

// place is the file and line.
func (r *Run) place() string {
	if r.File == "" {
		return ""
	}
	s := path.Base(r.File)
	if r.First.Line > 0 {
		s += ":" + strconv.Itoa(r.First.Line)
	}
	return " (" + s + ")"
}

// held says what a run that held was.
func (r *Run) held() string {
	looked, times := 0, int64(0)
	for _, l := range r.Looks {
		if l.Times > 0 && l.Why == "" {
			looked++
			times += l.Times
		}
	}
	s := runner.Count(r.Judged, "expectation") + " judged"
	if looked > 0 {
		s += fmt.Sprintf(", %s looked at %s times", runner.Count(looked, "invariant"), runner.Number(uint64(times)))
	}
	if n := len(r.struck()); n > 0 {
		s += ", " + runner.Count(n, "action") + " struck"
	}
	if n := len(r.Skipped); n > 0 {
		s += ", " + runner.Count(n, "line") + " skipped"
	}
	return s
}

// struck are the lines that did something.
func (r *Run) struck() []Fault {
	var out []Fault
	for _, f := range r.Faults {
		if f.Fate == "struck" {
			out = append(out, f)
		}
	}
	return out
}

// Name is what tells a run from the others.
func (r *Run) Name() string {
	s := r.Scenario
	if r.Variant != "" {
		s += " (" + r.Variant + ")"
	}
	for _, x := range []struct{ what, name string }{{"", r.System}, {"", r.Play}, {"mutant ", r.Mutant}} {
		if x.name != "" {
			s += ", " + x.what + x.name
		}
	}
	return s
}

// CommandLine is a command line of enilab's that a shell reads.
func CommandLine(args []string) string {
	words := []string{"enilab"}
	for _, a := range args {
		if a == "" || strings.ContainsAny(a, " \t\n\"'\\$`*?[]{}()<>|&;#~!") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// Bare is a run without its details; of none it is none.
func (r *Run) Bare() *Run {
	if r == nil {
		return nil
	}
	b := *r
	b.Timeline, b.Lanes, b.Curves, b.Faults, b.Script, b.Looks = nil, nil, nil, nil, nil, nil
	return &b
}

// Red says whether a run is not as it should be.
func (r *Run) Red() bool {
	switch {
	case r.Claim != "":
		return !r.Meant
	case r.Verdict == runner.Held.String(), r.Verdict == runner.Skipped.String():
		return false
	}
	return true
}
