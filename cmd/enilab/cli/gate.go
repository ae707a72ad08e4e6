package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/vm"
)

// gateFlags are what `enilab gate` was asked for.
type gateFlags struct {
	gate.Config
	in      machineFlag
	json    string
	reports reports

	recordings, then string
}

// jsonFile is the file that --json names; empty: none.
func (f *gateFlags) jsonFile() string {
	if f.json == "-" {
		return ""
	}
	return f.json
}

func (l *cli) gateCommand() *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:   "gate --from SYSTEM --to SYSTEM [FILE...]",
		Short: "says what an upgrade from one version of a CNI to another breaks",
		Long: `gate plays scenarios with the old version and with the new one, upgraded in the middle and rolled back in the middle, each of these with the
image alone (old environment and manifest kept, as kubectl set image does) and with the manifest. It is red when something held with the old version
and does not with the new one, in the change or after it, or when a figure is beyond its band; and says which plays went red, and what is mended.

SYSTEM is NAME@WHERE (enilab systems lists them). Without FILE it plays its own scenario of what every upgrade meets, the five incidents from which
this laboratory began, and a load with up to three seeds for figures. A scenario says by a line such as "vary change=5m" when the version changes; else it is
done in a quiet place next to its middle. Everything runs in virtual machines, as many at once as there are cores, without root, and repeats.

What does not change is not played again: --cache keeps what came of a run, by the bytes of everything that was in its machine.

Exit codes: 0 not red, 1 red, 2 bad input, 3 this machine lacks something, 5 not known (something was not played), 130 interrupted.
docs/gate.md says more.

With --recordings it plays nothing: it steps each recording of our own daemon in a folder with this build, and lists the first decision of each that differs,
by kind, with the input that led there. --then names the enilab of the version that recorded, which says what was decided then.

` + reportManual,
		Example: `  enilab gate --from amazon-vpc-cni-k8s@1.18.0 --to amazon-vpc-cni-k8s@1.23.0
  enilab gate --from amazon-vpc-cni-k8s@1.23.0 --to enilab scenarios/drift.scn
  enilab gate --from my-cni@1.0.0 --to my-cni@1.1.0=./bin --json gate.json
  enilab gate --from my-cni@1.0.0 --to my-cni@1.2.0=./bin --baseline gate.json --allow accepted.yaml
  enilab gate --recordings /var/log/aws-routed-eni --then ./enilab-0.1.0`,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("recordings") || f.then != "" {
				return l.gateRecordings(c, &f, args)
			}
			return l.gate(&f, args)
		},
	}
	f.flags(c)
	return c
}

func (f *gateFlags) flags(c *cobra.Command) {
	f.in.given = true
	c.Flags().StringVar(&f.From, "from", "", "the version before, NAME@WHERE")
	c.Flags().StringVar(&f.To, "to", "", "the version after, NAME@WHERE")
	c.Flags().Var(&f.in, "in", "vm plays in virtual machines; vm=KERNEL names a vmlinuz or a Debian kernel package")
	c.Flags().StringVar(&f.Seeds, "seeds", "1", "play every scenario with every seed of this range, such as 1-5")
	c.Flags().StringVar(&f.Baseline, "baseline", "", "take the old version's results from what an earlier gate "+
		"wrote with --json")
	c.Flags().StringVar(&f.Allow, "allow", "", "accepted differences, as YAML: check, reason, and perhaps scenario "+
		"and play")
	c.Flags().StringVar(&f.json, "json", "", "write all that was found to this file too; - is standard output, in place of the text")
	c.Flags().StringVar(&f.Cache, "cache", "", "folder of what was played before; - keeps nothing (default "+
		"enilab/gate in the user's cache folder)")
	f.reports.flags(c)
	c.Flags().StringVar(&f.Out, "out", "", "write every play's scenario and report into this folder")
	c.Flags().DurationVar(&f.Timeout, "timeout", 0, "how long all may take; what was not played by then is told as "+
		"that (default no limit)")
	c.Flags().DurationVar(&f.Limit, "limit", vm.Limit, "how long one run may take")
	c.Flags().StringVar(&f.Shape, "shape", "", "play the gate's own scenario in the shape of a cluster: a "+
		"kubeconfig, which kubectl is asked with, or what kubectl get nodes,pods,daemonsets -A -o json wrote")
	c.Flags().StringSliceVar(&f.Modes, "mode", nil, "play the gate's own scenario in this mode too: "+
		strings.Join(gate.Modes(), ", "))
	c.Flags().StringSliceVar(&f.Plays, "plays", nil, "play only these, and old: "+strings.Join(gate.PlayNames(), ", "))
	c.Flags().StringSliceVar(&f.Only, "only", nil, "play only these scenarios of those that it would play, by name "+
		"without folder and ending")
	c.Flags().BoolVar(&f.NoDoubt, "no-doubt", false, "do not play what regressed with more seeds")
	c.Flags().StringVar(&f.recordings, "recordings", "", "step the recordings of this folder with this build, and play nothing")
	c.Flags().StringVar(&f.then, "then", "", "with --recordings: the enilab of the version that recorded")
	c.Flags().BoolVar(&f.NoFigures, "no-figures", false, "leave the load out, and with it latencies, calls and memory")
}

