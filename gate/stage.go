package gate

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

// stage is where a gate's plays are played: a laboratory for each system that they begin with, and what is known of
// earlier plays.
type stage struct {
	labs   map[string]*vm.Laboratory // by the system in it
	prints map[string]string         // of their bytes
	later  map[string]string         // of the systems that may come later, by their name

	mu             sync.Mutex
	played, cached int
}

// open makes the laboratories.
func (g *gating) open() (*stage, error) {
	s := &stage{labs: map[string]*vm.Laboratory{}, prints: map[string]string{}, later: map[string]string{}}
	both := map[string]*systems.System{g.pair.From: g.from, g.pair.To: g.to}
	for _, name := range slices.Sorted(maps.Keys(both)) {
		lab := &vm.Laboratory{Kernel: g.Kernel, Program: g.Program, Timeout: g.Limit, Verbose: g.Verbose,
			Systems: map[string]*systems.System{name: both[name]}, Later: maps.Clone(both)}
		delete(lab.Later, name)
		err := lab.Open()
		s.labs[name] = lab
		if err == nil {
			s.prints[name], err = lab.Fingerprint()
		}
		if err == nil {
			s.later[name], err = digestOf(both[name])
		}
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
	}
	return s, nil
}

func (s *stage) close() (err error) {
	for _, lab := range s.labs {
		err = errors.Join(err, lab.Close())
	}
	return err
}

// key says what the plays of the old version alone rest on.
func (g *gating) key() string { return g.stage.prints[g.pair.From] }

// count counts a run.
func (s *stage) count(what *int) {
	s.mu.Lock()
	*what++
	s.mu.Unlock()
}

// job is one run of a gate.
type job struct {
	file   *file
	script *Script
	seed   uint64
}

// trunk is what of a run it shares with others: all but what happens from the change on. Of a load nothing is shared.
type trunk struct {
	file   *file
	system string
	seed   uint64
}

func (j *job) trunk() trunk { return trunk{j.file, j.script.System, j.seed} }

// keyOf is a digest of all that a run rests on.
func (s *stage) keyOf(j *job) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%s\n%d\n%s\n%s", Format, s.prints[j.script.System], s.later[j.script.Later],
		j.script.System, j.seed, j.file.name, j.script.Text)
	return fmt.Sprintf("%x", h.Sum(nil))
}

// errTime is that Config.Timeout is over.
var errTime = errors.New("the time that --timeout gives was over")

// perform plays everything, and what regressed with more seeds.
func (g *gating) perform(ctx context.Context) error {
	if g.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, g.Timeout, errTime)
		defer cancel()
	}
	if err := g.play(ctx, g.jobs()); err != nil {
		return err
	}
	var more []job
	for _, f := range g.files {
		if f.load && !Settled(g.of(f)) {
			more = append(more, g.with(f, figureSeeds-1)...)
		}
	}
	if !g.pair.Same() && !g.NoDoubt {
		more = append(more, g.doubtful()...)
	}
	return g.play(ctx, more)
}

// of are the results of a scenario.
func (g *gating) of(f *file) (out []Result) {
	for _, r := range g.results {
		if r.Scenario == f.short {
			out = append(out, r)
		}
	}
	return out
}

// doubtful is what regressed, with more seeds.
func (g *gating) doubtful() (more []job) {
	var plain []Result
	for _, r := range g.results {
		if !g.isLoad(r.Scenario) {
			plain = append(plain, r)
		}
	}
	v := Compare(plain)
	for _, f := range g.files {
		plays := v.Doubtful(f.short)
		for i := range doubtSeeds {
			for j := range f.scripts {
				if !f.load && slices.Contains(plays, f.scripts[j].Play) {
					more = append(more, job{f, &f.scripts[j], g.seeds.To + 1 + uint64(i)})
				}
			}
		}
	}
	return more
}

// jobs are all that was asked for.
func (g *gating) jobs() (todo []job) {
	for _, f := range g.files {
		n := g.seeds.Count()
		if f.load {
			n = figureSeeds - 1 // see Settled
		}
		for i := range n {
			todo = append(todo, g.with(f, i)...)
		}
	}
	return todo
}

