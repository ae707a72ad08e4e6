package kind

import (
	"net/netip"
	"os"
	"slices"
	"strconv"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// netnsDir is where a node's runtime mounts network namespaces.
const netnsDir = "/run/netns/"

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

// namespaces are the mounted ones of a node: those that live. They are opened for the look and no longer, which would keep them alive.
func namespaces(n *cluster.Node) (out []namespace) {
	dir := n.Root() + netnsDir
	for _, name := range names(dir) {
		if ns, ok := lookInto(dir + name); ok {
			ns.name = name
			out = append(out, ns)
		}
	}
	return out
}

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

func readFile(path string) ([]byte, error) { return os.ReadFile(path) }
