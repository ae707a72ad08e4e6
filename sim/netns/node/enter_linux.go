package node

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strconv"

	"golang.org/x/sys/unix"
)

// Enter runs a command in the node whose helper has that process ID, with the caller's standard input, output and error, and gives its
// exit code (-1 after a signal). The caller may be any process with the privileges: it enters the node's mount and network namespaces on
// a thread of its own, and the command becomes a process of the node, so that it sees itself in /proc and ends with the node.
func Enter(pid int, argv []string) (code int, err error) {
	if len(argv) == 0 {
		return -1, errors.New("no command")
	}
	var fds []int
	defer func() {
		for _, fd := range fds {
			_ = unix.Close(fd)
		}
	}()
	for _, kind := range []string{"uts", "ipc", "net", "pid", "mnt"} { // the last changes what every path means
		fd, err := unix.Open("/proc/"+strconv.Itoa(pid)+"/ns/"+kind, unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			return -1, fmt.Errorf("enter process %d's %s namespace: %w", pid, kind, err)
		}
		fds = append(fds, fd)
	}
	err = onThread(func() (err error) { code, err = enter(fds, argv); return err })
	return code, err
}

// enter changes the calling thread for good.
func enter(namespaces []int, argv []string) (int, error) {
	if err := unix.Unshare(unix.CLONE_FS); err != nil { // root and current folder are all threads' until then
		return -1, fmt.Errorf("a thread's own root: %w", err)
	}
	for _, fd := range namespaces {
		if err := unix.Setns(fd, 0); err != nil {
			return -1, fmt.Errorf("enter a namespace: %w", err)
		}
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Env = "/", []string{searchPath, "HOME=/root", "TERM=" + os.Getenv("TERM")}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	defer signal.Stop(signals)
	if err := cmd.Start(); err != nil {
		return -1, err
	}
	ended := make(chan struct{})
	defer close(ended)
	go forward(cmd.Process, signals, ended)
	err := cmd.Wait()
	if _, exited := errors.AsType[*exec.ExitError](err); err != nil && !exited {
		return -1, err
	}
	return cmd.ProcessState.ExitCode(), nil
}

// forward passes signals on. SIGINT and SIGQUIT come from a terminal, which sends them to the command as well.
func forward(p *os.Process, signals <-chan os.Signal, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			if s == unix.SIGTERM || s == unix.SIGHUP {
				_ = p.Signal(s)
			}
		case <-ended:
			return
		}
	}
}
