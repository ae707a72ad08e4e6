package netns

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/systems"
)

// Parts are what a laboratory is made of on this machine.
type Parts struct {
	// Self is the argument list with which this binary is executed again as a node's helper: it ends up in node.Main.
	Self []string
	// Ipamd and Plugin are the host paths of the daemon and of the CNI plugin.
	Ipamd, Plugin string
	// Play is the argument list of a program that plays the daemon with a mutant, whose name is appended: it ends up in PlayDaemon. Play[0]
	// is a host path. Empty: no mutant can be run.
	Play []string
	// Files are further host files that every node has: path there to path here.
	Files map[string]string
	// Capabilities are the only ones that the daemon gets; nil: all that the laboratory has.
	Capabilities []int
	// WithoutBooks starts the daemons without their recording, so that they are judged from outside alone, as one is of which nothing else is
	// known: by the node's kernel, EC2's truth, what the runtime was told, and packets.
	WithoutBooks bool
	// System is what is played in place of our daemon and plugin, nil: ours. It is played in real time and without books. Find gives the systems that
	// scenarios upgrade to, by NAME@WHERE; nil: there are none.
	System *systems.System
	Find   func(name string) (*systems.System, error)
	others map[string]*systems.System // by NAME@WHERE
	// Later is a folder that is empty when the world is opened, and in which every node sees what appears there: the
	// files of a system that Learn makes known. Empty: there is none.
	Later string
	// RealTime lets the laboratory's clock pass with the machine's, and never jump: for daemons that cannot be told the time, and for machines
	// whose own time leaps over idle spans.
	RealTime bool
	// Record names the folder in which a laboratory that opens writes down its timeline, EC2's calls and its packets; nil: nothing is written down.
	Record func() string
	// Context ends the laboratory: whatever is under way is given up, and Close hurries. Nil: nothing does.
	Context context.Context
	// Log is told what happens, a line each; nil: it is dropped.
	Log func(at time.Duration, text string)
}

// PartsIn are the parts of a laboratory whose daemon and plugin lie in a folder, as ipamd and aws-cni. This program itself is the rest:
// with the argument "node" it has to be node.Main, and with "play" PlayDaemon with the arguments that follow.
func PartsIn(folder string) (Parts, error) {
	self, err := os.Executable()
	if err != nil {
		return Parts{}, err
	}
	p := Parts{Self: []string{filepath.Base(self), "node"}, Ipamd: filepath.Join(folder, "ipamd"), Plugin: filepath.Join(folder, "aws-cni"),
		Play: []string{self, "play"}, Capabilities: DaemonCapabilities()}
	var missing []string
	for _, path := range []string{p.Ipamd, p.Plugin} {
		if _, err := os.Stat(path); err != nil {
			missing = append(missing, path)
		}
	}
	if len(missing) > 0 {
		return p, fmt.Errorf("the laboratory lacks %s: make build makes ipamd, aws-cni and enilab side by side", strings.Join(missing, " and "))
	}
	return p, nil
}

// DaemonCapabilities are what aws-node's manifest grants, and all that ipamd may use: NET_ADMIN, 12, and NET_RAW, 13 (capabilities(7)).
func DaemonCapabilities() []int { return []int{12, 13} }

// resolve finds every system that a cluster is upgraded to. One that is played, or upgraded to, makes a world in real time and without books.
func (p *Parts) resolve(c *sim.Cluster) error {
	p.others = map[string]*systems.System{}
	for _, name := range c.Systems {
		if p.Find == nil {
			return fmt.Errorf("the laboratory knows no systems: Parts.Find is nil, and the scenario upgrades to %s", name)
		}
		s, err := p.Find(name)
		if err != nil {
			return err
		}
		p.others[name] = s
	}
	if p.System == nil && len(p.others) > 0 {
		// our daemon and plugin are a system like any other, which our own description says
		s, err := systems.Find(p.Context, "enilab@0.0.0="+filepath.Dir(p.Ipamd), systems.Options{})
		if err != nil {
			return err
		}
		p.System = s
	}
	if p.System != nil {
		p.RealTime, p.WithoutBooks = true, true
	}
	return nil
}

// all are the systems of the world, if it has any.
func (p *Parts) all() (out []*systems.System) {
	if p.System != nil {
		out = append(out, p.System)
	}
	return slices.AppendSeq(out, maps.Values(p.others))
}

// without are the sources that the laboratory lacks: of a daemon without books only the outside is known.
func (p *Parts) without() judge.Source {
	if p.WithoutBooks {
		return judge.Books
	}
	return 0
}
