package netns

import (
	"fmt"
	"os"
	"slices"
	"strings"
)

// Space is one of the laboratory's network namespaces, for people.
type Space struct {
	Name, Path, About string
}

// Interject lets f happen between two things that the world does. False: the world has been closed. As long as f does not return nothing else
// happens.
func (w *World) Interject(f func()) bool { return w.mail.Post(f) }

// Spaces are the network namespaces that there are: the router's, the nodes', and the pods' by their node and their own name. Interject may call it.
func (w *World) Spaces() []Space {
	out := []Space{{"router", w.routerPath(), "the VPC's router"}}
	for n := range w.nodes.living() {
		out = append(out, Space{n.Name(), fmt.Sprintf("/proc/%d/ns/net", n.box.PID()), "instance " + string(n.Instance)})
		for s := range n.CRI.Sandboxes() {
			if s.Netns == 0 || s.HostNetwork {
				continue
			}
			about := "pod"
			if s.IP.IsValid() {
				about += " " + s.IP.String()
			}
			name := fmt.Sprintf("%s.%s", n.Name(), s.Name)
			taken := func(p Space) bool { return strings.EqualFold(p.Name, name) }
			if slices.ContainsFunc(out, taken) { // kubelet has made another one for it
				name += "." + s.ID[:8]
			}
			out = append(out, Space{name, fmt.Sprintf("/proc/%d/root/run/netns/%s", n.box.PID(), netnsName(s.Handle, s.ID)), about})
		}
	}
	return out
}

// routerPath is where others find the router's namespace.
func (w *World) routerPath() string {
	return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), w.network.Namespace().Fd())
}

// WriteDown writes what Parts.Record asks for as far as it is known. It is the last that a world does which stands still for good.
func (w *World) WriteDown() error { return w.record.close(w.Timeline()) }
