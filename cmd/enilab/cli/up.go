package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

// upFlags are the flags of `enilab up`.
type upFlags struct {
	on string
	Cluster
}

// add defines the flags, which the process that holds the cluster has too.
func (f *upFlags) add(c *cobra.Command) {
	f.on = "kind"
	c.Flags().Var(worldFlag{&f.on}, "on", "where: kind")
	c.Flags().StringVar(&f.Name, "name", upName, "the cluster's name")
	c.Flags().IntVar(&f.Nodes, "nodes", 1, "workers, beside the control plane")
	c.Flags().IntVar(&f.Zones, "zones", 1, "availability zones that the workers are in by turns, each with a subnet")
	c.Flags().StringVar(&f.Type, "type", "m5.large", "the nodes' EC2 instance type, which says how many ENIs and addresses there are")
	c.Flags().StringVar(&f.Proxy, "proxy", "iptables", "kube-proxy's mode: iptables or nftables")
	c.Flags().StringVar(&f.Image, "image", "", "kind's node image (default KIND_NODE_IMAGE, or kind's own)")
	c.Flags().StringVar(&f.File, "config", "", "a configuration of kind's instead of --nodes and --proxy, such as kind-config/two-workers.yaml")
}

// check judges the flags.
func (f *upFlags) check(c *cobra.Command) error {
	if f.on != "kind" {
		near := "up makes clusters of kind: leave --on out"
		if s := scn.Suggest(f.on, []string{"kind"}); s != "" {
			near = fmt.Sprintf("did you mean %q?", s)
		}
		if f.on == "netns" {
			near = "a laboratory is there for a scenario: enilab run --on netns --keep FILE"
		}
		return usage("up cannot make a world %q (%s)", f.on, near)
	}
	if f.File != "" && (c.Flags().Changed("nodes") || c.Flags().Changed("proxy")) {
		return usage("--config says how many nodes there are and what kube-proxy does: leave --nodes and --proxy out")
	}
	if f.Nodes < 1 {
		return usage("--nodes %d: pods need a worker", f.Nodes)
	}
	if f.Zones < 1 {
		return usage("--zones %d: a node is in a zone", f.Zones)
	}
	return nil
}

// args is the command line of the process that holds the cluster.
func (f *upFlags) args() []string {
	out := []string{"hold", "--name", f.Name, "--type", f.Type, "--zones", strconv.Itoa(f.Zones)}
	if f.Image != "" {
		out = append(out, "--image", f.Image)
	}
	if f.File != "" {
		return append(out, "--config", f.File)
	}
	return append(out, "--nodes", strconv.Itoa(f.Nodes), "--proxy", f.Proxy)
}

func (l *cli) upCommand() *cobra.Command {
	var f upFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "makes a Kubernetes cluster with the CNI, and leaves it up",
		Long: `up makes a kind cluster whose nodes are instances in a VPC of their own: EC2 and instance metadata are models, everything else is real.
It installs the CNI and leaves the cluster up, with a process in the background that is its cloud. enilab down removes both.

It needs root on Linux, Docker, and Go to build the CNI's image from this source.`,
		Example: `  enilab up
  enilab up --name big --nodes 2 --type c5.2xlarge
  enilab up --nodes 3 --zones 3
  enilab down --name big`,
		Args: nothing,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := f.check(c); err != nil {
				return err
			}
			return l.up(&f)
		},
	}
	f.add(c)
	return c
}

