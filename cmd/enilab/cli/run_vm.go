package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
)

// machineFlag is --in.
type machineFlag struct {
	given  bool
	kernel string // file; empty: whatever is found
}

func (f *machineFlag) String() string {
	switch {
	case f == nil || !f.given:
		return ""
	case f.kernel == "":
		return "vm"
	}
	return "vm=" + f.kernel
}

func (f *machineFlag) Set(text string) error {
	what, kernel, named := strings.Cut(text, "=")
	if what != "vm" || named && kernel == "" {
		return errors.New("expected vm or vm=KERNEL")
	}
	f.given, f.kernel = true, kernel
	return nil
}

func (*machineFlag) Type() string { return "vm[=KERNEL]" }

// clockFlag is --clock.
type clockFlag string

const (
	clockLeap    clockFlag = "leap"
	clockMachine clockFlag = "machine"
)

func (f *clockFlag) String() string {
	if f == nil {
		return ""
	}
	return string(*f)
}

func (f *clockFlag) Set(text string) error {
	if *f = clockFlag(text); *f != clockLeap && *f != clockMachine {
		return errors.New("expected leap or machine")
	}
	return nil
}

func (*clockFlag) Type() string { return "leap|machine" }

// checkMachine judges --in and what belongs to it beside the other flags.
func (f *runFlags) checkMachine() error {
	switch {
	case f.out != "" && f.on != "netns":
		return usage("--out keeps what laboratories do: use it with --on netns")
	case f.clock != "" && f.on != "netns":
		return usage("--clock is for world netns: use it with --on netns")
	case !f.in.given && f.timeout != vm.Limit:
		return usage("--timeout is for virtual machines: use it with --in vm")
	case !f.in.given && f.arch != runtime.GOARCH:
		return usage("--arch is for virtual machines: use it with --in vm")
	case f.arch != "amd64" && f.arch != "arm64":
		return usage("--arch: expected amd64 or arm64, found %q", f.arch)
	case !f.in.given:
		return nil
	case f.on != "netns":
		return usage("--in %s plays world netns: use it with --on netns (world %s is not played in a virtual machine)",
			&f.in, f.on)
	case f.keep:
		return usage("--keep leaves a laboratory up on this machine: leave --in out")
	case f.timeout <= 0:
		return usage("--timeout: expected more than no time, found %v", f.timeout)
	}
	return nil
}

// machines are virtual machines in which files are played, each seed in one of its own.
type machines struct {
	*cli
	f     *runFlags
	lab   *vm.Laboratory
	names []string
	cases []*runner.Case
}

// runInMachine plays the files in virtual machines.
func (l *cli) runInMachine(f *runFlags, seeds runner.Seeds, cases []*runner.Case, names []string) error {
	m := &machines{cli: l, f: f, names: names, cases: cases,
		lab: &vm.Laboratory{Kernel: f.in.kernel, Arch: f.arch, Systems: f.found, Timeout: f.timeout,
			Pause: l.paused(f), Verbose: l.verbose()}}
	if err := errors.Join(m.take(), m.lab.Open()); err != nil {
		return l.machineError(err)
	}
	defer m.lab.Close()
	switch {
	case f.ranged:
		return m.sweep(seeds)
	case f.twice:
		return m.twice()
	}
	p, err := m.lab.Play(l.context(), m.play(f.seed, f.json), l.out, l.err)
	err = errors.Join(err, m.save(f.seed, p), m.tellReports(m.runsOf(f.seed, p, err)))
	if err != nil {
		return l.machineError(err)
	}
	if err := m.tellPaused(p); err != nil {
		return err
	}
	if !f.json {
		l.named(&f.reports)
	}
	return ended(p.Code)
}

// take gives the laboratory the files. One that comes with enilab the machine's enilab has too.
func (m *machines) take() error {
	for i, name := range m.names {
		if name == "-" {
			m.lab.Stdin = []byte(m.cases[i].File.String())
			continue
		}
		data, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		m.lab.Files = append(m.lab.Files, vm.JobFile{Path: name, Data: data})
	}
	return nil
}

// play is what a machine does with a seed.
func (m *machines) play(seed uint64, asJSON bool) *vm.Play {
	f := m.f
	clock := cmp.Or(f.clock, clockMachine)
	flags := append([]string{"--clock", string(clock)}, f.telling(asJSON)...)
	for _, x := range []struct {
		on   bool
		flag string
	}{{f.blind, "--without-books"}, {f.against != "", "--against=" + f.against}, {f.cni != "", "--cni=" + f.cni}} {
		if x.on {
			flags = append(flags, x.flag)
		}
	}
	return &vm.Play{Seed: seed, Flags: flags, Names: m.names, Out: f.out != "" || f.twice, Runs: f.reports.wanted()}
}

// runsOf is what a machine has said about its runs. Of one that broke it is that nothing was played.
func (m *machines) runsOf(seed uint64, p *vm.Played, broke error) []report.Run {
	if !m.f.reports.wanted() {
		return nil
	}
	var runs []report.Run
	if broke == nil && p != nil {
		broke = p.Runs(seed, &runs)
	}
	if broke != nil {
		status := runner.NotPlayed
		if m.interrupted() {
			status = runner.Interrupted
		}
		return notPlayed(m.cases, seed, status, "the virtual machine: "+broke.Error())
	}
	for i := range runs {
		runs[i].Wall = p.Wall / time.Duration(len(runs)) // of this computer; the machine's clock says nothing about it
	}
	return runs
}

