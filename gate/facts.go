package gate

import (
	"fmt"
	"maps"
	"slices"

	"github.com/enilab/enilab/sim"
)

// facts compares what nodes look like in the end, which others rely on: how host veths are called, their MTU, from where pods' packets come. Another one
// than with the old version alone is a regression, however well the pods do. Of the runtime's CNI configuration that is so where there is none; that it
// has other words is a note. What the old version alone does not always show is not compared.
func (v *Verdict) facts(g *group) {
	was := map[string]string{}
	unsteady := map[string]bool{}
	seeds := slices.Sorted(maps.Keys(g.seeds))
	for _, s := range seeds {
		for fact, value := range g.factsOf(s, Old) {
			if known, ok := was[fact]; ok && known != value {
				unsteady[fact] = true
			}
			was[fact] = value
		}
	}
	for _, fact := range slices.Sorted(maps.Keys(was)) {
		if unsteady[fact] {
			continue
		}
		f := Finding{Kind: Regression, Scenario: g.scenario, Variant: g.variant, Check: fact}
		note := ""
		for _, p := range Plays()[1:] {
			for _, s := range seeds {
				is, ok := g.factsOf(s, p)[fact]
				if !ok || is == was[fact] {
					continue
				}
				if fact == sim.FactConfiguration && is != sim.NoConfiguration {
					note = fmt.Sprintf("%s, %s: %s is another one: %s; with the old version alone %s", g.name(), p.Doc(), fact, is, was[fact])
					continue
				}
				if len(f.Plays) == 0 {
					r := g.seeds[s][p]
					f.Seed, f.At, f.Change, f.Text = s, r.Ended, r.Change, fmt.Sprintf("%s: %s; with the old version alone: %s", fact, is, was[fact])
				}
				if !slices.Contains(f.Plays, p) {
					f.Plays = append(f.Plays, p)
				}
				if !slices.Contains(f.Seeds, s) {
					f.Seeds = append(f.Seeds, s)
				}
			}
		}
		if note != "" {
			v.Notes = append(v.Notes, note)
		}
		if len(f.Plays) > 0 {
			slices.Sort(f.Seeds)
			f.Of, f.Cause = len(seeds), f.cause()
			v.Findings = append(v.Findings, f)
		}
	}
}

// factsOf are those of a play, of which something is known.
func (g *group) factsOf(seed uint64, p Play) map[string]string {
	r := g.seeds[seed][p]
	if r == nil || r.Unknown != "" || r.Figures == nil {
		return nil
	}
	return r.Figures.Facts
}
