package cli

import (
	"bufio"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/runner"
)

func (l *cli) replayCommand() *cobra.Command {
	verbose := false
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "steps a recording of a daemon again and prints what it decided",
		Long: `replay steps the core through a recording, as it was in the daemon, and prints each input with its time (since the machine's
boot) and under it what the core wanted. It compares what is wanted now with what was wanted then: a recording that is cut
off, of another version, or that this core answers otherwise ends with exit code 2, and with how far it is good.`,
		Example: `  enilab record scenarios/socket-mismatch.scn && enilab replay socket-mismatch-node-1.rec
  enilab replay -v socket-mismatch-node-1.rec | less`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return l.replay(args[0], verbose) },
	}
	c.Flags().BoolVarP(&verbose, "verbose", "v", false, "print inputs and effects in full, as JSON")
	return c
}

func (l *cli) replay(name string, verbose bool) error {
	data, err := l.recording(name)
	if err != nil {
		return usage("replay: %v", err)
	}
	out := bufio.NewWriter(l.out)
	defer out.Flush() // also when the core panics, as in the recording of a crash: what led there comes before the stack
	good, err := ipam.Replay(data, policyNamed, func(_ int, at time.Duration, in ipam.Input, effs []ipam.Effect) {
		if verbose {
			inFull(out, at, in, effs)
		} else {
			inShort(out, at, in, effs)
		}
	})
	if err == nil {
		fmt.Fprintf(out, "good up to line %d, t=%v: %s\n", good.Lines+1, good.Until, runner.Count(good.Lines, "input"))
	}
	if ferr := out.Flush(); ferr != nil {
		return &exit{runner.ExitLacking, "replay: " + ferr.Error()}
	}
	if err != nil {
		return usage("%s: %v", name, err) // it says how far the recording is good
	}
	return nil
}

func inShort(w io.Writer, at time.Duration, in ipam.Input, effs []ipam.Effect) {
	fmt.Fprintf(w, "%-14v %s\n", at, describeInput(in))
	for _, e := range effs {
		fmt.Fprintf(w, "                 %s\n", describeEffect(e))
	}
}

func inFull(w io.Writer, at time.Duration, in ipam.Input, effs []ipam.Effect) {
	data, err := ipam.MarshalInput(in)
	if err != nil {
		data = []byte(err.Error())
	}
	fmt.Fprintf(w, "%-14v %s\n", at, data)
	for i := range effs {
		data, err := ipam.MarshalEffects(effs[i : i+1])
		if err != nil {
			data = []byte("  " + err.Error() + " ")
		}
		fmt.Fprintf(w, "                 %s\n", data[1:len(data)-1]) // without the array's brackets
	}
}
