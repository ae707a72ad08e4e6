package models

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/verb"
)

// FlowPeriod is between two bytes of a flow, and LastPatience how long, in real time, one may take that has been silent for long: the kernel repeats
// less and less often.
const (
	FlowPeriod   = 5 * time.Second
	LastPatience = 10 * time.Second
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

// Client is who holds the flows to a node's pods, from the VPC.
type Client interface {
	// OpenFlows opens a TCP connection to each of some pods, and says to which it could. Echo sends a byte
	// through those that are open and says how each answers; last is that it is the last time for some, which are given
	// as long as they may need. CloseFlow ends one.
	OpenFlows(pods []cri.Truth) []bool
	Echo(pods []cri.Truth, last bool) []Answer
	CloseFlow(pod cri.Truth)
}

// Flows are those to a node's pods. The zero value is none.
type Flows struct {
	open []flow
	cut  int
}

// Measure counts those that are open, or for the metric flows.cut those that were cut.
func (f *Flows) Measure(metric string) int64 {
	if metric == "flows.cut" {
		return int64(f.cut)
	}
	return int64(len(f.open))
}

// Hold lets every flow carry a byte there and back, and tells the judge of each that does, and of those that do not for longer than a client waits. A
// pod that has ended, or that is being taken down, ends its flow; one that runs and has none is given one.
func (f *Flows) Hold(now func() time.Duration, running []cri.Truth, c Client, node int, j FlowJudge) {
	f.open = slices.DeleteFunc(f.open, func(f flow) bool {
		lives := slices.ContainsFunc(running, func(t cri.Truth) bool { return t.Handle == f.pod.Handle && t.Address == f.pod.Address })
		if !lives {
			c.CloseFlow(f.pod)
		}
		return !lives
	})
	pods := make([]cri.Truth, len(f.open))
	last := false
	for i, x := range f.open {
		pods[i] = x.pod
		last = last || x.silent != Never && now()-x.silent > flowPatience
	}
	for i, a := range c.Echo(pods, last) {
		f.heard(now(), &f.open[i], a, c, node, j)
	}
	f.open = slices.DeleteFunc(f.open, func(f flow) bool { return f.silent == cut })
	var fresh []cri.Truth
	for _, t := range running {
		if !slices.ContainsFunc(f.open, func(x flow) bool { return x.pod.Handle == t.Handle }) {
			fresh = append(fresh, t)
		}
	}
	if len(fresh) == 0 {
		return
	}
	for i, open := range c.OpenFlows(fresh) {
		if open {
			f.open = append(f.open, flow{pod: fresh[i], silent: Never})
		}
	}
}

// FlowJudge is told how flows answer: the auditor.
type FlowJudge interface {
	FlowHeld()
	FlowCut(now time.Duration, node int, att ipam.Attachment, pod string, addr netip.Addr, why string, silent time.Duration)
}

var _ FlowJudge = (*judge.Auditor)(nil)

// cut is the instant since when a flow that has been cut is silent.
const cut time.Duration = -1

// heard judges one flow's answer.
func (f *Flows) heard(now time.Duration, x *flow, a Answer, c Client, node int, j FlowJudge) {
	switch {
	case a.Why == "":
		j.FlowHeld()
		x.silent = Never
		return
	case !a.Cut && x.silent == Never:
		x.silent = now
		return
	case !a.Cut && now-x.silent <= flowPatience:
		return
	}
	c.CloseFlow(x.pod)
	var silent time.Duration
	if !a.Cut {
		silent = now - x.silent
	}
	f.cut++
	x.silent = cut
	j.FlowCut(now, node, ipam.Attachment{Network: "aws-cni", ContainerID: x.pod.ID, IfName: "eth0"}, x.pod.Name, x.pod.Address, a.Why, silent)
}

// clone is an independent copy.
func (f *Flows) clone() Flows { return Flows{slices.Clone(f.open), f.cut} }

// network is what flows go through.
type network struct{ h *Host }

// HoldFlows opens a flow to every pod that runs, now and from now on.
func (w network) HoldFlows() verb.Strike {
	h := w.h
	was := h.flowing
	h.flowing = true
	if !was {
		for _, n := range h.Nodes[1:] {
			h.Flow(n)
		}
	}
	open, _ := h.measureFlows("flows.open")
	return FlowsHeld(was, int(open))
}

// FlowsHeld is what came of an action that begins to hold flows: whether they were held already, and how many are open.
func FlowsHeld(was bool, open int) verb.Strike {
	switch {
	case was:
		return verb.Miss("flows are held already")
	case open == 0:
		return verb.Miss("no pod runs that could be connected to")
	}
	return verb.Hit("%s", verb.Some(open, "flow", "is open", "are open"))
}

// Flowing says whether flows are held, so that Flow has to be called now and then.
func (h *Host) Flowing() bool { return h.flowing }

// Flow holds the flows to a node's pods, if flows are held.
func (h *Host) Flow(n *Node) {
	if !h.flowing {
		return
	}
	var running []cri.Truth
	if !n.Gone {
		running = n.running()
	}
	n.flows.Hold(h.World.Clock, running, n.Machine, int(n.No), h.Auditor)
}

// measureFlows is a metric of all nodes' flows.
func (h *Host) measureFlows(metric string) (count int64, ok bool) {
	for _, n := range h.Nodes[1:] {
		count += n.flows.Measure(metric)
	}
	return count, true
}
