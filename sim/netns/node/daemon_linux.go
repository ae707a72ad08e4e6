package node

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// daemon is a daemon that runs.
type daemon struct {
	life  int
	cmd   *exec.Cmd
	log   *log
	began time.Time
	done  chan struct{} // closed once its event has been sent
}

func (h *helper) startDaemon(p Process) (life int, after func(), err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(p.Argv) == 0 {
		return 0, nil, errors.New("no daemon: its argument list is empty")
	}
	if h.daemon != nil {
		return 0, nil, fmt.Errorf("the daemon of life %d still runs", h.daemon.life)
	}
	out, err := openOutput()
	if err != nil {
		return 0, nil, err
	}
	h.life++
	cmd := exec.Command(p.Argv[0], p.Argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = p.folder(), out, out, waitDelay
	cmd.Env = []string{searchPath, "HOSTNAME=" + h.spec.Name, lifeMark(h.life)}
	for _, k := range slices.Sorted(maps.Keys(p.Env)) {
		cmd.Env = append(cmd.Env, k+"="+p.Env[k])
	}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true} // what it starts ends with it, as in a container
	if p.Container {
		cmd.SysProcAttr.Cloneflags = unix.CLONE_NEWPID
	}
	if err := h.startWith(cmd, &p); err != nil {
		out.close()
		return 0, nil, fmt.Errorf("start %s: %w", p.Argv[0], err)
	}
	h.daemon = &daemon{life: h.life, cmd: cmd, log: out, began: time.Now(), done: make(chan struct{})}
	d := h.daemon
	return h.life, func() { h.watch(d) }, nil
}

// startWith starts a process in its own root, if it has one, that can never have other capabilities than its own (nil: any).
func (h *helper) startWith(cmd *exec.Cmd, p *Process) error {
	if p.Capabilities == nil && p.Root == nil {
		return h.start(cmd)
	}
	return onThread(func() error {
		if p.Root != nil {
			if err := p.Root.enter(); err != nil {
				return fmt.Errorf("the root of an image: %w", err)
			}
		}
		if p.Capabilities != nil {
			if err := confine(p.Capabilities); err != nil {
				return err
			}
		}
		return h.start(cmd)
	})
}

// confine takes capabilities from what the calling thread's children may get at execve(2): root gets what is in the bounding set.
func confine(keep []int) error {
	for c := 0; c < 64; c++ {
		if slices.Contains(keep, c) {
			continue
		}
		if err := unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0); errors.Is(err, unix.EINVAL) {
			break // the kernel has no more
		} else if err != nil {
			return fmt.Errorf("drop capability %d: %w", c, err)
		}
	}
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return fmt.Errorf("drop ambient capabilities: %w", err)
	}
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	err := unix.Capget(&head, &data[0])
	if err == nil {
		data[0].Inheritable, data[1].Inheritable = 0, 0
		err = unix.Capset(&head, &data[0])
	}
	if err != nil {
		return fmt.Errorf("drop inheritable capabilities: %w", err)
	}
	return nil
}

// watch waits for the daemon's end and tells of it.
func (h *helper) watch(d *daemon) {
	_ = h.wait(d.cmd)
	_ = unix.Kill(-d.cmd.Process.Pid, unix.SIGKILL) // the rest of its group, if there is one
	endMarked(lifeMark(d.life))                     // and who has left the group
	d.log.close()
	h.mu.Lock()
	h.daemon = nil
	h.mu.Unlock()
	state := d.cmd.ProcessState
	h.event(Event{Kind: DaemonExited, Life: d.life, Code: state.ExitCode(), Exit: state.String(), Took: time.Since(d.began)})
	close(d.done)
}

func (h *helper) signalDaemon(a signalArgs) error {
	h.mu.Lock()
	d := h.daemon
	h.mu.Unlock()
	if d == nil {
		return errors.New("no daemon runs")
	}
	if err := d.cmd.Process.Signal(a.Signal); err != nil {
		return fmt.Errorf("send %v to the daemon of life %d: %w", a.Signal, d.life, err)
	}
	return nil
}

// memory is VmHWM of proc(5), which has it in kB: of the daemon and of all that it has started.
func (h *helper) memory(none) (int64, error) {
	h.mu.Lock()
	d := h.daemon
	h.mu.Unlock()
	if d == nil {
		return 0, errors.New("no daemon runs")
	}
	all, err := marked(lifeMark(d.life))
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, pid := range all {
		data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		if err != nil {
			continue // it has ended
		}
		for line := range strings.Lines(string(data)) {
			if f := strings.Fields(line); len(f) == 3 && f[0] == "VmHWM:" {
				size, err := strconv.ParseInt(f[1], 10, 64)
				if err != nil {
					return 0, err
				}
				sum += size << 10
			}
		}
	}
	if sum == 0 {
		return 0, fmt.Errorf("/proc/%d/status has no VmHWM", d.cmd.Process.Pid)
	}
	return sum, nil
}

// exec runs a command.
func (h *helper) exec(a execArgs) (output, error) {
	if len(a.Argv) == 0 {
		return output{Code: -1}, errors.New("no command")
	}
	ctx, cancel := context.WithTimeout(context.Background(), a.Timeout)
	defer cancel()
	var out limited
	cmd := exec.CommandContext(ctx, a.Argv[0], a.Argv[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = a.folder(), []string{searchPath, "HOME=/root"}, &out, &out, waitDelay
	for _, k := range slices.Sorted(maps.Keys(a.Env)) {
		cmd.Env = append(cmd.Env, k+"="+a.Env[k])
	}
	cmd.SysProcAttr = &unix.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return unix.Kill(-cmd.Process.Pid, unix.SIGKILL) }
	if err := h.startWith(cmd, &a.Process); err != nil {
		return output{Code: -1}, err
	}
	err := h.wait(cmd)
	result := output{Code: cmd.ProcessState.ExitCode(), Data: out.data}
	if ctx.Err() != nil {
		return result, fmt.Errorf("%s was killed after %v", a.Argv[0], a.Timeout)
	}
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return result, err
	}
	return result, nil
}

// waitDelay is how long a dead process's output is waited for when another process still has it open.
const waitDelay = time.Second

// limited keeps the first maxBytes.
type limited struct{ data []byte }

func (l *limited) Write(p []byte) (int, error) {
	l.data = append(l.data, p[:min(len(p), maxBytes-len(l.data))]...)
	return len(p), nil
}
