package cli

import (
	"bytes"
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

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/systems"
)

// gateFlags are what `enilab gate` was asked for.
type gateFlags struct {
	from, to  string
	in        machineFlag
	seeds     string
	baseline  string
	allow     string
	json      string
	cache     string
	out       string
	timeout   time.Duration // of all
	machine   time.Duration // of one run
	noFigures bool
	plays     []string // empty: all
	only      []string // scenarios, by what people call them; empty: all
	noDoubt   bool
	shape     string
	reports   reports

	recordings, then string
}

// jsonFile is the file that --json names; empty: none.
func (f *gateFlags) jsonFile() string {
	if f.json == "-" {
		return ""
	}
	return f.json
}

// How many seeds figures are taken with, and with how many more what regressed is played.
const (
	figureSeeds = 3
	doubtSeeds  = 2
)

func (l *cli) gateCommand() *cobra.Command {
	var f gateFlags
	c := &cobra.Command{
		Use:   "gate --from SYSTEM --to SYSTEM [FILE...]",
		Short: "says what an upgrade from one version of a CNI to another breaks",
		Long: `gate plays scenarios with the old version and with the new one, upgraded in the middle and rolled back in the middle, each of these with the
image alone (old environment and manifest kept, as kubectl set image does) and with the manifest. It is red when something held with the old version
and does not with the new one, in the change or after it, or when a figure is beyond its band; and says which plays went red, and what is mended.

SYSTEM is NAME@WHERE (enilab systems lists them). Without FILE it plays its own scenario of what every upgrade meets, the five incidents from which
this laboratory began, and a load with three seeds for figures. A scenario says by a line such as "vary change=5m" when the version changes; else it is
done in a quiet place next to its middle. Everything runs in virtual machines, as many at once as there are cores, without root, and repeats.

What does not change is not played again: --cache keeps what came of a run, by the bytes of everything that was in its machine.

Exit codes: 0 not red, 1 red, 2 bad input, 3 this machine lacks something, 5 not known (something was not played), 130 interrupted.
docs/gate.md says more.

With --recordings it plays nothing: it steps each recording of our own daemon in a folder with this build, and lists the first decision of each that differs,
by kind, with the input that led there. --then names the enilab of the version that recorded, which says what was decided then.

` + reportManual,
		Example: `  enilab gate --from amazon-vpc-cni-k8s@1.18.0 --to amazon-vpc-cni-k8s@1.23.0
  enilab gate --from amazon-vpc-cni-k8s@1.23.0 --to enilab scenarios/drift.scn
  enilab gate --from my-cni@1.0.0 --to my-cni@1.1.0=./bin --json gate.json
  enilab gate --from my-cni@1.0.0 --to my-cni@1.2.0=./bin --baseline gate.json --allow accepted.yaml
  enilab gate --recordings /var/log/aws-routed-eni --then ./enilab-0.1.0`,
		RunE: func(c *cobra.Command, args []string) error {
			if c.Flags().Changed("recordings") || f.then != "" {
				return l.gateRecordings(c, &f, args)
			}
			return l.gate(&f, args)
		},
	}
	f.flags(c)
	return c
}

func (f *gateFlags) flags(c *cobra.Command) {
	f.in.given = true
	c.Flags().StringVar(&f.from, "from", "", "the version before, NAME@WHERE")
	c.Flags().StringVar(&f.to, "to", "", "the version after, NAME@WHERE")
	c.Flags().Var(&f.in, "in", "vm plays in virtual machines; vm=KERNEL names a vmlinuz or a Debian kernel package")
	c.Flags().StringVar(&f.seeds, "seeds", "1", "play every scenario with every seed of this range, such as 1-5")
	c.Flags().StringVar(&f.baseline, "baseline", "", "take the old version's results from what an earlier gate wrote with --json")
	c.Flags().StringVar(&f.allow, "allow", "", "accepted differences, as YAML: check, reason, and perhaps scenario and play")
	c.Flags().StringVar(&f.json, "json", "", "write all that was found to this file too; - is standard output, in place of the text")
	c.Flags().StringVar(&f.cache, "cache", "", "folder of what was played before; - keeps nothing (default enilab/gate in the user's cache folder)")
	f.reports.flags(c)
	c.Flags().StringVar(&f.out, "out", "", "write every play's scenario and report into this folder")
	c.Flags().DurationVar(&f.timeout, "timeout", 0, "how long all may take; what was not played by then is told as that (default no limit)")
	c.Flags().DurationVar(&f.machine, "limit", machineTimeout, "how long one run may take")
	c.Flags().StringVar(&f.shape, "shape", "", "play the gate's own scenario in the shape of a cluster: a kubeconfig, which kubectl is asked with, or what kubectl get nodes,pods,daemonsets -A -o json wrote")
	c.Flags().StringSliceVar(&f.plays, "plays", nil, "play only these, and old: "+strings.Join(gate.PlayNames(), ", "))
	c.Flags().StringSliceVar(&f.only, "only", nil, "play only these scenarios of those that it would play, by name without folder and ending")
	c.Flags().BoolVar(&f.noDoubt, "no-doubt", false, "do not play what regressed with more seeds")
	c.Flags().StringVar(&f.recordings, "recordings", "", "step the recordings of this folder with this build, and play nothing")
	c.Flags().StringVar(&f.then, "then", "", "with --recordings: the enilab of the version that recorded")
	c.Flags().BoolVar(&f.noFigures, "no-figures", false, "leave the load out, and with it latencies, calls and memory")
}

