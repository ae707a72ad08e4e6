package kind

import (
	"net/netip"
	"os"
	"slices"
	"strconv"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// namespace is a pod's, mounted.
type namespace struct {
	name  string
	inode uint64
	addrs []netip.Addr // IPv4, without loopback's
}

// has says whether an address is configured there.
func (n *namespace) has(a netip.Addr) bool { return slices.Contains(n.addrs, a) }

// ownNetns is where the host finds the network namespace of a machine itself.
func ownNetns(n *cluster.Node) string { return "/proc/" + strconv.Itoa(n.PID()) + "/ns/net" }

// names of a folder's entries, sorted; none of one that is not there.
func names(dir string) (out []string) {
	list, err := os.ReadDir(dir)
	if err != nil {
		return nil
	}
	for _, e := range list {
		out = append(out, e.Name())
	}
	return out
}
