package cli

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/mod/semver"

	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/swarm"
	"github.com/enilab/enilab/sim/swarm/process"
	"github.com/enilab/enilab/systems"
)

// venueFlags are where `enilab swarm` and `enilab shrink` play, what, and for how long.
type venueFlags struct {
	on, cni, against string
	in               machineFlag
	blind            bool
	time             time.Duration // of all runs together; 0: no limit
	limit            time.Duration // of one run
}

// runLimit is how long one run may take on this machine: scenarios for any CNI take seconds on a kernel, a minute or so in a virtual machine.
const runLimit = 10 * time.Minute

// dearTries is how many runs a shrinking may take where each costs seconds or a minute.
const dearTries = 60

var triesDoc = fmt.Sprintf("how many runs a shrinking may take (default %d, with --on netns %d)", swarm.MostTries, dearTries)

func (s *venueFlags) flags(c *cobra.Command) {
	s.on = "sim"
	c.Flags().Var(worldFlag{&s.on}, "on", "world to play in: sim (virtual time), netns (this machine's kernel; needs root on Linux)")
	c.Flags().Var(&s.in, "in", "with --on netns: vm or vm=KERNEL plays in virtual machines")
	c.Flags().StringVar(&s.cni, "cni", "", "with --on netns: the CNI to play, NAME@WHERE as enilab run has it (default our own)")
	c.Flags().BoolVar(&s.blind, "without-books", false, "with --on netns: judge our daemon from outside alone")
	c.Flags().StringVar(&s.against, "against", "", "play this mutant (enilab mutants lists them)")
	c.Flags().DurationVar(&s.time, "for", 0, "")
	c.Flags().DurationVar(&s.limit, "limit", runLimit, "with --on netns: how long one run may take, in this machine's time")
}

// venue is a place to play with its player.
type venue struct {
	*venueFlags
	player swarm.Player
	// tenant is the CNI that scenarios are drawn for; nil in virtual time, which draws for ours all that ours survives.
	tenant *swarm.CNI
}

// venue judges the flags and makes the player.
func (l *cli) venue(s *venueFlags) (*venue, error) {
	m, err := mutantOrNone(s.against)
	if err != nil {
		return nil, err
	}
	switch {
	case s.on != "sim" && s.on != "netns":
		return nil, usage("a swarm plays in world sim or netns: found --on %s", s.on)
	case s.on == "sim" && (s.in.given || s.cni != "" || s.blind || s.limit != runLimit):
		return nil, usage("--in, --cni, --without-books and --limit are for a kernel: use them with --on netns")
	case s.cni != "" && s.against != "":
		return nil, usage("--against plays one of our mutants: leave --cni out")
	case s.time < 0 || s.limit <= 0:
		return nil, usage("--for and --limit are durations, such as 10m")
	}
	v := &venue{venueFlags: s, player: &swarm.Sim{Cores: runtime.GOMAXPROCS(0), Against: m}}
	if s.on == "sim" {
		return v, nil
	}
	if v.tenant, err = l.tenant(s.cni); err != nil {
		return nil, err
	}
	p := &process.Player{On: s.on, Args: s.args(), Same: s.in.given, Many: 1, Within: s.limit}
	if s.in.given {
		p.Many = runtime.GOMAXPROCS(0)
	} else if err := netnsworld.Available(); err != nil {
		return nil, &exit{runner.ExitLacking, err.Error()}
	}
	if p.Program, err = os.Executable(); err != nil {
		return nil, &exit{runner.ExitLacking, err.Error()}
	}
	v.player = p
	return v, nil
}

// args are what `enilab run` gets to play there.
func (s *venueFlags) args() []string {
	out := []string{"--on", s.on}
	for _, x := range []struct{ flag, value string }{{"--in", s.in.String()}, {"--cni", s.cni},
		{"--against", s.against}} {
		if x.value != "" {
			out = append(out, x.flag, x.value)
		}
	}
	if s.blind {
		out = append(out, "--without-books")
	}
	return out
}

// tenant is the CNI that a flag names; "" is ours.
func (l *cli) tenant(name string) (*swarm.CNI, error) {
	if name == "" {
		return swarm.Ours(), nil
	}
	s, err := l.find(name)
	if err != nil {
		return nil, usage("--cni %v", err)
	}
	return cniOf(s), nil
}

// gcFrom is the first CNI specification with GC.
const gcFrom = "v1.1.0"

