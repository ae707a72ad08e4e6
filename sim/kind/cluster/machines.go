package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/machine"
)

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
		n := &Node{Name: m.name, Number: i + 1, home: c.layout.homeOf(m.number), log: c.cfg.Log, links: machine.Links{}, changed: make(chan struct{})}
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
	c.mail.Ask(func() {
		n.Instance, err = c.model.Launch(c.Now(), ec2.LaunchSpec{Type: c.cfg.Type, SecondaryAddresses: c.cfg.Secondaries, Address: n.Address, MAC: n.mac,
			Subnet: c.model.Subnets()[n.home.no].ID})
		n.Zone = c.model.Subnets()[n.home.no].Zone
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
	c.mail.Ask(func() { c.plugAll(n) })
	n.mu.Lock()
	n.boots++
	close(n.changed)
	n.changed = make(chan struct{})
	n.mu.Unlock()
	return nil
}

// bootLimit is how long a container may take to run again.
const bootLimit = 2 * time.Minute

// follow waits for the machine's end, and takes it into the VPC again when it has been restarted, by whomever.
func (c *Cluster) follow(n *Node) {
	for {
		if !AwaitExit(n.PID(), c.mail.Closed()) || n.Gone.Load() {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), bootLimit)
		err := c.reboot(ctx, n)
		cancel()
		if err != nil {
			select {
			case <-c.mail.Closed():
			default:
				c.fail(fmt.Errorf("%s ended and did not come back: %w", n.Name, err))
			}
			return
		}
	}
}

func (c *Cluster) reboot(ctx context.Context, n *Node) error {
	c.mail.Ask(func() {
		c.model.Reboot(c.Now(), n.Instance)
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
		case <-c.mail.Closed():
			return machine.ErrClosed
		}
	}
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
