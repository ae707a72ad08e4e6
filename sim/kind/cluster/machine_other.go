//go:build !linux

package cluster

import (
	"errors"
	"net/netip"
	"os"
)

var errOther = errors.New("world kind needs Linux")

func privileged() error                                                  { return errOther }
func openNetns(int) (*os.File, error)                                    { return nil, errOther }
func routes() ([]netip.Prefix, error)                                    { return nil, errOther }
func addGateways(*os.File, []home) error                                 { return errOther }
func configureMachine(*os.File, *home, netip.Addr, []netip.Prefix) error { return errOther }
func alive(int) bool                                                     { return false }

// AwaitExit knows of no process.
func AwaitExit(int, <-chan struct{}) bool { return false }

func enoughInotify(int) error { return Lackingf("world kind needs Linux") }
