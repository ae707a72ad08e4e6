package runner

import (
	"errors"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/virtual"
)

// Place is a kind of world that files are run in.
type Place struct {
	Name string // as guards of lines say it
	Open func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (World, error)
	// Plays says why a mutant that a file names is not run there; nil is that it is. Nil: all are run.
	Plays func(m *mutants.Mutant) error
	// Repeatable: the same seed gives the same run, so there is a golden story and runs are compared.
	Repeatable bool
	// System is what is played in enilab's place, "NAME VERSION"; empty: enilab.
	System string
	// Given are the tools that its machine has for it, each with its version or digest.
	Given []string
	// CNI is the word that has it played again.
	CNI string
	// In is what makes the machine of the run again: a word, such as vm, and flags that it reads; empty: this machine.
	In string
	// Resolve finds a system that a line upgrades to, before anything runs; nil: the place exchanges none.
	Resolve func(name string) error
	// Without are the sources of truth that the world lacks: what needs them is not judged there.
	Without judge.Source
	// Slack is how much later than a file says a mutant may break something: what a world in real time takes to come to rest.
	Slack time.Duration
}

// World is a world, and how much happened in it.
type World interface {
	sim.World
	Popped() uint64
	// Timeline is the whole story, and TimelineUntil what had happened by an instant of the scenario.
	Timeline() string
	TimelineUntil(at time.Duration) string
	// Named is a text in which ENIs have the names that the timeline gives them.
	Named(text string) string
	// Events are the story as data, and Told how many things have been told.
	Events() []timeline.Event
	Told() int
}

// violatedEarly is an error of a world in which an invariant broke before t=0.
type violatedEarly interface {
	error
	Violations() []judge.Violation
}

// lack is an error of a world that a file is not to blame for: this machine lacks something.
type lack interface {
	error
	Lacks()
}

func lacks(err error) bool {
	_, yes := errors.AsType[lack](err)
	return yes
}

// slow is an error of a world that did not keep up with what it had to judge.
type slow interface {
	error
	TooSlow()
}

func tooSlow(err error) bool {
	_, yes := errors.AsType[slow](err)
	return yes
}

// Sim is virtual time.
func Sim() *Place {
	return &Place{Name: "sim", Repeatable: true, Open: func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (World, error) {
		return virtual.Open(c, seed, m)
	}}
}
