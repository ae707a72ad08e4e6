//go:build !linux

package process

import (
	"os"
	"os/exec"
)

// alone is for Linux: only there is a world for it.
func alone(*exec.Cmd) {}

func ask(p *os.Process) error { return p.Signal(os.Interrupt) }

func finish(*os.Process) {}
