package gate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Row is a scenario's variant, with a cell for each of Plays.
type Row struct {
	Name  string
	Cells []Cell
}

// Cell is what came of a play, with all its seeds.
type Cell struct {
	Level Level // empty: it was not asked for
	Text  string
	Seeds []uint64 // with which it was as Text says
	Of    int      // seeds with which it was to be played
}

// Matrix is what came of each scenario in each play. A cell is Good only if every seed was played to its end and broke nothing that held before.
func (p *Page) Matrix() (out []Row) {
	for _, g := range groups(p.Results) {
		row := Row{Name: g.name()}
		for _, play := range Plays() {
			row.Cells = append(row.Cells, p.cell(g, play))
		}
		out = append(out, row)
	}
	return out
}

func (p *Page) cell(g *group, play Play) Cell {
	seedsOf := map[Level]map[string][]uint64{Bad: {}, Warn: {}, Good: {}}
	of := 0
	for _, seed := range slices.Sorted(maps.Keys(g.seeds)) {
		r := g.seeds[seed][play]
		if r == nil {
			continue
		}
		of++
		level, text := p.look(g, r)
		seedsOf[level][text] = append(seedsOf[level][text], seed)
	}
	for _, level := range []Level{Bad, Warn, Good} {
		for _, text := range slices.Sorted(maps.Keys(seedsOf[level])) {
			return Cell{Level: level, Text: text, Seeds: seedsOf[level][text], Of: of}
		}
	}
	return Cell{Text: "not asked for"}
}

// look is how one result stands in the matrix: as the gravest finding that it has.
func (p *Page) look(g *group, r *Result) (Level, string) {
	if r.Unknown != "" {
		return Warn, "not known"
	}
	for _, u := range p.Verdict.Unknown {
		if strings.HasPrefix(u, fmt.Sprintf("%s, %s, seed %d", g.name(), r.Play.Doc(), r.Seed)) || strings.HasPrefix(u, g.name()+": ") {
			return Warn, "not known"
		}
	}
	level, text := Good, "held"
	for _, f := range p.Verdict.Findings {
		if f.Scenario != r.Scenario || f.Variant != r.Variant || !slices.Contains(f.Plays, r.Play) || r.broke(f.Check) == nil {
			continue
		}
		switch f.Kind {
		case Regression:
			return Bad, "broke"
		case Accepted, Seldom, Unsure:
			level, text = Warn, string(f.Kind)
		case Before, Mended:
			if level == Good {
				text = "as before"
			}
		}
	}
	if level == Good && text == "held" && len(r.Broken) > 0 {
		text = "as before"
	}
	return level, text
}
