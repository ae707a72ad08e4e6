package vm

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/enilab/enilab/systems"
)

// Laboratory is a machine in which `enilab run --on netns` plays scenarios: enilab, ipamd and aws-cni are in it, the
// systems under test, and the tools of this computer that these execute. Each play has a machine of its own, so
// several can go on at the same time.
type Laboratory struct {
	Kernel  string // a vmlinuz or a Debian kernel package; empty: the first of Find
	Arch    string // as Go says it; empty: this computer's
	Program string // enilab, with ipamd and aws-cni beside it; empty: this program
	// Systems are those that are played, by what scenarios and --cni call them. Open writes into each which tools it
	// is given.
	Systems map[string]*systems.System
	// Later are systems that a branch brings. The machine has what they need of this computer, and not their files, nor
	// anything else that is known of them.
	Later   map[string]*systems.System
	Files   []JobFile     // of every play, such as scenarios
	Stdin   []byte        // of every play
	Timeout time.Duration // of one play; 0: Limit
	Pause   *Pause        // without its tools, which Open puts there; nil: nothing is paused
	Verbose io.Writer     // is told what each play has taken; nil: nobody is

	machine *Machine
	job     Job // what all plays have in common
}

// Play is what a laboratory plays.
type Play struct {
	Seed  uint64
	Flags []string  // of enilab run, beside those that a machine needs
	Names []string  // of scenarios
	Files []JobFile // beside the laboratory's
	Out   bool      // hand out what --out asks for
	Runs  bool      // hand out what reports are made of
	Words string    // added to the kernel's command line
}

// Limit is how long a play may take, in this computer's time, if nothing else is said: what a long scenario with its
// mutants takes on a slow one.
const Limit = time.Hour

// quiet is how long nothing at all may be heard of a machine: a guest that lives says so every second of its own time,
// and an emulator that is as slow as this hangs.
const quiet = 2 * time.Minute

// Where a machine has the systems that were found outside (what is known of them, and below the folder their files),
// and what it hands out.
const (
	foundFile   = "/var/tmp/found.json"
	foundFolder = "/opt/enilab/found"
	// LaterFolder has those of a system that a branch brings, and is empty until then.
	LaterFolder = foundFolder + "/later"
	outFolder   = "/var/tmp/out"
	runsName    = "runs.json"
)

// SeedFolder is the folder of --out that has a seed's files.
func SeedFolder(seed uint64) string { return "seed-" + strconv.FormatUint(seed, 10) }

// Open finds the kernel and what the systems need, and makes the machine. It returns an *Invalid for a kernel that
// cannot be used, and a *Lacking for what this computer lacks. Close gives it back.
func (l *Laboratory) Open() error {
	l.Arch = cmp.Or(l.Arch, runtime.GOARCH)
	l.Timeout = cmp.Or(l.Timeout, Limit)
	if l.Kernel != "" {
		if _, err := Describe(l.Kernel); err != nil {
			return &Invalid{fmt.Sprintf("--in: %v (enilab vm kernels lists those that there are)", err)}
		}
	}
	k, err := Open(l.Kernel, l.Arch)
	if err != nil {
		return err
	}
	if k.Arch != "" && k.Arch != l.Arch {
		return &Invalid{fmt.Sprintf("--in: kernel %s is for %s, and the machine for %s: name a kernel for it, or "+
			"--arch %[2]s", k, k.Arch, l.Arch)}
	}
	self, err := l.program()
	if err != nil {
		return err
	}
	n, err := l.demands(k)
	if err != nil {
		return &Lacking{err.Error()}
	}
	if text := n.missing(); text != "" {
		return &Lacking{text}
	}
	give(l.needing(), l.given)
	l.machine = &Machine{Kernel: k, Image: NewImage(), Modules: modules(l.needing()), Self: self, Timeout: l.Timeout,
		Quiet: quiet}
	if err := l.furnish(filepath.Dir(self)); err != nil {
		return err
	}
	l.job = Job{Files: slices.Clone(l.Files), Stdin: l.Stdin}
	if err := l.bring(); err != nil {
		return err
	}
	if l.job.Dir, err = os.Getwd(); err != nil {
		return err
	}
	if l.Verbose != nil {
		l.job.Env = append(l.job.Env, "ENILAB_VERBOSE=1")
	}
	if l.Pause != nil {
		if err := l.equip(); err != nil {
			return err
		}
		l.machine.Pause = l.Pause
	}
	return l.machine.Prepare()
}

