package kind

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/interference"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/verb"
)

// inNode runs f in the machine's network namespace.
func inNode(n *cluster.Node, f func() error) error {
	return within(ownNetns(n), f)
}

// kernelOf is a node's machine and its kernel, for one action.
type kernelOf struct{ *deed }

var _ verb.Kernel = kernelOf{}

func (k kernelOf) Interfere(a kernel.Accident) (count int) {
	if a.What == kernel.FlushNAT {
		if err := nameMachines(k.w.c, k.m.node); err != nil {
			k.check(err)
			return 0
		}
	}
	k.check(inNode(k.m.node, func() (err error) { count, err = interference.Do(a); return err }))
	return count
}

func (k kernelOf) InterfereAt(p verb.Pod, a kernel.Accident) (count int) {
	s, ok := k.sandboxOf(p)
	if !ok {
		return 0
	}
	do := func() (err error) { count, err = interference.Do(a); return err }
	if a.What.Inside() {
		if s.Netns != "" {
			k.check(within(k.m.node.Root()+s.Netns, do))
		}
		return count
	}
	veth, err := hostVeth(k.m.node, s.ID)
	if err != nil || veth == "" {
		k.check(err)
		return 0
	}
	a.Link = veth
	k.check(inNode(k.m.node, do))
	return count
}

func (k kernelOf) MoreAddresses(p verb.Pod, count int) (more []netip.Addr) {
	if k.m == nil {
		return nil
	}
	q, _ := k.w.pods.find(p.Name)
	k.w.c.Cloud(func(_ time.Duration, c *ec2.Cloud) { more = actions.More(c, k.m.node.Instance, q.address, count) })
	return more
}

func (kernelOf) AddThirdParty() verb.Strike           { return cannot() }
func (kernelOf) InterruptDumps(times int) verb.Strike { return cannot() }

func (k kernelOf) Terminate() verb.Strike {
	k.w.mu.Lock()
	k.m.endedBy = k.id
	k.w.mu.Unlock()
	k.w.c.Cloud(func(now time.Duration, c *ec2.Cloud) { c.Terminate(now, k.m.node.Instance) })
	return verb.Wait("EC2 did not terminate the instance")
}

func (k kernelOf) Reboot() verb.Strike {
	k.w.aside(k.m.name()+" restarts", k.m.node.Restart)
	return k.awaits()
}

// nameMachines writes down the cluster's machines on one of them. Docker's resolver is reached by NAT, and nobody puts that back; kubelet
// has to find the API server without it.
func nameMachines(c *cluster.Cluster, n *cluster.Node) error {
	var b bytes.Buffer
	for _, other := range c.Nodes() {
		fmt.Fprintf(&b, "%v %s\n", other.Address, other.Name)
	}
	path := n.Root() + "/etc/hosts"
	text, err := os.ReadFile(path)
	if err != nil || bytes.Contains(text, b.Bytes()) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0) // the file is a mount: it cannot be replaced
	if err != nil {
		return err
	}
	if _, err := f.Write(b.Bytes()); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// hostVeth is the host end of a sandbox's link, "" if there is none.
func hostVeth(n *cluster.Node, containerID string) (string, error) {
	o, err := observe(n)
	if err != nil {
		return "", err
	}
	for _, l := range o.Links {
		if _, id, _, _, ok := dataplane.ParseAlias(l.Alias); ok && id == containerID {
			return l.Name, nil
		}
	}
	return "", nil
}
