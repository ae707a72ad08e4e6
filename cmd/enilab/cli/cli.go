// Package cli is the command line of cmd/enilab and of cmd/enilab-kind, which are the same but for world kind: the first hands over to the
// second what needs it.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/vm"
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

// Main carries out this process's command line, and ends it with the exit code. Without a world kind it hands over to the binary that has it.
func Main(kind Kind) {
	// The simulator allocates much and lives shortly: collecting a quarter as often saves a tenth of its time (500 nodes), and
	// the memory it costs is given back seconds later.
	debug.SetGCPercent(800)
	if vm.Booted() {
		vm.Init()
	}
	os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, kind))
}

// Run carries out one command line and returns its exit code. The first Control-C asks it to end, the second ends it.
func Run(args []string, in io.Reader, out, err io.Writer, kind Kind) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	var asked atomic.Bool
	context.AfterFunc(ctx, func() {
		asked.Store(true)
		stop()
	})
	l := &cli{in: in, out: out, err: err, interrupted: asked.Load, ctx: ctx, kind: kind}
	return l.run(args)
}

func (l *cli) run(args []string) int {
	l.args = args
	root := l.root()
	root.SetArgs(args)
	root.SetIn(l.in)
	root.SetOut(l.out)
	root.SetErr(l.err)
	err := root.Execute()
	if err == nil {
		return runner.ExitHeld
	}
	code := runner.ExitBad // what cobra finds wrong is usage
	if e, ok := errors.AsType[*exit](err); ok {
		code = e.code
	}
	if text := err.Error(); text != "" {
		fmt.Fprintln(l.err, "enilab: "+text)
	}
	return code
}

func (l *cli) root() *cobra.Command {
	version := false
	c := &cobra.Command{
		Use:   "enilab",
		Short: "replays outages of a node's addresses and says what held",
		Long: `enilab is a laboratory for VPC CNIs on EC2: it replays outages, written down as scenarios, and says what held.

` + verdictManual(),
		Example: `  enilab demo                                   replay every incident that is known, and what each mutant breaks
  enilab run socket-mismatch                    one incident and its mutants
  enilab verbs                                  what a scenario can do and expect
  enilab up                                     a Kubernetes cluster with the CNI, on kind, to try it out`,
		Args: known,
		RunE: func(c *cobra.Command, _ []string) error {
			if version {
				return l.printVersion()
			}
			return c.Help()
		},
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	c.Flags().BoolVar(&version, "version", false, "say what this binary is, as the command version does")
	c.SetFlagErrorFunc(flagError)
	c.SetHelpCommand(helpCommand())
	c.AddCommand(l.runCommand(), l.swarmCommand(), l.shrinkCommand(), l.demoCommand(), l.verbsCommand(), l.invariantsCommand(), l.mutantsCommand(), l.symptomsCommand(),
		l.systemsCommand(), l.recordCommand(), l.replayCommand(), l.serveCommand(), l.conformCommand(), l.netnsCommand(), l.vmCommand(), l.gateCommand(), l.upCommand(), l.downCommand(), l.manifestCommand(),
		l.nodeCommand(), l.playCommand(), l.holdCommand(), l.versionCommand())
	nameValues(c)
	return c
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

// flagError adds to what pflag finds wrong what to do about it.
func flagError(c *cobra.Command, err error) error {
	text := err.Error()
	if e, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		return usage("--%s: expected %s, found %q", e.GetFlag().Name, expected(e.GetFlag()), e.GetValue())
	}
	if e, ok := errors.AsType[*pflag.ValueRequiredError](err); ok {
		return lacking(e.GetFlag())
	}
	if e, ok := errors.AsType[*pflag.NotExistError](err); ok {
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, f.Name) })
		if near := scn.Suggest(e.GetSpecifiedName(), names); near != "" {
			return usage("%s (did you mean --%s?)", text, near)
		}
	}
	return usage("%s (%s --help says what there is)", text, c.CommandPath())
}

// nothing refuses arguments.
func nothing(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, found %q", c.CommandPath(), args[0])
	}
	return nil
}

// helpCommand is cobra's, except that it fails on what there is not.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "says how a command is used",
		RunE: func(c *cobra.Command, args []string) error {
			about, rest, err := c.Root().Find(args)
			if err != nil || len(rest) > 0 {
				return known(c.Root(), args)
			}
			return about.Help()
		},
	}
}

// hint is what to write instead of a word that is not known.
func hint(word string, names []string) string {
	if near := scn.Suggest(word, names); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "there are " + strings.Join(names, ", ")
}
