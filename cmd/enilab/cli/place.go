package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
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

// place finds the world that flags ask for. One that this machine has not got ends with code 3 and one sentence; what is wrong with a system's name
// or files is bad input.
func (l *cli) place(f *runFlags) (*runner.Place, error) {
	switch f.on {
	case "sim":
		return runner.Sim(), nil
	case "netns":
		var s *systems.System
		if f.cni != "" {
			var err error
			if s, err = l.findOnce(f, f.cni); err != nil {
				return nil, usage("--cni %v", err)
			}
		}
		p, err := l.laboratory(f, s)
		if err != nil {
			return nil, &exit{runner.ExitLacking, err.Error()}
		}
		return p, nil
	case "kind":
		return l.kindPlace(f.name, f.mutants)
	}
	return nil, usage("unknown world %q (%s)", f.on, hint(f.on, worlds))
}

// laboratory is world netns with a system in the place of ours, if there is one, or what this machine lacks for it. What is played in a virtual
// machine is only read here: its parts are in there.
func (l *cli) laboratory(f *runFlags, s *systems.System) (*runner.Place, error) {
	var parts netnsworld.Parts
	if !f.in.given {
		var err error
		if parts, err = l.parts(f); err != nil {
			return nil, err
		}
	}
	parts.System, parts.WithoutBooks = s, f.blind
	parts.Find = func(name string) (*systems.System, error) { return l.findOnce(f, name) }
	if f.branch.given {
		parts.Later = vm.LaterFolder
	}
	p := netnsworld.Place(parts)
	p.CNI, p.In = f.cni, f.inside
	if f.inside != "" {
		p.In += f.alike()
	}
	return p, nil
}

// alike are the flags that runner.Result does not know of. A virtual machine reads them in its own time: with one more or less the same seed is
// another run.
func (f *runFlags) alike() string {
	flags := append([]string{""}, f.telling(f.json)...)
	for _, x := range []struct {
		on   bool
		flag string
	}{{f.clock == clockLeap, "--clock leap"}, {f.out != "", "--out again"}, {f.reports.data != "", "--html again.html"}} {
		if x.on {
			flags = append(flags, x.flag)
		}
	}
	return strings.Join(flags, " ")
}

// telling are the flags of how a run is told, and how far it goes.
func (f *runFlags) telling(asJSON bool) (flags []string) {
	for _, x := range []struct {
		on   bool
		flag string
	}{{asJSON, "--json"}, {f.timeline, "--timeline"}, {f.first, "--stop-at-first"}} {
		if x.on {
			flags = append(flags, x.flag)
		}
	}
	return flags
}

// findOnce is systems.Find, once for all variants and files, and in a virtual machine what was found outside.
func (l *cli) findOnce(f *runFlags, name string) (*systems.System, error) {
	if f.found == nil {
		f.found = map[string]*systems.System{}
		if f.foundIn != "" {
			data, err := os.ReadFile(f.foundIn)
			if err == nil {
				err = json.Unmarshal(data, &f.found)
			}
			if err != nil {
				return nil, fmt.Errorf("read the systems that were found: %w", err)
			}
		}
	}
	if s := f.found[name]; s != nil {
		return s, nil
	}
	s, err := l.findFor(name, f.arch)
	if err == nil {
		f.found[name] = s
	}
	return s, err
}

// find is systems.Find, which tells what takes long.
func (l *cli) find(name string) (*systems.System, error) { return l.findFor(name, runtime.GOARCH) }

// findFor is find for a machine of some architecture.
func (l *cli) findFor(name, arch string) (*systems.System, error) {
	return systems.Find(l.context(), name, systems.Options{Arch: arch, Tell: func(text string) { fmt.Fprintln(l.err, text) }})
}

// parts are the laboratory's on this machine, or what the machine lacks: this binary and its neighbours are the parts.
func (l *cli) parts(f *runFlags) (netnsworld.Parts, error) {
	if err := netnsworld.Available(); err != nil {
		return netnsworld.Parts{}, err
	}
	self, err := os.Executable()
	if err != nil {
		return netnsworld.Parts{}, err
	}
	parts, err := netnsworld.PartsIn(filepath.Dir(self))
	if err != nil {
		return parts, err
	}
	parts.Context, parts.RealTime = l.context(), f.clock == clockMachine
	if f.outputs != nil {
		parts.Record = f.outputs.record
	}
	if l.verbose() != nil {
		parts.Log = func(at time.Duration, text string) { fmt.Fprintf(l.err, "%10.3fs  %s\n", at.Seconds(), text) }
	}
	return parts, nil
}
