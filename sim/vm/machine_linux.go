package vm

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// ready is what Prepare has made: files in memory, without a name, that end with this process.
type ready struct {
	emulator string
	image    *os.File
}

// Prepare finds the emulator and makes the initramfs. Close gives it back.
func (m *Machine) Prepare() error {
	m.Kernel.Arch = cmp.Or(m.Kernel.Arch, runtime.GOARCH)
	name, ok := emulators()[m.Kernel.Arch]
	if !ok {
		return &Lacking{fmt.Sprintf("kernel %s is for %s, and machines are amd64 or arm64", m.Kernel, m.Kernel.Arch)}
	}
	if arch, err := archOfProgram(m.Self); err != nil {
		return err
	} else if m.Kernel.Arch != arch {
		return &Lacking{fmt.Sprintf("kernel %s is for %s, and %s for %s: use a kernel for %[4]s (enilab vm kernels), or --arch %[2]s", m.Kernel, m.Kernel.Arch, m.Self, arch)}
	}
	m.emulator = m.Emulator
	if m.emulator == "" {
		path, err := exec.LookPath(name)
		if err != nil {
			return &Lacking{fmt.Sprintf("a virtual machine needs %s, which is not in PATH: on Debian or Ubuntu apt-get install --no-install-recommends %s (no KVM is needed)",
				name, map[string]string{"amd64": "qemu-system-x86", "arm64": "qemu-system-arm"}[m.Kernel.Arch])}
		}
		m.emulator = path
	}
	tree, err := openModules(m.Kernel.Modules)
	if err != nil {
		return &Lacking{fmt.Sprintf("kernel %s: %v", m.Kernel, err)}
	}
	modules, err := tree.order(Modules, slices.Concat(moreModules, m.Modules))
	if err != nil {
		return &Lacking{fmt.Sprintf("kernel %s: %v", m.Kernel, err)}
	}
	for i, x := range modules {
		m.Image.AddData(fmt.Sprintf("%s/%03d-%s.ko", moduleFolder, i, x.name), 0o644, x.data)
	}
	m.Image.AddFolder(moduleFolder)
	if err := m.Image.AddFile(programPath, m.Self); err != nil {
		return err
	}
	needed, err := libraries(m.Self) // none of a static binary, as make build makes it
	for _, lib := range needed {
		err = errors.Join(err, m.Image.AddHost(lib))
	}
	if err != nil {
		return err
	}
	m.Image.AddLink(initPath, programPath)
	if m.image, err = memoryFile("enilab-initramfs"); err != nil {
		return err
	}
	return m.Image.Write(m.image)
}

// Close gives back what Prepare has made.
func (m *Machine) Close() error {
	if m.image == nil {
		return nil
	}
	return m.image.Close()
}

// memoryFile is a file without a name.
func memoryFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a file in memory: %w", err)
	}
	return os.NewFile(uintptr(fd), name), nil
}

// pollEvery is how often the host looks for what the machine has written: its own time, which the machine does not see.
const pollEvery = 20 * time.Millisecond

// run is one machine that runs.
type run struct {
	*Machine
	sinks   Sinks
	channel *channel
	errand  errand
	mapped  []byte // channel and errand
	memory  *os.File
	console *os.File
	words   string

	trunk   *Trunk // that this is, or of which it is a branch; nil: it is a machine by itself
	branch  bool
	control *os.File // a trunk's emulator's end of its control socket
	monitor net.Conn // and ours

	file   io.WriteCloser // that is being handed out
	code   int
	over   bool   // the command has ended
	lack   string // why it never began
	began  time.Time
	first  time.Duration
	boot   time.Duration // the emulator's CPU time until then
	heard  time.Time     // when something was heard of it last
	spent  time.Duration // the emulator's CPU time by then
	waited time.Duration // and for how long it had waited for a CPU
	sign   [3]int64      // what it was
	usage  time.Duration
	stderr bytes.Buffer // the emulator's
}

