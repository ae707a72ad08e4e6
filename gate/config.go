package gate

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

// Config is what a gate is asked for. From and To are enough.
type Config struct {
	From, To string // the versions before and after, as systems.Find knows them: NAME@WHERE
	// Scenarios are files; none: Change, or its shapes, and Incidents.
	Scenarios []string
	Shape     string        // file: a kubeconfig, or a list of nodes, pods and DaemonSets; Change has its shape
	Modes     []string      // in which Change is played too, see Modes
	Seeds     string        // such as 1-5; empty: 1
	Plays     []string      // that are played, beside Old; none: all
	Only      []string      // scenarios of those that would be played, without folder and ending; none: all
	NoFigures bool          // leave Load out
	NoDoubt   bool          // do not play what regressed with more seeds
	Baseline  string        // file: a Page as JSON, from which the old version's results are taken
	Allow     string        // file: accepted differences
	Cache     string        // folder of what was played before; empty: nothing is kept
	Out       string        // folder for each play's scenario and report; empty: they are not kept
	Kernel    string        // of the machines, see vm.Laboratory
	Program   string        // enilab, with ipamd and aws-cni beside it; empty: this program
	Limit     time.Duration // of one run, in this computer's time; 0: vm.Limit
	Timeout   time.Duration // of all; what was not played by then is told as that; 0: none

	Read    func(name string) ([]byte, error) // a scenario's file; nil: os.ReadFile
	Say     func(text string)                 // what takes long, and what a shape has left out; nil: nobody listens
	Tell    func(Progress)                    // one at a time; nil: nobody listens
	Verbose io.Writer                         // is told what each machine has taken; nil: nobody is
}

// Progress is a run that begins or has ended.
type Progress struct {
	Scenario string
	Play     Play
	Seed     uint64
	Done, Of int // runs
	Took     time.Duration
	Came     string // what came of it; empty: it begins
}

// Invalid is an error of what a gate was asked for, and Lacking one of what this computer lacks.
type (
	Invalid = vm.Invalid
	Lacking = vm.Lacking
)

func invalid(format string, args ...any) error { return &Invalid{Why: fmt.Sprintf(format, args...)} }

// How many seeds figures are taken with, the last of which only where it can change something (see Settled), and with how many more what
// regressed is played.
const (
	figureSeeds = 3
	doubtSeeds  = 2
)

// gating is a gate under way.
type gating struct {
	Config
	from, to *systems.System
	pair     Pair
	seeds    runner.Seeds
	files    []*file
	base     *Page
	allowed  []Acceptance
	began    time.Time
	stage    *stage
	results  []Result
	runs     map[runKey]*report.Run
	over     error // why nothing more is played; nil: nothing was left out
}

// file is a scenario with its plays.
type file struct {
	name    string // as the machine knows it
	short   string // as people do
	load    bool
	digest  string
	scripts []Script
}

// alone is the script of one version alone: what others that begin with it are until the change.
func (f *file) alone(system string) *Script {
	i := slices.IndexFunc(f.scripts, func(s Script) bool { return s.System == system })
	return &f.scripts[i]
}

// Run plays scenarios with two versions of a system, and with one after the other, and compares. It returns an
// *Invalid or a scn.ErrorList for what cannot be asked for, before anything is played, and a *Lacking for what this
// computer lacks. When ctx ends, the page holds what is known by then.
func Run(ctx context.Context, c Config) (*Page, error) {
	g := &gating{Config: c, began: time.Now(), runs: map[runKey]*report.Run{}}
	if g.Say == nil {
		g.Say = func(string) {}
	}
	if g.Tell == nil {
		g.Tell = func(Progress) {}
	}
	if g.Read == nil {
		g.Read = os.ReadFile
	}
	g.Seeds = cmp.Or(g.Seeds, "1")
	if err := g.prepare(ctx); err != nil {
		return nil, err
	}
	var err error
	if g.stage, err = g.open(); err != nil {
		return nil, err
	}
	defer g.stage.close()
	if g.base != nil && g.base.Key != g.key() {
		return nil, invalid("--baseline %s was played with another build of enilab or of %s, another kernel or "+
			"another emulator: figures cannot be compared; make a new one", g.Baseline, g.base.From)
	}
	if err := g.perform(ctx); err != nil {
		return nil, err
	}
	return g.page(), nil
}