// gating is a gate under way.
type gating struct {
	*cli
	f        *gateFlags
	from, to *systems.System
	pair     gate.Pair
	seeds    runner.Seeds
	names    []string // of the files that were named
	files    []*gateFile
	base     *gate.Page
	began    time.Time
	stage    *gateStage
	results  []gate.Result
	runs     map[runKey]*report.Run
	// over is why nothing more is played; nil: nothing was left out.
	over error
}

// gateFile is a scenario with its plays.
type gateFile struct {
	name    string // as the machine knows it
	short   string // as people do
	load    bool
	digest  string
	scripts []gate.Script
}

func (l *cli) gate(f *gateFlags, names []string) error {
	g := &gating{cli: l, f: f, began: time.Now(), runs: map[runKey]*report.Run{}}
	if err := g.prepare(names); err != nil {
		return err
	}
	if err := g.readBaseline(); err != nil {
		return err
	}
	allowed, err := g.allowed()
	if err != nil {
		return err
	}
	if g.stage, err = l.openStage(f, g.from, g.to); err != nil {
		return l.machineError(err)
	}
	defer g.stage.close()
	if g.base != nil && g.base.Key != g.stage.key {
		return usage("--baseline %s was played with another build of enilab or of %s, another kernel or another emulator: figures cannot be compared; make a new one", f.baseline, g.base.From)
	}
	if err := g.perform(); err != nil {
		return l.machineError(err)
	}
	return g.conclude(allowed)
}

// prepare judges what was asked for, and reads everything: nothing starts before all of it is well.
func (g *gating) prepare(names []string) error {
	f := g.f
	switch {
	case f.from == "" || f.to == "":
		return usage("gate compares two versions: expected --from SYSTEM and --to SYSTEM, such as --from amazon-vpc-cni-k8s@1.18.0 --to amazon-vpc-cni-k8s@1.23.0")
	case slices.ContainsFunc(f.plays, func(p string) bool { return !slices.Contains(gate.PlayNames(), p) }):
		return usage("--plays %s: there are %s", strings.Join(f.plays, ","), strings.Join(gate.PlayNames(), ", "))
	case f.timeout < 0 || f.machine <= 0:
		return usage("--timeout and --limit are durations, such as 40m")
	}
	var err error
	if g.from, err = g.find(f.from); err != nil {
		return usage("--from %v", err)
	}
	if g.to, err = g.find(f.to); err != nil {
		return usage("--to %v", err)
	}
	if !systems.Ways(g.from, g.to) {
		return usage("there is no way from %s to %s: neither description says that it replaces the other (upgrade.replaces, see docs/systems.md)", g.from.Name, g.to.Name)
	}
	g.pair = gate.Pair{From: canonical(g.from), To: canonical(g.to), Role: g.from.EC2.Role, Tokens: g.from.Metadata.Tokens}
	a, err := digestOf(g.from)
	if err != nil {
		return usage("--from %v", err)
	}
	b, err := digestOf(g.to)
	if err != nil {
		return usage("--to %v", err)
	}
	if g.pair.Same() && a != b {
		return usage("--from and --to are both called %s, and their files differ: give one of them another version, such as %s=FOLDER", g.pair.From, nextVersion(g.to))
	}
	s := runFlags{seeds: f.seeds, ranged: true}
	if g.seeds, err = s.seedRange(); err != nil {
		return err
	}
	if f.out != "" {
		if err := os.MkdirAll(f.out, 0o755); err != nil {
			return usage("--out: %v", err)
		}
	}
	if err := f.reports.check(names, output{"--json", f.jsonFile()}); err != nil {
		return err
	}
	g.names = names
	if err := g.load(names); err != nil {
		return err
	}
	return g.narrow()
}