// up lets a process of its own hold the cluster, and waits until it does.
func (l *cli) up(f *upFlags) error {
	if err := l.needKind(); err != nil {
		return err
	}
	if err := l.kind.Available(l.context()); err != nil {
		return l.kindError(err)
	}
	log, err := os.CreateTemp("", "enilab-"+strings.Map(plain, f.Name)+"-*.log")
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	defer log.Close()
	child, words, err := f.start(log)
	if err != nil {
		_ = os.Remove(log.Name())
		return &exit{runner.ExitLacking, err.Error()}
	}
	stop := context.AfterFunc(l.context(), func() { _ = child.Process.Signal(syscall.SIGTERM) })
	defer stop()
	kubeconfig, err := l.listen(words)
	if err != nil {
		_ = child.Wait()
		if errors.Is(err, errWordless) {
			if _, e := l.kind.Remove(context.Background(), f.Name); e != nil {
				err = &exit{runner.ExitLacking, fmt.Sprintf("%v, and what it has made cannot be removed: %v", err, e)}
			}
		}
		_ = os.Remove(log.Name()) // unless it has done so; what it said has been said here
		if l.interrupted() {
			return &exit{runner.ExitInterrupted, "interrupted; the cluster " + f.Name + " is gone again"}
		}
		return err
	}
	down := "enilab down"
	if f.Name != upName {
		down += " --name " + f.Name
	}
	fmt.Fprintf(l.out, "the cluster %s is up, with enilab's CNI; process %d is its cloud and writes to %s\n%s  %s\n",
		f.Name, child.Process.Pid, log.Name(), lookAround(f.Name, kubeconfig), down)
	return child.Process.Release()
}

// plain replaces what does not belong into a file's name.
func plain(r rune) rune {
	if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' {
		return r
	}
	return '_'
}

// start begins the process that holds the cluster, in a session of its own: the terminal's signals are not for it.
func (f *upFlags) start(log *os.File) (*exec.Cmd, *os.File, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, nil, err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer w.Close()
	c := exec.Command(self, f.args()...)
	c.Stdout, c.Stderr, c.ExtraFiles = log, log, []*os.File{w}
	c.Env = append(os.Environ(), holdVariable+"="+log.Name())
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		return nil, nil, errors.Join(err, r.Close())
	}
	return c, r, nil
}

// What the process that holds the cluster writes to its parent, a word and a text a line.
const (
	wordSay   = "say"   // what it does
	wordReady = "ready" // the path of the kubeconfig
	wordFail  = "fail"  // an exit code, and why
)

// errWordless: the process has not ended by itself.
var errWordless = &exit{runner.ExitLacking, "the process that should hold the cluster was killed"}

// listen passes on what the process says, until the cluster is there or never will be.
func (l *cli) listen(words *os.File) (kubeconfig string, err error) {
	defer words.Close()
	s := bufio.NewScanner(words)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		word, text, _ := strings.Cut(s.Text(), " ")
		switch word {
		case wordSay:
			fmt.Fprintln(l.err, text)
		case wordReady:
			return text, nil
		case wordFail:
			number, why, _ := strings.Cut(text, " ")
			code, e := strconv.Atoi(number)
			if e != nil {
				code = runner.ExitLacking
			}
			err = &exit{code, why}
		}
	}
	if err == nil {
		err = errWordless
	}
	return "", err
}

func (l *cli) downCommand() *cobra.Command {
	name, after := upName, false
	c := &cobra.Command{
		Use:     "down",
		Short:   "removes a cluster that up, or run --on kind, has made",
		Long:    `down ends the process that is a cluster's cloud, and removes its containers and its network, also when that process is dead.`,
		Example: "  enilab down\n  enilab down --name big",
		Args:    nothing,
		RunE: func(*cobra.Command, []string) error {
			if err := l.needKind(); err != nil {
				return err
			}
			remove := l.kind.Remove
			if after {
				_, _ = io.Copy(io.Discard, l.in)
				remove = l.kind.RemoveAll
			}
			was, err := remove(l.context(), name)
			if err != nil {
				return l.kindError(err)
			}
			if !was {
				fmt.Fprintf(l.out, "there is no cluster %s\n", name)
				return nil
			}
			fmt.Fprintf(l.out, "the cluster %s is gone\n", name)
			return nil
		},
	}
	c.Flags().StringVar(&name, "name", name, "the cluster's name")
	c.Flags().BoolVar(&after, "after", false, "begin when standard input ends: see leave")
	_ = c.Flags().MarkHidden("after") // for the program itself
	return c
}

// holdVariable says that another process reads descriptor 3, and names the log.
const holdVariable = "ENILAB_HOLD_LOG"
