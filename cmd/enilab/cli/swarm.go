package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/swarm"
	knownlist "github.com/enilab/enilab/sim/swarm/known"
)

// swarmFlags are what `enilab swarm` was asked for.
type swarmFlags struct {
	seeds string
	json  bool
	keep  string
	known bool
	print bool
}

func (l *cli) swarmCommand() *cobra.Command {
	var f swarmFlags
	c := &cobra.Command{
		Use:   "swarm --seeds A-B",
		Short: "invents scenarios and plays them",
		Long: `swarm draws a scenario from each seed and plays it in virtual time: a cluster, settings, a workload and a subset of the faults
that a correct CNI survives (enilab verbs says which those are); then the faults end, and every pod has to become ready, everything
has to settle, and nothing may be left. All invariants are judged. The same seed is the same scenario, byte for byte.

A violation is told by its invariant and its cause, which is its text without names, numbers, addresses and times. Those that are
known and not mended yet stand in a list (sim/swarm/known), each with a scenario that shows it; they are counted. Any other makes the
exit code 1. It is 5 when a verb that the swarm draws struck in none of at least ` + strconv.Itoa(swarm.Enough) + ` seeds.

--json writes one document:
  enilab "swarm/1", first, last, exit, runs, held, events, wall
  violations[]  invariant, cause, text, at, node, first, count, seeds[], known (the list's file), shrunk {file, seed, lines, from}
  struck, marks seeds in which a verb struck, and that came through a coverage point; unstruck[], unreached[]`,
		Example: `  enilab swarm --seeds 1-500
  enilab swarm --seeds 1-100000 --keep found        shrink every new violation to a file in the folder found
  enilab swarm --seeds 17 --print > swarm-17.scn    the scenario of a seed
  enilab run swarm-17.scn --seed 17                 and what happens in it
  enilab swarm --known                              does everything in the list still break?`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error { return l.swarm(&f) },
	}
	c.Flags().StringVar(&f.seeds, "seeds", "", "seeds to draw from, the first and the last: 1-500")
	c.Flags().BoolVar(&f.json, "json", false, "write one JSON document instead of text")
	c.Flags().StringVar(&f.keep, "keep", "", "shrink every new violation to a file in this folder")
	c.Flags().BoolVar(&f.known, "known", false, "play the list of known violations: each has to break as it says")
	c.Flags().BoolVar(&f.print, "print", false, "write the scenario of the seed and play nothing")
	return c
}

func (l *cli) swarm(f *swarmFlags) error {
	list, err := knownlist.List()
	if err != nil {
		return &exit{runner.ExitBad, err.Error()}
	}
	if f.known {
		if f.seeds != "" || f.keep != "" || f.print || f.json {
			return usage("--known plays the list and nothing else: leave the other flags out")
		}
		return l.swarmKnown(list)
	}
	if f.seeds == "" {
		return usage("swarm needs seeds (such as: enilab swarm --seeds 1-500)")
	}
	b, err := runner.ParseSeeds(f.seeds)
	if err != nil {
		return usage("--seeds: %v", err)
	}
	if f.print {
		if b.Count() > 1 {
			return usage("--print writes the scenario of one seed: write --seeds %d", b.From)
		}
		fmt.Fprint(l.out, swarm.Draw(b.From))
		return nil
	}
	if f.keep != "" {
		if err := os.MkdirAll(f.keep, 0o755); err != nil {
			return usage("--keep needs a folder: %v", err)
		}
	}
	began := time.Now()
	t := l.playSwarm(b, list)
	r := swarmResult{Seeds: b, tally: t, wall: time.Since(began), cut: l.interrupted()}
	r.unknown, r.known = t.Findings()
	if f.keep != "" {
		if err := l.keepAll(&r, f.keep); err != nil {
			return err
		}
	}
	if f.json {
		return l.writeJSON(r.document(), r.exit())
	}
	l.tellSwarm(&r)
	return ended(r.exit())
}