// Close gives back what Open has made.
func (l *Laboratory) Close() error {
	if l.machine == nil {
		return nil
	}
	return l.machine.Close()
}

// program is the enilab that runs in the machine.
func (l *Laboratory) program() (string, error) {
	self := l.Program
	if self == "" {
		var err error
		if self, err = os.Executable(); err != nil {
			return "", err
		}
	}
	if !l.foreign() {
		return self, nil
	}
	self = filepath.Join(filepath.Dir(self), l.Arch, "enilab")
	if _, err := os.Stat(self); err != nil {
		return "", &Lacking{fmt.Sprintf("a virtual machine of %s needs enilab, ipamd and aws-cni for it (%v): make "+
			"build-%[1]s makes them there", l.Arch, err)}
	}
	return self, nil
}

// needing are all systems that need something of the machine.
func (l *Laboratory) needing() map[string]*systems.System {
	all := map[string]*systems.System{}
	maps.Copy(all, l.Later)
	maps.Copy(all, l.Systems)
	return all
}

// foreign says whether this computer's programs do not run in the machine.
func (l *Laboratory) foreign() bool { return l.Arch != runtime.GOARCH }

// bring puts the systems that are played into the machine.
func (l *Laboratory) bring() error {
	l.machine.Image.AddFolder(LaterFolder)
	if len(l.Systems) == 0 {
		return nil
	}
	data, err := found(l.machine.Image, l.Systems, func(i int) string { return filepath.Join(foundFolder, strconv.Itoa(i)) })
	l.job.Files = append(l.job.Files, JobFile{foundFile, data})
	return err
}

// found puts the files of systems into an image, each one's into a folder, and says what is known of them there.
func found(image *Image, list map[string]*systems.System, folder func(i int) string) ([]byte, error) {
	inside := map[string]systems.System{}
	for i, name := range slices.Sorted(maps.Keys(list)) {
		s := *list[name]
		to := folder(i)
		for _, f := range s.Contents() {
			if err := image.AddTree(filepath.Join(to, f), filepath.Join(s.Folder, f)); err != nil {
				return nil, fmt.Errorf("give a virtual machine %s: %w", name, err)
			}
		}
		s.Folder = to
		inside[name] = s
	}
	return json.Marshal(inside)
}