// tellReports writes what --html and --junit ask for.
func (m *machines) tellReports(runs []report.Run) error {
	page := m.page("run")
	page.Runs = runs
	return m.f.reports.write(page)
}

// machineError is how a run ends that has no exit code of its own.
func (l *cli) machineError(err error) error {
	if lack, ok := errors.AsType[*vm.Lacking](err); ok {
		return &exit{runner.ExitLacking, lack.Error()}
	}
	if wrong, ok := errors.AsType[*vm.Invalid](err); ok {
		return usage("%v", wrong)
	}
	if errors.Is(err, context.Canceled) || l.interrupted() {
		return &exit{runner.ExitInterrupted, "interrupted: the virtual machine was ended"}
	}
	if _, ok := errors.AsType[*exit](err); ok {
		return err
	}
	return &exit{runner.ExitLacking, "virtual machine: " + err.Error()}
}

// save writes what came of a seed into the folder of --out.
func (m *machines) save(seed uint64, p *vm.Played) error {
	if m.f.out == "" || p == nil || p.Result == nil {
		return nil
	}
	return p.Save(m.f.out, seed)
}

// twice plays everything twice, side by side, and compares every byte.
func (m *machines) twice() error {
	var runs [2]*vm.Played
	var errs [2]error
	ctx, cancel := context.WithCancel(m.context())
	defer cancel()
	var both sync.WaitGroup
	for i := range runs {
		out, diag, play := io.Writer(m.out), io.Writer(m.err), m.play(m.f.seed, m.f.json)
		if i > 0 {
			out, diag, play.Words = io.Discard, io.Discard, os.Getenv(againVariable)
		}
		both.Go(func() {
			if runs[i], errs[i] = m.lab.Play(ctx, play, out, diag); errs[i] != nil {
				cancel()
			}
		})
	}
	both.Wait()
	if err := errors.Join(errs[0], errs[1]); err != nil {
		return m.machineError(err)
	}
	if err := m.save(m.f.seed, runs[0]); err != nil {
		return m.machineError(err)
	}
	if err := m.tellReports(m.runsOf(m.f.seed, runs[0], nil)); err != nil {
		return err
	}
	if d := vm.Difference(runs[0], runs[1]); d != "" {
		return &exit{runner.ExitUnrepeatable, "two machines with one seed were not the same: " + d}
	}
	files, size := runs[0].Compared()
	fmt.Fprintf(m.err, "played twice, and all is the same: %s, %s bytes\n", runner.Count(files, "file"),
		runner.Number(uint64(size)))
	return ended(runs[0].Code)
}

// againVariable is for tests of --twice: words for the kernel's command line of the second machine alone.
const againVariable = "ENILAB_VM_AGAIN"

// sweep plays every seed in a machine of its own, as many at once as there are cores.
func (m *machines) sweep(seeds runner.Seeds) error {
	files := make([]*runner.Sweep, len(m.cases))
	for i, c := range m.cases {
		files[i] = &runner.Sweep{Case: c, Seeds: seeds, Mutant: m.f.against}
	}
	p := newProgress(m.err)
	var mu sync.Mutex // guards what follows, and files
	var failed error
	var runs []report.Run
	done := 0
	next := make(chan uint64)
	ctx, cancel := context.WithCancel(m.context())
	defer cancel()
	var all sync.WaitGroup
	for range min(seeds.Count(), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for seed := range next {
				d, wall, told, err := m.document(ctx, seed)
				mu.Lock()
				runs = append(runs, told...)
				done++
				if err == nil && len(d.Files) != len(files) {
					err = fmt.Errorf("seed %d: the machine told of %s, expected %d", seed,
						runner.Count(len(d.Files), "file"), len(files))
				}
				if err != nil {
					if failed == nil {
						failed = fmt.Errorf("seed %d: %w", seed, err)
					}
					cancel()
				} else {
					for i := range d.Files {
						files[i].Add(seed, &d.Files[i], wall/time.Duration(len(d.Files)))
					}
				}
				p.say(fmt.Sprintf("run %s of %s: seed %d", runner.Number(uint64(done)),
					runner.Number(uint64(seeds.Count())), seed))
				mu.Unlock()
			}
		})
	}
	func() {
		defer close(next)
		for i := range seeds.Count() {
			select {
			case next <- seeds.From + uint64(i):
			case <-ctx.Done():
				return
			}
		}
	}()
	all.Wait()
	p.clear()
	sortRuns(runs, m.cases)
	err := m.tellReports(runs)
	if failed != nil {
		return m.machineError(errors.Join(failed, err))
	}
	if err != nil {
		return err
	}
	if !m.f.json {
		for _, s := range files {
			m.verdict(s.Status, s.Report())
		}
	}
	return m.tellSweeps(m.f, seeds, files)
}

// document plays a seed and reads what the machine says of it.
func (m *machines) document(ctx context.Context, seed uint64) (*runner.Document, time.Duration, []report.Run, error) {
	p, err := m.lab.Play(ctx, m.play(seed, true), io.Discard, m.err)
	err = errors.Join(err, m.save(seed, p))
	runs := m.runsOf(seed, p, err)
	if err != nil {
		return nil, 0, runs, err
	}
	d := &runner.Document{}
	return d, p.Wall, runs, p.Document(d)
}
