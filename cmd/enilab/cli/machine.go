package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

// How long a virtual machine may take, and may be silent, in this computer's time. The first is what a long scenario with its mutants takes on a
// slow computer; a guest that lives says so every second of its own time, and an emulator that is as slow as this hangs.
const (
	machineTimeout = time.Hour
	machineQuiet   = 2 * time.Minute
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
	case !f.in.given && f.timeout != machineTimeout:
		return usage("--timeout is for virtual machines: use it with --in vm")
	case !f.in.given && f.arch != runtime.GOARCH:
		return usage("--arch is for virtual machines: use it with --in vm")
	case f.arch != "amd64" && f.arch != "arm64":
		return usage("--arch: expected amd64 or arm64, found %q", f.arch)
	case !f.in.given:
		return nil
	case f.on != "netns":
		return usage("--in %s plays world netns: use it with --on netns (world %s is not played in a virtual machine)", &f.in, f.on)
	case f.keep:
		return usage("--keep leaves a laboratory up on this machine: leave --in out")
	case f.timeout <= 0:
		return usage("--timeout: expected more than no time, found %v", f.timeout)
	}
	return nil
}

// vmCommand is what there is about virtual machines beside run.
func (l *cli) vmCommand() *cobra.Command {
	c := &cobra.Command{
		Use:   "vm",
		Short: "says what virtual machines can be played in",
		Long: `vm is about the virtual machines of enilab run --on netns --in vm: world netns in a stock QEMU, in virtual time, without root, KVM or
network. The same seed gives the same bytes: report, timeline, EC2's calls, packets, the kernel's console.`,
		Example: `  enilab vm kernels
  enilab run --on netns --in vm scenarios/socket-mismatch.scn
  enilab run --on netns --in vm=/boot/vmlinuz-6.12.9-cloud-amd64 --seeds 1-5 scenarios/drift.scn
  enilab run --on netns --in vm --twice scenarios/drift.scn       prove that it repeats`,
		Args: known,
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(&cobra.Command{Use: "kernels", Short: "lists the kernels that there are, and says how to get one", Args: nothing,
		RunE: func(*cobra.Command, []string) error { return l.kernels() }})
	return c
}

func (l *cli) kernels() error {
	list := vm.Find()
	t := tabwriter.NewWriter(l.out, 0, 0, 2, ' ', 0)
	for i := range list {
		arch := list[i].Arch
		if arch == "" {
			arch = "-"
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", list[i].Version, arch, list[i].String())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(list) > 0 {
		fmt.Fprintf(l.out, "\nthe first one is what --in vm takes; --in vm=FILE takes another. To get more: ")
	} else {
		fmt.Fprintf(l.out, "there is none: none in %s, none readable in /boot, and %s names none. To get one: ", vm.Cache(), vm.KernelVariable)
	}
	fmt.Fprintln(l.out, vm.HowToGet())
	if runtime.GOARCH == "amd64" {
		fmt.Fprintln(l.out, "\nfor machines of arm64 (--arch arm64): "+vm.HowToGetFor("arm64"))
	}
	return nil
}

// theatre is a machine, and what every run in it has in common.
type theatre struct {
	*cli
	f       *runFlags
	machine *vm.Machine
	job     vm.Job // without seed and arguments
	names   []string
	cases   []*runner.Case
}

// runInMachine plays the files in virtual machines, each seed in one of its own.
func (l *cli) runInMachine(f *runFlags, seeds runner.Seeds, cases []*runner.Case, names []string) error {
	t := &theatre{cli: l, f: f, names: names, cases: cases}
	if err := t.open(); err != nil {
		return l.machineError(err)
	}
	defer t.machine.Close()
	switch {
	case f.ranged:
		return t.sweep(seeds)
	case f.twice:
		return t.twice()
	}
	p, err := t.machine.Play(l.context(), t.jobOf(f.seed, f.json), l.out, l.err)
	err = errors.Join(err, t.keep(f.seed, p), t.tellReports(t.runsOf(f.seed, p, err)))
	if err != nil {
		return l.machineError(err)
	}
	t.spent(p)
	if err := t.tellPaused(p); err != nil {
		return err
	}
	if !f.json {
		l.named(&f.reports)
	}
	return ended(p.Code)
}

// runsName is what a machine's laboratory calls what reports are made of, in the folder of its seed.
const runsName = "runs.json"

// runsOf is what a machine has said about its runs. Of one that broke it is that nothing was played.
func (t *theatre) runsOf(seed uint64, p *vm.Played, broke error) []report.Run {
	if !t.f.reports.wanted() {
		return nil
	}
	var runs []report.Run
	if broke == nil && p != nil {
		broke = json.Unmarshal(p.Files[filepath.Join(seedFolder(seed), runsName)], &runs)
	}
	if broke != nil {
		status := runner.NotPlayed
		if t.interrupted() {
			status = runner.Interrupted
		}
		return notPlayed(t.cases, seed, status, "the virtual machine: "+broke.Error())
	}
	for i := range runs {
		runs[i].Wall = p.Wall / time.Duration(len(runs)) // of this computer; the machine's clock says nothing about it
	}
	return runs
}

// tellReports writes what --html and --junit ask for.
func (t *theatre) tellReports(runs []report.Run) error {
	page := t.page("run")
	page.Runs = runs
	return t.f.reports.write(page)
}

// machineError is how a run ends that has no exit code of its own.
func (l *cli) machineError(err error) error {
	if lack, ok := errors.AsType[*vm.Lacking](err); ok {
		return &exit{runner.ExitLacking, lack.Error()}
	}
	if errors.Is(err, context.Canceled) || l.interrupted() {
		return &exit{runner.ExitInterrupted, "interrupted: the virtual machine was ended"}
	}
	if _, ok := errors.AsType[*exit](err); ok {
		return err
	}
	return &exit{runner.ExitLacking, "virtual machine: " + err.Error()}
}

// open finds the kernel and the parts.
func (t *theatre) open() error {
	if t.f.in.kernel != "" {
		if _, err := vm.Describe(t.f.in.kernel); err != nil {
			return usage("--in: %v (enilab vm kernels lists those that there are)", err)
		}
	}
	k, err := vm.Open(t.f.in.kernel, t.f.arch)
	if err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if k.Arch != "" && k.Arch != t.f.arch {
		return usage("--in: kernel %s is for %s, and the machine for %s: name a kernel for it, or --arch %[2]s", k, k.Arch, t.f.arch)
	}
	if t.foreign() {
		self = filepath.Join(filepath.Dir(self), t.f.arch, "enilab")
		if _, err := os.Stat(self); err != nil {
			return &vm.Lacking{Why: fmt.Sprintf("a virtual machine of %s needs enilab, ipamd and aws-cni for it (%v): make build-%[1]s makes them there", t.f.arch, err)}
		}
	}
	n, err := t.needsOf(k)
	if err != nil {
		return &vm.Lacking{Why: err.Error()}
	}
	if text := n.missing(); text != "" {
		return &vm.Lacking{Why: text}
	}
	look := thisComputer
	if t.foreign() {
		look = busyboxOf(t.f.arch)
	}
	giveTools(t.f.found, look)
	t.machine = &vm.Machine{Kernel: k, Image: vm.NewImage(), Modules: modules(t.f.found), Self: self, Timeout: t.f.timeout, Quiet: machineQuiet}
	if err := t.furnish(t.machine.Image, filepath.Dir(self)); err != nil {
		return err
	}
	if err := t.bring(); err != nil {
		return err
	}
	if t.job.Dir, err = os.Getwd(); err != nil {
		return err
	}
	if os.Getenv("ENILAB_VERBOSE") != "" {
		t.job.Env = append(t.job.Env, "ENILAB_VERBOSE=1")
	}
	for i, name := range t.names {
		if name == "-" {
			t.job.Stdin = []byte(t.cases[i].File.String())
			continue
		}
		path, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) { // it comes with enilab, and the machine's enilab has it too
			continue
		}
		if err != nil {
			return err
		}
		t.job.Files = append(t.job.Files, vm.JobFile{Path: path, Data: data})
	}
	if t.machine.Pause, err = t.paused(); err != nil {
		return err
	}
	return t.machine.Prepare()
}

// Where a machine has the systems that were found outside: what is known of them, and below the folder their files.
const (
	foundFile   = "/var/tmp/found.json"
	foundFolder = "/opt/enilab/found"
)

// bring puts the systems that are played into the machine.
func (t *theatre) bring() error {
	if len(t.f.found) == 0 {
		return nil
	}
	inside := map[string]systems.System{}
	for i, name := range slices.Sorted(maps.Keys(t.f.found)) {
		s := *t.f.found[name]
		folder := filepath.Join(foundFolder, strconv.Itoa(i))
		from := []string{s.Conflist.From}
		for _, f := range s.Files {
			from = append(from, f.From)
		}
		if s.Root != "" { // its folder has links to what else it needs
			from = []string{"."}
		}
		for _, f := range from {
			if f == "" {
				continue
			}
			if err := t.machine.Image.AddTree(filepath.Join(folder, f), filepath.Join(s.Folder, f)); err != nil {
				return fmt.Errorf("give a virtual machine %s: %w", name, err)
			}
		}
		s.Folder = folder
		inside[name] = s
	}
	data, err := json.Marshal(inside)
	if err != nil {
		return err
	}
	t.job.Files = append(t.job.Files, vm.JobFile{Path: foundFile, Data: data})
	return nil
}

// foreign says whether this computer's programs do not run in the machine.
func (t *theatre) foreign() bool { return t.f.arch != runtime.GOARCH }

// furnish puts into a machine what the laboratory executes: the daemon and the plugin beside this program, and of the host what a node's steps and
// some daemons use.
func (t *theatre) furnish(m *vm.Image, programs string) error {
	for _, name := range []string{"ipamd", "aws-cni"} {
		if err := m.AddFile(filepath.Join(vm.Programs, name), filepath.Join(programs, name)); err != nil {
			return &vm.Lacking{Why: fmt.Sprintf("a virtual machine needs %s beside enilab (%v): make build makes ipamd, aws-cni and enilab side by side", name, err)}
		}
	}
	if t.foreign() {
		return t.addBusybox(m, append([]string{"env", "true", "sh"}, tools(t.f.found)...)...)
	}
	needed := []string{"env", "true"}
	wished := []string{"sh", "iptables", "iptables-save", "iptables-restore", "ip6tables", "ip6tables-save", "ip6tables-restore", "xtables-nft-multi"}
	for i, name := range slices.Concat(needed, tools(t.f.found), wished) {
		path, err := lookTool(name)
		if err != nil && i < len(needed) {
			return &vm.Lacking{Why: fmt.Sprintf("a virtual machine is given this computer's %s, which it has not: apt-get install %s", name, systems.Package(name))}
		}
		if err != nil {
			continue
		}
		if err := m.AddProgram(path); err != nil {
			return fmt.Errorf("give a virtual machine this computer's %s: %w", name, err)
		}
	}
	for _, dir := range []string{"/bin", "/sbin"} { // scripts name their interpreter by /bin
		if target, err := os.Readlink(dir); err == nil {
			m.AddLink(dir, target)
		}
	}
	for _, dir := range []string{"/usr/lib/x86_64-linux-gnu/xtables", "/usr/lib/aarch64-linux-gnu/xtables"} {
		if _, err := os.Stat(dir); err != nil {
			continue
		}
		if err := m.AddHost(dir); err != nil {
			return fmt.Errorf("give a virtual machine this host's %s: %w", dir, err)
		}
	}
	return nil
}

// addBusybox puts one program with many names into a machine that cannot execute this computer's. A name may be there twice.
func (t *theatre) addBusybox(m *vm.Image, names ...string) error {
	path, err := vm.Busybox(t.f.arch)
	if err != nil {
		return err
	}
	if err := m.AddFile("/usr/bin/busybox", path); err != nil {
		return err
	}
	m.AddLink("/bin", "usr/bin")
	for _, name := range names {
		m.AddLink("/usr/bin/"+name, "busybox")
	}
	return nil
}

// jobOf is what a machine does with a seed.
func (t *theatre) jobOf(seed uint64, asJSON bool) *vm.Job {
	j := t.job
	j.Seed = seed
	clock := t.f.clock
	if clock == "" {
		clock = clockMachine
	}
	j.Args = []string{"run", "--on", "netns", "--clock", string(clock), "--seed", strconv.FormatUint(seed, 10)}
	for _, x := range []struct {
		on   bool
		flag string
	}{{asJSON, "--json"}, {t.f.blind, "--without-books"}, {t.f.timeline, "--timeline"}, {t.f.first, "--stop-at-first"}, {t.f.against != "", "--against=" + t.f.against}} {
		if x.on {
			j.Args = append(j.Args, x.flag)
		}
	}
	if t.f.cni != "" {
		j.Args = append(j.Args, "--cni", t.f.cni)
	}
	inside := t.f.in.String()
	if t.foreign() {
		inside += " --arch " + t.f.arch
	}
	j.Args = append(j.Args, "--inside", inside)
	if len(t.f.found) > 0 {
		j.Args = append(j.Args, "--found", foundFile)
	}
	if t.f.out != "" || t.f.twice {
		j.Out = machineOut
		j.Args = append(j.Args, "--out", machineOut)
	}
	if t.f.reports.wanted() {
		j.Out = machineOut
		j.Args = append(j.Args, "--runs", filepath.Join(machineOut, seedFolder(seed), runsName))
	}
	j.Args = append(append(j.Args, "--"), t.names...)
	return &j
}

// spent says what a machine has taken, with ENILAB_VERBOSE.
func (t *theatre) spent(p *vm.Played) {
	if os.Getenv("ENILAB_VERBOSE") != "" {
		fmt.Fprintf(t.err, "virtual machine: kernel %s, first line after %.1f s, %.0f s of CPU, %.0f s in all; %.1f s of its own time, the command from %.1f s on\n", t.machine.Kernel.Version,
			p.First.Seconds(), p.CPU.Seconds(), p.Wall.Seconds(), p.Ended.Seconds(), p.Began.Seconds())
	}
}

// keep writes what came of a seed into the folder of --out: what the laboratory inside has written, and what its kernel said.
func (t *theatre) keep(seed uint64, p *vm.Played) error {
	if t.f.out == "" || p == nil || p.Result == nil {
		return nil
	}
	files := maps.Clone(p.Files)
	files[filepath.Join(seedFolder(seed), vm.ConsoleName)] = p.Console
	for name, data := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the machine hands out a file %q, which is not below its folder", name)
		}
		if strings.HasPrefix(name, pausedFolder) {
			name = filepath.Join(seedFolder(seed), name)
		}
		to := filepath.Join(t.f.out, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// pausedFolder is below which a machine that was paused hands out what its shell had to look at.
var pausedFolder = filepath.Base(vm.PauseFolder) + "/"

// machineOut is where a machine's laboratory writes what --out asks for.
const machineOut = "/var/tmp/out"

// twice plays everything twice, side by side, and compares every byte.
func (t *theatre) twice() error {
	var runs [2]*vm.Played
	var errs [2]error
	ctx, cancel := context.WithCancel(t.context())
	defer cancel()
	var both sync.WaitGroup
	for i := range runs {
		out, diag := io.Writer(t.out), io.Writer(t.err)
		machine := *t.machine
		if i > 0 {
			out, diag, machine.Words = io.Discard, io.Discard, os.Getenv(againVariable)
		}
		both.Go(func() {
			if runs[i], errs[i] = machine.Play(ctx, t.jobOf(t.f.seed, t.f.json), out, diag); errs[i] != nil {
				cancel()
			}
		})
	}
	both.Wait()
	if err := errors.Join(errs[0], errs[1]); err != nil {
		return t.machineError(err)
	}
	if err := t.keep(t.f.seed, runs[0]); err != nil {
		return t.machineError(err)
	}
	t.spent(runs[0])
	if err := t.tellReports(t.runsOf(t.f.seed, runs[0], nil)); err != nil {
		return err
	}
	if d := vm.Difference(runs[0], runs[1]); d != "" {
		return &exit{runner.ExitUnrepeatable, "two machines with one seed were not the same: " + d}
	}
	files, size := runs[0].Compared()
	fmt.Fprintf(t.err, "played twice, and all is the same: %s, %s bytes\n", plural(files, "file"), runner.Number(uint64(size)))
	return ended(runs[0].Code)
}

// againVariable is for tests of --twice: words for the kernel's command line of the second machine alone.
const againVariable = "ENILAB_VM_AGAIN"

// sweep plays every seed in a machine of its own, as many at once as there are cores.
func (t *theatre) sweep(seeds runner.Seeds) error {
	files := make([]*machineSweep, len(t.cases))
	for i, c := range t.cases {
		files[i] = &machineSweep{Sweep: runner.Sweep{Case: c, Seeds: seeds, Mutant: t.f.against}}
	}
	p := newProgress(t.err)
	var mu sync.Mutex // guards what follows, and files
	var failed error
	var runs []report.Run
	done := 0
	next := make(chan uint64)
	ctx, cancel := context.WithCancel(t.context())
	defer cancel()
	var all sync.WaitGroup
	for range min(seeds.Count(), runtime.GOMAXPROCS(0)) {
		all.Go(func() {
			for seed := range next {
				d, wall, told, err := t.document(ctx, seed)
				mu.Lock()
				runs = append(runs, told...)
				done++
				if err == nil && len(d.Files) != len(files) {
					err = fmt.Errorf("seed %d: the machine told of %s, expected %d", seed, plural(len(d.Files), "file"), len(files))
				}
				if err != nil {
					if failed == nil {
						failed = fmt.Errorf("seed %d: %w", seed, err)
					}
					cancel()
				} else {
					for i := range d.Files {
						files[i].take(seed, &d.Files[i], wall/time.Duration(len(d.Files)))
					}
				}
				p.say(fmt.Sprintf("run %s of %s: seed %d", runner.Number(uint64(done)), runner.Number(uint64(seeds.Count())), seed))
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
	sortRuns(runs, t.cases)
	err := t.tellReports(runs)
	if failed != nil {
		return t.machineError(errors.Join(failed, err))
	}
	if err != nil {
		return err
	}
	return t.tellSweeps(seeds, files)
}

// document plays a seed and reads what the machine says of it.
func (t *theatre) document(ctx context.Context, seed uint64) (*runner.Document, time.Duration, []report.Run, error) {
	p, err := t.machine.Play(ctx, t.jobOf(seed, true), io.Discard, t.err)
	err = errors.Join(err, t.keep(seed, p))
	runs := t.runsOf(seed, p, err)
	if err != nil {
		return nil, 0, runs, err
	}
	t.spent(p)
	d := &runner.Document{}
	if err := json.NewDecoder(bytes.NewReader(p.Stdout)).Decode(d); err != nil {
		return nil, 0, runs, fmt.Errorf("the machine's report is none (exit code %d): %w", p.Code, err)
	}
	return d, p.Wall, runs, nil
}

// machineSweep is what came of one file, machine by machine.
type machineSweep struct {
	runner.Sweep
	first runner.FileDocument // of the first seed that failed
}

func (s *machineSweep) take(seed uint64, f *runner.FileDocument, wall time.Duration) {
	status, _ := runner.StatusOf(f.Status)
	s.Ran++
	s.Events += f.Events
	s.Virtual += time.Duration(f.Virtual * float64(time.Second))
	s.Wall += wall
	s.Lines = max(s.Lines, len(f.Skipped))
	if runner.Worst(s.Status.Exit(), status.Exit()) != s.Status.Exit() {
		s.Status = status
	}
	if !status.Fails() {
		return
	}
	at, _ := slices.BinarySearch(s.Failed, seed)
	if s.Failed = slices.Insert(s.Failed, at, seed); at == 0 {
		s.first = *f
	}
}

// text is a line, and the first failed seed's report.
func (s *machineSweep) text() string {
	text := s.Report()
	if len(s.Failed) > 0 {
		text += fmt.Sprintf("seed %d:\n%s", s.Failed[0], s.first.Report)
	}
	return text
}

func (t *theatre) tellSweeps(seeds runner.Seeds, files []*machineSweep) error {
	code := runner.ExitHeld
	d := sweepOf(t.f, seeds, nil, code)
	var sweeps []*runner.Sweep
	for _, s := range files {
		code = runner.Worst(code, s.Status.Exit())
		sweeps = append(sweeps, &s.Sweep)
		j := s.Document()
		if j.Report = s.text(); len(s.Failed) > 0 {
			j.First = &s.first
		}
		d.Files = append(d.Files, j)
		if !t.f.json {
			t.verdict(s.Status, j.Report)
		}
	}
	if d.Exit = code; t.f.json {
		return t.writeJSON(d, code)
	}
	if len(files) > 1 {
		t.sweptTotal(seeds, sweeps)
	}
	t.named(&t.f.reports)
	return ended(code)
}
