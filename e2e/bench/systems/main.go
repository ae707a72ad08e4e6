// Command systems measures whole CNIs beside each other, from outside and in turn: ours, amazon-vpc-cni-k8s where ENILAB_SYSTEMS has a version
// of it, and ptp with host-local. Run it as root on Linux, from the repository, once bin/enilab is built:
//
//	go run ./e2e/bench/systems                                            # or make bench
//	go run ./e2e/bench/systems -rounds 1 enilab amazon-vpc-cni-k8s@1.18.0
//	go run ./e2e/bench/systems -rounds 1 -supply enilab amazon-vpc-cni-k8s@1.23.0
//
// -supply compares what 250 pods on one node cost in requests to EC2, with secondary addresses and with prefixes: three
// quarters of an hour a system and round. -in vm plays it in virtual machines, whatever else the computer does, where a
// round's number is its seed: requests are those of a computer that keeps up, and times are the virtual machine's.
//
// Each plays the two scenarios beside this file with enilab run --on netns --clock machine: real processes of theirs on this machine's kernel, in
// real time, with the models' EC2 at its published speed. What is told is what the laboratory sees of any CNI: how long the plugin's runs took,
// when the daemon served, its memory, the requests to EC2. With every round the order begins with another one, and each figure is the median of
// the rounds. e2e/bench/netns has many more samples of ours alone, beside ptp.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/systems"
)

const (
	upstream = "amazon-vpc-cni-k8s"
	ptp      = "ptp@1.9.1" // as go.mod requires the reference plugins
	folder   = "e2e/bench/systems"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := command(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func command(ctx context.Context, args []string, out io.Writer) error {
	flags := flag.NewFlagSet("systems", flag.ContinueOnError)
	rounds := flags.Int("rounds", 3, "how often each system plays each scenario")
	supplied := flags.Bool("supply", false, "compare the supply of addresses to 250 pods instead")
	machine := flags.String("in", "", "`vm` plays in virtual machines, as enilab run --in does, each round with its own seed")
	enilab := flags.String("enilab", filepath.Join("bin", "enilab"), "this `binary`, with ipamd and aws-cni beside it")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		return nil
	} else if err != nil {
		return err
	}
	if *rounds < 1 {
		return fmt.Errorf("-rounds: expected 1 or more, found %d", *rounds)
	}
	if why := netns.Available(); why != nil && *machine == "" {
		_, err := fmt.Fprintln(out, "bench: whole CNIs beside each other are skipped:", why)
		return err
	}
	names := flags.Args()
	if len(names) == 0 {
		names = atHand(ctx)
	}
	t := &table{where: "of this kernel, in turn, in real time", names: names, rows: usualRows, of: map[string]map[string][]figures{}}
	if *machine != "" {
		t.where = "in virtual machines, a seed each round"
	}
	scenarios, dir := []string{"steady", "burst"}, folder
	if *supplied {
		var err error
		if dir, err = os.MkdirTemp("", "enilab-bench-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		if scenarios, err = writeSupply(dir); err != nil {
			return err
		}
		t.rows = supplyRows()
	}
	for round := range *rounds {
		for _, scenario := range scenarios {
			for i := range names {
				name := names[(i+round)%len(names)]
				fmt.Fprintf(os.Stderr, "bench: round %d of %d, %s, %s …\n", round+1, *rounds, scenario, name)
				place := []string{"--clock", "machine"}
				if *machine != "" {
					place = []string{"--in", *machine, "--seed", strconv.Itoa(round + 1)}
				}
				f, err := play(ctx, *enilab, append(place, "--cni", name, filepath.Join(dir, scenario+".scn")))
				if err != nil {
					return fmt.Errorf("%s, %s: %w", name, scenario, err)
				}
				t.add(name, scenario, f)
			}
		}
	}
	return t.print(out, *rounds)
}

// atHand are ours, the newest amazon-vpc-cni-k8s in the folder of systems, and ptp.
func atHand(ctx context.Context) []string {
	s, err := systems.Find(ctx, upstream+"@1", systems.Options{})
	if err != nil {
		fmt.Fprintf(os.Stderr, "bench: without %s: %v\n", upstream, err)
		return []string{"enilab", ptp}
	}
	return []string{"enilab", upstream + "@" + s.Version, ptp}
}

// figures are those of a run, of the JSON of enilab run; durations are seconds.
type figures struct {
	Adds, Dels, Failed     int
	Add, Del, Start, Ready float64
	Memory                 int64
	Calls                  map[string]int64
}

// play is one run. A system that breaks something has figures all the same.
func play(ctx context.Context, enilab string, args []string) (*figures, error) {
	c := exec.CommandContext(ctx, enilab, append([]string{"run", "--on", "netns", "--json"}, args...)...)
	c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // it takes its namespaces away
	var said strings.Builder
	c.Stderr = &said
	data, err := c.Output()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		return nil, err
	}
	var d struct {
		Errors []struct{ Message string }
		Files  []struct {
			Report   string
			Variants []struct {
				Error   string
				Figures *figures
			}
		}
	}
	if err := json.Unmarshal(data, &d); err != nil {
		return nil, fmt.Errorf("%w: %s%s", err, data, said.String())
	}
	if len(d.Errors) > 0 {
		return nil, errors.New(d.Errors[0].Message)
	}
	if len(d.Files) == 0 || len(d.Files[0].Variants) == 0 || d.Files[0].Variants[0].Figures == nil {
		return nil, fmt.Errorf("it was not played: %s%s", data, said.String())
	}
	return d.Files[0].Variants[0].Figures, nil
}