// narrow leaves out what --only does not name.
func (g *gating) narrow() error {
	if len(g.f.only) == 0 {
		return nil
	}
	var there []string
	for _, f := range g.files {
		there = append(there, f.short)
	}
	for _, name := range g.f.only {
		if !slices.Contains(there, name) {
			return usage("--only %s: nothing of that name would be played: there are %s", name, strings.Join(there, ", "))
		}
	}
	g.files = slices.DeleteFunc(g.files, func(f *gateFile) bool { return !slices.Contains(g.f.only, f.short) })
	return nil
}

// again is the command that plays one play, beside the old version alone: the same scenario, systems and seed make the same machine.
func (g *gating) again(short string, play gate.Play, seed uint64) string {
	args := []string{"gate", "--from", g.f.from, "--to", g.f.to}
	if g.f.in.kernel != "" {
		args = append(args, "--in", g.f.in.String())
	}
	if g.f.shape != "" {
		args = append(args, "--shape", g.f.shape)
	}
	args = append(args, "--plays", string(play), "--seeds", strconv.FormatUint(seed, 10), "--only", short, "--no-doubt")
	return commandLine(append(args, g.names...))
}

// canonical is what machines and scenarios call a system.
func canonical(s *systems.System) string { return s.Name + "@" + s.Version }

// nextVersion is an example of a name that is free.
func nextVersion(s *systems.System) string { return s.Name + "@" + s.Version + "-1" }

// load reads the scenarios.
func (g *gating) load(names []string) error {
	type source struct {
		name, short string
		data        []byte
		load        bool
	}
	var sources []source
	var shape *gate.Shape
	own := func(name string, load bool) error {
		data, err := gate.Files.ReadFile(name)
		if err == nil && shape != nil {
			var f *scn.File
			if f, err = scn.Parse(name, data); err == nil {
				data = []byte(shape.Crowded(f).String())
			}
		}
		sources = append(sources, source{"gate/" + name, strings.TrimSuffix(name, ".scn"), data, load})
		return err
	}
	var errs scn.ErrorList
	for _, name := range names {
		data, err := g.read(name)
		if err != nil {
			errs = append(errs, listed(name, err)...)
			continue
		}
		if name == "-" {
			name = "stdin.scn"
		}
		sources = append(sources, source{name, strings.TrimSuffix(filepath.Base(name), ".scn"), data, false})
	}
	switch {
	case g.f.shape != "":
		var shaped map[string][]byte
		var err error
		if shape, shaped, err = g.shaped(); err != nil {
			return err
		}
		for name, data := range shaped {
			sources = append(sources, source{"gate/" + name + ".scn", name, data, false})
		}
		slices.SortFunc(sources, func(a, b source) int { return strings.Compare(a.name, b.name) })
	case len(names) == 0:
		if err := own(gate.Change, false); err != nil {
			return err
		}
	}
	if len(names) == 0 {
		for _, name := range gate.Incidents() {
			data, err := scenarios.Files.ReadFile(name)
			if err != nil {
				return err
			}
			sources = append(sources, source{"scenarios/" + name, strings.TrimSuffix(name, ".scn"), data, false})
		}
	}
	if !g.f.noFigures {
		if err := own(gate.Load, true); err != nil {
			return err
		}
	}
	place := &runner.Place{Name: "netns", Resolve: func(name string) error { _, err := g.find(name); return err }}
	for _, s := range sources {
		c, err := runner.Load(place, s.name, s.data)
		if err != nil {
			errs = append(errs, listed(s.name, err)...)
			continue
		}
		scripts, err := g.pair.Scripts(c.File, !s.load)
		if err != nil {
			errs = append(errs, listed(s.name, err)...)
			continue
		}
		for i, one := range scripts { // what another play would play too is played once
			if one.Play == gate.UpgradeImage && alike(g.to, g.from) || one.Play == gate.RollbackImage && alike(g.from, g.to) {
				scripts[i].Text, scripts[i].Change = scripts[i+1].Text, scripts[i+1].Change
			}
		}
		if s.load {
			scripts = scripts[:2]
		}
		g.files = append(g.files, &gateFile{s.name, s.short, s.load, hashOf(s.data), scripts})
	}
	if len(errs) > 0 {
		return g.refuse(errs)
	}
	return nil
}