// with are a scenario's plays that were asked for, with one seed: the i-th, from 0 on.
func (g *gating) with(f *file, i int) (todo []job) {
	for j := range f.scripts {
		if p := f.scripts[j].Play; len(g.Plays) == 0 || p == Old || slices.Contains(g.Plays, string(p)) {
			todo = append(todo, job{f, &f.scripts[j], g.seeds.From + uint64(i)})
		}
	}
	return todo
}

func (g *gating) isLoad(short string) bool {
	return slices.ContainsFunc(g.files, func(f *file) bool { return f.load && f.short == short })
}

// play plays jobs, as many at once as there are cores. The error is that nothing can be played on this machine; that
// it was ended early is no error.
func (g *gating) play(ctx context.Context, jobs []job) error {
	results := make([][]Result, len(jobs))
	done := 0
	tell := func(i int, came []Result) {
		j, text := &jobs[i], ""
		if came != nil {
			results[i], text = came, briefly(came)
			done++
		}
		g.Tell(Progress{j.file.short, j.script.Play, j.seed, done, len(jobs), time.Since(g.began), text})
	}
	var order []trunk
	keys := map[trunk][]string{} // of the runs that share it
	of := map[string][]int{}     // jobs that are the same run
	for i := range jobs {
		if r := g.inBaseline(&jobs[i]); r != nil {
			tell(i, r)
			continue
		}
		key, t := g.stage.keyOf(&jobs[i]), jobs[i].trunk()
		if of[key] == nil {
			if keys[t] == nil {
				order = append(order, t)
			}
			keys[t] = append(keys[t], key)
		}
		of[key] = append(of[key], i)
	}
	stop, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	cores := make(chan struct{}, runtime.GOMAXPROCS(0))
	var mu sync.Mutex // guards done, results and g.runs
	one := func(b *lazyTrunk, key string) {
		cores <- struct{}{}
		defer func() { <-cores }()
		if stop.Err() != nil {
			return
		}
		same := of[key]
		mu.Lock()
		tell(same[0], nil)
		mu.Unlock()
		c, err := g.run(stop, &jobs[same[0]], key, b)
		mu.Lock()
		for _, i := range same {
			if c != nil {
				err = errors.Join(err, g.keep(&jobs[i], c))
				tell(i, g.take(c, &jobs[i]))
			}
		}
		mu.Unlock()
		if err != nil {
			fail(err)
		}
	}
	todo := make(chan trunk, len(order))
	for _, t := range order {
		todo <- t
	}
	close(todo)
	var workers sync.WaitGroup
	for range min(len(order), cap(cores)) { // as many trunks are there at once
		workers.Go(func() {
			for t := range todo {
				b := &lazyTrunk{}
				one(b, keys[t][0]) // its first run makes the trunk, if it is not known from the cache
				var rest sync.WaitGroup
				for _, key := range keys[t][1:] {
					rest.Go(func() { one(b, key) })
				}
				rest.Wait()
				if err := b.close(); err != nil {
					fail(err)
				}
			}
		})
	}
	workers.Wait()
	if ctx.Err() != nil {
		g.over = context.Cause(ctx)
	} else if stop.Err() != nil {
		return context.Cause(stop)
	}
	for i := range jobs {
		if j := &jobs[i]; results[i] == nil {
			results[i] = []Result{{Scenario: j.file.short, Play: j.script.Play, Seed: j.seed,
				Unknown: "not played: " + g.why()}}
		}
		g.results = append(g.results, results[i]...)
	}
	return nil
}

// lazyTrunk is a trunk that is made once, when the first of its runs is played.
type lazyTrunk struct {
	mu    sync.Mutex
	trunk *vm.LabTrunk
	err   error // why it could not be made
}

// get makes the trunk, if it is not there.
func (b *lazyTrunk) get(ctx context.Context, lab *vm.Laboratory, p *vm.Play, change time.Duration) (*vm.LabTrunk, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.trunk == nil && b.err == nil {
		b.trunk, b.err = lab.Trunk(ctx, p, change)
	}
	return b.trunk, b.err
}

