package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/swarm"
	"github.com/enilab/enilab/sim/swarm/process"
)

// shrinkFlags are what `enilab shrink` was asked for.
type shrinkFlags struct {
	venueFlags
	seed  uint64
	out   string
	tries int
	times int
}

func (l *cli) shrinkCommand() *cobra.Command {
	var f shrinkFlags
	c := &cobra.Command{
		Use:   "shrink FILE",
		Short: "makes a scenario that breaks small",
		Long: `shrink takes a scenario that breaks, in virtual time if nothing else is said, and takes lines out of it, then arguments, then makes counts, durations and the
time between lines smaller, for as long as the same invariant breaks by the same cause. What is refused before it runs is discarded.
How long settling may take stays as it is, and a fault that was ended stays ended. The same file and seed give the same result.

The first variant that breaks is taken. Mutants that the file names are left out: shrink is for what breaks without one, or
with the one that --against names.

With --on netns each run is one of enilab run, and may cost a minute: the largest bites come first, and --tries and --for say how much may be
spent. What is small by then is written; then it is played once more, or twice in virtual machines, where runs repeat (--in vm). On this
machine's own kernel they do not, so that a candidate which held once may break the next time: --times plays it again before it is given up.`,
		Example: `  enilab shrink swarm-17.scn --seed 17                 writes swarm-17-small.scn
  enilab shrink swarm-17.scn --seed 17 -o found.scn
  enilab swarm --seeds 17 --print | enilab shrink - --seed 17 -o -
  enilab shrink swarm-17.scn --seed 17 --on netns --in vm --cni amazon-vpc-cni-k8s@1.23.0 --for 30m`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("shrink needs one scenario file (such as: enilab shrink swarm-17.scn --seed 17), found %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return l.shrink(&f, args[0]) },
	}
	c.Flags().Uint64Var(&f.seed, "seed", runner.DefaultSeed, "the seed with which it breaks")
	f.venueFlags.flags(c)
	c.Flags().IntVar(&f.tries, "tries", 0, triesDoc)
	c.Flags().IntVar(&f.times, "times", 1, "play a candidate up to this often until it breaks, where runs do not repeat")
	c.Flags().Lookup("for").Usage = "end with what there is after this time"
	c.Flags().StringVarP(&f.out, "out", "o", "", `file to write; "-" is standard output (default FILE-small.scn)`)
	return c
}

func (l *cli) shrink(f *shrinkFlags, name string) error {
	to := f.out
	if to == "" {
		to = strings.TrimSuffix(name, ".scn") + "-small.scn"
		if _, err := os.Stat(name); err != nil { // one that comes with enilab: there may be no such folder here
			to = filepath.Base(to)
		}
		if name == "-" {
			to = "-"
		}
	}
	if name != "-" && sameFile(name, to) {
		return usage("shrink %s -o %s would write over the scenario itself: name another file", name, to)
	}
	if f.tries < 0 || f.times < 1 {
		return usage("--tries and --times are numbers of runs: expected at least 1, found %d and %d", f.tries, f.times)
	}
	v, err := l.venue(&f.venueFlags)
	if err != nil {
		return err
	}
	data, err := l.read(name)
	if err == nil {
		_, err = runner.Load(v.reader(), name, data) // every mistake in the file, before anything runs
	}
	if err != nil {
		return l.refuse(scn.Listed(name, err))
	}
	p := newProgress(l.err)
	o := v.shrinking(f.tries)
	o.Times = f.times
	o.Stop, o.Over = l.interrupted, l.until(f.time)
	o.Tell = func(tried, lines int) { p.say(fmt.Sprintf("%d lines left after %d runs", lines, tried)) }
	s, err := swarm.Shrink(name, string(data), f.seed, o)
	p.clear()
	if lack, ok := errors.AsType[*process.Lacking](err); ok {
		return &exit{runner.ExitLacking, lack.Error()}
	}
	switch {
	case errors.Is(err, swarm.ErrHolds) && l.interrupted():
		return ended(runner.ExitInterrupted)
	case errors.Is(err, swarm.ErrHolds):
		return usage("shrink %s: it holds with seed %d, and there is nothing to shrink (name a seed with which it breaks: --seed N)", name, f.seed)
	case errors.Is(err, swarm.ErrUnknown):
		return &exit{runner.ExitNotPlayed, fmt.Sprintf("shrink %s: %v", name, err)}
	case err != nil:
		return usage("shrink %s: %v", name, err)
	}
	file := to
	if to == "-" {
		file = "FILE"
	}
	text := v.shrunkText(s, fmt.Sprintf("%s with seed %d", name, f.seed), v.again(file, s.Seed))
	report := l.out
	if to == "-" {
		report = l.err
		fmt.Fprint(l.out, text)
	} else if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	fmt.Fprintf(report, "shrunk  %s: %d lines of %d after %s, %d discarded before they ran\n", name, s.Lines, s.From,
		runner.Count(s.Tried, "run"), s.Refused)
	fmt.Fprintf(report, "  %s\n", brokenSentence(&s.Broken))
	if v.on != "sim" {
		fmt.Fprintf(report, "  %s\n", confirmed(s.Again, s.Of))
	}
	if to != "-" {
		fmt.Fprintf(report, "again: %s\n", v.again(to, s.Seed))
	}
	if l.interrupted() {
		return ended(runner.ExitInterrupted)
	}
	return nil
}
