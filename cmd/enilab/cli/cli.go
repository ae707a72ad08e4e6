// Package cli is the command line of cmd/enilab and of cmd/enilab-kind, which are the same but for world kind: the first hands over to the
// second what needs it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

// cli is one run of the command: where it reads and writes, and whether it has been interrupted.
type cli struct {
	in          io.Reader
	out, err    io.Writer
	interrupted func() bool
	ctx         context.Context // ends with the first Control-C; nil: never
	left        io.Closer       // ends with this process: see leave
	args        []string        // the command line
	kind        Kind            // nil: another binary has it, see needKind
}

// context is for what waits by itself.
func (l *cli) context() context.Context {
	if l.ctx == nil {
		return context.Background()
	}
	return l.ctx
}

// verbose is where what takes long is told in detail, with ENILAB_VERBOSE; nil: nowhere.
func (l *cli) verbose() io.Writer {
	if os.Getenv("ENILAB_VERBOSE") == "" {
		return nil
	}
	return l.err
}

// exit is an error that says with which code to end. Its text may be empty: everything has been said.
type exit struct {
	code int
	text string
}

func (e *exit) Error() string { return e.text }

func usage(format string, args ...any) error {
	return &exit{runner.ExitBad, fmt.Sprintf(format, args...)}
}

// ended is how a command that has said everything returns its code.
func ended(code int) error {
	if code == 0 {
		return nil
	}
	return &exit{code: code}
}

// nothing refuses arguments.
func nothing(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, found %q", c.CommandPath(), args[0])
	}
	return nil
}

// hint is what to write instead of a word that is not known.
func hint(word string, names []string) string {
	if near := scn.Suggest(word, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(names, ", ")
}

// known refuses a command that there is not.
func known(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	var names []string
	for _, sub := range c.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	return usage("unknown command %q (%s)", args[0], hint(args[0], names))
}

// Cluster is what `enilab up` was asked for.
type Cluster struct {
	Name  string
	File  string // a configuration of kind's instead of Nodes and Proxy
	Nodes int    // workers
	Zones int    // that they are in
	Proxy string // kube-proxy's mode
	Image string // kind's node image; empty: KIND_NODE_IMAGE, or kind's own
	Type  string // of the EC2 instances
}

// Kind is world kind. Who links it links client-go and kind.
type Kind interface {
	// Available says what the machine lacks for clusters, and Possible what stands in the way of those of that name, one after another.
	Available(context.Context) error
	Possible(ctx context.Context, name string, say func(string)) error
	// Lacks says whether an error is about what the machine lacks.
	Lacks(error) bool
	// Place runs scenarios on clusters of that name, and their mutants if asked to. When leave is true, another process removes the cluster.
	Place(ctx context.Context, name string, mutants bool, log func(at time.Duration, text string), leave func() bool) (*runner.Place, error)
	// Cluster is what a world of Place is on.
	Cluster(runner.World) (name, kubeconfig string)
	// Hold makes a cluster with the CNI, calls ready with its kubeconfig, and is its cloud until the context ends. log is noted for people.
	Hold(ctx context.Context, o *Cluster, log string, say, ready func(string)) error
	// Remove removes a cluster and its process, and says whether there was one. RemoveAll does so without that process's help.
	Remove(ctx context.Context, name string) (was bool, err error)
	RemoveAll(ctx context.Context, name string) (was bool, err error)
}

// mutantOrNone finds the mutant that a flag names; no name is none.
func mutantOrNone(name string) (*mutants.Mutant, error) {
	if name == "" {
		return nil, nil
	}
	m, ok := mutants.ByName(name)
	if !ok {
		near := "enilab mutants lists them"
		if s := scn.Suggest(name, mutants.Names()); s != "" {
			near = fmt.Sprintf("did you mean %q?", s)
		}
		return nil, usage("unknown mutant %q (%s)", name, near)
	}
	return &m, nil
}

// refuse prints the mistakes of all files: nothing was started.
func (l *cli) refuse(err error) error {
	list, _ := errors.AsType[scn.ErrorList](err)
	for _, e := range list {
		fmt.Fprintln(l.err, e)
	}
	return &exit{runner.ExitBad, "nothing was run: " + runner.Count(len(list), "mistake")}
}