// shaped is the gate's own scenario on nodes such as a cluster has, one for each instance type.
func (g *gating) shaped() (*gate.Shape, map[string][]byte, error) {
	data, err := os.ReadFile(g.f.shape)
	if err != nil {
		return nil, nil, usage("--shape: %v", err)
	}
	if !json.Valid(data) || bytes.Contains(data, []byte(`"clusters"`)) { // a kubeconfig, most of which are YAML
		const list = "get nodes,pods,daemonsets -A -o json"
		c := exec.CommandContext(g.context(), "kubectl", append([]string{"--kubeconfig", g.f.shape}, strings.Fields(list)...)...)
		var errs bytes.Buffer
		c.Stderr = &errs
		if data, err = c.Output(); errors.Is(err, exec.ErrNotFound) {
			return nil, nil, &exit{runner.ExitLacking, "--shape with a kubeconfig asks kubectl, which is not in PATH: install it, or write kubectl " + list + " to a file elsewhere and name that"}
		} else if err != nil {
			return nil, nil, usage("--shape %s: kubectl %s: %v: %s", g.f.shape, list, err, strings.TrimSpace(errs.String()))
		}
	}
	s, err := gate.ParseShape(data)
	if err != nil {
		return nil, nil, usage("--shape %s: %v", g.f.shape, err)
	}
	text, err := gate.Files.ReadFile(gate.Change)
	if err != nil {
		return nil, nil, err
	}
	f, err := scn.Parse(gate.Change, text)
	if err != nil {
		return nil, nil, err
	}
	out := map[string][]byte{}
	for _, t := range s.Types {
		h, err := s.Shaped(f, t)
		if err != nil {
			return nil, nil, usage("--shape %s: %v", g.f.shape, err)
		}
		fmt.Fprintf(g.err, "shape: %s of type %s, with up to %d pods each\n", plural(t.Nodes, "node"), t.Type, t.Pods)
		out["change-"+t.Type] = []byte(h.String())
	}
	for _, n := range s.Notes {
		fmt.Fprintln(g.err, "shape: "+n)
	}
	return s, out, nil
}

// alike says whether a system has the same from another's manifest as from its own: then a change of the image alone is like one of both.
func alike(s, old *systems.System) bool {
	strip := func(s *systems.System) string {
		if s.Manifest == nil {
			return ""
		}
		m := *s.Manifest
		m.File, m.From, m.Image, m.Notes = "", "", "", nil
		m.Init = slices.Clone(m.Init)
		for i := range m.Init {
			m.Init[i].Image = ""
		}
		data, err := json.Marshal(m)
		if err != nil {
			return err.Error()
		}
		return string(data)
	}
	return strip(s) == strip(s.WithManifest(old))
}

func (g *gating) allowed() ([]gate.Acceptance, error) {
	if g.f.allow == "" {
		return nil, nil
	}
	data, err := os.ReadFile(g.f.allow)
	if err != nil {
		return nil, usage("--allow: %v", err)
	}
	list, err := gate.ParseAllow(g.f.allow, data)
	if err != nil {
		return nil, usage("%v", err)
	}
	return list, nil
}

// readBaseline takes the old version's results of an earlier gate, if it was about the same.
func (g *gating) readBaseline() error {
	if g.f.baseline == "" {
		return nil
	}
	data, err := os.ReadFile(g.f.baseline)
	if err != nil {
		return usage("--baseline: %v", err)
	}
	p := &gate.Page{}
	if err := json.Unmarshal(data, p); err != nil || p.Enilab != gate.Format {
		return usage("--baseline %s: expected what enilab gate --json wrote (%s), found something else", g.f.baseline, gate.Format)
	}
	if want := named(g.from); p.From != want {
		return usage("--baseline %s is of %s, and --from is %s: leave it out, or make one with this version", g.f.baseline, p.From, want)
	}
	var have, want []string
	for _, s := range p.Scenarios {
		have = append(have, s.Name+" "+s.Digest)
	}
	for _, f := range g.files {
		want = append(want, f.short+" "+f.digest)
	}
	if d := differsIn(want, have); d != "" {
		return usage("--baseline %s is of another set of scenarios: %s: leave it out, or make one with these", g.f.baseline, d)
	}
	g.base = p
	return nil
}

func named(s *systems.System) string { return s.Name + " " + s.Version }

// differsIn is the first thing that only one of two lists has.
func differsIn(want, have []string) string {
	for _, w := range want {
		if !slices.Contains(have, w) {
			name, _, _ := strings.Cut(w, " ")
			return name + " is not in it, or is another text there"
		}
	}
	for _, h := range have {
		if !slices.Contains(want, h) {
			name, _, _ := strings.Cut(h, " ")
			return "it has " + name
		}
	}
	return ""
}

