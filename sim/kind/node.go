package kind

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/machine"
)

// Node is one machine of a cluster: kind's container, and the instance that EC2 sees in it.
type Node struct {
	Name     string
	Address  netip.Addr // of its primary ENI
	Instance ec2.InstanceID
	Number   int    // from 1
	Zone     string // that its subnet is in

	c     *Cluster
	home  *home
	mac   string        // of the primary ENI
	links machine.Links // the loop's: names by MAC

	mu      sync.Mutex
	pid     int
	boots   int
	netns   *os.File
	servers []*http.Server
	changed chan struct{} // closed when boots grows
	shut    bool

	gone atomic.Bool // its instance is terminated
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
	n.c.cfg.Log("restarting " + n.Name)
	if _, err := docker(ctx, "restart", n.Name); err != nil {
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

// plugNodes finds kind's containers and makes instances of them.
func (c *Cluster) plugNodes(ctx context.Context) error {
	text, err := docker(ctx, "container", "ps", "--filter", "label="+kindLabel+"="+c.cfg.Name, "--format", `{{.Names}} {{.Label "io.x-k8s.kind.role"}}`)
	if err != nil {
		return err
	}
	machines := machinesIn(text)
	update := []string{"update", "--restart", "no"}
	for _, m := range machines {
		update = append(update, m.name)
	}
	// kind lets Docker start the nodes whenever Docker itself starts. Without this process they have no VPC.
	if _, err := docker(ctx, update...); err != nil {
		return err
	}
	for i, m := range machines {
		n := &Node{Name: m.name, Number: i + 1, home: c.layout.homeOf(m.number), c: c, links: machine.Links{}, changed: make(chan struct{})}
		if err := c.plugNode(ctx, n); err != nil {
			return fmt.Errorf("plug %s into the VPC: %w", m.name, err)
		}
	}
	return c.Err()
}

func (c *Cluster) plugNode(ctx context.Context, n *Node) error {
	format := fmt.Sprintf(`{{(index .NetworkSettings.Networks %q).IPAddress}} {{(index .NetworkSettings.Networks %q).MacAddress}}`, c.cfg.Name, c.cfg.Name)
	text, err := docker(ctx, "container", "inspect", "--format", format, n.Name)
	if err != nil {
		return err
	}
	address, mac, _ := strings.Cut(text, " ")
	if n.Address, err = netip.ParseAddr(address); err != nil {
		return err
	}
	if !n.home.machines.Contains(n.Address) {
		return fmt.Errorf("its address is %v: expected one of %v, which a client of Docker's in %s asks for while kind runs (is it mounted noexec?)",
			n.Address, n.home.machines, c.temp)
	}
	n.mac = strings.ToLower(mac)
	c.loop.mail.Ask(func() {
		n.Instance, err = c.cloud.Launch(c.loop.now(), ec2.LaunchSpec{Type: c.cfg.Type, SecondaryAddresses: c.cfg.Secondaries, Address: n.Address, MAC: n.mac,
			Subnet: c.cloud.Subnets()[n.home.no].ID})
		n.Zone = c.cloud.Subnets()[n.home.no].Zone
		n.links[n.mac] = segment
		c.byInst[n.Instance] = n
	})
	if err != nil {
		return err
	}
	c.nodes = append(c.nodes, n)
	if err := c.network.Join(n.mac); err != nil {
		return err
	}
	if err := c.boot(ctx, n); err != nil {
		return err
	}
	c.watchers.Go(func() { c.follow(n) })
	return nil
}

// boot takes a machine that has (re)started into the VPC.
func (c *Cluster) boot(ctx context.Context, n *Node) error {
	pid, err := containerPID(ctx, n.Name)
	if err != nil {
		return err
	}
	ns, err := openNetns(pid)
	if err != nil {
		return err
	}
	n.mu.Lock()
	if n.shut {
		n.mu.Unlock()
		return errors.Join(machine.ErrClosed, ns.Close())
	}
	old := n.netns
	n.pid, n.netns = pid, ns
	servers := n.servers
	n.servers = nil
	n.mu.Unlock()
	for _, s := range servers {
		_ = s.Close()
	}
	if old != nil {
		_ = old.Close()
	}
	internet := netip.PrefixFrom(c.network.InternetAddr().Addr(), 32)
	if err := configureMachine(ns, n.home, c.layout.host, append(slices.Clone(c.layout.vpc), internet)); err != nil {
		return err
	}
	if err := c.serve(n); err != nil {
		return err
	}
	c.loop.mail.Ask(func() { c.plugAll(n) })
	n.mu.Lock()
	n.boots++
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
	return nil
}

// ends says whether the machine's instance is terminated, and its processes have not ended yet.
func (n *Node) ends() bool { return n.gone.Load() && alive(n.PID()) }

// killLimit is how long Docker may take to end a machine.
const killLimit = time.Minute

// terminate ends a machine whose instance is terminated. Its container stays, stopped, until the cluster is removed. Only the loop
// calls it.
func (c *Cluster) terminate(n *Node) {
	if n.gone.Swap(true) {
		return
	}
	c.watchers.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), killLimit)
		defer cancel()
		if _, err := docker(ctx, "kill", n.Name); err != nil && alive(n.PID()) {
			c.fail(fmt.Errorf("end %s, whose instance is terminated: %w", n.Name, err))
		}
	})
}

// bootLimit is how long a container may take to run again.
const bootLimit = 2 * time.Minute

// follow waits for the machine's end, and takes it into the VPC again when it has been restarted, by whomever.
func (c *Cluster) follow(n *Node) {
	for {
		if !awaitExit(n.PID(), c.loop.mail.Closed()) || n.gone.Load() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), bootLimit)
		err := c.reboot(ctx, n)
		cancel()
		if err != nil {
			select {
			case <-c.loop.mail.Closed():
			default:
				c.fail(fmt.Errorf("%s ended and did not come back: %w", n.Name, err))
			}
			return
		}
	}
}

func (c *Cluster) reboot(ctx context.Context, n *Node) error {
	c.loop.mail.Ask(func() {
		c.cloud.Reboot(c.loop.now(), n.Instance)
		if c.cfg.Hooks.Rebooted != nil {
			c.cfg.Hooks.Rebooted(n)
		}
	})
	for {
		if err := c.boot(ctx, n); err == nil {
			return nil
		} else if ctx.Err() != nil {
			return err
		}
		select {
		case <-time.After(100 * time.Millisecond): // Docker has no event that its inspection does not lag behind
		case <-c.loop.mail.Closed():
			return machine.ErrClosed
		}
	}
}

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

// placed is a container of kind's, and the number by which the layout knows its node.
type placed struct {
	name   string
	number int
}

// machinesIn are the nodes in a list of kind's containers with their roles, in the order in which they are launched. kind numbers those of a
// role from the second one on.
func machinesIn(text string) (out []placed) {
	names := map[string][]string{}
	for _, line := range strings.Split(text, "\n") {
		name, role, _ := strings.Cut(line, " ")
		names[role] = append(names[role], name)
	}
	for role, list := range names {
		slices.SortFunc(list, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
		for i, name := range list {
			switch role {
			case "control-plane":
				out = append(out, placed{name, -i})
			case "worker":
				out = append(out, placed{name, 1 + i})
			}
		}
	}
	workers := len(names["worker"])
	slices.SortFunc(out, func(a, b placed) int { return launched(a.number, workers) - launched(b.number, workers) })
	return out
}

// launched says which instance a node of that number is, from 0: the first control plane, the workers, then further control planes.
func launched(number, workers int) int {
	if number < 0 {
		return workers - number
	}
	return number
}
