package runner

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// Seeds is a range of seeds, both ends in it.
type Seeds struct{ From, To uint64 }

// MaxSeeds bounds a range: what a machine with two cores plays of a small scenario in an hour. A larger one is a slip of the finger, or
// work for several machines.
const MaxSeeds = 100_000

// Count is how many seeds the range has.
func (s Seeds) Count() int { return int(s.To-s.From) + 1 }

// String is the range as it is written: "1-200", "7".
func (s Seeds) String() string {
	if s.From == s.To {
		return strconv.FormatUint(s.From, 10)
	}
	return fmt.Sprintf("%d-%d", s.From, s.To)
}

// ParseSeeds reads a range: two whole numbers with a hyphen between them, the smaller one first, or one number.
func ParseSeeds(text string) (Seeds, error) {
	const form = "write the first and the last seed, such as 1-200"
	if text == "" {
		return Seeds{}, fmt.Errorf("the seed range is empty (%s)", form)
	}
	first, last, isRange := strings.Cut(text, "-")
	if !isRange {
		last = first
	}
	var s Seeds
	for _, end := range []struct {
		text string
		to   *uint64
	}{{first, &s.From}, {last, &s.To}} {
		n, err := strconv.ParseUint(end.text, 10, 64)
		if err != nil {
			return Seeds{}, fmt.Errorf("seed range %q: %q is not a whole number (%s)", text, end.text, form)
		}
		*end.to = n
	}
	switch {
	case s.To < s.From:
		return Seeds{}, fmt.Errorf("seed range %q runs backwards (write %d-%d)", text, s.To, s.From)
	case s.To-s.From >= MaxSeeds:
		return Seeds{}, fmt.Errorf("seed range %q has more than %s seeds (take part of it, such as %d-%d)", text, Number(MaxSeeds), s.From, s.From+MaxSeeds-1)
	}
	return s, nil
}

// Sweep is what came of one file under every seed of a range. What it keeps does not grow with the range, but for the seeds that failed.
type Sweep struct {
	Case    *Case
	Seeds   Seeds
	Ran     int // seeds whose runs came to their end
	Status  Status
	Failed  []uint64      // seeds under which the file did not hold, in order
	First   *FileDocument // of the first of these
	Skipped *Result       // of some seed, when nothing was judged under it
	Lines   int           // lines that a run left out
	Mutant  string        // the one that was run alone
	Events  uint64
	Virtual time.Duration
	Wall    time.Duration // of all its runs, as if they had gone one after another

	maybe []sim.Maybe // lines that may miss, and whether one of the seeds struck
}

// enoughSeeds is how many seeds have to let a line that may miss strike once: one that never does is none.
const enoughSeeds = 200

// Never are the lines that may miss and have struck under no seed.
func (f *Sweep) Never() (out []scn.Pos) {
	for _, m := range f.maybe {
		if !m.Struck {
			out = append(out, m.Pos)
		}
	}
	return out
}

// tried takes what became of the lines that may miss.
func (f *Sweep) tried(r *Result) {
	for i := range r.Runs {
		if r.Runs[i].Verdict == nil {
			continue
		}
		for _, m := range r.Runs[i].Verdict.Maybe {
			at := slices.IndexFunc(f.maybe, func(x sim.Maybe) bool { return x.Pos == m.Pos })
			if at < 0 {
				f.maybe = append(f.maybe, m)
				continue
			}
			f.maybe[at].Struck = f.maybe[at].Struck || m.Struck
		}
	}
}

// SweepProgress says how far a sweep of several files is.
type SweepProgress struct {
	Scenario    string // that has ended a run last
	Seed        uint64 // with which
	Done, Total int    // runs of a file under a seed
	Failed      int
}

// SweepOptions are how a sweep is carried out.
type SweepOptions struct {
	Options
	Seeds Seeds
	// AtOnce is how many runs go on side by side. Worlds that do not repeat share one machine: theirs go one after another.
	AtOnce int
	// Ended is given each run's result, one at a time.
	Ended func(*Result)
	// Swept is told of each run that has ended, one at a time.
	Swept func(SweepProgress)
	// Done is given each file's sweep, in the order of the files, as soon as it and those before it are known.
	Done func(*Sweep)
}

// sweeper carries out a sweep. Its lock guards everything below it.
type sweeper struct {
	o       *SweepOptions
	files   []*Sweep
	jobs    chan sweepJob
	mu      sync.Mutex
	open    []int // a file's runs that have not ended
	told    int   // files given to Done
	done    int
	failed  int
	stopped bool // it was interrupted
}

// sweepJob is one file under one seed.
type sweepJob struct {
	file int
	seed uint64
}

// SweepAll runs every file under every seed, and gives a sweep for each file. The runs share nothing, so they may go on side by side.
func SweepAll(cases []*Case, o SweepOptions) []*Sweep {
	s := &sweeper{o: &o, jobs: make(chan sweepJob)}
	for _, c := range cases {
		f := &Sweep{Case: c, Seeds: o.Seeds}
		if o.Against != nil {
			f.Mutant = o.Against.Name
		}
		s.files, s.open = append(s.files, f), append(s.open, o.Seeds.Count())
	}
	atOnce := max(1, o.AtOnce)
	if slices.ContainsFunc(cases, func(c *Case) bool { return !c.Place.Repeatable }) {
		atOnce = 1
	}
	var all sync.WaitGroup
	for range atOnce {
		all.Go(s.work)
	}
	s.feed(o.Seeds)
	all.Wait()
	s.tellDone(true)
	return s.files
}

