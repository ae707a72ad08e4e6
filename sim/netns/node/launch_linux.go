package node

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// Privileged is nil when this process may make nodes, and says what it lacks otherwise.
func Privileged() error {
	head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&head, &data[0]); err != nil {
		return fmt.Errorf("read capabilities: %w", err)
	}
	for _, c := range []struct {
		bit  int
		name string
	}{{unix.CAP_SYS_ADMIN, "CAP_SYS_ADMIN"}, {unix.CAP_NET_ADMIN, "CAP_NET_ADMIN"}} {
		if data[c.bit/32].Effective&(1<<(c.bit%32)) == 0 {
			return fmt.Errorf("needs %s: run as root", c.name)
		}
	}
	return nil
}

// spawn runs f on a thread that lives as long as this process. A child's parent-death signal comes when the thread that started it
// ends, and Go ends threads as it likes.
var spawn = sync.OnceValue(func() func(func()) {
	work := make(chan func())
	go func() {
		runtime.LockOSThread() // and never unlocked
		for f := range work {
			f()
		}
	}()
	return func(f func()) {
		done := make(chan struct{})
		work <- func() { defer close(done); f() }
		<-done
	}
})

// launch starts the helper's process in new namespaces.
func (n *Node) launch(s *Spec) error {
	if err := Privileged(); err != nil {
		return err
	}
	if err := s.absolute(); err != nil {
		return err
	}
	ours, theirs, err := socketPair()
	if err != nil {
		return err
	}
	defer theirs.Close()
	cmd := &exec.Cmd{Path: "/proc/self/exe", Args: s.Self, Env: []string{searchPath}, ExtraFiles: []*os.File{theirs},
		Stdout: s.Log, Stderr: s.Log, // the same writer: os/exec then writes from one goroutine
		SysProcAttr: &unix.SysProcAttr{Pdeathsig: unix.SIGKILL,
			Setpgid:    true, // a terminal's Control-C is for the laboratory, which ends its nodes itself
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS}}
	spawn()(func() { err = cmd.Start() })
	if err != nil {
		_ = ours.Close()
		return fmt.Errorf("run %q in new namespaces: %w", s.Self, err)
	}
	netns, err := os.Open("/proc/" + strconv.Itoa(cmd.Process.Pid) + "/ns/net")
	if err != nil {
		_ = ours.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return fmt.Errorf("open the new network namespace: %w", err)
	}
	n.process, n.netns, n.wire = cmd, netns, &frames{stream: ours}
	return nil
}

// absolute makes the host's paths independent of the current folder, and refuses those that are not there.
func (s *Spec) absolute() error {
	fix := func(what string, path *string) error {
		p, err := filepath.Abs(*path)
		if err == nil {
			_, err = os.Stat(p)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		*path = p
		return nil
	}
	var errs []error
	if len(s.Daemon) > 0 {
		s.Daemon = append([]string(nil), s.Daemon...)
		errs = append(errs, fix("Spec.Daemon", &s.Daemon[0]))
	}
	if s.Plugin != "" {
		errs = append(errs, fix("Spec.Plugin", &s.Plugin))
	}
	files := make(map[string]string, len(s.Files))
	for inside, host := range s.Files {
		errs = append(errs, fix("Spec.Files "+inside, &host))
		files[inside] = host
	}
	s.Files = files
	return errors.Join(errs...)
}

// socketPair is a stream between the client, which polls it, and the helper.
func socketPair() (ours io.ReadWriteCloser, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("make a socket pair: %w", err)
	}
	return os.NewFile(uintptr(fds[0]), "helper"), os.NewFile(uintptr(fds[1]), "client"), nil
}
