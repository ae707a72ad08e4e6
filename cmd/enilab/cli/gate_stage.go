package cli

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

// gateStage is where a gate's plays are played: machines with one of the systems or both in them, and what is known of earlier plays.
type gateStage struct {
	machines map[string]*theatre // by the systems in it
	prints   map[string]string   // of their bytes
	key      string              // of that with the old version alone
	cache    string              // folder; empty: nothing is kept
	from, to string

	mu     sync.Mutex
	played int
	cached int
}

// openStage makes the machines' images.
func (l *cli) openStage(f *gateFlags, from, to *systems.System) (*gateStage, error) {
	s := &gateStage{machines: map[string]*theatre{}, prints: map[string]string{}, from: canonical(from), to: canonical(to)}
	switch f.cache {
	case "-":
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("the user's cache folder: %w (set XDG_CACHE_HOME, or --cache)", err)
		}
		s.cache = filepath.Join(dir, "enilab", "gate")
	default:
		s.cache = f.cache
	}
	if s.cache != "" {
		if err := os.MkdirAll(s.cache, 0o755); err != nil {
			return nil, usage("--cache: %v", err)
		}
	}
	both := map[string]*systems.System{s.from: from, s.to: to}
	for _, names := range [][]string{{s.from}, {s.to}, {s.from, s.to}} {
		key := strings.Join(names, " ")
		if len(both) == 1 && len(names) == 2 || s.machines[key] != nil {
			continue
		}
		found := map[string]*systems.System{}
		for _, n := range names {
			found[n] = both[n]
		}
		t := &theatre{cli: l, f: &runFlags{on: "netns", arch: runtime.GOARCH, in: f.in, found: found, timeout: f.machine, json: true, cni: names[0]}}
		if err := t.open(); err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.machines[key] = t
		print, err := fingerprint(t)
		if err != nil {
			return nil, errors.Join(err, s.close())
		}
		s.prints[key] = print
	}
	s.key = s.prints[s.from]
	return s, nil
}

func (s *gateStage) close() (err error) {
	for _, t := range s.machines {
		err = errors.Join(err, t.machine.Close())
	}
	return err
}

func (s *gateStage) counts() (played, cached int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.played, s.cached
}

