package models

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/verb"
)

// flowPatience is for how long a flow may stay without an answer: a client gives up then. It counts whether or not a daemon runs, for a flow
// needs none.
const flowPatience = 30 * time.Second

// flow is a TCP connection from the VPC to a pod.
type flow struct {
	pod    cri.Truth // as it was when the flow began
	silent time.Duration
}

// Answer is how a flow answers.
type Answer struct {
	Why string // "" is that it does
	Cut bool   // it is no flow any more: a reset, or its end
}

// network is what flows go through.
type network struct{ h *Host }

// HoldFlows opens a flow to every pod that runs, now and from now on.
func (w network) HoldFlows() verb.Strike {
	h := w.h
	if h.flowing {
		return verb.Miss("flows are held already")
	}
	h.flowing = true
	open := 0
	for _, n := range h.Nodes[1:] {
		h.Flow(n)
		open += len(n.flows)
	}
	if open == 0 {
		return verb.Miss("no pod runs that could be connected to")
	}
	return verb.Hit("%s", verb.Some(open, "flow", "is open", "are open"))
}

// Flowing says whether flows are held, so that Flow has to be called now and then.
func (h *Host) Flowing() bool { return h.flowing }

// Flow lets every flow of a node carry a byte there and back, and judges those that do not. A pod that has ended, or that is being taken
// down, ends its flow; one that has none is given one.
func (h *Host) Flow(n *Node) {
	if !h.flowing {
		return
	}
	var running []cri.Truth
	if !n.Gone {
		running = n.running()
	}
	n.flows = slices.DeleteFunc(n.flows, func(f flow) bool {
		lives := slices.ContainsFunc(running, func(t cri.Truth) bool { return t.Handle == f.pod.Handle && t.Address == f.pod.Address })
		if !lives {
			n.Machine.CloseFlow(f.pod)
		}
		return !lives
	})
	for i, a := range h.echo(n) {
		h.heard(n, &n.flows[i], a)
	}
	n.flows = slices.DeleteFunc(n.flows, func(f flow) bool { return f.silent == cut })
	var fresh []cri.Truth
	for _, t := range running {
		if !slices.ContainsFunc(n.flows, func(f flow) bool { return f.pod.Handle == t.Handle }) {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) == 0 {
		return
	}
	for i, open := range n.Machine.OpenFlows(fresh) {
		if open {
			n.flows = append(n.flows, flow{pod: fresh[i], silent: Never})
		}
	}
}

// cut is the instant since when a flow that has been cut is silent.
const cut time.Duration = -1

// echo asks all flows of a node.
func (h *Host) echo(n *Node) []Answer {
	pods := make([]cri.Truth, len(n.flows))
	last := false
	for i, f := range n.flows {
		pods[i] = f.pod
		last = last || f.silent != Never && h.World.Clock()-f.silent > flowPatience
	}
	return n.Machine.Echo(pods, last)
}

// heard judges one flow's answer.
func (h *Host) heard(n *Node, f *flow, a Answer) {
	now := h.World.Clock()
	switch {
	case a.Why == "":
		h.Auditor.FlowHeld()
		f.silent = Never
		return
	case !a.Cut && f.silent == Never:
		f.silent = now
		return
	case !a.Cut && now-f.silent <= flowPatience:
		return
	}
	n.Machine.CloseFlow(f.pod)
	var silent time.Duration
	if !a.Cut {
		silent = now - f.silent
	}
	h.flowsCut++
	f.silent = cut
	h.Auditor.FlowCut(now, int(n.No), ipam.Attachment{Network: "aws-cni", ContainerID: f.pod.ID, IfName: "eth0"}, f.pod.Name, f.pod.Address, a.Why, silent)
}

// measureFlows counts the flows that are open, or those that were cut.
func (h *Host) measureFlows(metric string) (int64, bool) {
	if metric == "flows.cut" {
		return int64(h.flowsCut), true
	}
	open := 0
	for _, n := range h.Nodes[1:] {
		open += len(n.flows)
	}
	return int64(open), true
}
