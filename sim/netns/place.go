package netns

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vpc"
)

// Available says what this machine lacks for a laboratory; nil is nothing.
func Available() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the laboratory needs Linux: network namespaces, veth and nftables (this is %s)", runtime.GOOS)
	}
	if os.Geteuid() != 0 {
		return errors.New("the laboratory needs root, for namespaces of its own: run it with sudo")
	}
	ns, err := vpc.NewNamespace()
	if err != nil {
		return fmt.Errorf("the laboratory needs network namespaces, and making one failed: %w (in a container: run it privileged)", err)
	}
	return ns.Close()
}

// slack is how much later than in the simulator a mutant may show: a daemon is heard of once it has come to rest.
const slack = 10 * time.Second

// Place is world netns, for runner.Load, on a machine where Available says nothing.
func Place(p Parts) *runner.Place {
	open := func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (runner.World, error) {
		w, err := Open(c, seed, m, p)
		if err != nil {
			return nil, err // and no World that is nil
		}
		return w, nil
	}
	plays := plays
	place := &runner.Place{Name: "netns", Open: open, Slack: slowed(slack)}
	if p.Find != nil {
		place.Resolve = func(name string) error { _, err := p.Find(name); return err }
	}
	switch {
	case p.System != nil:
		place.System = p.System.Name + " " + p.System.Version
		plays = func(*mutants.Mutant) error {
			return errors.New("a mutant is of enilab's daemon, and this is " + place.System)
		}
		p.RealTime, p.WithoutBooks = true, true
	case p.WithoutBooks:
		plays = func(*mutants.Mutant) error {
			return errors.New("what it breaks first is said for those who have books: without them run it alone, with --against")
		}
	}
	place.Plays, place.Without = plays, p.without()
	return place
}

// plays: what a mutant of the core decides, it decides in every world, which the laboratory proves at every step of a daemon. So only
// those that replace something outside of the core have to be run on a real kernel too.
func plays(m *mutants.Mutant) error {
	if m.Kind == mutants.Plan || m.Kind == mutants.ShellPart {
		return nil
	}
	return fmt.Errorf("a %v mutant decides the same in every world: run it in sim", m.Kind)
}
