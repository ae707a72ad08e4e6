package runner

import (
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
)

// Record is what a report shows of a run beside its verdict.
type Record struct {
	File   *scn.File // expanded
	Nodes  int
	Events []timeline.Event
	Tracks timeline.Tracks // empty of a world that cannot be followed
	Deeds  []sim.Deed
	Looks  []Look
	Loose  time.Duration // between two looks

	world World
	run   *sim.Run
	next  time.Duration
	told  int
	broke bool
}

// Look is how often an invariant was looked at, and how often it broke.
type Look struct {
	Invariant    judge.ID
	Times, Broke int64
}

// Between two looks at a world pass at most so much of its time, and less in the beginning, for a run may be over soon; in a fleet each look is long.
const (
	lookSoon       = 200 * time.Millisecond
	lookPart       = 20 // of the time that has passed
	lookEvery      = time.Second
	lookEveryFleet = 15 * time.Second
	fleetNodes     = 64
)

// record begins to follow a run, if it is recorded. A nil Record follows nothing.
func (o *Options) record(r *sim.Run, w World, v *Variant) *Record {
	if !o.Record {
		return nil
	}
	rec := &Record{File: v.File, Nodes: v.Cluster.Nodes, Loose: lookEvery, world: w, run: r}
	if rec.Nodes > fleetNodes {
		rec.Loose = lookEveryFleet
	}
	rec.look()
	return rec
}

// watch looks after an event, before any other watcher.
func (r *Record) watch(also func() bool) func() bool {
	if r == nil {
		return also
	}
	return func() bool {
		if r.due() {
			r.look()
		}
		return also != nil && also()
	}
}

// due says whether it is time to look: something was told, something broke, or some time has passed.
func (r *Record) due() bool {
	_, broke := r.world.Audit().First()
	if fresh := broke && !r.broke; fresh || r.world.Now() >= r.next {
		r.broke = broke
		return true
	}
	return r.Nodes <= fleetNodes && r.world.Told() != r.told
}

func (r *Record) look() {
	now := r.world.Now()
	r.next, r.told = now+min(max(now/lookPart, lookSoon), r.Loose), r.world.Told()
	survey := r.world.Capabilities().Survey
	if survey == nil {
		return
	}
	r.Tracks.Look(now)
	survey(&r.Tracks)
	r.Tracks.Seen()
}

// end takes what is known at the end, while the world is still there.
func (r *Record) end() *Record {
	if r == nil {
		return nil
	}
	r.look()
	r.Tracks.Sort()
	r.Events, r.Deeds = r.world.Events(), r.run.Deeds()
	for _, i := range judge.Catalogue() {
		r.Looks = append(r.Looks, Look{i.ID, r.world.Audit().Looks(i.ID), r.world.Audit().Total(i.ID)})
	}
	r.world, r.run = nil, nil
	return r
}

// name gives what was followed the names of the timeline.
func (r *Record) name(named func(string) string) {
	if r == nil {
		return
	}
	for i := range r.Tracks.Subjects {
		s := &r.Tracks.Subjects[i]
		s.Name = named(s.Name)
		for j := range s.Spans {
			s.Spans[j].Text = named(s.Spans[j].Text)
		}
	}
	for i := range r.Deeds {
		r.Deeds[i].Strike.Text = named(r.Deeds[i].Strike.Text)
	}
}

// Forget drops what the runs were followed for, once a report has it.
func (r *Result) Forget() {
	for i := range r.Runs {
		r.Runs[i].Record = nil
	}
	for i := range r.Bites {
		r.Bites[i].Outcome.Record = nil
	}
}