// playSwarm plays the seeds of a batch on all cores.
func (l *cli) playSwarm(b runner.Seeds, list []swarm.Entry) *swarm.Tally {
	p := newProgress(l.err)
	defer p.clear()
	t := swarm.NewTally(list)
	var mu sync.Mutex
	var next atomic.Int64
	var all sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		all.Go(func() {
			for !l.interrupted() {
				i := int(next.Add(1) - 1)
				if i >= b.Count() {
					return
				}
				seed := b.From + uint64(i)
				o := l.playSeed(seed)
				mu.Lock()
				t.Add(seed, o)
				p.say(fmt.Sprintf("%s of %s seeds, %s held", runner.Number(uint64(t.Runs)), runner.Number(uint64(b.Count())), runner.Number(uint64(t.Held))))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return t
}

// playSeed plays one; a scenario that is refused before it runs is a mistake of the generator, and as bad as any.
func (l *cli) playSeed(seed uint64) *swarm.Outcome {
	o, err := swarm.Play(swarm.Name(seed), swarm.Draw(seed), seed, l.interrupted)
	if err != nil {
		o = &swarm.Outcome{Broken: &swarm.Broken{Invariant: swarm.Drawable, Cause: swarm.Cause(err.Error()), Text: err.Error()}}
	}
	return o
}

// swarmResult is what came of a batch.
type swarmResult struct {
	runner.Seeds
	tally          *swarm.Tally
	unknown, known []*swarm.Finding
	shrunk         map[*swarm.Finding]keptFile
	wall           time.Duration
	cut            bool
}

// keptFile is a violation that was made small.
type keptFile struct {
	File  string `json:"file"`
	Seed  uint64 `json:"seed"`
	Lines int    `json:"lines"`
	From  int    `json:"from"`
	entry swarm.Entry
}

// unstruck are the verbs that have to have struck in a batch of this size, and have not.
func (r *swarmResult) unstruck() []string {
	if r.cut || r.Count() < swarm.Enough {
		return nil
	}
	return r.tally.Unstruck()
}

func (r *swarmResult) exit() int {
	switch {
	case len(r.unknown) > 0:
		return runner.ExitViolated
	case len(r.unstruck()) > 0:
		return runner.ExitNotPlayed
	case r.cut:
		return runner.ExitInterrupted
	}
	return runner.ExitHeld
}

// keepAll shrinks what is new to files.
func (l *cli) keepAll(r *swarmResult, dir string) error {
	p := newProgress(l.err)
	defer p.clear()
	r.shrunk = map[*swarm.Finding]keptFile{}
	for _, f := range r.unknown {
		name := swarm.Name(f.First)
		s, err := swarm.Shrink(name, swarm.Draw(f.First), f.First, swarm.Options{Stop: l.interrupted, Tell: func(tried, lines int) {
			p.say(fmt.Sprintf("seed %d: %d lines left after %d runs", f.First, lines, tried))
		}})
		if err != nil {
			continue // the cluster does not even start: the seed shows it
		}
		k := keptFile{File: filepath.Join(dir, name), Seed: s.Seed, Lines: s.Lines, From: s.From,
			entry: swarm.Entry{File: name, Seed: s.Seed, Invariant: s.Broken.Invariant, Cause: s.Broken.Cause}}
		if err := os.WriteFile(k.File, []byte(shrunkText(s, fmt.Sprintf("seed %d of enilab swarm", f.First))), 0o644); err != nil {
			return &exit{runner.ExitLacking, err.Error()}
		}
		r.shrunk[f] = k
	}
	return nil
}

// tellSwarm writes what is new, and one line that sums up.
func (l *cli) tellSwarm(r *swarmResult) {
	for _, f := range r.unknown {
		fmt.Fprintf(l.out, "%s  seed %d  %s\n", colour(l.out, red, "violated"), f.First, brokenSentence(&f.Broken))
		fmt.Fprintf(l.out, "  it is not in the list of known violations; %s broke so: %s\n", plural(f.Seeds, "seed"), seedList(f))
		fmt.Fprintf(l.out, "  cause: %s\n", f.Cause)
		if k, ok := r.shrunk[f]; ok {
			fmt.Fprintf(l.out, "  %s has %d of its %d lines: enilab run %s --seed %d\n", k.File, k.Lines, k.From, k.File, k.Seed)
			fmt.Fprintf(l.out, "  for the list: %s\n", k.entry.Line())
		}
		name := swarm.Name(f.First)
		fmt.Fprintf(l.out, "again: enilab swarm --seeds %d --print > %s && enilab run %s --seed %d\n", f.First, name, name, f.First)
	}
	for _, key := range r.unstruck() {
		fmt.Fprintf(l.out, "%s  %q, which the swarm draws, struck in no seed of %d\n", colour(l.out, red, "not played"), key, r.tally.Runs)
	}
	for _, f := range r.known {
		fmt.Fprintf(l.out, "known  %s: %s broke %q (%s)\n", f.Known.File, plural(f.Seeds, "seed"), f.Invariant, seedList(f))
	}
	fmt.Fprintln(l.out, r.sum(l))
}

// sum is the line that sums up.
func (r *swarmResult) sum(l *cli) string {
	word, paint := "held", green
	switch r.exit() {
	case runner.ExitViolated:
		word, paint = "violated", red
	case runner.ExitNotPlayed:
		word, paint = "not played", red
	case runner.ExitInterrupted:
		word, paint = "interrupted", yellow
	}
	t := r.tally
	verbs, marks := len(swarm.Drawn()), len(t.Marks)+len(t.Unreached())
	seeds := "seeds " + r.String()
	if r.Count() == 1 {
		seeds = "seed " + r.String()
	}
	s := fmt.Sprintf("%s  %s: %s held", colour(l.out, paint, word), seeds, runner.Number(uint64(t.Held)))
	if r.cut {
		s = fmt.Sprintf("%s  %s, interrupted after %s: %s held", colour(l.out, paint, word), seeds, runner.Number(uint64(t.Runs)),
			runner.Number(uint64(t.Held)))
	}
	if n := t.Runs - t.Held; n > 0 {
		s += fmt.Sprintf(", %s violated in %s and %s", runner.Number(uint64(n)), plural(len(r.known), "known way"), plural(len(r.unknown), "new one"))
	}
	return s + fmt.Sprintf("; %d of %d verbs, %d of %d coverage points; %s events in %s, %.0f scenarios a second", verbs-len(t.Unstruck()), verbs,
		marks-len(t.Unreached()), marks, runner.Number(t.Events), runner.Short(r.wall), float64(t.Runs)/max(r.wall.Seconds(), 0.001))
}

func brokenSentence(b *swarm.Broken) string {
	where := ""
	if b.Node > 0 {
		where = fmt.Sprintf(" on node-%d", b.Node)
	}
	return fmt.Sprintf("%q broke %s%s: %s", b.Invariant, runner.Instant(b.At), where, b.Text)
}

func seedList(f *swarm.Finding) string {
	var out []string
	for _, s := range f.More {
		out = append(out, strconv.FormatUint(s, 10))
	}
	if f.Seeds > len(f.More) {
		out = append(out, "and more")
	}
	return strings.Join(out, ", ")
}

// swarmKnown plays the list.
func (l *cli) swarmKnown(list []swarm.Entry) error {
	bad := 0
	for i := range list {
		if l.interrupted() {
			return ended(runner.ExitInterrupted)
		}
		e := &list[i]
		if err := e.Check(); err != nil {
			bad++
			fmt.Fprintf(l.out, "%s  %v\n", colour(l.out, red, "violated"), err)
			continue
		}
		fmt.Fprintf(l.out, "known  %s breaks %q with seed %d\n", e.File, e.Invariant, e.Seed)
	}
	if bad > 0 {
		fmt.Fprintf(l.out, "%s: %d as the list says, %d not\n", plural(len(list), "known violation"), len(list)-bad, bad)
		return ended(runner.ExitViolated)
	}
	fmt.Fprintf(l.out, "%s, each as the list says\n", plural(len(list), "known violation"))
	return nil
}

type swarmJSON struct {
	Enilab     string          `json:"enilab"`
	First      uint64          `json:"first"`
	Last       uint64          `json:"last"`
	Exit       int             `json:"exit"`
	Runs       int             `json:"runs"`
	Held       int             `json:"held"`
	Events     uint64          `json:"events"`
	Wall       float64         `json:"wall"`
	Violations []violationJSON `json:"violations"`
	Struck     map[string]int  `json:"struck"`
	Marks      map[string]int  `json:"marks"`
	Unstruck   []string        `json:"unstruck"`
	Unreached  []string        `json:"unreached"`
}

type violationJSON struct {
	Invariant string    `json:"invariant"`
	Cause     string    `json:"cause"`
	Text      string    `json:"text"`
	At        float64   `json:"at"`
	Node      int       `json:"node,omitempty"`
	First     uint64    `json:"first"`
	Count     int       `json:"count"`
	Seeds     []uint64  `json:"seeds"`
	Known     string    `json:"known,omitempty"`
	Shrunk    *keptFile `json:"shrunk,omitempty"`
}

func (r *swarmResult) document() *swarmJSON {
	t := r.tally
	d := &swarmJSON{Enilab: "swarm/1", First: r.From, Last: r.To, Exit: r.exit(), Runs: t.Runs, Held: t.Held, Events: t.Events,
		Wall: r.wall.Seconds(), Violations: []violationJSON{}, Struck: t.Struck, Marks: t.Marks, Unstruck: append([]string{}, t.Unstruck()...),
		Unreached: append([]string{}, t.Unreached()...)}
	for _, f := range append(r.unknown, r.known...) {
		v := violationJSON{Invariant: f.Invariant, Cause: f.Cause, Text: f.Text, At: f.At.Seconds(), Node: f.Node, First: f.First, Count: f.Seeds, Seeds: f.More}
		if f.Known != nil {
			v.Known = f.Known.File
		}
		if k, ok := r.shrunk[f]; ok {
			v.Shrunk = &k
		}
		d.Violations = append(d.Violations, v)
	}
	return d
}
