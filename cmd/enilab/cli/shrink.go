package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/swarm"
)

// shrinkFlags are what `enilab shrink` was asked for.
type shrinkFlags struct {
	seed uint64
	out  string
}

func (l *cli) shrinkCommand() *cobra.Command {
	var f shrinkFlags
	c := &cobra.Command{
		Use:   "shrink FILE",
		Short: "makes a scenario that breaks small",
		Long: `shrink takes a scenario that breaks in virtual time and takes lines out of it, then arguments, then makes counts, durations and the
time between lines smaller, for as long as the same invariant breaks by the same cause. What is refused before it runs is discarded.
How long settling may take stays as it is, and a fault that was ended stays ended. The same file and seed give the same result.

The first variant that breaks is taken. Mutants that the file names are left out: shrink is for what breaks without one.`,
		Example: `  enilab shrink swarm-17.scn --seed 17                 writes swarm-17-small.scn
  enilab shrink swarm-17.scn --seed 17 -o found.scn
  enilab swarm --seeds 17 --print | enilab shrink - --seed 17 -o -`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("shrink needs one scenario file (such as: enilab shrink swarm-17.scn --seed 17), found %d", len(args))
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return l.shrink(&f, args[0]) },
	}
	c.Flags().Uint64Var(&f.seed, "seed", runner.DefaultSeed, "the seed with which it breaks")
	c.Flags().StringVarP(&f.out, "out", "o", "", `file to write; "-" is standard output (default FILE-small.scn)`)
	return c
}

func (l *cli) shrink(f *shrinkFlags, name string) error {
	to := f.out
	if to == "" {
		to = strings.TrimSuffix(name, ".scn") + "-small.scn"
		if name == "-" {
			to = "-"
		}
	}
	if same(name, to) {
		return usage("shrink %s -o %s would write over the scenario itself: name another file", name, to)
	}
	data, err := l.read(name)
	if err == nil {
		_, err = runner.Load(runner.Sim(), name, data) // every mistake in the file, before anything runs
	}
	if err != nil {
		return l.refuse(listed(name, err))
	}
	p := newProgress(l.err)
	s, err := swarm.Shrink(name, string(data), f.seed, swarm.Options{Stop: l.interrupted, Tell: func(tried, lines int) {
		p.say(fmt.Sprintf("%d lines left after %d runs", lines, tried))
	}})
	p.clear()
	switch {
	case errors.Is(err, swarm.ErrHolds) && l.interrupted():
		return ended(runner.ExitInterrupted)
	case errors.Is(err, swarm.ErrHolds):
		return usage("shrink %s: it holds with seed %d, and there is nothing to shrink (name a seed with which it breaks: --seed N)", name, f.seed)
	case err != nil:
		return usage("shrink %s: %v", name, err)
	}
	text := shrunkText(s, fmt.Sprintf("%s with seed %d", name, f.seed))
	report := l.out
	if to == "-" {
		report = l.err
		fmt.Fprint(l.out, text)
	} else if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	fmt.Fprintf(report, "shrunk  %s: %d lines of %d after %s, %d discarded before they ran\n", name, s.Lines, s.From, plural(s.Tried, "run"), s.Refused)
	fmt.Fprintf(report, "  %s\n", brokenSentence(&s.Broken))
	if to != "-" {
		fmt.Fprintf(report, "again: enilab run %s --seed %d\n", to, s.Seed)
	}
	if l.interrupted() {
		return ended(runner.ExitInterrupted)
	}
	return nil
}

// same says whether two names are of one file.
func same(a, b string) bool {
	x, errX := filepath.Abs(a)
	y, errY := filepath.Abs(b)
	return a != "-" && errX == nil && errY == nil && x == y
}

// shrunkText is a shrunk scenario under a headline that says what it shows.
func shrunkText(s *swarm.Shrunk, from string) string {
	headline := fmt.Sprintf("# %s\n# Shrunk from %s: %d lines of %d. It breaks with seed %d.\n", oneLine(brokenSentence(&s.Broken)), from, s.Lines, s.From, s.Seed)
	return headline + s.Text
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
