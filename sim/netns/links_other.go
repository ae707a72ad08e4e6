//go:build !linux

package netns

import (
	"errors"
	"net/netip"
	"os"
)

var errSystem = errors.New("the laboratory needs Linux")

func addLink(*os.File, string, netip.Prefix) error { return errSystem }

func renameLink(*os.File, string, string) error { return errSystem }
