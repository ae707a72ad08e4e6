package swarm

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// MostTries bounds how many runs a shrinking in virtual time takes: twenty seconds or so.
const MostTries = 3000

// Options of a shrinking. Zero values are those of virtual time.
type Options struct {
	Player Player // nil: virtual time, where a run costs nothing
	CNI    *CNI   // for whom the scenario was drawn: what it does not owe is not asked for. Nil: ours
	Tries  int    // how many runs at most; 0: MostTries
	// Times is how often a candidate is played until it breaks; 0 is once. In a world that does not repeat one that holds may break the next
	// time.
	Times int
	// Together calls do with 0 to n-1, at the same time if it likes, and returns when all have returned. Nil: one after another.
	Together func(n int, do func(i int))
	Tell     func(tried, lines int) // if any, is told before every try
	Over     func() bool            // if any, says that the time is over: the shrinking ends with what it has, which is played once more
	Stop     func() bool            // if any, is asked and ends everything with what there is
}

// dear says whether runs cost so much that few can be had.
func (o *Options) dear() bool { return o.Player != nil }

// complete fills in what zero values stand for.
func (o Options) complete() Options {
	o.Tries = cmp.Or(o.Tries, MostTries)
	if o.Together == nil {
		o.Together = func(n int, do func(i int)) {
			for i := range n {
				do(i)
			}
		}
	}
	o.Times = max(1, o.Times)
	if o.Stop == nil {
		o.Stop = func() bool { return false }
	}
	if o.Over == nil {
		o.Over = o.Stop
	}
	return o
}

// patience is how often a run is played again of which nothing is known: a machine that did not keep up may do so the next time.
const patience = 3

// first is how often the whole scenario is played until it breaks: it is known to have broken once.
func (o *Options) first() int {
	if o.dear() && !o.player().Repeats() {
		return max(o.Times, patience)
	}
	return o.Times
}

// player is where candidates are played.
func (o *Options) player() Player {
	if o.Player == nil {
		return &Sim{}
	}
	return o.Player
}

// owed says whether a scenario asks for no more than its CNI owes.
func (o *Options) owed(f *scn.File, c *sim.Cluster) bool {
	if o.CNI != nil {
		return o.CNI.Feasible(f, c) == nil
	}
	return Feasible(f, c) == nil
}

// Shrunk is a scenario that was made smaller and still breaks alike.
type Shrunk struct {
	Text        string
	Seed        uint64
	Broken      Broken
	From, Lines int // statements before and after
	Tried       int // runs
	Refused     int // candidates that were discarded before they ran
	// Again of Of is how often the small scenario broke alike when it was played once more.
	Again, Of int
}

// ErrHolds is a scenario with nothing to shrink.
var ErrHolds = errors.New("nothing broke")

// ErrStart is a scenario that is refused before it runs.
var ErrStart = errors.New("it never came to run")

// ErrUnknown is a scenario of whose run nothing is known.
var ErrUnknown = errors.New("nothing is known of its run")

// Shrink makes a scenario that breaks smaller: it takes out lines, then arguments, then makes numbers, durations and gaps smaller, again
// and again until nothing helps any more, or until as many runs were played as there may be. The first variant that breaks is taken. Where
// runs repeat, the same scenario and seed give the same result.
func Shrink(name, text string, seed uint64, o Options) (*Shrunk, error) {
	o = o.complete()
	f, b, err := breaking(name, []byte(text), seed, &o)
	if err != nil {
		return nil, err
	}
	s := &shrinker{file: f, seed: seed, want: *b, options: o, seen: map[string]bool{}}
	s.from = len(f.Statements())
	s.tidy()
	if o.dear() {
		s.dearly()
	} else {
		s.cheaply()
	}
	out := &Shrunk{Text: s.file.String(), Seed: s.seed, Broken: s.want, From: s.from, Lines: len(s.file.Statements()), Tried: s.tried,
		Refused: s.refused}
	s.check(out)
	return out, nil
}

// cheaply tries everything until nothing helps any more.
func (s *shrinker) cheaply() {
	s.seeds()
	for before := ""; before != s.file.String() && !s.over(); {
		before = s.file.String()
		s.lines()
		s.pairs()
		s.gaps()
		s.parts()
	}
}

// dearly takes the largest bites first: what came after the instant at which it broke, then lines, then what is written of them.
func (s *shrinker) dearly() {
	s.afterwards()
	for before := ""; before != s.file.String() && !s.over(); {
		before = s.file.String()
		s.lines()
		s.twins()
		s.parts()
		s.gaps()
	}
	s.pairs()
}