// Run plays a job in a new machine. The error says why there is no exit code: a *Lacking, or that ctx has ended; the result holds what is known.
func (m *Machine) Run(ctx context.Context, j *Job, s Sinks) (*Result, error) {
	r := m.newRun(j, s)
	defer r.close()
	if err := r.open(j); err != nil {
		return nil, err
	}
	return r.result(r.play(ctx))
}

func (m *Machine) newRun(j *Job, s Sinks) *run {
	return &run{Machine: m, sinks: s, began: time.Now(), heard: time.Now(),
		words: strings.TrimSpace("enilab.seed=" + strconv.FormatUint(j.Seed, 10) + " " + m.Words)}
}

// result is what came of a run that ended with an error, or nil.
func (r *run) result(err error) (*Result, error) {
	console, e := r.text()
	res := &Result{Code: r.code, Paused: r.errand.begun(), Console: console, Began: r.channel.noted(beganAt), Ended: r.channel.noted(aliveAt), Wall: time.Since(r.began), First: r.first, CPU: r.usage, BootCPU: r.boot}
	if err = errors.Join(err, e); err != nil {
		return res, err
	}
	if !r.over {
		return res, &Lacking{r.explain("the virtual machine ended before its command did")}
	}
	return res, nil
}

func (r *run) open(j *Job) (err error) {
	if r.memory, err = memoryFile("enilab-channel"); err != nil {
		return err
	}
	if err := r.memory.Truncate(memorySize); err != nil {
		return err
	}
	mem, err := unix.Mmap(int(r.memory.Fd()), 0, memorySize, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return fmt.Errorf("map a file in memory: %w", err)
	}
	r.channel, r.errand.mem = &channel{mem: mem[:channelSize:channelSize]}, mem[channelSize:]
	r.mapped = mem
	if r.branch {
		r.trunk.channel.copyTo(r.channel)
		r.console, err = memoryFile("enilab-console")
		return err
	}
	if err := r.channel.prepare(j); err != nil {
		return err
	}
	if r.Pause != nil {
		if err := r.errand.prepare(r.Pause); err != nil {
			return err
		}
		r.channel.note(pauseAt, r.Pause.At)
	}
	r.console, err = memoryFile("enilab-console")
	return err
}

func (r *run) close() {
	if r.file != nil {
		_ = r.file.Close()
	}
	if r.mapped != nil {
		_ = unix.Munmap(r.mapped)
	}
	if r.monitor != nil {
		_ = r.monitor.Close()
	}
	for _, f := range []*os.File{r.memory, r.console, r.control} {
		if f != nil {
			_ = f.Close()
		}
	}
}

// play starts the emulator and takes what the machine writes until it ends.
func (r *run) play(ctx context.Context) error {
	done := make(chan error, 1)
	var cmd *exec.Cmd
	started := make(chan error, 1)
	go func() {
		// The emulator dies with the thread that started it, which is this one, and this one with the process.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		cmd = r.command()
		err := cmd.Start()
		started <- err
		if err == nil {
			done <- cmd.Wait()
		}
	}()
	if err := <-started; err != nil {
		return &Lacking{fmt.Sprintf("start %s: %v", r.emulator, err)}
	}
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	var visit *visit // of somebody at a terminal, once the machine has paused
	defer func() { visit.end() }()
	for {
		select {
		case <-tick.C:
			if err := r.take(); err != nil {
				return r.stop(cmd, done, err)
			}
			if r.boot == 0 && r.first != 0 {
				r.boot = cpuTime(cmd.Process.Pid)
			}
			if r.trunk != nil && !r.branch && r.channel.noted(branchAt) != 0 {
				return r.stop(cmd, done, r.save())
			}
			if visit == nil && r.errand.begun() && r.Pause.Terminal != nil {
				var err error
				if visit, err = r.visit(cmd.Process); err != nil {
					return r.stop(cmd, done, err)
				}
				tick.Reset(visitEvery)
			}
			if visit != nil {
				visit.look()
				continue // people may take their time
			}
			if why := r.stuck(cmd.Process.Pid); why != "" {
				return r.stop(cmd, done, &Lacking{r.explain(why)})
			}
		case typed := <-visit.typed():
			visit.give(typed)
		case <-ctx.Done():
			return r.stop(cmd, done, ctx.Err())
		case err := <-done:
			r.usage = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
			if e := r.take(); e != nil {
				return e
			}
			if err != nil && !r.over {
				return &Lacking{r.explain(fmt.Sprintf("%s ended: %v", r.emulator, err))}
			}
			return nil
		}
	}
}

