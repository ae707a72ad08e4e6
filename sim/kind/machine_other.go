//go:build !linux

package kind

import (
	"errors"
	"io"
	"net/netip"
	"os"
)

var errOther = errors.New("world kind needs Linux")

func privileged() error                                                  { return errOther }
func echoIn(*os.File) (io.Closer, error)                                 { return nil, errOther }
func openNetns(int) (*os.File, error)                                    { return nil, errOther }
func routes() ([]netip.Prefix, error)                                    { return nil, errOther }
func addGateways(*os.File, []home) error                                 { return errOther }
func configureMachine(*os.File, *home, netip.Addr, []netip.Prefix) error { return errOther }
func awaitExit(int, <-chan struct{}) bool                                { return false }
func alive(int) bool                                                     { return false }

func enoughInotify(int) error { return lacking("world kind needs Linux") }