func (b *lazyTrunk) close() error {
	if b.trunk == nil {
		return nil
	}
	return b.trunk.Close()
}

func (g *gating) why() string {
	if errors.Is(g.over, errTime) {
		return errTime.Error()
	}
	return "interrupted"
}

// came is what came of a run: results, and what a report shows of it.
type came struct {
	Results []Result
	Runs    []report.Run
	Report  string // for people; of what was not played to its end it is empty
}

// runKey is what runs are found by.
type runKey struct {
	scenario, variant string
	play              Play
	seed              uint64
}

// take are the results of a run as those of a play: what would be the same is played once.
func (g *gating) take(c *came, j *job) (out []Result) {
	for _, r := range c.Results {
		r.Scenario, r.Play, r.Seed, r.Change = j.file.short, j.script.Play, j.seed, j.script.Change.Seconds()
		r.Missed = slices.Clone(r.Missed)
		for i := range r.Missed {
			if m := &r.Missed[i]; m.Line == j.script.Line {
				m.Text = "the change did not happen: " + m.Text
			}
		}
		out = append(out, r)
	}
	for _, r := range c.Runs {
		r.Scenario, r.Variant, r.Play = j.file.short, VariantName(r.Variant), j.script.Play.Doc()
		g.runs[runKey{r.Scenario, r.Variant, j.script.Play, j.seed}] = &r
	}
	return out
}

