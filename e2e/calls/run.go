package calls

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"syscall"
)

// outcome is how a plugin ended.
type outcome struct {
	Stdout, Stderr []byte
	Exit           int    // what a shell would say: 128 and the signal's number when a signal ended it
	Signal         string // its name; empty when the plugin ended by itself
}

// execute runs a plugin with this process's environment and gives what it wrote; its stderr is also passed on as it comes. The plugin
// does not outlive this process: a runtime kills a plugin that takes too long with SIGKILL, which nobody can pass on, so the
// kernel does (PR_SET_PDEATHSIG). Other signals are passed on.
func execute(plugin string, stdin []byte) (outcome, error) {
	// PR_SET_PDEATHSIG means the thread that forked, not the process.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	var stdout, stderr bytes.Buffer
	c := &exec.Cmd{
		Path: plugin, Args: []string{plugin}, Stdin: bytes.NewReader(stdin),
		Stdout: &stdout, Stderr: io.MultiWriter(&stderr, os.Stderr), SysProcAttr: dieWithParent(),
	}
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	defer signal.Stop(signals)
	if err := c.Start(); err != nil {
		return outcome{}, err
	}
	ended := make(chan struct{})
	go func() {
		for {
			select {
			case s := <-signals:
				_ = c.Process.Signal(s) // it may have ended by itself
			case <-ended:
				return
			}
		}
	}()
	err := c.Wait()
	close(ended)
	o := outcome{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	var exit *exec.ExitError
	switch {
	case err == nil:
	case !errors.As(err, &exit):
		return o, err
	default:
		o.Exit = exit.ExitCode()
		if s, ok := exit.Sys().(syscall.WaitStatus); ok && s.Signaled() {
			o.Exit, o.Signal = 128+int(s.Signal()), s.Signal().String()
		}
	}
	return o, nil
}