// stop ends the emulator, whatever it does.
func (r *run) stop(cmd *exec.Cmd, done <-chan error, err error) error {
	_ = cmd.Process.Kill()
	<-done
	r.usage = cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	return err
}

// command is the emulator's. Its files are handed over open, in the order of ExtraFiles, from 3 on.
func (r *run) command() *exec.Cmd {
	f := files{kernel: r.Kernel.Image, image: "/proc/self/fd/3", channel: "/proc/self/fd/4", console: "/proc/self/fd/5"}
	args, handed := arguments(r.Kernel.Arch, f, memorySize, r.words), []*os.File{r.image, r.memory, r.console}
	if r.trunk != nil {
		args, handed = branching(args, r.branch), append(handed, r.trunk.memory, r.trunk.state)
		if !r.branch {
			handed = append(handed, r.control)
		}
	}
	cmd := exec.Command(r.emulator, args...)
	cmd.ExtraFiles = handed
	cmd.Stderr = &r.stderr
	cmd.Dir = "/"
	cmd.Env = append(os.Environ(), allocator)
	cmd.SysProcAttr = &unix.SysProcAttr{Pdeathsig: unix.SIGKILL, Setpgid: true} // a terminal's Control-C is for enilab, which ends it itself
	return cmd
}

// allocator lets glibc back what the emulator allocates with huge pages, where the computer has them: its tables of translated code are looked
// up all over, millions of times in a run. What is emulated is the same; another libc does not know the variable.
const allocator = "GLIBC_TUNABLES=glibc.malloc.hugetlb=1"

// take hands on what the machine has written since.
func (r *run) take() error {
	if r.first == 0 && r.channel.noted(beganAt) != 0 {
		r.first = time.Since(r.began)
	}
	return r.channel.read(func(kind uint32, data []byte) error {
		switch kind {
		case recordStdout:
			_, err := r.sinks.Stdout.Write(data)
			return err
		case recordStderr:
			_, err := r.sinks.Stderr.Write(data)
			return err
		case recordFile:
			return r.next(string(data))
		case recordData:
			if r.file == nil {
				return nil
			}
			_, err := r.file.Write(data)
			return err
		case recordExit:
			code, err := strconv.Atoi(string(data))
			if err != nil {
				return fmt.Errorf("the machine's exit code: %w", err)
			}
			r.code, r.over = code, true
			return r.next("")
		case recordLack:
			r.lack = string(data)
			return nil
		}
		return fmt.Errorf("the machine has written a record of kind %d: its memory is damaged", kind)
	})
}

// next ends the file that is being handed out, and begins another.
func (r *run) next(name string) (err error) {
	if r.file != nil {
		err = r.file.Close()
		r.file = nil
	}
	if err != nil || name == "" || r.sinks.File == nil {
		return err
	}
	r.file, err = r.sinks.File(name)
	return err
}

// starved is how many times longer than Quiet an emulator may take that neither works nor waits for a CPU: what it reads and writes takes its time, too.
const starved = 5

// cpuTime is what a process has spent, all its threads together; 0 where it has ended.
func cpuTime(pid int) time.Duration {
	var t unix.Timespec
	const perProcess = 2 // CPUCLOCK_SCHED, clock_getcpuclockid(3)
	if err := unix.ClockGettime(int32(^pid<<3|perProcess), &t); err != nil {
		return 0
	}
	return time.Duration(t.Nano())
}

