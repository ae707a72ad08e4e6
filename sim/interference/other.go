//go:build !linux

package interference

import (
	"errors"
	"net/netip"
)

var errLinux = errors.New("only Linux has network namespaces and nftables")

// FlushRules needs Linux.
func FlushRules() (int, error) { return 0, errLinux }

// FlushRoutes needs Linux.
func FlushRoutes(int) (int, error) { return 0, errLinux }

// FlushNAT needs Linux.
func FlushNAT() (bool, error) { return false, errLinux }

// AddThirdParty needs Linux.
func AddThirdParty() ([]string, error) { return nil, errLinux }

// ThirdParty needs Linux.
func ThirdParty() (map[string]string, error) { return nil, errLinux }

// LoseNeighbour needs Linux.
func LoseNeighbour(netip.Addr) (bool, error) { return false, errLinux }

// ChangeMAC needs Linux.
func ChangeMAC(string, string) (bool, error) { return false, errLinux }

// AddAddresses needs Linux.
func AddAddresses(string, []netip.Addr) (int, error) { return 0, errLinux }

// LoseAlias needs Linux.
func LoseAlias(string) (bool, error) { return false, errLinux }
