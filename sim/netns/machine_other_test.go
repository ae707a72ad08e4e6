//go:build !linux

package netns_test

import "github.com/enilab/enilab/sim/netns"

// machine is Linux's.
func machine([]string) error { return netns.Available() }
