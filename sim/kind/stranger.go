package kind

import (
	"bytes"
	"fmt"
	"os"
	"strconv"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/stranger"
)

// strangeMAC is what udev gives a link.
const strangeMAC = "02:de:ad:be:ef:01"

// inNode runs f in the machine's network namespace.
func inNode(n *Node, f func() error) error {
	return within("/proc/"+strconv.Itoa(n.PID())+"/ns/net", f)
}

// stranger is somebody else who changes the machine's kernel.
func (w *World) stranger(m *member, a *sim.Act) error {
	switch a.Verb {
	case "flush-rules":
		return inNode(m.node, stranger.FlushRules)
	case "flush-routes":
		return inNode(m.node, func() error { return stranger.FlushRoutes(a.Int("table")) })
	case "flush-nat":
		if err := w.nameMachines(m.node); err != nil {
			return err
		}
		return inNode(m.node, stranger.FlushNAT)
	}
	return nil
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

// strangerAtPod is somebody who changes a pod's namespace or its link.
func (w *World) strangerAtPod(m *member, s *sandbox, a *sim.Act) error {
	if a.Verb == "lose-gateway" {
		if s.Netns == "" {
			return nil
		}
		return within(m.node.Root()+s.Netns, func() error { return stranger.LoseNeighbour(dataplane.Gateway()) })
	}
	veth, err := hostVeth(m.node, s.ID)
	if err != nil || veth == "" {
		return err
	}
	return inNode(m.node, func() error {
		if a.Verb == "change-mac" {
			return stranger.ChangeMAC(veth, strangeMAC)
		}
		return stranger.LoseAlias(veth)
	})
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