// briefly is what came of a run, in some words.
func briefly(list []Result) string {
	var out []string
	for _, r := range list {
		text := r.Status
		if r.Unknown != "" {
			text = "not known: " + r.Unknown
		}
		checks := map[string]bool{}
		for _, b := range r.Broken {
			if !checks[b.Check] {
				text += fmt.Sprintf(", %s at %.0f s", b.Check, b.At)
			}
			checks[b.Check] = true
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// inBaseline are the results of the old version that an earlier gate has; nil: it has none, and the run is played.
func (g *gating) inBaseline(j *job) (out []Result) {
	if g.base == nil || j.script.Play != Old {
		return nil
	}
	for _, r := range g.base.Results {
		if r.Scenario == j.file.short && r.Play == Old && r.Seed == j.seed && r.Unknown == "" {
			out = append(out, r)
		}
	}
	return out
}

// run plays a job, or takes what is known of it. Of a run that was ended early nothing comes.
func (g *gating) run(ctx context.Context, j *job, key string, b *lazyTrunk) (*came, error) {
	path := filepath.Join(g.Cache, key+".json")
	if g.Cache != "" {
		known := &came{}
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, known) == nil && len(known.Results) > 0 {
			g.stage.count(&g.stage.cached)
			return known, nil
		}
	}
	c, err := g.stage.play(ctx, j, b)
	if ctx.Err() != nil {
		return nil, nil
	}
	if lack, ok := errors.AsType[*Lacking](err); ok && strings.Contains(lack.Why, "has not come to its end") {
		why := strings.Replace(firstLine(lack.Why), "--timeout", "--limit", 1)
		return &came{Results: []Result{{Unknown: why}}}, nil
	}
	if err != nil {
		return nil, err
	}
	g.stage.count(&g.stage.played)
	if g.Cache == "" || slices.ContainsFunc(c.Results, func(r Result) bool { return r.Unknown != "" }) {
		return c, nil
	}
	data, err := json.Marshal(c)
	if err == nil {
		err = writeWhole(path, data)
	}
	if err != nil {
		return nil, fmt.Errorf("keep what was played (--cache): %w", err)
	}
	return c, nil
}

// writeWhole writes a file as a whole or not at all: several gates may share a cache.
func writeWhole(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".enilab-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // nothing is left of it when all went well
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// keep writes a play's scenario and report to Config.Out, whether it was played now or before.
func (g *gating) keep(j *job, c *came) error {
	if g.Out == "" {
		return nil
	}
	base := filepath.Join(g.Out, fmt.Sprintf("%s.%s.%d", j.file.short, j.script.Play, j.seed))
	return errors.Join(os.WriteFile(base+".scn", []byte(j.script.Text), 0o644),
		os.WriteFile(base+".txt", []byte(c.Report), 0o644))
}

// play plays a job in a machine of its own, from its trunk on. What a report shows costs little there, and may be wanted
// later.
func (s *stage) play(ctx context.Context, j *job, b *lazyTrunk) (*came, error) {
	lab := s.labs[j.script.System]
	play := &vm.Play{Seed: j.seed, Flags: []string{"--clock", "machine", "--json", "--cni", j.script.System},
		Names: []string{j.file.name}, Runs: true,
		Files: []vm.JobFile{{Path: j.file.name, Data: []byte(j.file.alone(j.script.System).Text)}}}
	var p *vm.Played
	var err error
	if j.file.load {
		p, err = lab.Play(ctx, play, io.Discard, io.Discard)
	} else {
		var t *vm.LabTrunk
		if t, err = b.get(ctx, lab, play, j.script.Change); err == nil {
			p, err = t.Play(ctx, &vm.Branch{Scenario: j.script.Text, System: j.script.Later})
		}
	}
	if err != nil {
		return nil, err
	}
	d, c := &runner.Document{}, &came{}
	if err := p.Document(d); err != nil {
		return nil, err
	}
	if len(d.Errors) == 0 {
		if err := p.Runs(j.seed, &c.Runs); err != nil {
			return nil, err
		}
	}
	for _, f := range d.Files {
		c.Report += f.Report
	}
	c.Results = resultsOf(d)
	return c, nil
}

// resultsOf takes a run's document apart.
func resultsOf(d *runner.Document) (out []Result) {
	for _, e := range d.Errors {
		out = append(out, Result{Unknown: fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)})
	}
	for _, f := range d.Files {
		for i := range f.Variants {
			out = append(out, resultOf(&f, &f.Variants[i]))
		}
		if len(f.Variants) == 0 {
			out = append(out, Result{Status: f.Status, Unknown: "nothing of it can be played: " + firstLine(f.Report)})
		}
	}
	return out
}

func resultOf(f *runner.FileDocument, v *runner.VariantDocument) Result {
	r := Result{Variant: VariantName(v.Name), Status: f.Status, Unknown: firstLine(v.Error), Ended: v.Ended,
		Times: v.Times, Judged: v.Judged, Figures: v.Figures.Told()}
	for _, b := range v.All {
		check := b.Invariant
		switch {
		case check == "" && b.Line > 0:
			check = fmt.Sprintf("line %d", b.Line)
		case check == "":
			check = EndsByItself
		}
		r.Broken = append(r.Broken, Broken{Check: check, At: b.At, Node: b.Node, Text: b.Text})
	}
	for _, u := range v.UnderWay {
		r.Broken = append(r.Broken, Broken{Check: Settles, At: v.Ended, Text: u})
	}
	for _, s := range f.Skipped {
		r.Skipped = append(r.Skipped, s.Line)
	}
	for _, m := range v.Missed {
		r.Missed = append(r.Missed, Miss{Line: m.Line, Text: m.Text})
	}
	return r
}

// alike says whether a system has the same from another's manifest as from its own: then a change of the image alone
// is like one of both.
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

func hashOf(data []byte) string {
	h := sha256.Sum256(data)
	return fmt.Sprintf("%x", h[:8])
}

// digestOf is a digest of a system: its files, and what is said of it.
func digestOf(s *systems.System) (string, error) {
	h := sha256.New()
	plain := *s
	plain.Folder, plain.Notes, plain.Given = "", nil, nil
	if err := json.NewEncoder(h).Encode(plain); err != nil {
		return "", err
	}
	image := vm.NewImage()
	for _, name := range s.Contents() {
		if err := image.AddTree(filepath.Join("/", "files", name), filepath.Join(s.Folder, name)); err != nil {
			return "", err
		}
	}
	if err := image.Write(h); err != nil {
		return "", err
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}
