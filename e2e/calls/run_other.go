//go:build !linux

package calls

import "syscall"

// Elsewhere nothing kills a plugin whose shim was killed; there are no network namespaces either, so nobody runs plugins.
func dieWithParent() *syscall.SysProcAttr { return nil }

// netnsAt is 0: there are none.
func netnsAt(string) uint64 { return 0 }
