package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim"
	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
)

const pauseManual = `--pause-at T, with --on netns --in vm, stops everything for good at the instant T of the first scenario and variant that gets there, and gives
a shell in the machine: daemons, models, laboratory and clock stand still, namespaces, EC2's truth and the report so far are there to be looked at.
The same seed gets there again, and until then nothing is different from the run without --pause-at. On a terminal the shell is for people;
otherwise standard input is what it carries out. The exit code is 0 when the shell ends: the run is not judged to its end.`

// pauseFlag is --pause-at, and --branch-at.
type pauseFlag struct {
	given bool
	at    time.Duration
}

func (f *pauseFlag) String() string {
	if f == nil || !f.given {
		return ""
	}
	return f.at.String()
}

func (f *pauseFlag) Set(text string) error {
	at, err := time.ParseDuration(text)
	if err != nil || at < 0 {
		return errors.New("expected an instant of the scenario, such as 3m5s")
	}
	f.given, f.at = true, at
	return nil
}

func (*pauseFlag) Type() string { return "instant" }

// checkPause judges --pause-at beside the other flags and files.
func (f *runFlags) checkPause(names []string) error {
	if !f.pause.given {
		return nil
	}
	switch {
	case f.on != "netns" || !f.in.given:
		return usage("--pause-at stops a virtual machine: use it with --on netns --in vm (--keep leaves a laboratory up at its end on this machine itself)")
	case f.ranged:
		return usage("--pause-at stops one run: name a seed with --seed in place of --seeds")
	case f.twice:
		return usage("--pause-at gives one shell, and --twice is two machines: leave one of them out")
	case f.json:
		return usage("--pause-at gives a shell and no document: leave --json out")
	case f.clock == clockLeap:
		return usage("--pause-at stops the machine's own time, and --clock leap jumps over it: leave --clock out")
	}
	if slices.Contains(names, "-") {
		return usage("--pause-at reads the shell's commands from standard input: name the scenario's file in place of -")
	}
	return nil
}

// pauseWithin refuses an instant that none of the runs gets to.
func (f *runFlags) pauseWithin(cases []*runner.Case) error {
	if !f.pause.given {
		return nil
	}
	longest := time.Duration(0)
	for _, c := range cases {
		for i := range c.Variants {
			longest = max(longest, sim.EndOf(c.Variants[i].File))
		}
	}
	if f.pause.at > longest {
		return usage("--pause-at %s: no run gets there, the longest ends at %s", runner.Short(f.pause.at), runner.Short(longest))
	}
	return nil
}

// paused is where machines pause; nil: nowhere.
func (l *cli) paused(f *runFlags) *vm.Pause {
	if !f.pause.given {
		return nil
	}
	p := &vm.Pause{At: f.pause.at, Input: l.in, Term: os.Getenv("TERM")}
	if file, ok := l.in.(*os.File); ok && vm.IsTerminal(file) {
		p.Terminal = file
	}
	return p
}

// tellPaused says how a run ended that was paused, or that it never was.
func (m *machines) tellPaused(p *vm.Played) error {
	if m.f.pause.given && !p.Paused {
		return usage("--pause-at %s: the run was over before", runner.Short(m.f.pause.at))
	}
	if p.Paused {
		fmt.Fprintf(m.err, "the run was paused at %s and is not judged to its end\n", runner.Short(m.f.pause.at))
	}
	return nil
}

// pausable tells the machine that this runs in where the scenario is, and stands still when it wants that.
func (l *cli) pausable(f *runFlags, o *runner.Options, place *runner.Place, file func() *runner.Case) error {
	if f.inside == "" {
		return nil
	}
	scene, err := vm.OpenScene()
	if scene == nil || err != nil {
		return err
	}
	o.Opened = func(v *runner.Variant, w runner.World, r *sim.Run) func() {
		lab, ok := w.(*netnsworld.World)
		if !ok {
			return func() {}
		}
		over := make(chan struct{})
		c := file()
		if f.branch.given {
			f.branches(place, scene, v, lab, r)
		}
		scene.Runs(w.Now())
		go func() {
			select {
			case <-scene.Wanted():
				lab.Interject(func() { scene.Stand(func() (*vm.Places, error) { return f.tellScene(c, v, lab, r) }) })
			case <-over:
			}
		}()
		return func() {
			scene.Ends()
			close(over)
		}
	}
	return nil
}

// tellScene writes down what is known of a run that stands still.
func (f *runFlags) tellScene(c *runner.Case, v *runner.Variant, w *netnsworld.World, r *sim.Run) (*vm.Places, error) {
	out := runner.SoFar(v, w, r)
	word, rest := runner.Interrupted.String(), (&runner.Result{Case: c, Seed: f.seed, Status: runner.Interrupted, Runs: []runner.Outcome{out}}).Report()
	report := "paused" + strings.TrimPrefix(rest, word)
	for _, d := range r.Ahead() {
		report += fmt.Sprintf("ahead  at %s  line %d: %s\n", runner.Short(d.At), d.Pos.Line, strings.TrimSpace(c.File.Lines[d.Pos.Line-1].Raw))
	}
	enis, pods := []stillENI{}, []stillPod{}
	for _, e := range w.EC2.AllENIs() {
		s := stillENI{e, w.Named(string(e.ID)), e.Status.String(), (e.Created - w.Epoch()).Seconds(), 0}
		if e.Attachment != "" {
			s.AttachedAt = (e.AttachedAt - w.Epoch()).Seconds()
		}
		enis = append(enis, s)
	}
	for _, name := range w.Kube.Workloads() {
		for _, p := range w.Kube.Pods(name) {
			pods = append(pods, stillPod{p, p.Phase.String(), (p.Created - w.Epoch()).Seconds()})
		}
	}
	errs := []error{os.WriteFile(filepath.Join(vm.PauseFolder, "report.txt"), []byte(report), 0o644),
		os.WriteFile(filepath.Join(vm.PauseFolder, "timeline.txt"), []byte(w.Timeline()), 0o644),
		writeIndented("ec2.json", enis), writeIndented("pods.json", pods), w.WriteDown()}
	title := "paused at " + w.Now().String() + " of " + c.Name()
	if v.Name != "" {
		title += " (" + v.Name + ")"
	}
	p := &vm.Places{Title: fmt.Sprintf("%s, seed %d", title, f.seed)}
	for _, x := range w.Spaces() {
		p.List = append(p.List, vm.Place{Name: x.Name, Netns: x.Path, About: x.About})
	}
	return p, errors.Join(errs...)
}

// stillENI is an interface as it is; instants are seconds of the scenario.
type stillENI struct {
	ec2.ENI
	Name       string // as the timeline says it
	Status     string
	Created    float64
	AttachedAt float64 `json:",omitempty"`
}

// stillPod is a pod as the API server has it.
type stillPod struct {
	kube.Pod
	Phase   string
	Created float64
}

func writeIndented(name string, v any) error {
	return put(filepath.Join(vm.PauseFolder, name), func(w io.Writer) error { return indented(w, v) })
}