// prepare judges what was asked for, and reads everything: nothing starts before all of it is well.
func (g *gating) prepare(ctx context.Context) (err error) {
	switch {
	case g.From == "" || g.To == "":
		return invalid("gate compares two versions: expected --from SYSTEM and --to SYSTEM, " +
			"such as --from amazon-vpc-cni-k8s@1.18.0 --to amazon-vpc-cni-k8s@1.23.0")
	case slices.ContainsFunc(g.Modes, func(m string) bool { return modes[m] == nil }):
		return invalid("--mode %s: there are %s", strings.Join(g.Modes, ","), strings.Join(Modes(), ", "))
	case slices.ContainsFunc(g.Plays, func(p string) bool { return !slices.Contains(PlayNames(), p) }):
		return invalid("--plays %s: there are %s", strings.Join(g.Plays, ","), strings.Join(PlayNames(), ", "))
	case g.Timeout < 0 || g.Limit < 0:
		return invalid("--timeout and --limit are durations, such as 40m")
	}
	if g.seeds, err = runner.ParseSeeds(g.Seeds); err != nil {
		return invalid("--seeds: %v", err)
	}
	if err := g.find(ctx); err != nil {
		return err
	}
	for _, dir := range []struct{ flag, name string }{{"--out", g.Out}, {"--cache", g.Cache}} {
		if dir.name == "" {
			continue
		}
		if err := os.MkdirAll(dir.name, 0o755); err != nil {
			return invalid("%s: %v", dir.flag, err)
		}
	}
	if err := g.load(ctx); err != nil {
		return err
	}
	for _, name := range g.Only {
		if !slices.ContainsFunc(g.files, func(f *file) bool { return f.short == name }) {
			return invalid("--only %s: nothing of that name would be played: there are %s", name,
				strings.Join(g.names(), ", "))
		}
	}
	if len(g.Only) > 0 {
		g.files = slices.DeleteFunc(g.files, func(f *file) bool { return !slices.Contains(g.Only, f.short) })
	}
	if err := g.readBaseline(); err != nil {
		return err
	}
	return g.readAllow()
}

func (g *gating) names() (out []string) {
	for _, f := range g.files {
		out = append(out, f.short)
	}
	return out
}

// find finds the two versions.
func (g *gating) find(ctx context.Context) error {
	for _, x := range []struct {
		flag, name string
		to         **systems.System
	}{{"--from", g.From, &g.from}, {"--to", g.To, &g.to}} {
		s, err := systems.Find(ctx, x.name, systems.Options{Tell: g.Say})
		if err != nil {
			return invalid("%s %v", x.flag, err)
		}
		*x.to = s
	}
	from, to := g.from, g.to
	if !systems.Ways(from, to) {
		return invalid("there is no way from %s to %s: neither description says that it replaces the other "+
			"(upgrade.replaces, see docs/systems.md)", from.Name, to.Name)
	}
	g.pair = Pair{From: canonical(from), To: canonical(to), Role: from.EC2.Role, Tokens: from.Metadata.Tokens}
	if !g.pair.Same() {
		return nil
	}
	one, err := digestOf(from)
	other, err2 := digestOf(to)
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if one != other {
		return invalid("--from and --to are both called %s, and their files differ: give one of them another "+
			"version, such as %s-1=FOLDER", g.pair.From, g.pair.To)
	}
	return nil
}

// canonical is what machines and scenarios call a system, and called what people do.
func canonical(s *systems.System) string { return s.Name + "@" + s.Version }
func called(s *systems.System) string    { return s.Name + " " + s.Version }

// source is a scenario before it is taken apart.
type source struct {
	name string
	data []byte
	load bool
}

// load reads the scenarios.
func (g *gating) load(ctx context.Context) error {
	var sources []source
	var errs scn.ErrorList
	for _, name := range g.Scenarios {
		data, err := g.Read(name)
		if err != nil {
			errs = append(errs, scn.Listed(name, err)...)
			continue
		}
		if name == "-" {
			name = "stdin.scn"
		}
		sources = append(sources, source{name: name, data: data})
	}
	own, err := g.own(ctx)
	if err != nil {
		return err
	}
	find := func(name string) error {
		_, err := systems.Find(ctx, name, systems.Options{Tell: g.Say})
		return err
	}
	place := &runner.Place{Name: "netns", Resolve: find}
	for _, s := range append(sources, own...) {
		c, err := runner.Load(place, s.name, s.data)
		if err != nil {
			errs = append(errs, scn.Listed(s.name, err)...)
			continue
		}
		scripts, err := g.scripts(c.File, s.load)
		if err != nil {
			errs = append(errs, scn.Listed(s.name, err)...)
			continue
		}
		g.files = append(g.files, &file{s.name, strings.TrimSuffix(filepath.Base(s.name), ".scn"), s.load,
			hashOf(s.data), scripts})
	}
	if len(errs) > 0 {
		return errs
	}
	return nil
}

// scripts are a scenario's plays. What another play would play too is the same text, which is played once. A load is
// played by each version alone.
func (g *gating) scripts(f *scn.File, load bool) ([]Script, error) {
	scripts, err := g.pair.Scripts(f, !load)
	if err != nil {
		return nil, err
	}
	for i, s := range scripts {
		if s.Play == UpgradeImage && alike(g.to, g.from) || s.Play == RollbackImage && alike(g.from, g.to) {
			scripts[i].Text, scripts[i].Change = scripts[i+1].Text, scripts[i+1].Change
		}
	}
	if load {
		scripts = scripts[:2]
	}
	return scripts, nil
}

