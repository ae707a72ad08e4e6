//go:build !linux

package vm

import "context"

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

// Run fails on this system.
func (m *Machine) Run(context.Context, *Job, Sinks) (*Result, error) { return nil, errLinux }
