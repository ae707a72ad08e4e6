//go:build !linux

package plugin

import (
	"errors"
	"net/netip"
	"os"

	"github.com/containernetworking/cni/pkg/types"
)

// errLinux: network namespaces exist on Linux alone.
var errLinux = errors.New("this plugin needs Linux")

type namespace struct {
	file, passed *os.File
	inode        uint64
}

type rtnetlink struct{}

func (v *verb) namespace() (*namespace, error) {
	return nil, errorf(types.ErrInvalidNetNS, "%s: CNI_NETNS=%s: %v", v, v.args.Netns, errLinux)
}

func namespaceInode(string) (inode uint64, own bool) { return 0, false }

func (ns *namespace) link(string) (*link, error)            { return nil, errLinux }
func (ns *namespace) addresses(int) ([]netip.Prefix, error) { return nil, errLinux }
func (ns *namespace) routes() ([]route, error)              { return nil, errLinux }
func (ns *namespace) Close() error                          { return nil }

func dialRoute() (*rtnetlink, error)                  { return nil, errLinux }
func (s *rtnetlink) linkByName(string) (*link, error) { return nil, errLinux }
func (s *rtnetlink) linkByIndex(int) (*link, error)   { return nil, errLinux }
func (s *rtnetlink) Close() error                     { return nil }
