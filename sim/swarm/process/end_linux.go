package process

import (
	"os"
	"os/exec"
	"syscall"
)

// alone puts a process at the head of a group of its own, which ends with the thread that starts it.
func alone(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// ask asks a process to end, which ends what it started.
func ask(p *os.Process) error { return p.Signal(os.Interrupt) }

// finish ends what is left of a group whose head has ended.
func finish(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) } // mostly there is none left
