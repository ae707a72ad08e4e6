//go:build !linux

package vm

import (
	"context"
	"io"
	"os"
	"time"
)

type ready struct{}

var errLinux = &Lacking{"virtual machines are played on Linux: what a host hands over to them are Linux's files in memory"}

// Booted is false: machines run Linux.
func Booted() bool { return false }

// Init is for machines.
func Init() {}

// Prepare fails on this system.
func (m *Machine) Prepare() error { return errLinux }

// Close does nothing.
func (m *Machine) Close() error { return nil }

// EmulatorPath is empty on this system.
func (*Machine) EmulatorPath() string { return "" }

// Digest fails on this system.
func (*Machine) Digest(io.Writer) error { return errLinux }

// Run fails on this system.
func (m *Machine) Run(context.Context, *Job, Sinks) (*Result, error) { return nil, errLinux }

// Trunk is for Linux.
type Trunk struct {
	Over    *Result
	CPU, At time.Duration
}

// Trunk fails on this system.
func (m *Machine) Trunk(context.Context, *Job, func() Sinks) (*Trunk, error) { return nil, errLinux }

// Branch fails on this system.
func (*Trunk) Branch(context.Context, *Image, Sinks) (*Result, error) { return nil, errLinux }

// Close does nothing.
func (*Trunk) Close() error { return nil }

// Scene is for machines.
type Scene struct{}

// OpenScene gives none: machines run Linux.
func OpenScene() (*Scene, error) { return nil, nil }

// Runs does nothing.
func (*Scene) Runs(time.Duration) {}

// Ends does nothing.
func (*Scene) Ends() {}

// Wanted never has anything.
func (*Scene) Wanted() <-chan os.Signal { return nil }

// Branches does nothing.
func (*Scene) Branches() {}

// Came does nothing.
func (*Scene) Came() {}

// Stand does nothing.
func (*Scene) Stand(func() (*Places, error)) {}

// IsTerminal is asked for machines alone.
func IsTerminal(*os.File) bool { return false }