// errTime is that --timeout is over.
var errTime = errors.New("the time that --timeout gives was over")

// perform plays everything, and what regressed with more seeds.
func (g *gating) perform() error {
	ctx := g.context()
	if g.f.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, g.f.timeout, errTime)
		defer cancel()
	}
	if err := g.play(ctx, g.jobs()); err != nil {
		return err
	}
	if g.pair.Same() || g.f.noDoubt {
		return nil
	}
	var more []gateJob
	v := gate.Compare(g.plain())
	for _, f := range g.files {
		plays := v.Doubtful(f.short)
		for i := range doubtSeeds {
			for j := range f.scripts {
				if !f.load && slices.Contains(plays, f.scripts[j].Play) {
					more = append(more, gateJob{f, &f.scripts[j], g.seeds.To + 1 + uint64(i)})
				}
			}
		}
	}
	return g.play(ctx, more)
}

// jobs are all that was asked for.
func (g *gating) jobs() (todo []gateJob) {
	for _, f := range g.files {
		seeds := g.seeds
		if f.load {
			seeds = runner.Seeds{From: g.seeds.From, To: g.seeds.From + figureSeeds - 1}
		}
		for i := range seeds.Count() {
			for j := range f.scripts {
				if p := f.scripts[j].Play; len(g.f.plays) > 0 && p != gate.Old && !slices.Contains(g.f.plays, string(p)) {
					continue
				}
				todo = append(todo, gateJob{f, &f.scripts[j], seeds.From + uint64(i)})
			}
		}
	}
	return todo
}

// plain are the results that are no load's.
func (g *gating) plain() (out []gate.Result) {
	for _, r := range g.results {
		if !g.isLoad(r.Scenario) {
			out = append(out, r)
		}
	}
	return out
}

func (g *gating) isLoad(short string) bool {
	return slices.ContainsFunc(g.files, func(f *gateFile) bool { return f.load && f.short == short })
}

// conclude compares, tells, and ends with the exit code.
func (g *gating) conclude(allowed []gate.Acceptance) error {
	var loads []gate.Result
	for _, r := range g.results {
		if g.isLoad(r.Scenario) {
			loads = append(loads, r)
		}
	}
	v := gate.Compare(g.results)
	if v.Figures = gate.Measure(loads); v.Figures == nil && !g.f.noFigures && len(loads) > 0 {
		v.Notes = append(v.Notes, "figures were not compared: one of the versions did not carry the load with any seed")
	}
	v.Accept(allowed, g.f.allow)
	for i := range v.Findings {
		if f := &v.Findings[i]; len(f.Plays) > 0 {
			f.Again = g.again(f.Scenario, f.Plays[0], f.Seed)
		}
	}
	p := &gate.Page{Enilab: gate.Format, From: named(g.from), To: named(g.to), Verdict: v, Results: g.results, Key: g.stage.key, Took: time.Since(g.began).Round(time.Second),
		Given:       given(map[string]*systems.System{g.f.from: g.from, g.f.to: g.to}),
		Interrupted: g.over != nil && !errors.Is(g.over, errTime), Command: commandLine(g.args)}
	for _, f := range g.files {
		p.Scenarios = append(p.Scenarios, gate.Scenario{Name: f.short, Digest: f.digest})
	}
	o := p.Outcome()
	p.Red, p.Word, p.Exit = o.Level == gate.Bad, o.Word, o.Exit
	if err := g.f.reports.write(g.reportOf(p)); err != nil {
		return err
	}
	if err := g.tell(p); err != nil {
		return err
	}
	return ended(p.Exit)
}

func (g *gating) tell(p *gate.Page) error {
	if g.f.json == "-" {
		return g.writeJSON(p, runner.ExitHeld)
	}
	if name := g.f.jsonFile(); name != "" {
		if err := put(name, func(w io.Writer) error { return indented(w, p) }); err != nil {
			return &exit{runner.ExitLacking, "write --json: " + err.Error()}
		}
	}
	err := p.Write(g.out, func(word string, l gate.Level) string {
		return colour(g.out, map[gate.Level]string{gate.Good: green, gate.Warn: yellow, gate.Bad: red}[l], word)
	})
	if err != nil {
		return &exit{runner.ExitLacking, err.Error()}
	}
	played, cached := g.stage.counts()
	fmt.Fprintf(g.out, "\n%s played, %d taken from before, %v\n", plural(played, "run"), cached, p.Took)
	g.named(&g.f.reports)
	return nil
}
