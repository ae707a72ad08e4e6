package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"syscall"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/vm"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Main carries out this process's command line, and ends it with the exit code. Without a world kind it hands over to the binary that has it.
func Main(kind Kind) {
	collectSeldom()
	if vm.Booted() {
		vm.Init()
	}
	os.Exit(Run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr, kind))
}

// memoryOfRun is what a run may have before the collector works harder. 500 nodes and 23,000 pods (fleet-burst), the most that a scenario has, are 310 MB.
const memoryOfRun = 512 << 20

// collectSeldom: the simulator allocates much and lives shortly. Collecting a quarter as often saves a tenth of its time (500 nodes). What that costs is
// bounded, for there are as many runs at once as processors: four seeds of fleet-burst on two of them had 4.2 GB, and take no longer with 1.0.
func collectSeldom() {
	debug.SetGCPercent(800)
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(int64(runtime.GOMAXPROCS(0)) * memoryOfRun)
	}
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