// Fingerprint is a digest of all that plays rest on beside what differs between them: the kernel, what is in the
// machine's file system, what is known of the systems, and the emulator.
func (l *Laboratory) Fingerprint() (string, error) {
	h := sha256.New()
	if err := l.machine.Digest(h); err != nil {
		return "", err
	}
	out, err := exec.Command(l.machine.EmulatorPath(), "--version").Output()
	if err != nil {
		return "", fmt.Errorf("%s --version: %w", l.machine.EmulatorPath(), err)
	}
	h.Write(out)
	for _, f := range l.job.Files {
		fmt.Fprintf(h, "\n%s %d\n", f.Path, len(f.Data))
		h.Write(f.Data)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// Play plays in a new machine, keeps everything that comes of it, and passes text on as it comes. What is known is
// returned with an error too.
func (l *Laboratory) Play(ctx context.Context, p *Play, stdout, stderr io.Writer) (*Played, error) {
	m := *l.machine
	m.Words = p.Words
	out, err := m.Play(ctx, l.jobOf(p), stdout, stderr)
	if err == nil {
		l.tell(out, "in all")
	}
	return out, err
}

// tell says what a play has taken, if somebody wants that.
func (l *Laboratory) tell(p *Played, what string) {
	if l.Verbose != nil {
		fmt.Fprintf(l.Verbose, "virtual machine: kernel %s, first line after %.1f s, %.0f s of CPU, %.1f of them until "+
			"then, %.0f s %s; %.1f s of its own time, the command from %.1f s on\n", l.machine.Kernel.Version,
			p.First.Seconds(), p.CPU.Seconds(), p.BootCPU.Seconds(), p.Wall.Seconds(), what, p.Ended.Seconds(),
			p.Began.Seconds())
	}
}

// LabTrunk is a play that has been stopped where it branches.
type LabTrunk struct {
	*Trunk
	lab  *Laboratory
	over *Played // of a run that ended before it branched
}

// Trunk plays until shortly before an instant of the scenario, at which its branches differ in what their actions do.
func (l *Laboratory) Trunk(ctx context.Context, p *Play, at time.Duration) (*LabTrunk, error) {
	with := *p
	with.Flags = append(slices.Clone(p.Flags), "--branch-at", at.String())
	m := *l.machine
	m.Words = p.Words
	over := &keeper{}
	t, err := m.Trunk(ctx, l.jobOf(&with), func() Sinks { return over.sinks(io.Discard, io.Discard) })
	if err != nil {
		return nil, err
	}
	if l.Verbose != nil {
		fmt.Fprintf(l.Verbose, "virtual machine: %.0f s of CPU until it branches, at %.1f s of its own time\n",
			t.CPU.Seconds(), t.At.Seconds())
	}
	return &LabTrunk{t, l, over.played(t.Over)}, nil
}

// Branch is how a trunk goes on.
type Branch struct {
	Scenario string // its text: the trunk's, but for what actions do from the instant on at which it branches
	System   string // what the scenario calls a system that it brings, one of Laboratory.Later; empty: none
}

// BranchFolder is where a machine has what its branch is: the files branchScenario and branchFound.
const (
	BranchFolder   = "/var/tmp/branch"
	BranchScenario = "scenario"
	BranchFound    = "found.json"
)

// Play plays a branch to its end. Of a trunk whose run ended before it branched, that run is all branches.
func (t *LabTrunk) Play(ctx context.Context, b *Branch) (*Played, error) {
	if t.Over != nil {
		return t.over, nil
	}
	image, later := NewImage(), map[string]*systems.System{}
	if b.System != "" {
		later[b.System] = t.lab.Later[b.System]
	}
	data, err := found(image, later, func(int) string { return LaterFolder })
	if err != nil {
		return nil, err
	}
	image.AddData(filepath.Join(BranchFolder, BranchFound), 0o644, data)
	image.AddData(filepath.Join(BranchFolder, BranchScenario), 0o644, []byte(b.Scenario))
	k := &keeper{}
	res, err := t.Branch(ctx, image, k.sinks(io.Discard, io.Discard))
	out := k.played(res)
	if err == nil {
		t.lab.tell(out, "from its trunk on")
	}
	return out, err
}

// jobOf is what a machine does for a play.
func (l *Laboratory) jobOf(p *Play) *Job {
	j := l.job
	j.Seed = p.Seed
	j.Files = slices.Concat(l.job.Files, p.Files)
	for i := range j.Files {
		if f := &j.Files[i]; !filepath.IsAbs(f.Path) {
			f.Path = filepath.Join(j.Dir, f.Path)
		}
	}
	inside := "vm"
	if l.Kernel != "" {
		inside += "=" + l.Kernel
	}
	if l.foreign() {
		inside += " --arch " + l.Arch
	}
	j.Args = append([]string{"run", "--on", "netns", "--seed", strconv.FormatUint(p.Seed, 10), "--inside", inside},
		p.Flags...)
	if len(l.Systems) > 0 {
		j.Args = append(j.Args, "--found", foundFile)
	}
	if p.Out {
		j.Args = append(j.Args, "--out", outFolder)
	}
	if p.Runs {
		j.Args = append(j.Args, "--runs", filepath.Join(outFolder, SeedFolder(p.Seed), runsName))
	}
	if p.Out || p.Runs {
		j.Out = outFolder
	}
	j.Args = append(append(j.Args, "--"), p.Names...)
	return &j
}

// Document reads into v what a play with --json has written.
func (p *Played) Document(v any) error {
	if err := json.NewDecoder(bytes.NewReader(p.Stdout)).Decode(v); err != nil {
		return fmt.Errorf("the machine's report is none (exit code %d): %w; it said %s", p.Code, err,
			strings.TrimSpace(string(p.Stderr)))
	}
	return nil
}

// Runs reads into v what reports are made of, as a play with Runs has handed it out.
func (p *Played) Runs(seed uint64, v any) error {
	if err := json.Unmarshal(p.Files[filepath.Join(SeedFolder(seed), runsName)], v); err != nil {
		return fmt.Errorf("the machine's runs: %w", err)
	}
	return nil
}

// Save writes what came of a seed into a folder: what the laboratory inside has written, and what its kernel said.
func (p *Played) Save(folder string, seed uint64) error {
	files := maps.Clone(p.Files)
	files[filepath.Join(SeedFolder(seed), consoleName)] = p.Console
	for name, data := range files {
		if !filepath.IsLocal(name) {
			return fmt.Errorf("the machine hands out a file %q, which is not below its folder", name)
		}
		// what the shell of a machine that was paused had to look at
		if strings.HasPrefix(name, filepath.Base(PauseFolder)+"/") {
			name = filepath.Join(SeedFolder(seed), name)
		}
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, data, 0o644); err != nil {
			return err
		}
	}
	return nil
}
