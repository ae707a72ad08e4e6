package cli

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vpc"
)

func (l *cli) netnsCommand() *cobra.Command {
	c := &cobra.Command{
		Use:     "netns",
		Aliases: []string{"lab"}, // its earlier name
		Short:   "looks into laboratories that run, and ends them",
		Long: `netns is for the laboratories that run on this machine (enilab run --on netns --keep): it lists them, runs commands in their nodes, and
ends them. A laboratory lives in namespaces of its own and dies with its process, so one that was killed leaves nothing but a small
file in the temporary folder, which clean removes.`,
		Example: `  enilab run --on netns --keep scenarios/drift.scn
  enilab netns list
  enilab netns exec node-1 -- ip rule
  enilab netns exec node-1 -- pkill ipamd          chaos by hand: kubelet starts it again, and the run judges it
  enilab netns exec router -- tcpdump -ni any icmp
  enilab netns clean`,
		Args: known,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	// Only root has laboratories, and without root none is seen: "none runs" would be a guess.
	c.PersistentPreRunE = func(sub *cobra.Command, _ []string) error {
		if err := netnsworld.Available(); err != nil && sub != c {
			return &exit{runner.ExitLacking, err.Error()}
		}
		return nil
	}
	c.AddCommand(
		&cobra.Command{Use: "list", Short: "lists the laboratories and their nodes", Args: nothing, RunE: func(*cobra.Command, []string) error { return l.netnsList() }},
		&cobra.Command{Use: "exec NODE -- COMMAND...", Short: "runs a command in a node, or in the VPC's router", Args: cobra.MinimumNArgs(2),
			RunE: func(_ *cobra.Command, args []string) error { return l.netnsExec(args[0], args[1:]) }},
		&cobra.Command{Use: "clean [PROCESS...]", Short: "ends the laboratory that runs, or those named, and removes what dead ones left",
			RunE: func(_ *cobra.Command, args []string) error { return l.netnsClean(args) }},
	)
	return c
}

func (l *cli) netnsList() error {
	labs, err := netnsworld.Labs()
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	for _, e := range labs {
		state := strings.Join(slices.Sorted(maps.Keys(e.Nodes)), " ")
		if !e.Alive() {
			state = "dead; enilab netns clean removes its entry"
		}
		fmt.Fprintf(l.out, "process %d: %s\n", e.PID, state)
	}
	if len(labs) == 0 {
		fmt.Fprintln(l.out, "no laboratory runs; enilab run --on netns --keep FILE leaves one up")
	}
	return nil
}

// netnsExec runs a command in the newest laboratory that has such a node.
func (l *cli) netnsExec(where string, argv []string) error {
	labs, err := netnsworld.Labs()
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	for _, e := range slices.Backward(labs) {
		if !e.Alive() {
			continue
		}
		code := 0
		if where == "router" {
			code, err = inRouter(e.Router, argv)
		} else if pid, ok := e.Nodes[where]; ok {
			code, err = node.Enter(pid, argv)
		} else {
			continue
		}
		if err != nil {
			return &exit{runner.ExitLacking, fmt.Sprintf("netns exec %s: %v", where, err)}
		}
		return ended(code)
	}
	return &exit{runner.ExitLacking, fmt.Sprintf("no laboratory that runs has a %s: enilab netns list shows what there is", where)}
}

// inRouter runs a command in the network namespace of the VPC's router. It has no file system of its own.
func inRouter(path string, argv []string) (code int, err error) {
	ns, err := os.Open(path)
	if err != nil {
		return -1, err
	}
	defer ns.Close()
	c := exec.Command(argv[0], argv[1:]...)
	c.Stdin, c.Stdout, c.Stderr = os.Stdin, os.Stdout, os.Stderr
	err = vpc.Do(ns, c.Run)
	if _, ran := errors.AsType[*exec.ExitError](err); ran {
		err = nil
	}
	if err != nil {
		return -1, err
	}
	return c.ProcessState.ExitCode(), nil
}

func (l *cli) netnsClean(args []string) error {
	processes := make([]int, len(args))
	for i, a := range args {
		var err error
		if processes[i], err = strconv.Atoi(a); err != nil {
			return usage("netns clean %s: expected the number of a process, as enilab netns list shows it", a)
		}
	}
	ended, dead, err := netnsworld.Clean(processes...)
	fmt.Fprintf(l.out, "%s ended, %s of dead ones removed\n", runner.Count(ended, "laboratory"),
		runner.Count(dead, "trace"))
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	return nil
}

// stay leaves a laboratory, or a scenario's cluster, up for people to look around.
func (l *cli) stay(w runner.World) {
	s, ok := w.(interface{ Stay(interrupted func() bool) })
	if !ok || l.interrupted() {
		return
	}
	if _, ok := w.(*netnsworld.World); !ok {
		l.tellCluster(w)
	} else {
		fmt.Fprintf(l.err, `the laboratory is up, at %s of the scenario; look around in another terminal:
  enilab netns list
  enilab netns exec node-1 -- ip rule
  enilab netns exec node-1 -- nft list ruleset
  enilab netns exec router -- ip route
Control-C, or enilab netns clean, ends it
`, runner.Short(w.Now()))
	}
	s.Stay(l.interrupted)
}
