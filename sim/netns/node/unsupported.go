//go:build !linux

package node

import (
	"errors"
	"runtime"
)

var errSystem = errors.New("nodes need Linux's namespaces, and this is " + runtime.GOOS)

// Privileged says why this machine cannot have nodes.
func Privileged() error { return errSystem }

// Main is the helper.
func Main() error { return errSystem }

// Enter runs a command in the node whose helper has that process ID.
func Enter(int, []string) (code int, err error) { return -1, errSystem }

func (n *Node) launch(*Spec) error { return errSystem }