// table has a column for each system.
type table struct {
	where string
	names []string
	rows  []row
	of    map[string]map[string][]figures // by scenario and system
}

func (t *table) add(name, scenario string, f *figures) {
	if t.of[scenario] == nil {
		t.of[scenario] = map[string][]figures{}
	}
	t.of[scenario][name] = append(t.of[scenario][name], *f)
}

// row is what is compared of a scenario's runs.
type row struct {
	scenario, what string
	of             func(*figures) float64
}

var usualRows = []row{
	{"steady", "ADD, one by one, p50, ms", func(f *figures) float64 { return 1000 * f.Add }},
	{"steady", "DEL, one by one, p50, ms", func(f *figures) float64 { return 1000 * f.Del }},
	{"steady", "start of the daemon to serving, ms", func(f *figures) float64 { return 1000 * f.Start }},
	{"steady", "memory of the daemon, at most, MB", func(f *figures) float64 { return float64(f.Memory) / 1e6 }},
	{"burst", "50 pods at once: ADD, p50, ms", func(f *figures) float64 { return 1000 * f.Add }},
	{"burst", "50 pods at once: ADDs that failed", func(f *figures) float64 { return float64(f.Failed) }},
	{"burst", "50 pods at once: from an empty node until all run, s", func(f *figures) float64 { return f.Ready }},
	{"burst", "50 pods at once: requests to EC2", func(f *figures) float64 {
		n := int64(0)
		for _, c := range f.Calls {
			n += c
		}
		return float64(n)
	}},
	{"burst", "50 pods at once: memory of the daemon, at most, MB", func(f *figures) float64 { return float64(f.Memory) / 1e6 }},
}

func (t *table) print(out io.Writer, rounds int) error {
	fmt.Fprintf(out, "Whole CNIs on one node %s; the median of %d rounds. %d cores.\n\n", t.where, rounds, runtime.NumCPU())
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "WHAT\t%s", strings.Join(t.names, "\t"))
	for _, name := range t.names[1:] {
		fmt.Fprintf(w, "\t%s/%s", t.names[0], name)
	}
	fmt.Fprintln(w)
	for _, r := range t.rows {
		cells := []string{r.what}
		var values []float64
		for _, name := range t.names {
			v := median(t.of[r.scenario][name], r.of)
			values = append(values, v)
			cells = append(cells, cmp.Or(strings.TrimSuffix(fmt.Sprintf("%.1f", v), ".0"), "-"))
		}
		for _, v := range values[1:] {
			ratio := "-" // it has no such thing
			if v > 0 {
				ratio = fmt.Sprintf("%.2f", values[0]/v)
			}
			cells = append(cells, ratio)
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	return w.Flush()
}

func median(list []figures, of func(*figures) float64) float64 {
	var v []float64
	for i := range list {
		v = append(v, of(&list[i]))
	}
	slices.Sort(v)
	return v[len(v)/2]
}