// cniOf is what a scenario that is drawn for a system has to know of it.
func cniOf(s *systems.System) *swarm.CNI {
	if s.Books {
		return swarm.Ours()
	}
	c := &swarm.CNI{Runtimes: swarm.Newer(), Daemon: s.Daemon != nil, Cloud: s.Daemon != nil && s.EC2.By != "none",
		Asks: s.Runtime.API != "" && s.Runtime.API != "none"}
	if s.Runtime.API == "docker" || s.Runtime.API == "cri-v1alpha2" {
		c.Runtimes = swarm.Older()
	}
	if v := s.Specification(); v != "" {
		c.GC = semver.Compare("v"+v, gcFrom) >= 0
	}
	if s.Daemon != nil {
		c.Settings = s.Daemon.Settings
	}
	return c
}

func (v *venue) draw(seed uint64) string {
	if v.tenant == nil {
		return swarm.Draw(seed)
	}
	return v.tenant.Draw(seed)
}

// tally is an empty one. Only what our own daemon breaks in virtual time has a list.
func (v *venue) tally(list []swarm.Entry) *swarm.Tally {
	if v.tenant == nil {
		return swarm.NewTally(list)
	}
	return swarm.TallyFor(v.tenant)
}

// playSeed plays one; a scenario that is refused before it runs is a mistake of the generator, and as bad as any. The error is that nothing can
// be played here.
func (v *venue) playSeed(seed uint64, stop func() bool) (*swarm.Outcome, error) {
	o, err := v.player.Play(swarm.Name(seed), v.draw(seed), seed, stop)
	if _, lacking := err.(*process.Lacking); lacking {
		return nil, err
	}
	if err != nil {
		o = &swarm.Outcome{Broken: &swarm.Broken{Invariant: swarm.Drawable, Cause: swarm.Cause(err.Error()), Text: err.Error()}}
	}
	return o, nil
}

// shrinking are the options of one; 0 tries are the usual number.
func (v *venue) shrinking(tries int) swarm.Options {
	o := swarm.Options{Tries: tries}
	if v.on == "sim" && v.against == "" {
		return o
	}
	if tries == 0 && v.on != "sim" {
		o.Tries = dearTries
	}
	o.Player, o.CNI, o.Together = v.player, v.tenant, func(n int, do func(i int)) {
		var all sync.WaitGroup
		for i := range n {
			all.Go(func() { do(i) })
		}
		all.Wait()
	}
	return o
}

// reader is a place for which files are read; nothing is opened there.
func (v *venue) reader() *runner.Place {
	if v.on == "sim" {
		return runner.Sim()
	}
	return &runner.Place{Name: v.on}
}

// again is the command that shows a run again.
func (v *venue) again(file string, seed uint64) string {
	if p, ok := v.player.(*process.Player); ok {
		return p.Again(file, seed)
	}
	against := ""
	if v.against != "" {
		against = " --against " + v.against
	}
	return fmt.Sprintf("enilab run %s --seed %d%s", file, seed, against)
}

// print is the command that writes a seed's scenario.
func (v *venue) print(seed uint64) string {
	s := "enilab swarm"
	if v.on != "sim" {
		s += " --on " + v.on
	}
	if v.cni != "" {
		s += " --cni " + v.cni
	}
	return fmt.Sprintf("%s --seeds %d --print", s, seed)
}

// shrunkText is a shrunk scenario under a headline that says what it shows.
func (v *venue) shrunkText(s *swarm.Shrunk, from, again string) string {
	headline := fmt.Sprintf("# %s\n# Shrunk from %s: %d lines of %d. It breaks with seed %d.\n", oneLine(brokenSentence(&s.Broken)), from, s.Lines, s.From, s.Seed)
	if v.on != "sim" {
		headline += "# Again: " + again + "\n"
	}
	return headline + s.Text
}

// confirmed says what came of playing a small scenario again.
func confirmed(again, of int) string {
	switch {
	case of == 0:
		return "it was not played again"
	case again == of:
		return fmt.Sprintf("played again, it broke alike %s of %d", runner.Count(again, "time"), of)
	}
	return fmt.Sprintf("played again, it broke alike only %s of %d", runner.Count(again, "time"), of)
}

// until is the end of a command: interrupted, or its time is over. No time is no limit.
func (l *cli) until(limit time.Duration) func() bool {
	if limit == 0 {
		return l.interrupted
	}
	end := time.Now().Add(limit)
	return func() bool { return l.interrupted() || time.Now().After(end) }
}

func brokenSentence(b *swarm.Broken) string {
	where := ""
	if b.Node > 0 {
		where = fmt.Sprintf(" on node-%d", b.Node)
	}
	return fmt.Sprintf("%q broke %s%s: %s", b.Invariant, runner.Instant(b.At), where, b.Text)
}
