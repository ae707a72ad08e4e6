//go:build !linux

package kind

import (
	"errors"
	"io"
	"net"
	"os"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/sim/kind/cluster"
)

var errOther = errors.New("world kind needs Linux")

func namespaces(*cluster.Node) []namespace                       { return nil }
func lookInto(string) (namespace, bool)                          { return namespace{}, false }
func inodeAt(string) uint64                                      { return 0 }
func within(string, func() error) error                          { return errOther }
func observe(*cluster.Node) (o dataplane.Observation, err error) { return o, errOther }
func echoIn(*os.File) (io.Closer, error)                         { return nil, errOther }
func peerPID(net.Conn) (int, error)                              { return 0, errOther }
func sigkill(int)                                                {}
