package cli

import (
	"os"
	"time"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/systems"
)

// runFlags are what `enilab run` was asked for.
type runFlags struct {
	on      string
	seed    uint64
	seeds   string
	ranged  bool // --seeds was given
	seeded  bool // --seed was given
	against string
	json    bool
	update  bool
	twice   bool
	crash   bool
	keep    bool
	name    string
	mutants bool // --mutants was given
	// first is --stop-at-first.
	first bool
	// blind is --without-books.
	blind bool
	// cni is a system to play in place of ours, as NAME@WHERE.
	cni string
	// found are the systems that were found, by NAME@WHERE, and foundIn is --found: a file of them.
	found   map[string]*systems.System
	foundIn string
	// inside is --inside: the word of --in that made the virtual machine in which this runs.
	inside string
	// timeline is whether all that happened is printed.
	timeline bool
	// in is --in: where world netns is, if not on this machine itself.
	in machineFlag
	// arch is --arch: of the virtual machine, as Go says it.
	arch string
	// branch is --branch-at.
	branch pauseFlag
	// pause is --pause-at.
	pause pauseFlag
	// clock is --clock.
	clock clockFlag
	// out is --out: the folder of everything.
	out     string
	outputs *outputs // of out; nil: none is written
	// reports are --html and --junit.
	reports reports
	// timeout is --timeout.
	timeout time.Duration
}

// options judges the flags.
func (f *runFlags) options() (runner.Options, error) {
	o := runner.Options{Seed: f.seed, Twice: f.twice, Crash: f.crash, NoStory: f.update || f.first, Timeline: f.timeline, StopAtFirst: f.first}
	if f.on != "sim" && (f.update || f.crash) {
		return o, usage("--update and --crash-everywhere need runs of virtual time alone: use --on sim")
	}
	if f.on != "sim" && f.twice && !f.in.given {
		return o, usage("--twice needs runs that repeat: use --on sim, or --on netns --in vm")
	}
	if err := f.checkMachine(); err != nil {
		return o, err
	}
	if f.keep && f.on != "netns" && f.on != "kind" {
		return o, usage("--keep leaves a laboratory up: use it with --on netns or --on kind")
	}
	if f.blind && f.on != "netns" {
		return o, usage("--without-books is for daemons that are processes of this machine: use it with --on netns")
	}
	switch {
	case f.cni != "" && f.on != "netns":
		return o, usage("--cni plays the processes of a system: use it with --on netns")
	case f.cni != "" && f.against != "":
		return o, usage("--against plays a mutant of enilab's daemon: leave --cni out")
	case f.cni != "" && f.blind:
		return o, usage("--cni judges from outside alone anyway: leave --without-books out")
	}
	if f.branch.given && f.inside == "" {
		return o, usage("--branch-at is what enilab gate gives to its virtual machines: leave it out")
	}
	if f.name != runName && f.on != "kind" {
		return o, usage("--name is a cluster's: use it with --on kind")
	}
	switch {
	case f.mutants && f.on != "kind":
		return o, usage("--mutants is for world kind, which leaves them out: in world %s they are played anyway", f.on)
	case f.mutants && f.against != "":
		return o, usage("--against plays one mutant alone, and --mutants all: leave one of them out")
	case f.mutants && f.keep:
		return o, usage("--keep stays with the first cluster, and --mutants goes on to others: leave one of them out")
	}
	if f.update && (f.seed != runner.DefaultSeed || f.against != "" || f.crash) {
		return o, usage("--update takes the timeline of an ordinary run with seed %d: leave --seed, --against and --crash-everywhere out", runner.DefaultSeed)
	}
	m, err := mutantOrNone(f.against)
	o.Against = m
	return o, err
}

// checkUpdate refuses to write timelines into what is no file.
func (f *runFlags) checkUpdate(names []string) error {
	if !f.update {
		return nil
	}
	for _, name := range names {
		if _, err := os.Stat(name); err != nil {
			return usage("--update writes the timeline into the scenario's file, and there is no file %s", name)
		}
	}
	return nil
}
