package swarm

import (
	"fmt"
	"maps"
	"slices"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/verb"
)

// Finding is one way of breaking that a batch met: an invariant and a cause.
type Finding struct {
	Broken        // in the first of the seeds
	Seeds  int    // how many broke so
	First  uint64 // the first of them
	More   []uint64
	Known  *Entry // the list's; nil: it is new
}

// mostNamed bounds how many seeds a finding names.
const mostNamed = 5

// Tally sums up a batch. The order in which the seeds come does not matter.
type Tally struct {
	Runs, Held int
	Unknown    int      // runs of which nothing is known, for another reason than that they were interrupted
	Whys       []string // why not, the first few
	Events     uint64
	Struck     map[string]int // seeds in which a verb struck, by its key
	Marks      map[string]int // seeds that came through the coverage point
	Met        map[Met]int    // seeds in which a verb met a daemon in a condition
	findings   []*Finding
	list       []Entry
	drawn      []string
}

// NewTally is an empty one, beside a list of known violations.
func NewTally(list []Entry) *Tally {
	return &Tally{Struck: map[string]int{}, Marks: map[string]int{}, Met: map[Met]int{}, list: list, drawn: Drawn()}
}

// TallyFor is an empty one of a batch for a CNI of which nothing is known to break.
func TallyFor(c *CNI) *Tally {
	t := NewTally(nil)
	t.drawn = c.Drawn()
	return t
}

// Add takes the outcome of a seed.
func (t *Tally) Add(seed uint64, o *Outcome) {
	if o.Cut {
		return
	}
	if o.Unknown != "" {
		if t.Unknown++; len(t.Whys) < mostNamed {
			t.Whys = append(t.Whys, fmt.Sprintf("seed %d: %s", seed, o.Unknown))
		}
		return
	}
	t.Runs++
	t.Events += o.Events
	for _, key := range slices.Sorted(maps.Keys(o.Struck)) {
		t.Struck[key]++
	}
	for _, m := range o.Marks {
		t.Marks[m]++
	}
	for m := range o.Met {
		t.Met[m]++
	}
	if o.Broken == nil {
		t.Held++
		return
	}
	f := t.finding(seed, o.Broken)
	if f.Seeds++; seed < f.First {
		f.Broken, f.First = *o.Broken, seed
	}
	at, _ := slices.BinarySearch(f.More, seed)
	f.More = slices.Insert(f.More, at, seed)
	f.More = f.More[:min(len(f.More), mostNamed)]
}

func (t *Tally) finding(seed uint64, b *Broken) *Finding {
	for _, f := range t.findings {
		if f.Same(b) {
			return f
		}
	}
	f := &Finding{Broken: *b, First: seed}
	for i := range t.list {
		if e := &t.list[i]; e.Invariant == b.Invariant && e.Cause == b.Cause {
			f.Known = e
			break
		}
	}
	t.findings = append(t.findings, f)
	return f
}

// Findings are the ways of breaking, in the order of their first seeds: those that are new, and those that the list has.
func (t *Tally) Findings() (unknown, known []*Finding) {
	slices.SortFunc(t.findings, func(a, b *Finding) int {
		if a.First < b.First {
			return -1
		}
		return 1
	})
	for _, f := range t.findings {
		if f.Known == nil {
			unknown = append(unknown, f)
		} else {
			known = append(known, f)
		}
	}
	return unknown, known
}

// Enough is from how many seeds on every verb that the swarm draws has to have struck in a batch.
const Enough = 500

// Drawn are the keys of all verbs that the swarm draws, sorted.
func Drawn() []string {
	return drawn(func(v *verb.Verb) bool { return v.Ordinary || v.Closes != nil || v.Draw != nil })
}

func drawn(is func(*verb.Verb) bool) (keys []string) {
	for _, v := range verb.All() {
		if is(v) {
			keys = append(keys, v.Key())
		}
	}
	slices.Sort(keys)
	return keys
}

// Verbs is how many verbs the swarm draws that the batch is of.
func (t *Tally) Verbs() int { return len(t.drawn) }

// Unstruck are the verbs that the swarm draws and that struck in no seed of the batch.
func (t *Tally) Unstruck() (out []string) {
	for _, key := range t.drawn {
		if t.Struck[key] == 0 {
			out = append(out, key)
		}
	}
	return out
}

// Unreached are the coverage points that no seed of the batch came through.
func (t *Tally) Unreached() (out []string) {
	for _, m := range ipam.Marks() {
		if t.Marks[m] == 0 {
			out = append(out, m)
		}
	}
	return out
}
