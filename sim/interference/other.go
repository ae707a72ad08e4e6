//go:build !linux

package interference

import (
	"errors"

	"github.com/enilab/enilab/fakes/kernel"
)

var errLinux = errors.New("only Linux has network namespaces and nftables")

// Do needs Linux.
func Do(kernel.Accident) (int, error) { return 0, errLinux }

// AddThirdParty needs Linux.
func AddThirdParty() ([]string, error) { return nil, errLinux }

// ThirdParty needs Linux.
func ThirdParty() (map[string]string, error) { return nil, errLinux }
