package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/enilab/enilab/sim"
	labworld "github.com/enilab/enilab/sim/lab"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/suite"
)

// worlds that there are, and will be.
var worlds = []string{"sim", "lab", "kind"}

// place finds the world of that name. A world that this machine has not got ends with code 3 and one sentence.
func (l *lab) place(on string) (*suite.Place, error) {
	switch on {
	case "sim":
		return suite.Sim(), nil
	case "lab":
		p, err := l.laboratory()
		if err != nil {
			return nil, &exit{suite.ExitLacking, err.Error()}
		}
		return p, nil
	case "kind":
		return nil, &exit{suite.ExitLacking, "world kind is not built yet: this enilab runs scenarios in the worlds sim and lab"}
	}
	return nil, usage("unknown world %q (%s)", on, hint(on, worlds))
}

// laboratory is world lab on this machine, or what the machine lacks.
func (l *lab) laboratory() (*suite.Place, error) {
	if err := labworld.Available(); err != nil {
		return nil, err
	}
	parts, err := l.parts()
	if err != nil {
		return nil, err
	}
	open := func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (suite.World, error) {
		w, err := labworld.Open(c, seed, m, parts)
		if err != nil {
			return nil, err
		}
		return w, nil
	}
	return &suite.Place{Name: "lab", Open: open, Plays: plays, Slack: 10 * time.Second}, nil
}

// plays: what a mutant of the core decides, it decides in every world, which the laboratory proves at every step of a daemon. So only
// those that replace something outside of the core have to be run on a real kernel too.
func plays(m *mutants.Mutant) error {
	if m.Kind == mutants.Plan || m.Kind == mutants.ShellPart {
		return nil
	}
	return fmt.Errorf("a %v mutant decides the same in every world: run it in sim", m.Kind)
}

// parts are this binary and its neighbours.
func (l *lab) parts() (labworld.Parts, error) {
	self, err := os.Executable()
	if err != nil {
		return labworld.Parts{}, err
	}
	beside := func(name string) string { return filepath.Join(filepath.Dir(self), name) }
	p := labworld.Parts{Self: []string{"enilab", "node"}, Ipamd: beside("ipamd"), Plugin: beside("aws-cni"), Play: []string{self, "play"},
		Capabilities: labworld.DaemonCapabilities()}
	if os.Getenv("ENILAB_VERBOSE") != "" {
		p.Log = func(at time.Duration, text string) { fmt.Fprintf(l.err, "%10.3fs  %s\n", at.Seconds(), text) }
	}
	for _, path := range []string{p.Ipamd, p.Plugin} {
		if _, e := os.Stat(path); e != nil {
			err = errors.Join(err, fmt.Errorf("the laboratory needs %s beside this program: make build makes all three", path))
		}
	}
	return p, err
}
