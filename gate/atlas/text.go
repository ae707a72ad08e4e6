package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/campaign"
)

// atlas is which pairs were gated and what came of each.
type atlas struct {
	Since, Minors string
	Pairs         []pair
	QEMU          string
	came          []*outcome
	kept          map[pair]kept
}

// kept is what the file said of a pair, for which there is no result any more.
type kept struct{ row, section string }

// keep reads what a file says of pairs that were gated: results are on one machine, and the file is in the repository.
func keep(text string) map[pair]kept {
	out := map[pair]kept{}
	parts := strings.Split(text, "\n## ")
	for line := range strings.Lines(parts[0]) {
		cells := strings.Split(line, " | ")
		if len(cells) < 4 || !strings.Contains(cells[3], "](#") {
			continue
		}
		p := pair{strings.TrimPrefix(cells[0], "| "), cells[1], strings.TrimSpace(cells[2])}
		for _, s := range parts[1:] {
			if strings.HasPrefix(s, heading(p)+"\n") {
				out[p] = kept{line, "\n## " + strings.TrimSuffix(s, "\n") + "\n"}
			}
		}
	}
	return out
}

// text is the file, and stale names the entries about upstream whose pair was gated and does not have that finding.
func (t *atlas) text(up *upstream) (text string, stale []string) {
	var b strings.Builder
	fmt.Fprintf(&b, `# What upgrades of %[1]s break

Written by `+"`make atlas`"+`: from %[2]s on each release is gated to the next one, and from %[3]s on each minor's last release to the next
minor's first and last, with the scenario of what every change meets ([change.scn](../gate/change.scn)) and one seed; what
regressed was played with two more. In the modes prefixes and custom-networking it is each minor's last release to the next minor's last, and
the newest one to enilab. [gate.md](gate.md) says what red is, and what a mode is. Each can be had again, on any computer:

`+"```"+`
enilab gate --from %[1]s@FROM --to %[1]s@TO gate/change.scn
enilab gate --from %[1]s@FROM --to %[1]s@TO --mode MODE --only change-MODE
`+"```"+`

QEMU %[4]s, enilab of %[5]s. `, system, t.Since, t.Minors, t.QEMU, t.builds())
	played, took := t.played()
	fmt.Fprintf(&b, "%d of %d pairs were gated, in %v", played, len(t.Pairs), took)
	earlier := 0
	for i, p := range t.Pairs {
		if _, ok := t.kept[p]; ok && t.came[i].Page == nil {
			earlier++
		}
	}
	if earlier > 0 {
		fmt.Fprintf(&b, ", and of %d more the file has what an earlier enilab found", earlier)
	}
	b.WriteString(". What a gate does not find it does not prove to be well.\n\n")
	b.WriteString("| from | to | mode | verdict | what broke | figures beyond their bands | upstream's tracker |\n|---|---|---|---|---|---|---|\n")
	var below strings.Builder
	for i, p := range t.Pairs {
		o := t.came[i]
		if k, ok := t.kept[p]; ok && o.Page == nil {
			b.WriteString(k.row)
			below.WriteString(k.section)
			continue
		}
		word := o.word()
		if o.red() {
			word = "**" + word + "**"
		}
		if o.Page != nil {
			word = fmt.Sprintf("[%s](#%s)", word, anchor(p))
			below.WriteString(section(p, o, up))
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s | %s | %s |\n", p.From, p.To, p.Mode, word, broke(o), dear(o), told(p, o, up))
	}
	return b.String() + below.String(), t.stale(up)
}

// heading is that of a pair's section, and anchor how a link finds it.
func heading(p pair) string {
	s := p.From + " to " + p.To
	if p.Mode != "" {
		s += " in mode " + p.Mode
	}
	return s
}

func anchor(p pair) string {
	return strings.ReplaceAll(strings.ReplaceAll(heading(p), ".", ""), " ", "-")
}

// broke is the headline of what is red or not known, in a cell.
func broke(o *outcome) string {
	if o.Page == nil || o.word() == gate.WordNotRed {
		return ""
	}
	s := o.Page.Headline()
	if n := len(o.findings(gate.Regression)); n > 1 {
		s += fmt.Sprintf(" (and %d more)", n-1)
	}
	return campaign.Cell(s)
}

func cause(f *gate.Finding) string { return strings.TrimSuffix(f.Cause, ".") }

func dear(o *outcome) string {
	var out []string
	for _, f := range o.dearer() {
		out = append(out, fmt.Sprintf("%s: %.4g, was %.4g %s", f.Name, f.New, f.Old, f.Unit))
	}
	return campaign.Cell(strings.Join(out, "; "))
}

// found are the names of what a pair has that upstream may know: regressions and figures.
func found(o *outcome) (out []string) {
	for _, f := range o.findings(gate.Regression) {
		out = append(out, f.Check)
	}
	for _, f := range o.dearer() {
		out = append(out, f.Name)
	}
	return out
}

// told is what the tracker says, in a cell: numbers, or that nothing was found.
func told(p pair, o *outcome, up *upstream) string {
	var out []string
	add := func(s string) {
		if !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	for _, check := range found(o) {
		entries := up.of(p, check)
		if len(entries) == 0 {
			add("not searched yet")
		}
		for _, e := range entries {
			for _, n := range e.Issues {
				add(fmt.Sprintf("#%d", n))
			}
			if len(e.Issues) == 0 {
				add("nothing")
			}
		}
	}
	return strings.Join(out, ", ")
}

// section is all about a pair.
func section(p pair, o *outcome, up *upstream) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n## %s\n\n", heading(p))
	v := o.Page.Verdict
	fmt.Fprintf(&b, "%s", campaign.Paragraph("", summary(o)))
	item := func(text string) { b.WriteString(campaign.Paragraph("* ", text)) }
	b.WriteString("\n")
	said := map[*tracker]bool{}
	for _, f := range o.findings(gate.Regression, gate.Accepted, gate.Seldom, gate.Unsure) {
		item(finding(&f) + says(p, f.Check, up, said, f.Kind == gate.Regression))
	}
	for _, f := range o.dearer() {
		item(fmt.Sprintf("**dearer**: %s%s", f, says(p, f.Name, up, said, true)))
	}
	for _, f := range o.findings(gate.Mended, gate.Before) {
		item(fmt.Sprintf("%s: %s: %s", map[gate.Kind]string{gate.Mended: "mended", gate.Before: "broken before"}[f.Kind], quoted(f.Check), cause(&f)))
	}
	for _, r := range rests(o) {
		item(r)
	}
	for _, u := range v.Unknown {
		item("not known: " + u)
	}
	for _, n := range v.Notes {
		item("note: " + n)
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// rests says what the silence of the plays in which the version changes rests on.
func rests(o *outcome) (out []string) {
	for _, r := range o.Page.Results {
		if change := r.Play != gate.Old && r.Play != gate.New; change && r.Unknown == "" && r.Seed == o.Page.Results[0].Seed {
			out = append(out, fmt.Sprintf("%s: %s", r.Play.Doc(), r.Evidence()))
		}
	}
	return out
}

// summary is a pair's first sentence.
func summary(o *outcome) string {
	s := "The verdict is " + o.word() + "."
	if o.cutShort() {
		s += " It was not played to its end: this is what is known so far."
	}
	if len(o.Page.Verdict.Figures) == 0 {
		s += " Figures were not compared."
	}
	return s
}

// finding is a difference in words.
func finding(f *gate.Finding) string {
	var plays []string
	for _, p := range f.Plays {
		plays = append(plays, p.Doc())
	}
	where := ""
	if f.Node > 0 {
		where = fmt.Sprintf(" on node-%d", f.Node)
	}
	after := fmt.Sprintf("%v after the change", seconds(f.At-f.Change).Round(100*time.Millisecond))
	if f.At < f.Change {
		after = "before the change"
	}
	name := "**" + string(f.Kind) + "**"
	if f.Kind != gate.Regression {
		name = string(f.Kind)
	}
	return fmt.Sprintf("%s: %s: %s. Broken in: %s; with %d of %d seeds. First at %s%s, %s, with seed %d: %s", name, quoted(f.Check), cause(f),
		strings.Join(plays, "; "), len(f.Seeds), f.Of, campaign.Clock(seconds(f.At)), where, after, f.Seed, f.Text)
}

// says is what upstream's tracker says of something. What was said above is not said again.
func says(p pair, check string, up *upstream, said map[*tracker]bool, expected bool) string {
	entries := up.of(p, check)
	if len(entries) == 0 {
		if expected {
			return ". Upstream: not searched yet"
		}
		return ""
	}
	s := ""
	for _, e := range entries {
		if said[e] {
			s += ". Upstream: as above"
			continue
		}
		said[e] = true
		var numbers []string
		for _, n := range e.Issues {
			numbers = append(numbers, fmt.Sprintf("[#%d](https://github.com/aws/%s/issues/%[1]d)", n, system))
		}
		s += ". Upstream: " + strings.TrimSpace(strings.Join(numbers, ", ")+" "+e.Says)
	}
	return s
}

// quoted is an invariant, in its quotes; what is none needs none.
func quoted(check string) string {
	if strings.HasPrefix(check, "line ") || slices.Contains([]string{gate.EndsByItself, gate.Settles, gate.StartsPods}, check) {
		return check
	}
	return fmt.Sprintf("%q", check)
}

// played is how many pairs have been gated, and in which time.
func (t *atlas) played() (n int, took time.Duration) {
	for _, o := range t.came {
		if o.Page != nil {
			n, took = n+1, took+o.Took
		}
	}
	return n, took.Round(time.Minute)
}

// builds are those of enilab that the results come from.
func (t *atlas) builds() string {
	var out []string
	for _, o := range t.came {
		out = append(out, o.Build)
	}
	return campaign.All(out)
}

func (t *atlas) stale(up *upstream) (out []string) {
	for _, e := range up.Tracker {
		for _, s := range e.Pairs {
			i := slices.IndexFunc(t.Pairs, func(p pair) bool { return p.String() == s })
			if i < 0 {
				out = append(out, s+" is no pair")
				continue
			}
			o := t.came[i]
			if o.Page == nil || o.cutShort() {
				continue
			}
			have := found(o)
			for _, f := range o.Page.Verdict.Findings {
				have = append(have, f.Check)
			}
			if !slices.ContainsFunc(e.Checks, func(c string) bool { return slices.Contains(have, c) }) {
				out = append(out, s+", "+strings.Join(e.Checks, ", "))
			}
		}
	}
	return out
}