// feed hands out the runs, file after file, so that the first file is known first.
func (s *sweeper) feed(seeds Seeds) {
	defer close(s.jobs)
	for file := range s.files {
		for i := range seeds.Count() {
			if s.interrupted() {
				return
			}
			s.jobs <- sweepJob{file, seeds.From + uint64(i)}
		}
	}
}

// interrupted asks under the lock, so that it is never asked twice at once.
func (s *sweeper) interrupted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = s.stopped || s.o.interrupted()
	return s.stopped
}

func (s *sweeper) work() {
	o := s.o.Options
	o.Interrupted, o.Progress = s.interrupted, nil
	if s.o.Interrupted == nil {
		o.Interrupted = nil
	}
	for j := range s.jobs {
		o.Seed = j.seed
		s.add(j, s.files[j.file].Case.Run(o))
	}
}

func (s *sweeper) add(j sweepJob, r *Result) {
	s.mu.Lock()
	f := s.files[j.file]
	f.add(r)
	if s.o.Ended != nil {
		s.o.Ended(r)
	}
	s.done++
	s.open[j.file]--
	if r.Status.Fails() {
		s.failed++
	}
	if s.o.Swept != nil {
		s.o.Swept(SweepProgress{Scenario: f.Case.Name(), Seed: j.seed, Done: s.done, Total: len(s.files) * s.o.Seeds.Count(), Failed: s.failed})
	}
	s.mu.Unlock()
	s.tellDone(false)
}

// tellDone gives the files to Done that are known, in order; after an interruption all that ran at all.
func (s *sweeper) tellDone(end bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for s.told < len(s.files) && (s.open[s.told] == 0 || end) {
		f := s.files[s.told]
		s.told++
		if s.open[s.told-1] > 0 {
			f.worsen(Interrupted)
		}
		if s.o.Done != nil && (f.Ran > 0 || !s.stopped) {
			s.o.Done(f)
		}
	}
}

// Fails says whether a file that ended so is told as a failure of its seed.
func (s Status) Fails() bool { return s != Held && s != Skipped && s != Interrupted }

// add takes what a seed's runs came to.
func (f *Sweep) add(r *Result) {
	if f.take(r.Seed, r.Status, r.Events, r.Virtual, r.Wall, len(r.Skipped)) {
		f.First = r.Document()
	}
	if r.Status == Interrupted {
		return
	}
	f.tried(r)
	if f.Ran == f.Seeds.Count() && f.Ran >= enoughSeeds && len(f.Never()) > 0 {
		f.worsen(NotPlayed)
	}
	if r.Status == Skipped && f.Skipped == nil {
		f.Skipped = r
	}
}

// Add takes what came of the file with a seed in a process of its own. wall is how long that took.
func (f *Sweep) Add(seed uint64, d *FileDocument, wall time.Duration) {
	status, _ := StatusOf(d.Status)
	if f.take(seed, status, d.Events, duration(d.Virtual), wall, len(d.Skipped)) {
		f.First = d
	}
}

// take counts what came of a seed. It says whether this is the first of those that failed.
func (f *Sweep) take(seed uint64, s Status, events uint64, virtual, wall time.Duration, lines int) (first bool) {
	f.worsen(s)
	f.Events += events
	f.Virtual += virtual
	f.Wall += wall
	if s == Interrupted {
		return false
	}
	f.Ran++
	f.Lines = max(f.Lines, lines)
	if !s.Fails() {
		return false
	}
	at, _ := slices.BinarySearch(f.Failed, seed)
	f.Failed = slices.Insert(f.Failed, at, seed)
	return at == 0
}

func (f *Sweep) worsen(s Status) {
	if Worst(f.Status.Exit(), s.Exit()) != f.Status.Exit() {
		f.Status = s
	}
}

// Report is one line when the file is as it should be under every seed; otherwise also the whole report of the first seed under which it
// is not.
func (f *Sweep) Report() string {
	line := fmt.Sprintf("%s  %s  %s\n", f.Status, f.Case.Name(), f.summary())
	if f.First != nil {
		line += fmt.Sprintf("seed %d:\n%s", f.Failed[0], f.First.Report)
	}
	return line
}

// failedShown is how many failing seeds a line names.
const failedShown = 10

func (f *Sweep) summary() string {
	all := Count(f.Seeds.Count(), "seed")
	if f.Ran < f.Seeds.Count() {
		all = fmt.Sprintf("%d of %s", f.Ran, all)
	}
	s := fmt.Sprintf("%s, %s, %s, %s in %s", all, Count(len(f.Case.Variants), "variant"), f.against(),
		Count(int(f.Events), "event"), Short(f.Virtual))
	if f.Lines > 0 {
		s += fmt.Sprintf(", %s skipped", Count(f.Lines, "line"))
	}
	if f.Skipped != nil {
		s += "; " + f.Skipped.summary()
	}
	for _, pos := range f.Never() {
		s += fmt.Sprintf("; line %d, which may miss, struck under none of them", pos.Line)
	}
	if n := len(f.Failed); n > 0 {
		s += fmt.Sprintf("; %s failed: %s", Count(n, "seed"), named(f.Failed))
	}
	return s
}

func (f *Sweep) against() string {
	if f.Mutant != "" {
		return "under mutant " + f.Mutant
	}
	return Count(len(f.Case.Against), "mutant")
}

// named names the first failing seeds.
func named(seeds []uint64) string {
	var names []string
	for _, n := range seeds[:min(len(seeds), failedShown)] {
		names = append(names, strconv.FormatUint(n, 10))
	}
	if more := len(seeds) - failedShown; more > 0 {
		return strings.Join(names, ", ") + fmt.Sprintf(" and %d more", more)
	}
	return strings.Join(names, ", ")
}
