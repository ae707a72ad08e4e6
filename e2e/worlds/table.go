package main

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/enilab/enilab/internal/campaign"
	"github.com/enilab/enilab/sim/runner"
)

// heading begins the section; it ends with the file.
const heading = "## In each world\n"

// cell is what came of an incident in a world.
type cell struct {
	why           string // there is no verdict
	status, build string
	judged        int      // lines and invariants that were
	proved, named int      // mutants that broke what the file says of them, and all that were played
	skipped       []string // why lines were not played, each reason once
	kept          string   // what the file said of it before; there is no result any more
}

// What a section is read by.
var (
	footnote = regexp.MustCompile(`(?m)^(\d+)\. (.*(?:\n   .*)*)$`)
	builtOf  = regexp.MustCompile(`(?s)\nenilab of (.*?)\.\n`)
	cellText = regexp.MustCompile(`^(.*?)((?: \(\d+\))*)$`) // and the numbers of its footnotes
	number   = regexp.MustCompile(`\d+`)
)

// kept are the cells that a section has, for results are on one machine and the file is in the repository; and the builds that they are of.
func kept(section string) (cells map[string]cell, builds []string) {
	cells = map[string]cell{}
	feet := map[string]string{}
	for _, m := range footnote.FindAllStringSubmatch(section, -1) {
		feet[m[1]] = strings.Join(strings.Fields(m[2]), " ")
	}
	if m := builtOf.FindStringSubmatch(section); m != nil {
		builds = strings.FieldsFunc(m[1], func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	}
	var names []string
	for line := range strings.Lines(section) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		switch {
		case !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|-"):
			continue
		case names == nil:
			names = row
			continue
		}
		for i := 1; i < min(len(row), len(names)); i++ {
			m := cellText.FindStringSubmatch(strings.TrimSpace(row[i]))
			if m[1] == campaign.NotYet {
				continue
			}
			c := cell{kept: m[1]}
			for _, n := range number.FindAllString(m[2], -1) {
				c.skipped = append(c.skipped, feet[n])
			}
			cells[strings.TrimSpace(names[i])+"/"+strings.TrimSpace(row[0])] = c
		}
	}
	return cells, builds
}

// cellOf reads the document of a run.
func cellOf(of *campaign.Result) cell {
	if of.Why != "" {
		return cell{why: of.Why}
	}
	f, err := runner.OnlyFile(of.Stdout)
	if err != nil {
		return cell{why: err.Error()}
	}
	c := cell{status: f.Status, build: of.Build, judged: f.Judged, named: len(f.Mutants), skipped: f.Reasons()}
	for _, m := range f.Mutants {
		if m.Proved {
			c.proved++
		}
	}
	return c
}

// brief is the cell in words.
func (c *cell) brief() string {
	switch {
	case c.kept != "":
		return c.kept
	case c.why != "":
		return campaign.Cell(c.why)
	case c.named == 0:
		return fmt.Sprintf("%s, %d judged", c.status, c.judged)
	}
	return fmt.Sprintf("%s, %d judged, %d of %d mutants red", c.status, c.judged, c.proved, c.named)
}

// table is what was played: cells are named WORLD/INCIDENT.
type table struct {
	incidents []string
	cells     map[string]cell
	builds    []string // of cells that were kept
}

// text is the section.
func (t *table) text() string {
	var b strings.Builder
	var names, feet []string
	builds := slices.Clone(t.builds)
	for _, w := range worlds {
		names = append(names, w.name)
	}
	for _, c := range t.cells {
		builds = append(builds, c.build)
	}
	builds = campaign.Each(builds)
	b.WriteString(heading + "\nWritten by `make worlds`: the same files, with seed 1 and the mutants that they name, each judged by the same judge. In sim all is\n" +
		"modelled; in netns daemon, plugin and kernel are real; vm is netns in a machine of virtual time; on kind kubelet, containerd and\n" +
		"the API server are real, too. A mutant of the core's policy decides the same in each, and netns and vm leave it to sim.\n")
	if len(builds) > 0 {
		b.WriteString("\n" + campaign.Paragraph("", "enilab of "+strings.Join(builds, ", ")+"."))
	}
	fmt.Fprintf(&b, "\n| incident | %s |\n|---%s|\n", strings.Join(names, " | "), strings.Repeat("|---", len(names)))
	for _, i := range t.incidents {
		row := []string{i} // its row in the catalogue above has the link
		for _, w := range names {
			c := t.cells[w+"/"+i]
			text := c.brief()
			for _, why := range c.skipped {
				if !slices.Contains(feet, why) {
					feet = append(feet, why)
				}
				text += fmt.Sprintf(" (%d)", slices.Index(feet, why)+1)
			}
			row = append(row, text)
		}
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	if len(feet) > 0 {
		b.WriteString("\nLines that a world skips, and why:\n\n")
		for i, f := range feet {
			b.WriteString(campaign.Paragraph(fmt.Sprintf("%d. ", i+1), campaign.Cell(f)))
		}
	}
	return b.String()
}