// check plays the small scenario again, twice where runs repeat, also when the time is over. An interruption leaves it out.
func (s *shrinker) check(out *Shrunk) {
	p := s.options.player()
	times := 1
	if p.Repeats() {
		times = 2
	}
	for range times {
		if s.options.Stop() {
			return
		}
		o, err := p.Play(s.file.Name, out.Text, out.Seed, s.options.Stop)
		if err != nil || o.Cut || o.Unknown != "" {
			continue
		}
		if out.Of++; o.Broken != nil && s.alike(o.Broken) {
			out.Again++
		}
	}
}

// breaking is the first variant of a scenario that breaks.
func breaking(name string, data []byte, seed uint64, o *Options) (*scn.File, *Broken, error) {
	f, err := scn.Parse(name, data)
	if err != nil {
		return nil, nil, err
	}
	unknown := ""
	for _, vars := range f.Variants() {
		g, err := f.Expand(vars)
		if err != nil {
			return nil, nil, err
		}
		if o.dear() {
			g = alone(g)
		}
		g, _, err = ReadFor(o.player().World(), name, []byte(g.String()))
		if err != nil {
			return nil, nil, err
		}
		for range o.first() {
			out, err := o.player().Play(name, g.String(), seed, o.Stop)
			switch {
			case err != nil:
				return nil, nil, err
			case out.Unknown != "":
				unknown = out.Unknown
			case out.Broken == nil:
			case out.Broken.Invariant == Started && !o.dear():
				return nil, nil, fmt.Errorf("%w: %s", ErrStart, out.Broken.Text)
			default:
				return g, out.Broken, nil
			}
		}
	}
	if unknown != "" {
		return nil, nil, fmt.Errorf("%w: %s", ErrUnknown, unknown)
	}
	return nil, nil, ErrHolds
}

// alone is a file without its mutants, which would be played too, and without its story.
func alone(f *scn.File) *scn.File {
	g := &scn.File{Name: f.Name}
	for _, l := range f.Lines {
		if _, mutant := l.Stmt.(*scn.Against); l.Stmt != nil && !mutant {
			g.Lines = append(g.Lines, scn.Line{Stmt: l.Stmt, Guard: l.Guard})
		}
	}
	return g
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
	return s.tried >= s.options.Tries || s.late()
}

// late says that there is no time for a further candidate.
func (s *shrinker) late() bool { return s.options.Stop() || s.options.Over() }

// candidate is a scenario that may break alike.
type candidate struct {
	file *scn.File
	text string
	seed uint64
}

// candidate is nil for what was tried before, or is discarded before it runs.
func (s *shrinker) candidate(f *scn.File, seed uint64) *candidate {
	if f == nil || s.over() {
		return nil
	}
	text := f.String()
	key := fmt.Sprint(seed, "\n", text)
	if s.seen[key] {
		return nil
	}
	s.seen[key] = true
	g, c, err := ReadFor(s.options.player().World(), s.file.Name, []byte(text))
	if err != nil || s.owed && !s.options.owed(g, c) {
		s.refused++
		return nil
	}
	s.tried++
	if s.options.Tell != nil {
		s.options.Tell(s.tried, len(s.file.Statements()))
	}
	return &candidate{file: g, text: text, seed: seed}
}

// play plays a candidate until it breaks alike, and gives how.
func (s *shrinker) play(c *candidate) *Broken {
	for held, unknown := 0, 0; held < s.options.Times && unknown < patience; {
		o, err := s.options.player().Play(s.file.Name, c.text, c.seed, s.late)
		if err != nil || o.Cut {
			return nil
		}
		if o.Unknown != "" {
			unknown++
			continue
		}
		held++
		if o.Broken != nil && s.alike(o.Broken) {
			return o.Broken
		}
	}
	return nil
}

// try takes a candidate if it breaks alike.
func (s *shrinker) try(f *scn.File, seed uint64) bool {
	return s.first(1, func(int) (*scn.File, uint64) { return f, seed }) == 0
}

