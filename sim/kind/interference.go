package kind

import (
	"bytes"
	"fmt"
	"net/netip"
	"os"
	"strconv"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/interference"
)

// strangeMAC is what udev gives a link.
const strangeMAC = "02:de:ad:be:ef:01"

// inNode runs f in the machine's network namespace.
func inNode(n *Node, f func() error) error {
	return within("/proc/"+strconv.Itoa(n.PID())+"/ns/net", f)
}

// The verbs of somebody else who changes the machine's kernel. What was changed is told by the kernel.

func (w *World) doFlushRules(m *member, _ *sim.Act, _ int) (s sim.Strike, err error) {
	count := 0
	err = inNode(m.node, func() (err error) { count, err = interference.FlushRules(); return err })
	return actions.Flushed(count, "rules"), err
}

func (w *World) doFlushRoutes(m *member, a *sim.Act, _ int) (s sim.Strike, err error) {
	count := 0
	err = inNode(m.node, func() (err error) { count, err = interference.FlushRoutes(a.Int("table")); return err })
	return actions.Flushed(count, "routes"), err
}

func (w *World) doFlushNAT(m *member, _ *sim.Act, _ int) (s sim.Strike, err error) {
	if err := w.nameMachines(m.node); err != nil {
		return s, err
	}
	had := false
	err = inNode(m.node, func() (err error) { had, err = interference.FlushNAT(); return err })
	return actions.FlushedNAT(had), err
}

// nameMachines writes down the cluster's machines on one of them. Docker's resolver is reached by NAT, and nobody puts that back; kubelet
// has to find the API server without it.
func (w *World) nameMachines(n *Node) error {
	var b bytes.Buffer
	for _, other := range w.c.Nodes() {
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

// The verbs of somebody who changes a pod's namespace or its link.

func (w *World) doLoseGateway(m *member, p pod, s *sandbox, _ *sim.Act, _ int) (sim.Strike, error) {
	if s.Netns == "" {
		return actions.LostGateway(p.name, false), nil
	}
	had := false
	err := within(m.node.Root()+s.Netns, func() (err error) { had, err = interference.LoseNeighbour(dataplane.Gateway()); return err })
	return actions.LostGateway(p.name, had), err
}

func (w *World) doChangeMAC(m *member, p pod, s *sandbox, _ *sim.Act, _ int) (sim.Strike, error) {
	changed, err := atVeth(m, s, func(veth string) (bool, error) { return interference.ChangeMAC(veth, strangeMAC) })
	return actions.ChangedMAC(p.name, changed), err
}

func (w *World) doLoseAlias(m *member, p pod, s *sandbox, _ *sim.Act, _ int) (sim.Strike, error) {
	had, err := atVeth(m, s, interference.LoseAlias)
	return actions.LostAlias(p.name, had), err
}

func (w *World) doAddAddresses(m *member, p pod, s *sandbox, a *sim.Act, _ int) (sim.Strike, error) {
	if s.Netns == "" {
		return actions.AddedAddresses(p.name, 0), nil
	}
	var more []netip.Addr
	w.c.Cloud(func(_ time.Duration, c *ec2.Cloud) {
		more = actions.More(c, m.node.Instance, p.address, a.Int("count"))
	})
	count := 0
	err := within(m.node.Root()+s.Netns, func() (err error) { count, err = interference.AddAddresses(dataplane.PodInterface, more); return err })
	return actions.AddedAddresses(p.name, count), err
}

// atVeth does something to the host end of a sandbox's link, and says whether that changed anything.
func atVeth(m *member, s *sandbox, do func(veth string) (bool, error)) (changed bool, err error) {
	veth, err := hostVeth(m.node, s.ID)
	if err != nil || veth == "" {
		return false, err
	}
	err = inNode(m.node, func() (err error) { changed, err = do(veth); return err })
	return changed, err
}

// hostVeth is the host end of a sandbox's link, "" if there is none.
func hostVeth(n *Node, containerID string) (string, error) {
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
