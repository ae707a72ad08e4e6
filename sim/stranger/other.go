//go:build !linux

package stranger

import (
	"errors"
	"net/netip"
)

var errLinux = errors.New("only Linux has network namespaces and nftables")

// FlushRules needs Linux.
func FlushRules() error { return errLinux }

// FlushRoutes needs Linux.
func FlushRoutes(int) error { return errLinux }

// FlushNAT needs Linux.
func FlushNAT() error { return errLinux }

// LoseNeighbour needs Linux.
func LoseNeighbour(netip.Addr) error { return errLinux }

// ChangeMAC needs Linux.
func ChangeMAC(string, string) error { return errLinux }

// LoseAlias needs Linux.
func LoseAlias(string) error { return errLinux }
