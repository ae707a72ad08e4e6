//go:build !linux

package shim

import "syscall"

// Elsewhere nothing kills a plugin whose shim was killed; there are no network namespaces either, so nobody runs plugins.
func dieWithParent() *syscall.SysProcAttr { return nil }

// Namespace is 0: there are none.
func Namespace(string) uint64 { return 0 }
