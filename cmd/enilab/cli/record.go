package cli

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
)

// recordFlags are what `enilab record` was asked for.
type recordFlags struct {
	node, life int
	seed       uint64
	against    string
	out        string
}

func (l *cli) recordCommand() *cobra.Command {
	var f recordFlags
	c := &cobra.Command{
		Use:   "record FILE",
		Short: "runs a scenario and writes what one node's daemon went through",
		Long: `record runs the first variant of a scenario in world sim and writes the recording of one node's daemon: its core as it was
when the recording began, and every input since with a fingerprint of what it wanted. enilab replay steps it again.

A recording is of one life of a daemon. The first begins at t=0 of the scenario, each restart begins another.`,
		Example: `  enilab record scenarios/socket-mismatch.scn --node 1                 the last life, into socket-mismatch-node-1.rec
  enilab record scenarios/socket-mismatch.scn --life 1 --out -         the life that runs at t=0, to standard output`,
		Args: oneFile,
		RunE: func(_ *cobra.Command, args []string) error { return l.record(&f, args[0]) },
	}
	c.Flags().IntVar(&f.node, "node", 1, "whose daemon")
	c.Flags().IntVar(&f.life, "life", 0, "which life of it, from 1; 0 is the last")
	c.Flags().Uint64Var(&f.seed, "seed", runner.DefaultSeed, "seed of everything that is random")
	c.Flags().StringVar(&f.against, "against", "", "let this mutant play the daemon")
	c.Flags().StringVar(&f.out, "out", "", `file to write; "-" is standard output (default SCENARIO-node-N.rec)`)
	return c
}

// oneFile is how commands take their one argument.
func oneFile(c *cobra.Command, args []string) error {
	if len(args) != 1 {
		return usage("%s takes one file, found %d arguments", c.CommandPath(), len(args))
	}
	return nil
}

// tape keeps the recording of one life.
type tape struct {
	policy string
	life   int // 0: the last
	lives  int
	rec    *ipam.Recording
	buf    bytes.Buffer
	inputs int
	err    error // the first one
}

func (t *tape) begin(n *ipam.Node) {
	t.lives++
	t.rec = nil
	if t.life != 0 && t.life != t.lives {
		return
	}
	t.buf.Reset()
	t.inputs = 0
	rec, err := ipam.NewRecording(n, t.policy)
	if err != nil {
		t.err = errors.Join(t.err, err)
		return
	}
	t.rec = rec
	t.buf.Write(rec.Header())
}

func (t *tape) step(at time.Duration, in ipam.Input, effs []ipam.Effect) {
	if t.rec == nil || t.err != nil {
		return
	}
	line, err := t.rec.Line(at, in, effs)
	if err != nil {
		t.err = err
		return
	}
	t.buf.Write(line)
	t.inputs++
}

func (l *cli) record(f *recordFlags, name string) error {
	m, err := mutantOrNone(f.against)
	if err != nil {
		return err
	}
	cases, err := l.load(runner.Sim(), []string{name})
	if err != nil {
		return l.refuse(err)
	}
	c := cases[0]
	r, w, err := c.Variants[0].OpenSim(f.seed, m)
	if err != nil {
		return usage("record %s: %v", name, err)
	}
	defer w.Close()
	t := &tape{policy: soundPolicy, life: f.life}
	if m != nil {
		t.policy = m.Name
	}
	if !w.Record(f.node, t.begin, t.step) {
		return usage("there is no node-%d: the cluster of %s has nodes=%d", f.node, c.Name(), c.Variants[0].Cluster.Nodes)
	}
	verdict := r.Finish(l.interrupted)
	switch {
	case t.err != nil:
		return &exit{runner.ExitViolated, fmt.Sprintf("record %s: %v", name, t.err)}
	case t.buf.Len() == 0:
		return usage("node-%d has no life %d in %s: it has %d", f.node, f.life, c.Name(), t.lives)
	}
	if err := l.save(f, c.Name(), t); err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	if verdict.Cut {
		return &exit{runner.ExitInterrupted, fmt.Sprintf("interrupted %s of the scenario: the recording ends there", runner.Instant(verdict.Ended))}
	}
	return nil
}

// save writes the tape and says where.
func (l *cli) save(f *recordFlags, scenario string, t *tape) error {
	if f.out == "-" {
		_, err := l.out.Write(t.buf.Bytes())
		return err
	}
	if f.out == "" {
		f.out = fmt.Sprintf("%s-node-%d.rec", scenario, f.node)
	}
	if err := os.WriteFile(f.out, t.buf.Bytes(), 0o644); err != nil {
		return err
	}
	life := cmp.Or(f.life, t.lives)
	_, err := fmt.Fprintf(l.out, "%s: node-%d, life %d of %d, %s; read it with: enilab replay %s\n", f.out, f.node,
		life, t.lives, runner.Count(t.inputs, "input"), f.out)
	return err
}

// soundPolicy is the name by which recordings know the policy of production; a mutant's goes by the mutant's.
const soundPolicy = "sound"

// policyNamed finds the policy of a recording.
func policyNamed(name string) (*ipam.Policy, bool) {
	p := ipam.Sound()
	if name == soundPolicy {
		return p, true
	}
	m, ok := mutants.ByName(name)
	if ok && m.Policy != nil {
		m.Policy(p)
	}
	return p, ok
}

// bounds are how far a recording is read: its writer is unknown, and a device has no end.
type bounds struct{ size, line, inputs int }

// recordingBounds are those of all recordings. A daemon's ring holds two segments of a megabyte, and the longest line is the header: the node as
// it was, some hundred bytes for each of its addresses. What a line stands for in memory may be a hundred times its size.
func recordingBounds() bounds { return bounds{size: 256 << 20, line: 4 << 20, inputs: 2 << 20} }

// recordingPart is read at once.
const recordingPart = 64 << 10

// recording reads a file; "-" is standard input.
func (l *cli) recording(name string) ([]byte, error) {
	if name == "-" {
		return recordingBounds().read("standard input", l.in)
	}
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, fmt.Errorf("%s is a folder, expected a recording (enilab record %s writes one)", name, filepath.Join("scenarios", "X.scn"))
	}
	return recordingBounds().read(name, f)
}

// read reads no further than a recording can go.
func (b bounds) read(name string, from io.Reader) ([]byte, error) {
	var out []byte
	begun, line := 0, 1 // where the line that is being read begins, and its number
	for {
		out = slices.Grow(out, recordingPart)
		at := len(out)
		n, err := from.Read(out[at : at+recordingPart])
		out = out[:at+n]
		for end := 0; end >= 0; {
			to := len(out)
			if end = bytes.IndexByte(out[at:], '\n'); end >= 0 {
				to = at + end
			}
			if to-begun > b.line {
				return nil, fmt.Errorf("%s: line %d has more than %d bytes, and a recording's at most that; is it a recording?", name, line, b.line)
			}
			if end >= 0 {
				at, begun, line = to+1, to+1, line+1
			}
		}
		switch {
		case len(out) > b.size:
			return nil, fmt.Errorf("%s has more than %d bytes, and a recording at most that; record one life (enilab record --life)", name, b.size)
		case line-2 > b.inputs: // the header is no input, and the last line has not begun
			return nil, fmt.Errorf("%s has more than %d inputs, and a recording at most that; record one life (enilab record --life)", name, b.inputs)
		case err == io.EOF:
			return out, nil
		case err != nil:
			return nil, err
		}
	}
}
