//go:build !linux

package linux

import (
	"context"
	"errors"
	"os"

	"github.com/enilab/enilab/impl/dataplane"
)

var errSystem = errors.New("the dataplane needs Linux")

// Kernel needs Linux.
type Kernel struct{}

// Open needs Linux.
func Open(Options) (*Kernel, error) { return nil, errSystem }

// Apply needs Linux.
func (k *Kernel) Apply(dataplane.Plan, *Pod) (int, *dataplane.Error) {
	return 0, &dataplane.Error{Text: errSystem.Error()}
}

// Observe needs Linux.
func (k *Kernel) Observe() (dataplane.Observation, error) {
	return dataplane.Observation{}, errSystem
}

// Watch needs Linux.
func (k *Kernel) Watch(context.Context, func()) error { return errSystem }

// Close needs Linux.
func (k *Kernel) Close() error { return nil }

// Pod needs Linux.
type Pod struct{}

// NewPod needs Linux.
func NewPod(_, _ *os.File) (*Pod, error) { return nil, errSystem }

// Inode needs Linux.
func (p *Pod) Inode() uint64 { return 0 }

// Close needs Linux.
func (p *Pod) Close() error { return nil }
