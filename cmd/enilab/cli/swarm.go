package cli

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/swarm"
	knownlist "github.com/enilab/enilab/sim/swarm/known"
	"github.com/enilab/enilab/sim/swarm/process"
	"github.com/enilab/enilab/sim/virtual"
)

// swarmFlags are what `enilab swarm` was asked for.
type swarmFlags struct {
	venueFlags
	seeds string
	tries int
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
		Long: `swarm draws a scenario from each seed and plays it, in virtual time if nothing else is said: a cluster, settings, a workload and a subset of the faults
that a correct CNI survives (enilab verbs says which those are); then the faults end, and every pod has to become ready, everything
has to settle, and nothing may be left. All invariants are judged. The same seed is the same scenario, byte for byte.

A violation is told by its invariant and its cause, which is its text without names, numbers, addresses and times. Those that are
known and not mended yet stand in a list (sim/swarm/known), each with a scenario that shows it; they are counted. Any other makes the
exit code 1. It is 5 when a verb that the swarm draws struck in none of at least ` + strconv.Itoa(swarm.Enough) + ` seeds.

--on netns plays scenarios for any CNI, each in a process of enilab run: shorter ones, with fewer faults, which any CNI has to survive, not
only ours (docs/swarm.md has the list). --cni names the CNI, whose settings and runtimes are the only ones that are drawn. --in vm plays them in
virtual machines, as many at once as there are cores; there runs repeat. Of a run that did not keep up, or whose laboratory broke, nothing is
known: it is counted, and makes the exit code 5 when nothing worse happened.

--json writes one document:
  enilab "swarm/1", world, in, cni, kernel, against, first, last, exit, runs, held, unknown, whys[] (why of some runs nothing is known), events, wall
  violations[]  invariant, cause, text, at, node, first, count, seeds[], known (the list's file), shrunk {file, seed, lines, from}
  struck, marks seeds in which a verb struck, and that came through a coverage point; unstruck[], unreached[]`,
		Example: `  enilab swarm --seeds 1-500
  enilab swarm --seeds 1-100000 --keep found        shrink every new violation to a file in the folder found
  enilab swarm --seeds 17 --print > swarm-17.scn    the scenario of a seed
  enilab run swarm-17.scn --seed 17                 and what happens in it
  enilab swarm --known                              does everything in the list still break?
  enilab swarm --on netns --without-books --seeds 1-20                                 our daemon on this machine's kernel, judged from outside
  enilab swarm --on netns --in vm --cni amazon-vpc-cni-k8s@1.23.0 --seeds 1 --for 10m --keep found`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error { return l.swarm(&f) },
	}
	c.Flags().StringVar(&f.seeds, "seeds", "", "seeds to draw from, the first and the last: 1-500")
	c.Flags().BoolVar(&f.json, "json", false, "write one JSON document instead of text")
	c.Flags().StringVar(&f.keep, "keep", "", "shrink every new violation to a file in this folder")
	c.Flags().BoolVar(&f.known, "known", false, "play the list of known violations: each has to break as it says")
	c.Flags().IntVar(&f.tries, "tries", 0, triesDoc)
	f.venueFlags.flags(c)
	c.Flags().Lookup("for").Usage = "play as many seeds from the first on as fit in this time"
	c.Flags().BoolVar(&f.print, "print", false, "write the scenario of the seed and play nothing")
	return c
}