// first takes the first of n candidates that breaks alike, and says which: -1 is none. Nil is no candidate. As many are played at once as
// the player can; those after the first that breaks are wasted, and tried again only if the file has changed.
func (s *shrinker) first(n int, nth func(i int) (*scn.File, uint64)) int {
	for i := 0; i < n && !s.over(); {
		var some []*candidate
		var which []int
		for ; i < n && len(some) < s.options.player().AtOnce(); i++ {
			if c := s.candidate(nth(i)); c != nil {
				some, which = append(some, c), append(which, i)
			}
		}
		broken := make([]*Broken, len(some))
		s.options.Together(len(some), func(k int) { broken[k] = s.play(some[k]) })
		for k, b := range broken {
			if b != nil {
				s.file, s.seed, s.want = some[k].file, some[k].seed, *b
				return which[k]
			}
		}
	}
	return -1
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
	said := false // by a statement
	for _, l := range s.file.Lines {
		switch l.Stmt.(type) {
		case nil:
			continue
		case *scn.Always, *scn.Against, *scn.Reaches, *scn.Compare, *scn.Vary:
			said = true
			continue
		}
		f.Lines = append(f.Lines, scn.Line{Stmt: l.Stmt})
	}
	g, c, err := ReadFor(s.options.player().World(), f.Name, []byte(f.String()))
	if err != nil {
		return // a file that needs them
	}
	s.owed = s.options.owed(g, c)
	if s.options.dear() && !said { // it is the same scenario
		s.file = g
		return
	}
	s.try(g, s.seed) // if it does not break alike, the lines that are left out matter
}

// afterwards takes out all that happens after the instant at which it broke.
func (s *shrinker) afterwards() {
	g := &scn.File{Name: s.file.Name}
	for _, l := range s.file.Lines {
		if at, ok := l.Stmt.(*scn.At); !ok || at.When <= s.want.At {
			g.Lines = append(g.Lines, l)
		}
	}
	if len(g.Lines) < len(s.file.Lines) {
		s.try(g, s.seed)
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
		for at := 0; !s.over(); {
			left := len(s.file.Statements()) - at
			taken := s.first((left+size-1)/size, func(i int) (*scn.File, uint64) { return s.without(at+i*size, size), s.seed })
			if taken < 0 {
				break
			}
			at += taken * size
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
		for taken := 0; taken >= 0 && !s.over(); {
			numbers := s.file.Statements()
			taken = s.first(len(numbers)-i-1, func(k int) (*scn.File, uint64) { return s.withoutTwo(numbers, i, i+1+k), s.seed })
		}
	}
}

// twins takes out pairs of which one begins what the other ends.
func (s *shrinker) twins() {
	for i := 0; i < len(s.file.Statements()) && !s.over(); i++ {
		numbers := s.file.Statements()
		for j := i + 1; j < len(numbers); j++ {
			if s.twin(numbers[i]) != "" && s.twin(numbers[i]) == s.twin(numbers[j]) && s.try(s.withoutTwo(numbers, i, j), s.seed) {
				i--
				break
			}
		}
	}
}

// twin is what a statement begins or ends, and whose; "" is nothing.
func (s *shrinker) twin(number int) string {
	at, ok := s.file.Lines[s.index(number)].Stmt.(*scn.At)
	if !ok || at.Action == nil {
		return ""
	}
	what := strings.TrimPrefix(at.Action.Verb, "un")
	switch what {
	case "hold", "hang", "socket", "drain-subnet", "lag":
		return at.Action.Subject.String() + " " + what
	}
	return ""
}

// withoutTwo is the file without two statements; nil when one of them stays.
func (s *shrinker) withoutTwo(numbers []int, i, j int) *scn.File {
	g := s.file
	for _, n := range []int{numbers[i], numbers[j]} {
		if !s.stays(n) {
			g = g.Without(n)
		}
	}
	if len(g.Statements()) != len(numbers)-2 {
		return nil
	}
	return g
}

// index is where a statement is among the file's lines.
func (s *shrinker) index(number int) int {
	return slices.IndexFunc(s.file.Lines, func(l scn.Line) bool { return l.Number == number })
}

// stays says of a statement that nothing is judged without it: the line that says how long settling may take, and the cluster's.
func (s *shrinker) stays(number int) bool {
	switch s.file.Lines[s.index(number)].Stmt.(type) {
	case *scn.Cluster, *scn.Finally:
		return true
	}
	return false
}

// without is the file without some statements; nil when all of them stay.
func (s *shrinker) without(at, size int) *scn.File {
	numbers := s.file.Statements()
	g := s.file
	for _, n := range numbers[at:min(at+size, len(numbers))] {
		if !s.stays(n) {
			g = g.Without(n)
		}
	}
	if len(g.Statements()) == len(numbers) {
		return nil
	}
	return g
}
