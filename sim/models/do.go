package models

import (
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

// Do carries out an action, now, and gives its number.
func (h *Host) Do(a *verb.Act) (id int) {
	id = h.Acts.Begin(actions.Describe(a))
	switch a.Subject.Kind {
	case scn.Node:
		h.doNode(h.Nodes[a.Subject.Node], a, id)
	case scn.AllNodes:
		for _, n := range h.Nodes[1:] {
			if one, part := h.Acts.Part(id, a, int(n.No), n.Gone); !n.Gone {
				h.doNode(n, one, part)
			}
		}
	case scn.Pod:
		h.doPod(a, id)
	default:
		if p, ok := h.Kube.Find(a.Text("pod")); ok {
			h.Acts.Means(id, a.Text("pod"), p.Name)
		}
		h.took(id, a.Of.Strike(h.target(a, id)))
	}
	h.Pump()
	return id
}

// Strike is what has become of an action by now.
func (h *Host) Strike(id int) verb.Strike { return h.Acts.Of(id) }

// target is what an action finds that is about no node.
func (h *Host) target(a *verb.Act, id int) *verb.Target {
	return &verb.Target{Act: a, ID: id, Network: network{h}, API: api{h}, Cloud: &verb.Cloud{
		Model: h.EC2, Cluster: h.Cluster.Name, Now: h.World.Clock(),
		Nodes:    len(h.Nodes) - 1,
		Instance: func(no int) ec2.InstanceID { return h.Nodes[no].Instance }, Address: actions.AddressIn(h.Kube)}}
}

// targetOn is what an action finds on a node.
func (h *Host) targetOn(n *Node, a *verb.Act, id int) *verb.Target {
	t, on := h.target(a, id), onNode{h, n, id}
	t.Daemon, t.Kernel, t.Runtime = daemon{on}, kernelOf{on}, runtime{on}
	return t
}

// onNode is one action on a node.
type onNode struct {
	h  *Host
	n  *Node
	id int
}

func (h *Host) doNode(n *Node, a *verb.Act, id int) {
	if n.Gone {
		h.took(id, verb.Miss(actions.Terminated))
		return
	}
	n.Changed = true
	h.took(id, a.Of.Strike(h.targetOn(n, a, id)))
}

func (h *Host) doPod(a *verb.Act, id int) {
	p, ok := h.Kube.Find(a.Subject.Pod)
	n := h.at(p.Node) // nil where there is no such pod: node 0 is none
	if !ok || n == nil || n.Gone {
		h.took(id, actions.NoPod(a.Subject.Pod, ok))
		return
	}
	n.Changed = true
	n.CRI.Number(id)
	h.Acts.Means(id, a.Subject.Pod, p.Name)
	t := h.targetOn(n, a, id)
	t.Pod = verb.Pod{Name: p.Name, UID: p.UID}
	h.took(id, a.Of.Strike(t))
	h.ArmKubelet(n)
}

// EndFaults ends what actions broke. An action that nothing has met yet stays what it is: armed, and told as missed in the end.
func (h *Host) EndFaults() {
	now := h.World.Clock()
	h.Auditor.FaultsEnded(now)
	h.EC2.ClearFaults(now)
	actions.Grant(h.EC2, h.Cluster)
	h.EC2.SetLag(ec2.Lag{})
	if h.Kube.Away(now) {
		h.Kube.Part(now, now)
	}
	h.Traps = nil
	for _, n := range h.Nodes[1:] {
		if n.Gone {
			continue
		}
		if n.Socket != Right {
			n.Socket = Right
			n.Machine.Exchanged()
		}
		n.CRI.FailDELs(0, 0)
		n.CRI.EndHangs(now)
		if n.Down {
			n.Down = false
			n.Machine.Start()
		}
		h.ArmKubelet(n)
	}
	h.Pump()
}