// gate runs the engine, and tells what came of it.
func (l *cli) gate(f *gateFlags, names []string) error {
	if f.Timeout < 0 || f.Limit <= 0 {
		return usage("--timeout and --limit are durations, such as 40m")
	}
	if err := f.reports.check(names, output{"--json", f.jsonFile()}); err != nil {
		return err
	}
	switch f.Cache {
	case "-":
		f.Cache = ""
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return &exit{runner.ExitLacking, fmt.Sprintf("your cache folder: %v (set XDG_CACHE_HOME, or --cache)", err)}
		}
		f.Cache = filepath.Join(dir, "enilab", "gate")
	}
	p := newProgress(l.err)
	f.Scenarios, f.Kernel, f.Read, f.Verbose = names, f.in.kernel, l.read, l.verbose()
	f.Say = func(text string) { fmt.Fprintln(l.err, text) }
	f.Tell = func(x gate.Progress) {
		switch {
		case x.Came == "":
			p.say(fmt.Sprintf("run %d of %d: %s, %s, seed %d", x.Done+1, x.Of, x.Scenario, x.Play.Doc(), x.Seed))
		case !p.on:
			fmt.Fprintf(l.err, "%d of %d, %v: %s, %s, seed %d: %s\n", x.Done, x.Of, x.Took.Round(time.Second),
				x.Scenario, x.Play, x.Seed, x.Came)
		}
	}
	page, err := gate.Run(l.context(), f.Config)
	p.clear()
	if list, ok := errors.AsType[scn.ErrorList](err); ok {
		return l.refuse(list)
	}
	if err != nil {
		return l.machineError(err)
	}
	page.Command = report.CommandLine(l.args)
	full := page.Report()
	full.By = "enilab " + built()
	if err := f.reports.write(full); err != nil {
		return err
	}
	if err := l.tellGate(f, page); err != nil {
		return err
	}
	return ended(page.Exit)
}

func (l *cli) tellGate(f *gateFlags, p *gate.Page) error {
	if f.json == "-" {
		return l.writeJSON(p, runner.ExitHeld)
	}
	if name := f.jsonFile(); name != "" {
		if err := put(name, func(w io.Writer) error { return indented(w, p) }); err != nil {
			return &exit{runner.ExitLacking, "write --json: " + err.Error()}
		}
	}
	err := p.Write(l.out, func(word string, level gate.Level) string {
		return colour(l.out, map[gate.Level]string{gate.Good: green, gate.Warn: yellow, gate.Bad: red}[level], word)
	})
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	fmt.Fprintf(l.out, "\n%s played, %d taken from before, %v\n", runner.Count(p.Played, "run"), p.Cached, p.Took)
	l.named(&f.reports)
	return nil
}
