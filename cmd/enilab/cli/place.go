package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
)

// worlds that there are.
var worlds = []string{"sim", "netns", "kind"}

// worldFlag is --on. World netns answers to its earlier name too.
type worldFlag struct{ name *string }

func (f worldFlag) String() string {
	if f.name == nil {
		return ""
	}
	return *f.name
}

func (f worldFlag) Set(name string) error {
	if name == "lab" {
		name = "netns"
	}
	*f.name = name
	return nil
}

func (worldFlag) Type() string { return "string" }

// place finds the world that flags ask for. One that this machine has not got ends with code 3 and one sentence.
func (l *cli) place(f *runFlags) (*runner.Place, error) {
	switch f.on {
	case "sim":
		return runner.Sim(), nil
	case "netns":
		if f.in.given { // its parts are in the machine; here the files are read
			return netnsworld.Place(netnsworld.Parts{WithoutBooks: f.blind}), nil
		}
		p, err := l.laboratory(f)
		if err != nil {
			return nil, &exit{runner.ExitLacking, err.Error()}
		}
		return p, nil
	case "kind":
		return l.kindPlace(f.name)
	}
	return nil, usage("unknown world %q (%s)", f.on, hint(f.on, worlds))
}

// laboratory is world netns on this machine, or what the machine lacks: this binary and its neighbours are its parts.
func (l *cli) laboratory(f *runFlags) (*runner.Place, error) {
	if err := netnsworld.Available(); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	parts, err := netnsworld.PartsIn(filepath.Dir(self))
	if err != nil {
		return nil, err
	}
	parts.Context, parts.WithoutBooks, parts.RealTime = l.context(), f.blind, f.clock == clockMachine
	if f.outputs != nil {
		parts.Record = f.outputs.record
	}
	if os.Getenv("ENILAB_VERBOSE") != "" {
		parts.Log = func(at time.Duration, text string) { fmt.Fprintf(l.err, "%10.3fs  %s\n", at.Seconds(), text) }
	}
	return netnsworld.Place(parts), nil
}
