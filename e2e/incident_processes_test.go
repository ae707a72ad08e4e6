package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	corev1 "k8s.io/api/core/v1"
)

// process of a node, with this machine's number.
type process struct {
	pid, parent int
	state       string // R, S, T, ...: proc_pid_stat(5)
	args        []string
}

// processes of the node, and of the containers in it.
func (s *stage) processes() []process {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return nil // the pattern is good
	}
	all := map[int]process{}
	for _, f := range folders {
		if p, ok := readProcess(f); ok {
			all[p.pid] = p
		}
	}
	var out []process
	for _, p := range all {
		for up := p; up.pid != 0; up = all[up.parent] {
			if up.pid == s.node.PID() {
				out = append(out, p)
				break
			}
		}
	}
	return out
}

// readProcess reads a folder of /proc. One that has ended is none.
func readProcess(folder string) (p process, ok bool) {
	stat, err := os.ReadFile(filepath.Join(folder, "stat"))
	if err != nil {
		return p, false
	}
	line, err := os.ReadFile(filepath.Join(folder, "cmdline"))
	if err != nil {
		return p, false
	}
	p.args = strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")
	p.pid, err = strconv.Atoi(filepath.Base(folder))
	rest := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:])) // the name may hold anything
	if err != nil || len(rest) < 2 {
		return p, false
	}
	p.state = rest[0]
	p.parent, err = strconv.Atoi(rest[1])
	return p, err == nil
}

// find is the node's process whose arguments fit.
func (s *stage) find(what string, fits func(args []string) bool) (process, error) {
	for _, p := range s.processes() {
		if fits(p.args) {
			return p, nil
		}
	}
	return process{}, fmt.Errorf("%s does not run on %s", what, s.node.Name)
}

// daemonProcess is ipamd, or the mutant in its place: not the init container, and not one of kubelet's probes, which are ipamd's too.
func (s *stage) daemonProcess() (process, error) {
	return s.find("the daemon", func(args []string) bool {
		return args[0] == "/ipamd" && !slices.Contains(args, "init") && !slices.Contains(args, "status") || len(args) > 1 && args[0] == "/enilab" && args[1] == "play"
	})
}

// killDaemon ends ipamd as an OOM killer would.
func (s *stage) killDaemon() error {
	p, err := s.daemonProcess()
	if err != nil {
		return err
	}
	return ignoreEnded(syscall.Kill(p.pid, syscall.SIGKILL))
}

// crash ends ipamd and waits until kubelet has started it again.
func (s *scene) crash(ctx context.Context) error {
	before, err := s.view()
	if err != nil {
		return err
	}
	if err := s.killDaemon(); err != nil {
		return err
	}
	return awaited(ctx, rollLimit, "the daemon to come back", func(context.Context) (string, error) {
		v, err := s.view()
		if err == nil && (v.Began == before.Began || !v.View.Serving) {
			return "it does not serve yet", nil
		}
		return "", err
	})
}

func ignoreEnded(err error) error {
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}

// paused is a pod whose sandbox cannot be stopped: its runtime's shim does not run, its processes do.
type paused struct {
	*scene
	sandbox string
	shim    int
	resumed bool
}

// pause stops the shim of a pod's sandbox. From now on its container is held.
func (s *scene) pause(ctx context.Context, p *corev1.Pod) (*paused, error) {
	sandbox, err := s.sandbox(p)
	if err != nil {
		return nil, err
	}
	isShim := func(args []string) bool {
		i := slices.Index(args, "-id")
		return strings.HasPrefix(filepath.Base(args[0]), "containerd-shim") && i > 0 && i+1 < len(args) && args[i+1] == sandbox
	}
	shim, err := s.find("the shim of "+p.Name, isShim)
	if err != nil {
		return nil, err
	}
	out := &paused{scene: s, sandbox: sandbox, shim: shim.pid}
	if err := s.hold(p, sandbox); err != nil {
		return nil, err
	}
	s.later(out.resume)
	if err := syscall.Kill(shim.pid, syscall.SIGSTOP); err != nil {
		return nil, err
	}
	return out, awaited(ctx, startLimit, "the shim of "+p.Name+" to stop", func(context.Context) (string, error) {
		p, err := s.find("the shim of "+p.Name, isShim)
		if err == nil && p.state != "T" {
			return "its state is " + p.state, nil
		}
		return "", err
	})
}

// resume lets the sandbox be stopped.
func (p *paused) resume() error {
	if p.resumed {
		return nil
	}
	p.resumed = true
	p.release(p.sandbox)
	return ignoreEnded(syscall.Kill(p.shim, syscall.SIGCONT))
}

// ended waits until the sandbox's link is gone.
func (p *paused) ended(ctx context.Context) error {
	return awaited(ctx, stopLimit, fmt.Sprintf("sandbox %.8s to be stopped", p.sandbox), func(context.Context) (string, error) {
		o, err := p.observe()
		if err != nil {
			return "", err
		}
		for i := range o.Links {
			if strings.Contains(o.Links[i].Alias, p.sandbox) {
				return o.Links[i].Name + " is there", nil
			}
		}
		return "", nil
	})
}
