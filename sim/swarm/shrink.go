package swarm

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim/scn"
)

// MostTries bounds how many runs a shrinking takes: twenty seconds or so.
const MostTries = 3000

// Options of a shrinking.
type Options struct {
	Tell func(tried, lines int) // if any, is told before every try
	Stop func() bool            // if any, is asked and ends the shrinking with what it has
}

// Shrunk is a scenario that was made smaller and still breaks alike.
type Shrunk struct {
	Text        string
	Seed        uint64
	Broken      Broken
	From, Lines int // statements before and after
	Tried       int // runs
	Refused     int // candidates that were discarded before they ran
}

// ErrHolds is a scenario with nothing to shrink.
var ErrHolds = errors.New("nothing broke")

// ErrStart is a scenario that is refused before it runs.
var ErrStart = errors.New("it never came to run")

// Shrink makes a scenario that breaks smaller: it takes out lines, then arguments, then makes numbers, durations and gaps smaller, again
// and again until nothing helps any more. The first variant that breaks is taken. The same scenario and seed give the same result.
func Shrink(name, text string, seed uint64, o Options) (*Shrunk, error) {
	f, b, err := breaking(name, []byte(text), seed, o.Stop)
	if err != nil {
		return nil, err
	}
	s := &shrinker{file: f, seed: seed, want: *b, options: o, seen: map[string]bool{}}
	s.from = len(f.Statements())
	s.tidy()
	s.seeds()
	for before := ""; before != s.file.String() && !s.over(); {
		before = s.file.String()
		s.lines()
		s.pairs()
		s.gaps()
		s.parts()
	}
	return &Shrunk{Text: s.file.String(), Seed: s.seed, Broken: s.want, From: s.from, Lines: len(s.file.Statements()), Tried: s.tried,
		Refused: s.refused}, nil
}

// breaking is the first variant of a scenario that breaks.
func breaking(name string, data []byte, seed uint64, stop func() bool) (*scn.File, *Broken, error) {
	f, err := scn.Parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	for _, vars := range f.Variants() {
		g, err := f.Expand(vars)
		if err != nil {
			return nil, nil, err
		}
		g, c, err := Read(name, []byte(g.String()))
		if err != nil {
			return nil, nil, err
		}
		out := play(g, c, seed, nil, stop)
		switch {
		case out.Broken == nil:
		case out.Broken.Invariant == Started:
			return nil, nil, fmt.Errorf("%w: %s", ErrStart, out.Broken.Text)
		default:
			return g, out.Broken, nil
		}
	}
	return nil, nil, ErrHolds
}

type shrinker struct {
	file    *scn.File
	seed    uint64
	want    Broken
	owed    bool // the scenario asks for what is possible, and goes on to
	options Options
	seen    map[string]bool // candidates that were tried
	from    int
	tried   int
	refused int
}

func (s *shrinker) over() bool {
	return s.tried >= MostTries || s.options.Stop != nil && s.options.Stop()
}

// try takes a candidate if it breaks alike.
func (s *shrinker) try(f *scn.File, seed uint64) bool {
	text := f.String()
	key := fmt.Sprint(seed, "\n", text)
	if s.seen[key] || s.over() {
		return false
	}
	s.seen[key] = true
	g, c, err := Read(s.file.Name, []byte(text))
	if err != nil || s.owed && Owed(g, c) != nil {
		s.refused++
		return false
	}
	s.tried++
	if s.options.Tell != nil {
		s.options.Tell(s.tried, len(s.file.Statements()))
	}
	o := play(g, c, seed, nil, s.options.Stop)
	if o.Cut || o.Broken == nil || !s.alike(o.Broken) {
		return false
	}
	s.file, s.seed, s.want = g, seed, *o.Broken
	return true
}

// alike says whether a candidate broke as the scenario did. What a line expects with a number is another thing with another number, or
// the shrinker would take out the pods that are counted.
func (s *shrinker) alike(b *Broken) bool {
	if b.Invariant == Expectation && !selfScaling(b.Text) {
		return b.Text == s.want.Text
	}
	return b.Same(&s.want)
}

// selfScaling is an expectation that is right whatever lines are taken out.
func selfScaling(text string) bool { return strings.Contains(text, " kube pods.unready == 0; ") }

// tidy takes out what says nothing: comments, the story, mutants, and invariants, which are judged anyway.
func (s *shrinker) tidy() {
	f := &scn.File{Name: s.file.Name}
	for _, l := range s.file.Lines {
		switch l.Stmt.(type) {
		case nil, *scn.Always, *scn.Against, *scn.Reaches, *scn.Compare, *scn.Vary:
			continue
		}
		f.Lines = append(f.Lines, scn.Line{Stmt: l.Stmt})
	}
	g, c, err := Read(f.Name, []byte(f.String()))
	if err != nil {
		return // a file that needs them
	}
	s.owed = Owed(g, c) == nil
	if !s.try(g, s.seed) { // it has to break alike, or the lines that are left out matter
		return
	}
}

// seeds tries the seeds that people use.
func (s *shrinker) seeds() {
	for seed := uint64(1); seed <= 5 && seed < s.seed; seed++ {
		if s.try(s.file, seed) {
			return
		}
	}
}

// lines takes out statements, half of them at once, then a quarter, and so on: what is called delta debugging.
func (s *shrinker) lines() {
	for size := len(s.file.Statements()) / 2; size >= 1; size /= 2 {
		for at := 0; at < len(s.file.Statements()) && !s.over(); {
			if !s.without(at, size) {
				at += size
			}
		}
	}
}

// mostPaired bounds of how many statements every two are tried.
const mostPaired = 16

// pairs takes out two statements at once: one that begins something and one that ends it, which alone would be refused.
func (s *shrinker) pairs() {
	if len(s.file.Statements()) > mostPaired {
		return
	}
	for i := 0; i < len(s.file.Statements()); i++ {
		for j := i + 1; j < len(s.file.Statements()) && !s.over(); j++ {
			numbers := s.file.Statements()
			g := s.file
			for _, n := range []int{numbers[i], numbers[j]} {
				if !s.stays(n) {
					g = g.Without(n)
				}
			}
			if len(g.Statements()) == len(numbers)-2 && s.try(g, s.seed) {
				j = i
			}
		}
	}
}

// stays says of a statement that nothing is judged without it: the line that says how long settling may take, and the cluster's.
func (s *shrinker) stays(number int) bool {
	i := slices.IndexFunc(s.file.Lines, func(l scn.Line) bool { return l.Number == number })
	switch s.file.Lines[i].Stmt.(type) {
	case *scn.Cluster, *scn.Finally:
		return true
	}
	return false
}

// without tries the file without some statements.
func (s *shrinker) without(at, size int) bool {
	numbers := s.file.Statements()
	g := s.file
	for _, n := range numbers[at:min(at+size, len(numbers))] {
		if !s.stays(n) {
			g = g.Without(n)
		}
	}
	return len(g.Statements()) < len(numbers) && s.try(g, s.seed)
}
