package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/campaign"
)

// table is which incidents are played against which versions, and what came of it.
type table struct {
	System              string
	Versions, Incidents []string
	QEMU                string
	cells               map[string]*cell // by "VERSION INCIDENT"
}

// note says why something breaks. Whoever reads the upstream sources and packets wrote it.
type note struct {
	Versions []string `json:"versions"`
	Incident string   `json:"incident"`
	// Breaks are invariants' phrases, or "line N". Which of several comes first may depend on the order in which a daemon goes through a map.
	Breaks []string `json:"breaks"`
	Why    string   `json:"why"`
}

func readNotes(path string) (notes []note, err error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if err := yaml.UnmarshalStrict(data, &notes); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for i, n := range notes {
		if len(n.Versions) == 0 || n.Incident == "" || len(n.Breaks) == 0 || n.Why == "" {
			return nil, fmt.Errorf("%s: note %d: expected versions, incident, breaks and why", path, i+1)
		}
	}
	return notes, nil
}

// costly is what a run should not take of a computer's time.
const costly = 3 * time.Minute

// text is the file, and stale names the notes whose cell was played and does not break so.
func (t *table) text(notes []note) (text string, stale []string) {
	var b strings.Builder
	fmt.Fprintf(&b, `# Which versions of %s held

Written by `+"`make versions`"+`: released versions, built from their sources, each incident in a virtual machine of its own
([vm.md](vm.md)), so that each cell can be had again, byte for byte:

`+"```"+`
enilab run --on netns --in vm --cni %s@VERSION scenarios/INCIDENT.scn
`+"```"+`

Linux %s, QEMU %s, seed 1, enilab of %s.

The time is the scenario's, at which the judge said so. [incidents.md](incidents.md) has what an incident is. What a line asks for that
such a daemon does not tell is skipped, and counted in the report. Which of several things breaks first may be another with another build
of enilab, for it may depend on the order in which a daemon goes through a map.

`, t.System, t.System, t.each(func(c *cell) string { return c.Kernel }), t.QEMU, t.each(func(c *cell) string { return c.Build }))
	fmt.Fprintf(&b, "| incident | %s |\n|---%s|\n", strings.Join(t.Versions, " | "), strings.Repeat("|---", len(t.Versions)))
	var feet []string // texts
	for _, i := range t.Incidents {
		row := []string{fmt.Sprintf("[%s](../scenarios/%s.scn)", i, i)}
		for _, v := range t.Versions {
			row = append(row, t.shown(v, i, notes, &feet))
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	b.WriteString("\n")
	for i, f := range feet {
		b.WriteString(campaign.Paragraph(fmt.Sprintf("%d. ", i+1), f))
	}
	b.WriteString("\n" + campaign.Paragraph("", fmt.Sprintf("All that was played took %v of one core.", t.spent())))
	if long := t.long(); len(long) > 0 {
		b.WriteString("\n" + campaign.Paragraph("", fmt.Sprintf("More than %v of the computer's time: %s.", costly, strings.Join(long, "; "))))
	}
	return b.String(), t.stale(notes)
}

// shown is a cell. What it says of why goes to the feet, each text once.
func (t *table) shown(version, incident string, notes []note, feet *[]string) string {
	c := t.cells[version+" "+incident]
	switch {
	case c == nil:
		return campaign.NotYet
	case c.Why == campaign.NotYet || strings.HasPrefix(c.Why, "ENILAB_SYSTEMS has no "):
		return c.Why
	case c.Why != "":
		return "no verdict: " + campaign.Cell(c.Why)
	}
	foot := func(text string) string {
		if !slices.Contains(*feet, text) {
			*feet = append(*feet, text)
		}
		return fmt.Sprintf(" (%d)", slices.Index(*feet, text)+1)
	}
	var parts []string
	for _, x := range c.Breaks {
		why := `not explained yet: ` + campaign.Cell(x.Text)
		for _, n := range notes {
			if n.is(version, incident) && slices.Contains(n.Breaks, x.What) {
				why = n.Why
			}
		}
		parts = append(parts, fmt.Sprintf("**broke** %s at %s%s", quoted(x.What), campaign.Clock(x.At), foot(why)))
	}
	switch {
	case len(parts) > 0:
	case c.Status == "held":
		parts = append(parts, c.Status)
	case c.Status == "skipped":
		parts = append(parts, "skipped"+foot(campaign.Cell(strings.Join(c.Skipped, "; "))))
	case len(c.Missed) > 0:
		parts = append(parts, "no verdict"+foot(campaign.Cell(c.Status+": "+strings.Join(c.Missed, "; "))))
	default:
		parts = append(parts, "no verdict: "+c.Status)
	}
	if c.Unjudged > 0 {
		parts = append(parts, fmt.Sprintf("%d not judged%s", c.Unjudged, foot("it does not know "+strings.Join(c.Unknown, ", ")+": expectations that failed are not judged")))
	}
	return strings.Join(parts, "; ")
}

// quoted is an invariant, in its quotes; what is none needs none.
func quoted(what string) string {
	if strings.HasPrefix(what, "line ") || what == gate.EndsByItself {
		return what
	}
	return fmt.Sprintf("%q", what)
}

func (n *note) is(version, incident string) bool {
	return n.Incident == incident && slices.Contains(n.Versions, version)
}

func (t *table) stale(notes []note) (out []string) {
	for _, n := range notes {
		for _, v := range n.Versions {
			if c := t.cells[v+" "+n.Incident]; c != nil && c.Why == "" && !slices.ContainsFunc(n.Breaks, c.broke) {
				out = append(out, fmt.Sprintf("%s, %s, %s", v, n.Incident, quoted(strings.Join(n.Breaks, ", "))))
			}
		}
	}
	return out
}

// each gives what the cells say of something.
func (t *table) each(of func(*cell) string) string {
	var out []string
	for _, c := range t.cells {
		out = append(out, of(c))
	}
	return campaign.All(out)
}

// spent is the computer's time for all cells.
func (t *table) spent() (sum time.Duration) {
	for _, c := range t.cells {
		sum += c.CPU
	}
	return sum.Round(time.Minute)
}

func (t *table) long() (out []string) {
	for _, i := range t.Incidents {
		for _, v := range t.Versions {
			if c := t.cells[v+" "+i]; c != nil && c.CPU > costly {
				out = append(out, fmt.Sprintf("%s with %s, %v", i, v, c.CPU))
			}
		}
	}
	return out
}
