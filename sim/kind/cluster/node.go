package cluster

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/machine"
)

// Node is one machine of a cluster: kind's container, and the instance that EC2 sees in it.
type Node struct {
	Name     string
	Address  netip.Addr // of its primary ENI
	Instance ec2.InstanceID
	Number   int         // from 1
	Zone     string      // that its subnet is in
	Gone     atomic.Bool // its instance is terminated

	home  *home
	log   func(string)
	mac   string        // of the primary ENI
	links machine.Links // the loop's: names by MAC

	mu      sync.Mutex
	pid     int
	boots   int
	netns   *os.File
	servers []*http.Server
	changed chan struct{} // closed when boots grows
	shut    bool
}

// PID is that of the container's init process, as the host sees it; it changes when the node restarts.
func (n *Node) PID() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.pid
}

// Netns is the node's network namespace. The file is the Node's: it is closed when the node restarts.
func (n *Node) Netns() *os.File {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.netns
}

// Root is where the node's file system is seen from the host.
func (n *Node) Root() string { return "/proc/" + strconv.Itoa(n.PID()) + "/root" }

// Exec runs a command inside the node and returns what it printed.
func (n *Node) Exec(ctx context.Context, args ...string) (string, error) {
	return docker(ctx, append([]string{"exec", n.Name}, args...)...)
}

// Restart restarts the machine: all its processes and namespaces end, its file system stays, but /run. It returns when the machine is in
// the VPC again; kubelet comes later.
func (n *Node) Restart(ctx context.Context) error {
	n.mu.Lock()
	before, changed := n.boots, n.changed
	n.mu.Unlock()
	n.log("restarting " + n.Name)
	if err := restartContainer(ctx, n.Name); err != nil {
		return err
	}
	for {
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("restart %s: it is not in the VPC again: %w", n.Name, ctx.Err())
		}
		n.mu.Lock()
		boots, next := n.boots, n.changed
		n.mu.Unlock()
		if boots > before {
			return nil
		}
		changed = next
	}
}

// Alive says whether the machine runs.
func (n *Node) Alive() bool { return alive(n.PID()) }

// Ends says whether the machine's instance is terminated, and its processes have not ended yet.
func (n *Node) Ends() bool { return n.Gone.Load() && n.Alive() }

func (n *Node) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.shut = true
	for _, s := range n.servers {
		_ = s.Close()
	}
	if n.netns != nil {
		_ = n.netns.Close()
	}
}

// containerPID is that of a container's init process.
func containerPID(ctx context.Context, name string) (int, error) {
	text, err := docker(ctx, "container", "inspect", "--format", "{{.State.Pid}}", name)
	if err != nil {
		return 0, err
	}
	pid, err := strconv.Atoi(text)
	if err != nil || pid <= 0 {
		return 0, fmt.Errorf("container %s does not run", name)
	}
	return pid, nil
}
