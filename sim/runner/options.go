package runner

import (
	"hash/fnv"
	"strconv"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
)

// DefaultSeed is the seed of the golden stories.
const DefaultSeed = 1

// Options of a run. Seed 0 is a seed like any other.
type Options struct {
	Seed    uint64
	Against *mutants.Mutant // run this mutant alone, whatever the file names
	Twice   bool            // run everything twice and compare, not only a twentieth
	// StopAtFirst ends each run at its first violation: who only wants to know which it is saves the rest.
	StopAtFirst bool
	// Crash kills the daemons of each variant at every event, instead of running the file's mutants.
	Crash bool
	// NoStory leaves the golden story uncompared: it is about to be rewritten.
	NoStory bool
	// Timeline keeps the whole timeline of each variant's run, not only what the story shows.
	Timeline bool
	// Record keeps what a report shows of each run: events, tracks, deeds. It changes no run of virtual time; in a virtual machine following
	// takes a little of its time.
	Record bool
	// Linger, if any, is called with every world before it is closed.
	Linger func(World)
	// Begins is told of each run before its world is opened.
	Begins func(p Progress, seed uint64)
	// Opened, if any, is called with every run whose world has come to t=0, and what it returns when the run is over.
	Opened func(v *Variant, w World, r *sim.Run) (over func())
	// Interrupted is asked between events; true ends the run, which then reports what it has.
	Interrupted func() bool
	// Progress is told what happens now: when a run begins, and every few thousand events.
	Progress func(Progress)
}

// Progress of a file.
type Progress struct {
	Scenario, Variant string
	Doing             string        // such as "mutant no-repair"; "" for the ordinary run
	Run, Runs         int           // this run, from 1, and how many the file has
	Now, End          time.Duration // instants of the scenario
	Events            uint64        // of this run
}

// askEvery and tellEvery are how many events pass between two looks at the outside: a few microseconds and a few milliseconds.
const (
	askEvery  = 64
	tellEvery = 4096
)

// watch is what a run calls after every event; nil when nothing follows the run. In real time events are rare, and
// each is followed by a look.
func (o *Options) watch(p Progress, w World, repeatable bool) func() bool {
	if o.Interrupted == nil && o.Progress == nil {
		return nil
	}
	n, ask, tell := 0, askEvery, tellEvery
	if !repeatable {
		ask, tell = 1, 1
	}
	return func() bool {
		n++
		if o.Progress != nil && n%tell == 0 {
			p.Now, p.Events = w.Now(), w.Popped()
			o.Progress(p)
		}
		return n%ask == 0 && o.interrupted()
	}
}

func (o *Options) interrupted() bool { return o.Interrupted != nil && o.Interrupted() }

func (o *Options) tell(p Progress) {
	if o.Progress != nil {
		o.Progress(p)
	}
}

// sample is one in how many runs is run twice.
const sample = 20

// twice chooses by name and seed, so that the same command always does the same.
func (o *Options) twice(file, variant string) bool {
	h := fnv.New64a()
	h.Write([]byte(file + "\x00" + variant + "\x00" + strconv.FormatUint(o.Seed, 10)))
	return o.Twice || o.Crash || h.Sum64()%sample == 0
}