func (l *cli) swarm(f *swarmFlags) error {
	list, err := knownlist.List()
	if err != nil {
		return &exit{runner.ExitBad, err.Error()}
	}
	if f.known {
		if f.seeds != "" || f.keep != "" || f.print || f.json || f.venueFlags != (venueFlags{on: "sim", limit: runLimit}) {
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
	if !strings.Contains(f.seeds, "-") && f.time > 0 { // the first of as many as fit
		b.To = b.From + min(runner.MaxSeeds-1, math.MaxUint64-b.From)
	}
	v, err := l.venue(&f.venueFlags)
	if err != nil {
		return err
	}
	if f.print {
		if b.Count() > 1 {
			return usage("--print writes the scenario of one seed: write --seeds %d", b.From)
		}
		fmt.Fprint(l.out, v.draw(b.From))
		return nil
	}
	if f.keep != "" {
		if err := os.MkdirAll(f.keep, 0o755); err != nil {
			return usage("--keep needs a folder: %v", err)
		}
	}
	began := time.Now()
	t, last, err := l.playSwarm(v, b, list)
	if err != nil {
		return err
	}
	r := swarmResult{Seeds: b, venue: v, tally: t, wall: time.Since(began), cut: l.interrupted()}
	if f.time > 0 {
		r.To = last
	}
	r.unknown, r.known = t.Findings()
	if f.keep != "" {
		if err := l.keepAll(&r, f.keep, f.tries); err != nil {
			return err
		}
	}
	if f.json {
		return l.writeJSON(r.document(), r.exit())
	}
	l.tellSwarm(&r)
	return ended(r.exit())
}

// playSwarm plays the seeds of a batch, as many at once as its player can, until the time is over if there is a limit. last is the last seed of
// which something came.
func (l *cli) playSwarm(v *venue, b runner.Seeds, list []swarm.Entry) (t *swarm.Tally, last uint64, err error) {
	p := newProgress(l.err)
	defer p.clear()
	t = v.tally(list)
	stop := l.until(v.time)
	last = b.From
	var mu sync.Mutex
	var next atomic.Int64
	var lacking error
	wanted := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return lacking == nil && !stop()
	}
	var all sync.WaitGroup
	for range v.player.AtOnce() {
		all.Go(func() {
			for wanted() {
				i := int(next.Add(1) - 1)
				if i >= b.Count() {
					return
				}
				seed := b.From + uint64(i)
				o, err := v.playSeed(seed, stop)
				mu.Lock()
				if err != nil {
					lacking = err
					mu.Unlock()
					return
				}
				t.Add(seed, o)
				if !o.Cut {
					last = max(last, seed)
				}
				of := ""
				if v.time == 0 {
					of = " of " + runner.Number(uint64(b.Count()))
				}
				p.say(fmt.Sprintf("%s%s seeds, %s held", runner.Number(uint64(t.Runs)), of, runner.Number(uint64(t.Held))))
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if lack, ok := errors.AsType[*process.Lacking](lacking); ok {
		return nil, 0, &exit{runner.ExitLacking, lack.Error()}
	}
	return t, last, nil
}

// swarmResult is what came of a batch.
type swarmResult struct {
	runner.Seeds
	venue          *venue
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
	// Command shows it again; Again of Of runs of the small file broke alike.
	Command string `json:"command"`
	Again   int    `json:"again"`
	Of      int    `json:"of"`
	entry   swarm.Entry
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
	case len(r.unstruck()) > 0 || r.tally.Unknown > 0:
		return runner.ExitNotPlayed
	case r.cut:
		return runner.ExitInterrupted
	}
	return runner.ExitHeld
}

// keepAll shrinks what is new to files.
func (l *cli) keepAll(r *swarmResult, dir string, tries int) error {
	p := newProgress(l.err)
	defer p.clear()
	r.shrunk = map[*swarm.Finding]keptFile{}
	for _, f := range r.unknown {
		name := swarm.Name(f.First)
		o := r.venue.shrinking(tries)
		o.Stop, o.Tell = l.interrupted, func(tried, lines int) {
			p.say(fmt.Sprintf("seed %d: %d lines left after %d runs", f.First, lines, tried))
		}
		s, err := swarm.Shrink(name, r.venue.draw(f.First), f.First, o)
		if err != nil { // the cluster does not even start, or it held this time: the seed shows it
			p.clear()
			fmt.Fprintf(l.err, "seed %d was not shrunk: %v\n", f.First, err)
			continue
		}
		k := keptFile{File: filepath.Join(dir, name), Seed: s.Seed, Lines: s.Lines, From: s.From, Again: s.Again, Of: s.Of,
			entry: swarm.Entry{File: name, Seed: s.Seed, Invariant: s.Broken.Invariant, Cause: s.Broken.Cause}}
		k.Command = r.venue.again(k.File, k.Seed)
		if err := os.WriteFile(k.File, []byte(r.venue.shrunkText(s, fmt.Sprintf("seed %d of enilab swarm", f.First), k.Command)), 0o644); err != nil {
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
		if r.venue.on == "sim" {
			fmt.Fprint(l.out, "  it is not in the list of known violations;")
		} else {
			fmt.Fprint(l.out, " ")
		}
		fmt.Fprintf(l.out, " %s broke so: %s\n  cause: %s\n", runner.Count(f.Seeds, "seed"), seedList(f), f.Cause)
		if k, ok := r.shrunk[f]; ok {
			fmt.Fprintf(l.out, "  %s has %d of its %d lines: %s\n", k.File, k.Lines, k.From, k.Command)
			if r.venue.on == "sim" {
				fmt.Fprintf(l.out, "  for the list: %s\n", k.entry.Line())
			} else {
				fmt.Fprintf(l.out, "  %s\n", confirmed(k.Again, k.Of))
			}
		}
		name := swarm.Name(f.First)
		fmt.Fprintf(l.out, "again: %s > %s && %s\n", r.venue.print(f.First), name, r.venue.again(name, f.First))
	}
	for _, why := range r.tally.Whys {
		fmt.Fprintf(l.out, "%s  %s\n", colour(l.out, yellow, "unknown"), why)
	}
	for _, key := range r.unstruck() {
		fmt.Fprintf(l.out, "%s  %q, which the swarm draws, struck in no seed of %d\n", colour(l.out, red, "not played"), key, r.tally.Runs)
	}
	for _, f := range r.known {
		fmt.Fprintf(l.out, "known  %s: %s broke %q (%s)\n", f.Known.File, runner.Count(f.Seeds, "seed"), f.Invariant,
			seedList(f))
	}
	if r.venue.on == "sim" && r.Count() >= swarm.Enough {
		l.tellUnmet(r.tally.Unmet())
	}
	fmt.Fprintln(l.out, r.sum(l))
}

// tellUnmet says which verbs met no daemon in a condition.
func (l *cli) tellUnmet(unmet []swarm.Met) {
	for len(unmet) > 0 {
		c := unmet[0].Daemon
		var verbs []string
		for ; len(unmet) > 0 && unmet[0].Daemon == c; unmet = unmet[1:] {
			verbs = append(verbs, unmet[0].Verb)
		}
		fmt.Fprintf(l.out, "never while a daemon was %s: %s\n", c, strings.Join(verbs, ", "))
	}
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
	verbs, marks := t.Verbs(), len(t.Marks)+len(t.Unreached())
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
		s += fmt.Sprintf(", %s violated in %s and %s", runner.Number(uint64(n)),
			runner.Count(len(r.known), "known way"), runner.Count(len(r.unknown), "new one"))
	}
	if r.venue.on != "sim" {
		if t.Unknown > 0 {
			s += fmt.Sprintf(", nothing known of %s", runner.Count(t.Unknown, "run"))
		}
		return s + fmt.Sprintf("; %d of %d verbs; %s events in %s, %.1f scenarios a minute", verbs-len(t.Unstruck()), verbs, runner.Number(t.Events),
			runner.Short(r.wall), float64(t.Runs)/max(r.wall.Minutes(), 0.001))
	}
	met := verbs * len(virtual.Conditions())
	return s + fmt.Sprintf("; %d of %d verbs, %d of %d with a daemon in each condition, %d of %d coverage points; %s events in %s, %.0f scenarios a second", verbs-len(t.Unstruck()), verbs,
		met-len(t.Unmet()), met, marks-len(t.Unreached()), marks, runner.Number(t.Events), runner.Short(r.wall), float64(t.Runs)/max(r.wall.Seconds(), 0.001))
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
		fmt.Fprintf(l.out, "%s: %d as the list says, %d not\n", runner.Count(len(list), "known violation"),
			len(list)-bad, bad)
		return ended(runner.ExitViolated)
	}
	fmt.Fprintf(l.out, "%s, each as the list says\n", runner.Count(len(list), "known violation"))
	return nil
}

type swarmJSON struct {
	runner.Head
	In         string          `json:"in,omitempty"`
	CNI        string          `json:"cni,omitempty"`
	Kernel     string          `json:"kernel,omitempty"`
	Against    string          `json:"against,omitempty"`
	First      uint64          `json:"first"`
	Last       uint64          `json:"last"`
	Runs       int             `json:"runs"`
	Held       int             `json:"held"`
	Unknown    int             `json:"unknown"`
	Whys       []string        `json:"whys,omitempty"`
	Events     uint64          `json:"events"`
	Wall       float64         `json:"wall"`
	Violations []violationJSON `json:"violations"`
	Struck     map[string]int  `json:"struck"`
	Marks      map[string]int  `json:"marks"`
	Unstruck   []string        `json:"unstruck"`
	Unreached  []string        `json:"unreached"`
	Unmet      []swarm.Met     `json:"unmet,omitempty"` // in world sim
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
	d := &swarmJSON{Head: runner.Head{Enilab: "swarm/1", World: r.venue.on, Exit: r.exit()}, In: r.venue.in.String(),
		CNI: r.venue.cni, Kernel: r.venue.in.kernel, Against: r.venue.against, Unknown: t.Unknown, Whys: t.Whys,
		First: r.From, Last: r.To, Runs: t.Runs, Held: t.Held, Events: t.Events, Wall: r.wall.Seconds(),
		Violations: []violationJSON{}, Struck: t.Struck, Marks: t.Marks, Unstruck: append([]string{}, t.Unstruck()...),
		Unreached: append([]string{}, t.Unreached()...)}
	if r.venue.on == "sim" {
		d.Unmet = t.Unmet()
	}
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
