package gate

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim/runner"
)

// Page is all that a gate found, as data: it goes through JSON unharmed, and a later gate takes it as its baseline.
type Page struct {
	runner.Head
	From    string   `json:"from"` // NAME VERSION
	To      string   `json:"to"`
	Red     bool     `json:"red"`
	Word    string   `json:"word"` // the outcome's
	Verdict *Verdict `json:"verdict"`
	// Scenarios are what was played, by name, with a digest of the text; Results is what came of it.
	Scenarios []Scenario `json:"scenarios"`
	Results   []Result   `json:"results"`
	// Key says what the old version's plays rest on: builds, kernel, emulator.
	Key  string        `json:"key"`
	Took time.Duration `json:"took"`
	// Played is how many runs were played, and Cached how many were taken from before.
	Played int `json:"played"`
	Cached int `json:"cached"`
	// Given are the tools that the machines had for the versions, each with its version or digest.
	Given []string `json:"given,omitempty"`
	// Interrupted says that it was ended before its end.
	Interrupted bool   `json:"interrupted,omitempty"`
	Command     string `json:"command"` // whoever ran the gate sets it

	of *gating // with what a report shows; nil: it came through JSON
}

// Format is the version of Page's JSON.
const Format = "gate/1"

// Scenario is one that was played.
type Scenario struct {
	Name   string `json:"name"`
	Digest string `json:"digest"`
}

// Paint is how a word looks on what people read it from.
type Paint func(word string, l Level) string

// Write tells it to people.
func (p *Page) Write(w io.Writer, paint Paint) error {
	var b strings.Builder
	v := p.Verdict
	o := p.Outcome()
	fmt.Fprintf(&b, "%s  %s\n%s to %s: %s\n", paint(o.Word, o.Level), p.Headline(), p.From, p.To, p.Summary())
	for _, f := range v.Ranked() {
		p.finding(&b, f, paint)
	}
	for _, f := range v.Figures {
		switch {
		case f.Beyond && f.Reason != "":
			fmt.Fprintf(&b, "\naccepted  %s\n  because: %s\n", f, f.Reason)
		case f.Beyond:
			fmt.Fprintf(&b, "\n%s  %s\n", paint("regression", Bad), f)
		}
	}
	p.matrix(&b)
	p.evidence(&b)
	p.figures(&b)
	for _, s := range v.Stale {
		fmt.Fprintf(&b, "stale: %s\n", s)
	}
	if len(p.Given) > 0 {
		fmt.Fprintf(&b, "given: %s\n", strings.Join(p.Given, "; "))
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	for _, u := range v.Unknown {
		fmt.Fprintf(&b, "not known: %s\n", u)
	}
	if p.Interrupted {
		b.WriteString("interrupted: this is what is known so far\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// Summary says how much was found.
func (p *Page) Summary() string {
	regressions, dear := 0, 0
	for _, f := range p.Verdict.Findings {
		if f.Kind == Regression {
			regressions++
		}
	}
	for _, f := range p.Verdict.Figures {
		if f.Beyond && f.Reason == "" {
			dear++
		}
	}
	parts := []string{fmt.Sprintf("%d regressions", regressions)}
	if regressions == 1 {
		parts[0] = "1 regression"
	}
	if dear > 0 {
		parts = append(parts, fmt.Sprintf("%d figures beyond their bands", dear))
	}
	for _, k := range []Kind{Accepted, Seldom, Unsure, Mended, Before} {
		n := 0
		for _, f := range p.Verdict.Findings {
			if f.Kind == k {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, map[Kind]string{Accepted: "accepted", Seldom: "seen seldom", Unsure: "unsure", Mended: "mended", Before: "broken before already"}[k]))
		}
	}
	return strings.Join(parts, ", ")
}

func (p *Page) finding(b *strings.Builder, f *Finding, paint Paint) {
	check := f.Check
	if !strings.HasPrefix(check, "line ") && check != EndsByItself && check != Settles {
		check = fmt.Sprintf("%q", check)
	}
	level := Warn
	switch f.Kind {
	case Regression:
		level = Bad
	case Accepted:
		level = Good
	case Mended, Before:
		fmt.Fprintf(b, "\n%s  %s in %s: %s\n", map[Kind]string{Mended: "mended", Before: "broken before"}[f.Kind], check, f.Name(), f.Cause)
		return
	}
	fmt.Fprintf(b, "\n%s  %s in %s\n  cause: %s\n  where: %s\n", paint(string(f.Kind), level), check, f.Name(), f.Cause, f.Where())
	where := ""
	if f.Node > 0 {
		where = fmt.Sprintf(" on node-%d", f.Node)
	}
	fmt.Fprintf(b, "  first: at %s%s (the change is at %s, seed %d): %s\n", instant(f.At), where, instant(f.Change), f.Seed, f.Text)
	if f.Of > 1 {
		fmt.Fprintf(b, "  seeds: it broke with %d of %d\n", len(f.Seeds), f.Of)
	}
	if f.Reason != "" {
		fmt.Fprintf(b, "  because: %s\n", f.Reason)
	}
	if f.Again != "" {
		fmt.Fprintf(b, "  again: %s\n", f.Again)
	}
}

func instant(s float64) string {
	return (time.Duration(s*10) * (time.Second / 10)).String()
}

// matrix is a row for each scenario's variant and seed, with a column for each play.
func (p *Page) matrix(b *strings.Builder) {
	fmt.Fprintf(b, "\n%-44s", "scenario")
	for _, play := range Plays() {
		fmt.Fprintf(b, "  %-14s", play)
	}
	b.WriteString("\n")
	for _, g := range groups(p.Results) {
		for _, seed := range slices.Sorted(maps.Keys(g.seeds)) {
			name := g.name()
			if seed != 1 {
				name = fmt.Sprintf("%s seed %d", name, seed)
			}
			fmt.Fprintf(b, "%-44s", name)
			for _, play := range Plays() {
				fmt.Fprintf(b, "  %-14s", cell(g.seeds[seed][play], g.seeds[seed][Old]))
			}
			b.WriteString("\n")
		}
	}
}

// cell is how many checks broke, and how many of them not in the old version.
func cell(r, old *Result) string {
	switch {
	case r == nil:
		return "-"
	case r.Unknown != "":
		return "not known"
	}
	checks, fresh := map[string]bool{}, map[string]bool{}
	for _, x := range r.Broken {
		checks[x.Check] = true
		if old != nil && old.broke(x.Check) == nil {
			fresh[x.Check] = true
		}
	}
	switch {
	case len(checks) == 0:
		return "held"
	case len(fresh) == 0:
		return fmt.Sprintf("%d broke", len(checks))
	}
	return fmt.Sprintf("%d broke, %d new", len(checks), len(fresh))
}

func (p *Page) figures(b *strings.Builder) {
	if len(p.Verdict.Figures) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-44s  %12s  %12s  %s\n", "figure", "old", "new", "band")
	for _, f := range p.Verdict.Figures {
		beyond := ""
		if f.Beyond {
			beyond = "  beyond"
		}
		fmt.Fprintf(b, "%-44s  %12.4g  %12.4g  +%.0f %%, at least %.4g %s%s\n", f.Name, f.Old, f.New, 100*f.Share, f.Slack, f.Unit, beyond)
	}
}
