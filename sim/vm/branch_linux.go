package vm

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Trunk is a machine that has been stopped where its run may branch. Each of its branches goes on from there, with the
// same memory and devices, and what it brings of its own.
//
// The machine says that it has come there, and then carries out some hundred million instructions that look at nothing
// the host writes. In these the host stops it. Where exactly does not matter: no time passes while it stands, for its time
// is instructions. So a branch is the same bytes whenever it is played, beside others or alone.
type Trunk struct {
	m       *Machine
	job     *Job
	console []byte
	channel *channel
	mapped  []byte
	memory  *os.File // the machine's
	state   *os.File // of its devices
	// Over is what came of a run that ended before it could branch; nil: it can.
	Over *Result
	CPU  time.Duration // of the host
	At   time.Duration // the machine's time
}

// stopTries is how often a trunk is begun when the computer was too busy to stop it in time.
const stopTries = 3

// Trunk runs a job until its scene may branch (Scene.Branches), or to its end if it never gets there. A *Lacking says
// that this computer's emulator cannot be stopped.
func (m *Machine) Trunk(ctx context.Context, j *Job, sinks func() Sinks) (*Trunk, error) {
	for i := 1; ; i++ {
		t, err := m.tryTrunk(ctx, j, sinks())
		if !errors.Is(err, errLate) {
			return t, err
		}
		if i == stopTries {
			return nil, &Lacking{fmt.Sprintf("%v, %d times: let it do less", err, stopTries)}
		}
	}
}

func (m *Machine) tryTrunk(ctx context.Context, j *Job, s Sinks) (*Trunk, error) {
	job := *j
	job.Trunk = true
	t := &Trunk{m: m, job: &job}
	r := m.newRun(&job, s)
	r.trunk = t
	defer r.close()
	err := t.open()
	if err == nil {
		err = r.open(&job)
	}
	if err == nil {
		err = r.connect()
	}
	if err == nil {
		err = r.play(ctx)
	}
	if errors.Is(err, errSaved) {
		t.console, err = r.text()
		t.CPU, t.At = r.usage, r.channel.noted(aliveAt)
		t.channel, t.mapped, r.mapped = r.channel, r.mapped, nil
	} else if err == nil {
		t.Over, err = r.result(nil)
		t.CPU, t.At = r.usage, t.Over.Ended
	}
	if err != nil {
		return nil, errors.Join(err, t.Close())
	}
	return t, nil
}

// open makes the files of the machine's memory and of what its devices hold.
func (t *Trunk) open() (err error) {
	if t.memory, err = memoryFile("enilab-memory"); err == nil {
		err = t.memory.Truncate(memory << 20)
	}
	if err == nil {
		t.state, err = memoryFile("enilab-state")
	}
	return err
}

// connect makes the socket by which the emulator is controlled.
func (r *run) connect() error {
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make a socket for the emulator: %w", err)
	}
	r.control = os.NewFile(uintptr(ends[1]), "control")
	f := os.NewFile(uintptr(ends[0]), "control")
	defer f.Close()
	r.monitor, err = net.FileConn(f)
	return err
}

// Close gives back the machine's memory.
func (t *Trunk) Close() (err error) {
	if t.mapped != nil {
		err = unix.Munmap(t.mapped)
		t.mapped = nil
	}
	for _, f := range []*os.File{t.memory, t.state} {
		if f != nil {
			err = errors.Join(err, f.Close())
		}
	}
	return err
}

// errSaved is that a trunk stands and is saved, errLate that it had gone on before it stood.
var (
	errSaved = errors.New("the machine has been saved")
	errLate  = errors.New("this computer is too busy: a virtual machine that was to be stopped went on")
)

// save stops the emulator's machine and writes down what its devices hold. It always returns an error.
func (r *run) save() error {
	c := &control{r.monitor, bufio.NewReader(r.monitor)}
	// The emulator answers within milliseconds, or something is wrong with it.
	if err := r.monitor.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return err
	}
	if _, err := c.answer(); err != nil { // its greeting
		return err
	}
	file := fmt.Sprintf("/proc/self/fd/%d", stateFD)
	for _, step := range []struct {
		command   string
		arguments map[string]any
	}{{"qmp_capabilities", nil}, {"stop", nil}, {"xen-save-devices-state", map[string]any{"filename": file, "live": false}}} {
		if err := c.do(step.command, step.arguments); err != nil {
			return &Lacking{fmt.Sprintf("%s cannot stop a machine and save its devices: %v; QEMU 7.2 can", r.emulator,
				err)}
		}
	}
	if r.errand.get(lookedAt) != 0 {
		return errLate
	}
	return errSaved
}

// control is a connection to the emulator's monitor, as the QEMU Machine Protocol says.
type control struct {
	io.Writer
	from *bufio.Reader
}

// answer reads until something comes that is no event.
func (c *control) answer() (map[string]json.RawMessage, error) {
	for {
		line, err := c.from.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("the emulator does not answer: %w", err)
		}
		var a map[string]json.RawMessage
		if err := json.Unmarshal(line, &a); err != nil {
			return nil, fmt.Errorf("the emulator answers %q: %w", line, err)
		}
		if a["event"] == nil {
			return a, nil
		}
	}
}

// do carries out a command.
func (c *control) do(command string, arguments map[string]any) error {
	data, err := json.Marshal(struct {
		Execute   string         `json:"execute"`
		Arguments map[string]any `json:"arguments,omitempty"`
	}{command, arguments})
	if err != nil {
		return err
	}
	if _, err := c.Write(append(data, '\n')); err != nil {
		return err
	}
	a, err := c.answer()
	if err == nil && a["error"] != nil {
		err = fmt.Errorf("%s: %s", command, a["error"])
	}
	return err
}

// Branch plays a trunk to its end in a machine of its own, which is brought some files. It may be called several times,
// also at the same time.
func (t *Trunk) Branch(ctx context.Context, files *Image, s Sinks) (*Result, error) {
	own := *t
	var err error
	if own.state, err = os.Open(fmt.Sprintf("/proc/self/fd/%d", t.state.Fd())); err != nil { // with a place of its own
		return nil, err
	}
	defer own.state.Close()
	r := t.m.newRun(t.job, s)
	r.trunk, r.branch = &own, true
	defer r.close()
	if err := r.open(t.job); err != nil {
		return nil, err
	}
	if err := r.errand.bring(files); err != nil {
		return nil, err
	}
	r.errand.set(branchedAt, 1)
	res, err := r.result(r.play(ctx))
	runtime.KeepAlive(t)
	if res != nil {
		res.Console = slices.Concat(t.console, res.Console)
	}
	return res, err
}

// copyTo gives another channel what is in this one.
func (c *channel) copyTo(to *channel) { copy(to.mem, c.mem[:int(c.noted(writtenAt))]) }

// spin is how many times the machine counts in which the host has to stop it: half a second of its time, and about as
// much of the host's.
const spin = 120_000_000

// untilBranch hands the run over to a branch once it may branch.
func (i *guest) untilBranch() {
	for i.scene.get(mayAt) == 0 {
		pause(pauseLook / 10)
	}
	i.channel.note(branchAt, 1)
	for n := range spin {
		if n%(1<<20) == 0 {
			runtime.Gosched()
		}
	}
	i.errand.set(lookedAt, 1)
	if i.errand.get(branchedAt) == 0 {
		select {} // nobody stopped the machine in time: it is given up
	}
	if err := unpackTar("/", i.errand.tools()); err != nil {
		_ = i.channel.write(recordLack, []byte("unpack what a branch brings: "+err.Error()))
		_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	}
	i.scene.set(cameAt, 1)
}
