//go:build !linux

package lab_test

import "github.com/enilab/enilab/sim/lab"

// machine is Linux's.
func machine([]string) error { return lab.Available() }