// cpuWait is how long a process has waited for a CPU, that of its threads that waited longest; 0 where the kernel does not count it (proc(5), schedstat).
func cpuWait(pid int) (longest time.Duration) {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	for _, name := range threads {
		var ran, waited time.Duration
		if f, err := os.Open(name); err == nil {
			_, _ = fmt.Fscan(f, (*int64)(&ran), (*int64)(&waited))
			f.Close()
		}
		longest = max(longest, waited)
	}
	return longest
}

// wouldRun says whether a thread of a process has a CPU, or waits for one: cpuWait grows once it has it, and not while it waits (proc(5), stat).
func wouldRun(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	return slices.ContainsFunc(threads, func(name string) bool {
		stat, _ := os.ReadFile(name)
		return bytes.HasPrefix(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" R")) // what is before is a name, in which anything may stand
	})
}

// stuck says why a machine is given up; "" is that it is not.
func (r *run) stuck(emulator int) string {
	at, spent, waited := time.Now(), cpuTime(emulator), cpuWait(emulator)
	size, _ := r.console.Seek(0, io.SeekEnd) // the emulator has a file description of its own
	sign := [3]int64{size, int64(r.channel.noted(aliveAt)), int64(r.channel.at)}
	if sign != r.sign {
		r.sign, r.heard, r.spent, r.waited = sign, at, spent, waited
	}
	switch {
	case r.Quiet > 0 && (spent-r.spent > r.Quiet || at.Sub(r.heard)-(waited-r.waited) > starved*r.Quiet && !wouldRun(emulator)):
		return fmt.Sprintf("the virtual machine hangs: nothing was heard of it for %v, in which its emulator worked for %v and waited for a CPU for %v, not even that it is alive",
			at.Sub(r.heard).Round(time.Second), (spent - r.spent).Round(time.Second), (waited - r.waited).Round(time.Second))
	case r.Timeout > 0 && at.Sub(r.began) > r.Timeout:
		return fmt.Sprintf("the virtual machine has not come to its end in %v, at %v of its own time: give it longer with --timeout, or a smaller scenario",
			r.Timeout, r.channel.noted(aliveAt).Round(time.Second))
	}
	return ""
}

func (r *run) text() ([]byte, error) {
	info, err := r.console.Stat()
	if err != nil {
		return nil, err
	}
	b := make([]byte, info.Size())
	_, err = r.console.ReadAt(b, 0)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b, err
}

// consoleShown is how many of the console's last lines are enough for a panic.
const consoleShown = 25

// explain adds to why a machine ended what it said.
func (r *run) explain(why string) string {
	if r.lack != "" {
		why += ": " + r.lack
	}
	if text := strings.TrimSpace(r.stderr.String()); text != "" {
		why += "\nthe emulator said:\n" + indent(text)
	}
	console, _ := r.text()
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(console), "\r", "")), "\n")
	if text := strings.Join(lines[max(0, len(lines)-consoleShown):], "\n"); text != "" {
		why += "\nthe last lines of its console:\n" + indent(text)
	} else {
		why += "\nits console is empty: is " + r.Kernel.Image + " a kernel for " + r.Kernel.Arch + "?"
	}
	return why + "\nkernel " + r.Kernel.Version + " of " + r.Kernel.String() + "; enilab vm kernels lists others, and --in vm=FILE takes one"
}

func indent(text string) string { return "  " + strings.ReplaceAll(text, "\n", "\n  ") }

// EmulatorPath is QEMU's path, once Prepare has found it.
func (m *Machine) EmulatorPath() string { return m.emulator }

// Digest writes all that a machine's runs rest on, beside their jobs and the emulator, to w: the kernel and the file system that Prepare has made.
func (m *Machine) Digest(w io.Writer) error {
	k, err := os.Open(m.Kernel.Image)
	if err != nil {
		return err
	}
	defer k.Close()
	if _, err := io.Copy(w, k); err != nil {
		return err
	}
	info, err := m.image.Stat()
	if err != nil {
		return err
	}
	if _, err := io.Copy(w, io.NewSectionReader(m.image, 0, info.Size())); err != nil {
		return err
	}
	_, err = io.WriteString(w, strings.Join(arguments(m.Kernel.Arch, files{}, memorySize, m.Words), " "))
	return err
}