// fingerprint is a digest of all that a machine's run rests on beside its job: kernel, what is in its file system, emulator.
func fingerprint(t *theatre) (string, error) {
	h := sha256.New()
	if err := t.machine.Digest(h); err != nil {
		return "", err
	}
	out, err := exec.Command(t.machine.EmulatorPath(), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", t.machine.EmulatorPath(), err)
	}
	h.Write(out)
	for _, f := range t.job.Files { // what is known of the systems: their settings and what is executed
		fmt.Fprintf(h, "\n%s %d\n", f.Path, len(f.Data))
		h.Write(f.Data)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// gateJob is one run of a gate.
type gateJob struct {
	file   *gateFile
	script *gate.Script
	seed   uint64
}

// machine is that in which a script is played.
func (s *gateStage) machine(j *gateJob) (*theatre, string) {
	key := j.script.System
	if j.script.Play != gate.Old && j.script.Play != gate.New && s.from != s.to {
		key = s.from + " " + s.to
	}
	return s.machines[key], s.prints[key]
}

// play plays jobs, as many at once as there are cores. The error is that nothing can be played on this machine; that it was ended early is no error.
func (g *gating) play(ctx context.Context, jobs []gateJob) error {
	p := newProgress(g.err)
	defer p.clear()
	var mu sync.Mutex // guards what follows, g.runs, and standard error
	var failed error
	results := make([][]gate.Result, len(jobs))
	done := 0
	tell := func(i int, came []gate.Result) {
		results[i] = came
		done++
		if j := &jobs[i]; !terminal(g.err) {
			fmt.Fprintf(g.err, "%d of %d, %v: %s, %s, seed %d: %s\n", done, len(jobs), time.Since(g.began).Round(time.Second), j.file.short, j.script.Play, j.seed, briefly(came))
		}
	}
	var order []string
	of := map[string][]int{} // jobs that are the same run
	for i := range jobs {
		if r := g.inBaseline(&jobs[i]); r != nil {
			tell(i, r)
			continue
		}
		key := g.stage.keyOf(&jobs[i])
		if of[key] == nil {
			order = append(order, key)
		}
		of[key] = append(of[key], i)
	}
	next := make(chan string)
	stop, cancel := context.WithCancel(ctx)
	defer cancel()
	var workers sync.WaitGroup
	for range min(len(order), runtime.GOMAXPROCS(0)) {
		workers.Go(func() {
			for key := range next {
				j := &jobs[of[key][0]]
				mu.Lock()
				p.say(fmt.Sprintf("run %d of %d: %s, %s, seed %d", done+1, len(jobs), j.file.short, j.script.Play.Doc(), j.seed))
				mu.Unlock()
				c, err := g.run(stop, j, key)
				if c != nil {
					for _, i := range of[key] {
						err = errors.Join(err, g.keep(&jobs[i], c))
					}
				}
				mu.Lock()
				switch {
				case err != nil && failed == nil && stop.Err() == nil:
					failed = err
					cancel()
				case c != nil:
					for _, i := range of[key] {
						tell(i, g.take(c, &jobs[i]))
					}
				}
				mu.Unlock()
			}
		})
	}
	func() {
		defer close(next)
		for _, key := range order {
			select {
			case next <- key:
			case <-stop.Done():
				return
			}
		}
	}()
	workers.Wait()
	if failed != nil {
		return failed
	}
	if ctx.Err() != nil {
		g.over = context.Cause(ctx)
	}
	for i := range jobs {
		if results[i] == nil {
			results[i] = []gate.Result{{Scenario: jobs[i].file.short, Play: jobs[i].script.Play, Seed: jobs[i].seed, Unknown: "not played: " + g.why()}}
		}
		g.results = append(g.results, results[i]...)
	}
	return nil
}

func (g *gating) why() string {
	if errors.Is(g.over, errTime) {
		return errTime.Error()
	}
	return "interrupted"
}

// came is what came of a run: results, and what a report shows of it.
type came struct {
	Results []gate.Result
	Runs    []report.Run
	Report  string // for people; of what was not played to its end it is empty
}

// runKey is what runs are found by.
type runKey struct {
	scenario, variant string
	play              gate.Play
	seed              uint64
}

// take are the results of a run as those of a play: what would be the same is played once.
func (g *gating) take(c *came, j *gateJob) (out []gate.Result) {
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
		r.Scenario, r.Variant, r.Play = j.file.short, gate.VariantName(r.Variant), j.script.Play.Doc()
		g.runs[runKey{r.Scenario, r.Variant, j.script.Play, j.seed}] = &r
	}
	return out
}

// briefly is what came of a run, in some words.
func briefly(list []gate.Result) string {
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
func (g *gating) inBaseline(j *gateJob) (out []gate.Result) {
	if g.base == nil || j.script.Play != gate.Old {
		return nil
	}
	for _, r := range g.base.Results {
		if r.Scenario == j.file.short && r.Play == gate.Old && r.Seed == j.seed && r.Unknown == "" {
			out = append(out, r)
		}
	}
	return out
}

// keyOf is a digest of all that a run rests on.
func (s *gateStage) keyOf(j *gateJob) string {
	_, print := s.machine(j)
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n%s\n%d\n%s\n%s", gate.Format, print, j.script.System, j.seed, j.file.name, j.script.Text)
	return fmt.Sprintf("%x", h.Sum(nil))
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
	data, err := json.Marshal(plain)
	if err != nil {
		return "", err
	}
	h.Write(data)
	for _, f := range s.Files {
		if err := hashFile(h, filepath.Join(s.Folder, f.From)); err != nil {
			return "", err
		}
	}
	if s.Conflist.From != "" {
		if err := hashFile(h, filepath.Join(s.Folder, s.Conflist.From)); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

func hashFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}

// run plays a job, or takes what is known of it.
func (g *gating) run(ctx context.Context, j *gateJob, key string) (*came, error) {
	path := filepath.Join(g.stage.cache, key+".json")
	if g.stage.cache != "" {
		known := &came{}
		if data, err := os.ReadFile(path); err == nil && json.Unmarshal(data, known) == nil && len(known.Results) > 0 {
			g.stage.mu.Lock()
			g.stage.cached++
			g.stage.mu.Unlock()
			return known, nil
		}
	}
	d, runs, err := g.stage.document(ctx, j)
	if ctx.Err() != nil {
		return nil, nil
	}
	if lack, ok := errors.AsType[*vm.Lacking](err); ok && strings.Contains(lack.Why, "has not come to its end") {
		return &came{Results: []gate.Result{{Unknown: strings.Replace(firstLine(lack.Why), "--timeout", "--limit", 1)}}}, nil
	}
	if err != nil {
		return nil, err
	}
	g.stage.mu.Lock()
	g.stage.played++
	g.stage.mu.Unlock()
	c := &came{Results: resultsOf(d), Runs: runs}
	for _, f := range d.Files {
		c.Report += f.Report
	}
	if g.stage.cache != "" && allKnown(c.Results) {
		data, err := json.Marshal(c)
		if err == nil {
			err = replace(path, 0o600, func(w io.Writer) error { _, err := w.Write(data); return err })
		}
		if err != nil {
			return nil, fmt.Errorf("keep what was played (--cache): %w", err)
		}
	}
	return c, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// allKnown says whether nothing of a run is unknown.
func allKnown(list []gate.Result) bool {
	for _, r := range list {
		if r.Unknown != "" {
			return false
		}
	}
	return true
}

// keep writes a play's scenario and report to --out, whether it was played now or before.
func (g *gating) keep(j *gateJob, c *came) error {
	if g.f.out == "" {
		return nil
	}
	base := filepath.Join(g.f.out, fmt.Sprintf("%s.%s.%d", j.file.short, j.script.Play, j.seed))
	return errors.Join(os.WriteFile(base+".scn", []byte(j.script.Text), 0o644), os.WriteFile(base+".txt", []byte(c.Report), 0o644))
}

// document plays a job in a machine of its own.
func (s *gateStage) document(ctx context.Context, j *gateJob) (*runner.Document, []report.Run, error) {
	of, _ := s.machine(j)
	t, f := *of, *of.f
	f.reports.data = runsName // in the machine: what a report shows costs little, and may be wanted later
	t.f, t.names, f.cni = &f, []string{j.file.name}, j.script.System
	path := j.file.name
	if !filepath.IsAbs(path) {
		path = filepath.Join(t.job.Dir, path)
	}
	t.job.Files = append(append([]vm.JobFile{}, t.job.Files...), vm.JobFile{Path: path, Data: []byte(j.script.Text)})
	p, err := t.machine.Play(ctx, t.jobOf(j.seed, true), io.Discard, io.Discard)
	if err != nil {
		return nil, nil, err
	}
	t.spent(p)
	d := &runner.Document{}
	if err := json.NewDecoder(bytes.NewReader(p.Stdout)).Decode(d); err != nil {
		return nil, nil, fmt.Errorf("the machine's report is none (exit code %d): %w; it said %s", p.Code, err, strings.TrimSpace(string(p.Stderr)))
	}
	var runs []report.Run
	if data, told := p.Files[filepath.Join(seedFolder(j.seed), runsName)]; told {
		if err := json.Unmarshal(data, &runs); err != nil {
			return nil, nil, fmt.Errorf("the machine's runs: %w", err)
		}
	}
	return d, runs, nil
}

// resultsOf takes a run's document apart.
func resultsOf(d *runner.Document) (out []gate.Result) {
	for _, e := range d.Errors {
		out = append(out, gate.Result{Unknown: fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Message)})
	}
	for _, f := range d.Files {
		for _, v := range f.Variants {
			r := gate.Result{Variant: gate.VariantName(v.Name), Status: f.Status, Ended: v.Ended, Times: v.Times, Judged: v.Judged}
			if v.Error != "" {
				r.Unknown = firstLine(v.Error)
			}
			for _, b := range v.All {
				check := b.Invariant
				switch {
				case check == "" && b.Line > 0:
					check = fmt.Sprintf("line %d", b.Line)
				case check == "":
					check = gate.EndsByItself
				}
				r.Broken = append(r.Broken, gate.Broken{Check: check, At: b.At, Node: b.Node, Text: b.Text})
			}
			for _, u := range v.UnderWay {
				r.Broken = append(r.Broken, gate.Broken{Check: gate.Settles, At: v.Ended, Text: u})
			}
			for _, s := range f.Skipped {
				r.Skipped = append(r.Skipped, s.Line)
			}
			for _, m := range v.Missed {
				r.Missed = append(r.Missed, gate.Miss{Line: m.Line, Text: m.Text})
			}
			r.Figures = v.Figures.Told()
			out = append(out, r)
		}
		if len(f.Variants) == 0 {
			out = append(out, gate.Result{Status: f.Status, Unknown: "nothing of it can be played: " + firstLine(f.Report)})
		}
	}
	return out
}

func spell(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