// own are the gate's own scenarios that are played.
func (g *gating) own(ctx context.Context) (out []source, err error) {
	shape := &Shape{}
	if g.Shape != "" {
		if shape, err = readShape(ctx, g.Shape); err != nil {
			return nil, err
		}
		shaped, err := shape.sources(g.Shape)
		if err != nil {
			return nil, err
		}
		out = append(out, shaped...)
		for _, t := range shape.Types {
			g.Say(fmt.Sprintf("shape: %s of type %s, with up to %d pods each", runner.Count(t.Nodes, "node"), t.Type,
				t.Pods))
		}
		for _, n := range shape.Notes {
			g.Say("shape: " + n)
		}
	} else if len(g.Scenarios) == 0 {
		data, err := Files.ReadFile(Change)
		if err != nil {
			return nil, err
		}
		out = append(out, source{name: "gate/" + Change, data: data})
	}
	if len(g.Scenarios) == 0 {
		for _, name := range Incidents() {
			data, err := scenarios.Files.ReadFile(name)
			if err != nil {
				return nil, err
			}
			out = append(out, source{name: "scenarios/" + name, data: data})
		}
	}
	inModes, err := g.inModes()
	if out = append(out, inModes...); g.NoFigures || err != nil {
		return out, err
	}
	data, err := Files.ReadFile(Load)
	if err == nil && g.Shape != "" {
		data, err = shape.crowded(Load, data)
	}
	return append(out, source{"gate/" + Load, data, true}), err
}

// readShape reads a file of --shape: a list, or a kubeconfig, with which kubectl is asked for one.
func readShape(ctx context.Context, name string) (*Shape, error) {
	data, err := os.ReadFile(name)
	if err != nil {
		return nil, invalid("--shape: %v", err)
	}
	if !json.Valid(data) || bytes.Contains(data, []byte(`"clusters"`)) { // a kubeconfig, most of which are YAML
		const list = "get nodes,pods,daemonsets -A -o json"
		c := exec.CommandContext(ctx, "kubectl", append([]string{"--kubeconfig", name}, strings.Fields(list)...)...)
		var errs bytes.Buffer
		c.Stderr = &errs
		if data, err = c.Output(); errors.Is(err, exec.ErrNotFound) {
			return nil, &Lacking{Why: "--shape with a kubeconfig asks kubectl, which is not in PATH: install it, " +
				"or write kubectl " + list + " to a file elsewhere and name that"}
		} else if err != nil {
			return nil, invalid("--shape %s: kubectl %s: %v: %s", name, list, err, strings.TrimSpace(errs.String()))
		}
	}
	s, err := parseShape(data)
	if err != nil {
		return nil, invalid("--shape %s: %v", name, err)
	}
	return s, nil
}

// readAllow reads what somebody has accepted.
func (g *gating) readAllow() error {
	if g.Allow == "" {
		return nil
	}
	data, err := os.ReadFile(g.Allow)
	if err != nil {
		return invalid("--allow: %v", err)
	}
	if g.allowed, err = parseAllow(g.Allow, data); err != nil {
		return invalid("%v", err)
	}
	return nil
}

// readBaseline takes the old version's results of an earlier gate, if it was about the same.
func (g *gating) readBaseline() error {
	if g.Baseline == "" {
		return nil
	}
	data, err := os.ReadFile(g.Baseline)
	if err != nil {
		return invalid("--baseline: %v", err)
	}
	p := &Page{}
	if err := json.Unmarshal(data, p); err != nil || p.Enilab != Format {
		return invalid("--baseline %s: expected what enilab gate --json wrote (%s), found something else", g.Baseline,
			Format)
	}
	if want := called(g.from); p.From != want {
		return invalid("--baseline %s is of %s, and --from is %s: leave it out, or make one with this version",
			g.Baseline, p.From, want)
	}
	if d := differsIn(g.scenarios(), p.Scenarios); d != "" {
		return invalid("--baseline %s is of another set of scenarios: %s: leave it out, or make one with these",
			g.Baseline, d)
	}
	g.base = p
	return nil
}

func (g *gating) scenarios() (out []Scenario) {
	for _, f := range g.files {
		out = append(out, Scenario{f.short, f.digest})
	}
	return out
}

// differsIn is the first thing that only one of two lists has.
func differsIn(want, have []Scenario) string {
	for _, w := range want {
		if !slices.Contains(have, w) {
			return w.Name + " is not in it, or is another text there"
		}
	}
	for _, h := range have {
		if !slices.Contains(want, h) {
			return "it has " + h.Name
		}
	}
	return ""
}

// again is the command that plays one play, beside the old version alone: the same scenario, systems and seed make the
// same machine.
func (g *gating) again(short string, play Play, seed uint64) string {
	args := []string{"gate", "--from", g.From, "--to", g.To}
	if g.Kernel != "" {
		args = append(args, "--in", "vm="+g.Kernel)
	}
	if g.Shape != "" {
		args = append(args, "--shape", g.Shape)
	}
	if len(g.Modes) > 0 {
		args = append(args, "--mode", strings.Join(g.Modes, ","))
	}
	args = append(args, "--plays", string(play), "--seeds", strconv.FormatUint(seed, 10), "--only", short,
		"--no-doubt")
	return report.CommandLine(append(args, g.Scenarios...))
}
