package models

import "slices"

// Socket is what stands behind the runtime endpoint that a daemon is configured with.
type Socket uint8

const (
	Right         Socket = iota
	Absent               // nothing listens
	Unimplemented        // Docker's socket does not speak CRI
	Empty                // another runtime, which has no sandboxes
	Partial              // the right runtime, but its answer ends early
)

var socketNames = []string{"right", "absent", "unimplemented", "empty", "partial"}

// String is what scenarios call it.
func (s Socket) String() string { return socketNames[s] }

// ParseSocket reads what scenarios call it. The scenario has been checked, so it is one of them.
func ParseSocket(name string) Socket { return Socket(slices.Index(socketNames, name)) }
