package runner

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Case is a scenario file that has been checked: nothing in it is left to fail for a mistake of its writer, except a cluster
// that cannot start.
type Case struct {
	File     *scn.File
	Place    *Place
	Variants []Variant
	Against  []Against
	Unplayed []Unplayed // mutants that the file names and the place does not run
}

// Unplayed is a mutant that is not run.
type Unplayed struct {
	Mutant string
	Why    string
}

// Variant is one run of the file: every $name has its value.
type Variant struct {
	Name    string // "wrong=absent size=3"; "" when the file has no vary line
	File    *scn.File
	Cluster *sim.Cluster
	place   *Place
}

// Against is a mutant that the file names and what it says of it.
type Against struct {
	Pos    scn.Pos
	Mutant mutants.Mutant
	Claim  scn.Against
}

// Name is the file's name without folder and ending.
func (c *Case) Name() string { return strings.TrimSuffix(filepath.Base(c.File.Name), ".scn") }

// Load parses and checks a scenario for a place. The name is for positions. The error is an scn.ErrorList with every mistake of the file.
func Load(p *Place, name string, data []byte) (*Case, error) {
	f, errs := scn.Read(name, data)
	if f == nil {
		return nil, errs
	}
	c := &Case{File: f, Place: p}
	check := sim.Check
	if broken(f, errs, makers()...) {
		intact := !broken(f, errs, "cluster")
		check = func(f *scn.File) (*sim.Cluster, error) { return sim.CheckRest(f, intact) }
	}
	for _, values := range f.Variants() {
		v, err := p.variant(f, values, check)
		if err != nil {
			errs = merge(errs, err)
			continue
		}
		c.Variants = append(c.Variants, v)
	}
	if len(errs) > 0 {
		return nil, errs
	}
	for _, l := range f.Lines {
		if a, ok := l.Stmt.(*scn.Against); ok && l.Guard.Allows(p.Name) {
			m, _ := mutants.ByName(a.Mutant) // checked
			if p.Plays != nil {
				if err := p.Plays(&m); err != nil {
					c.Unplayed = append(c.Unplayed, Unplayed{m.Name, err.Error()})
					continue
				}
			}
			c.Against = append(c.Against, Against{l.Pos, m, *a})
		}
	}
	return c, nil
}

// variant expands and checks. Lines for other worlds are checked like all others, but say nothing about this world's cluster.
func (p *Place) variant(f *scn.File, values map[string]string, check func(*scn.File) (*sim.Cluster, error)) (Variant, error) {
	g, err := f.Expand(values)
	if err != nil {
		return Variant{}, err
	}
	if _, err := check(g); err != nil {
		return Variant{}, err
	}
	if errs := p.resolve(g); len(errs) > 0 {
		return Variant{}, errs
	}
	ours := g
	for _, l := range g.Lines {
		if l.Stmt != nil && !l.Guard.Allows(p.Name) {
			ours = ours.Without(l.Number)
		}
	}
	cluster, err := check(ours)
	if err != nil {
		return Variant{}, err
	}
	return Variant{Name: f.VariantName(values), File: g, Cluster: cluster, place: p}, nil
}

// resolve finds the systems that a file's lines upgrade to: nothing starts before all are there.
func (p *Place) resolve(f *scn.File) (errs scn.ErrorList) {
	for _, l := range f.Lines {
		at, ok := l.Stmt.(*scn.At)
		if !ok || at.Action == nil || p.Resolve == nil || !l.Guard.Allows(p.Name) {
			continue
		}
		if act, bad := verb.Bind(at.Action); bad == nil && act.System() != "" {
			if err := p.Resolve(act.System()); err != nil {
				errs = append(errs, scn.Errorf(at.Action.VerbPos, "", "%v", err))
			}
		}
	}
	return errs
}

// makers are words of lines without which other lines may have nothing to be about.
func makers() []string {
	out := []string{"cluster", "start", "pods", "finally", "converges"}
	for _, v := range verb.All() {
		if v.Plan != nil {
			out = append(out, v.Name)
		}
	}
	return out
}

// broken says whether one of these words is in a line that could not be read, which may have made what another line is about.
func broken(f *scn.File, errs scn.ErrorList, words ...string) bool {
	return slices.ContainsFunc(errs, func(e *scn.Error) bool {
		n := e.Pos.Line
		if n < 1 || n > len(f.Lines) {
			return true
		}
		text := f.Lines[n-1].Raw
		if strings.HasPrefix(e.Hint, "did you mean") {
			text += e.Hint
		}
		found := strings.FieldsFunc(text, func(r rune) bool { return !unicode.IsLetter(r) && r != '-' }) // restart is no start
		return slices.ContainsFunc(words, func(w string) bool { return slices.Contains(found, w) })
	})
}

// merge adds what is not there yet, for variants share their mistakes, and keeps the order of the file.
func merge(errs scn.ErrorList, err error) scn.ErrorList {
	var more scn.ErrorList
	if !errors.As(err, &more) {
		more = scn.ErrorList{scn.Errorf(scn.Pos{}, "", "%v", err)}
	}
	for _, e := range more {
		if !slices.ContainsFunc(errs, func(o *scn.Error) bool { return *o == *e }) {
			errs = append(errs, e)
		}
	}
	slices.SortStableFunc(errs, func(a, b *scn.Error) int { return a.Pos.Line - b.Pos.Line })
	return errs
}
