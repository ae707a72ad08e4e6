package soak

import (
	"fmt"
	"strings"
	"time"
)

// Options are what a soak does at least.
type Options struct {
	Seed    uint64
	Daemons int // that are killed
	Plugins int // that are killed while they run
	ADDs    int // that succeed; and as many DELs
	// Log is told what happens, a line each; nil: nobody reads it.
	Log func(at time.Duration, text string)
}

// Full is the soak that is to be run before a release. It takes some minutes.
func Full(seed uint64) Options {
	return Options{Seed: seed, Daemons: 500, Plugins: 200, ADDs: 1000}
}

// Short is one that is run with every test.
func Short(seed uint64) Options { return Options{Seed: seed, Daemons: 60, Plugins: 25, ADDs: 100} }

// Report is what a soak did and found.
type Report struct {
	Options
	Daemons, Busy int // killed; and of them those that were in the middle of something
	Plugins       int // killed while they ran
	ADDs, DELs    int
	FailedADDs    int
	ENIs          int           // made
	Churn         time.Duration // laboratory time in which things were killed
	Virtual, Wall time.Duration // of the whole run
	// Problems are all violations, disagreements and leaks, a text each; none if all is well.
	Problems []string
}

// String is the figures, and then the problems, a line each.
func (r *Report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d daemons killed (%d at work) and %d plugins, during %d ADDs (%d failed) and %d DELs, %d ENIs made: %v of kills, %v in all, in %v",
		r.Seed, r.Daemons, r.Busy, r.Plugins, r.ADDs, r.FailedADDs, r.DELs, r.ENIs, r.Churn.Round(time.Second), r.Virtual.Round(time.Second), r.Wall.Round(time.Second/10))
	for _, p := range r.Problems {
		b.WriteString("\n" + p)
	}
	return b.String()
}
