package models

import (
	"fmt"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/verb"
)

// Survey says what there is now: daemons, ENIs, pods, pools, and EC2's buckets. It asks what is known and changes nothing, so that a run that is
// followed is the same run.
func (h *Host) Survey(t *timeline.Tracks) {
	for _, n := range h.Nodes[1:] {
		if n.Gone {
			continue
		}
		t.Is(n.No, timeline.KindDaemon, "", "daemon", h.daemonState(n), "")
		h.surveyPool(t, n)
		for s := range n.CRI.Sandboxes() {
			state, text := h.podState(n, &s)
			t.Is(n.No, timeline.KindPod, s.ID, s.Name, state, text)
		}
	}
	h.surveyCloud(t)
}

// daemonState is what a node's daemon is doing.
func (h *Host) daemonState(n *Node) string {
	switch {
	case !n.Machine.Lives():
		return "down"
	case !n.Machine.Runs():
		return "starts"
	}
	if v, ok := n.Machine.View(); ok && !v.Serving {
		return "recovers"
	} else if ok && len(v.Reasons) > 0 {
		return "impaired"
	}
	return "runs"
}

// podState is how a sandbox is, and where its address is by EC2's truth.
func (h *Host) podState(n *Node, s *cri.Truth) (state, text string) {
	eni := ec2.ENIID("")
	if s.Address.IsValid() {
		text = s.Address.String()
		var there bool
		if eni, there = h.EC2.HasAddress(n.Instance, s.Address); there {
			text += " on " + string(eni)
		} else {
			text += ", on no ENI of the node"
		}
	}
	switch {
	case !s.Running && !s.Ready && s.OwesDEL:
		return "ends", text
	case !s.Running:
		return "starts", text
	case s.Address.IsValid() && eni == "":
		return "cut off", text
	case h.Auditor.Unreachable(int(n.No), s.ID):
		return "unreachable", text
	}
	return "runs", text
}

// surveyPool says how a node's addresses are used, as its daemon believes; where its books are unknown, as EC2 and the
// runtime know.
func (h *Host) surveyPool(t *timeline.Tracks, n *Node) {
	if v, ok := n.Machine.View(); ok {
		t.Counts(n.No, "addresses", int64(v.Free+v.Assigned+v.Cooling+v.Quarantined-v.Taken))
		t.Counts(n.No, "assigned", int64(v.Assigned))
		t.Counts(n.No, "free", int64(v.Free))
		t.Counts(n.No, "cooling", int64(v.Cooling))
		t.Counts(n.No, "quarantined", int64(v.Quarantined))
		t.Counts(n.No, "waiting", int64(v.Waiting))
	}
	t.Counts(n.No, "pods with an address", int64(len(n.running())))
	if total, ok := h.measureOutside(n, "addresses.total"); ok {
		t.Counts(n.No, "addresses at EC2", total)
	}
}

// limited are the actions whose buckets a report shows: those that a CNI calls.
var limited = []ec2.Action{ec2.CreateNetworkInterface, ec2.AttachNetworkInterface, ec2.DetachNetworkInterface, ec2.DeleteNetworkInterface,
	ec2.AssignPrivateIpAddresses, ec2.UnassignPrivateIpAddresses, ec2.DescribeNetworkInterfaces}

// surveyCloud says which ENIs the nodes have, and what is left of what EC2 gives.
func (h *Host) surveyCloud(t *timeline.Tracks) {
	for _, e := range h.EC2.AllENIs() {
		if no, ours := h.numbers[e.Instance]; ours && !h.Nodes[no].Gone {
			t.Is(no, timeline.KindENI, string(e.ID), string(e.ID), e.Status.String(), fmt.Sprintf("device %d, %s",
				e.DeviceIndex, verb.Number(len(e.Secondaries)+len(e.Prefixes)*16, "address")))
		}
	}
	for _, a := range limited {
		left, capacity := h.EC2.Tokens(h.World.Clock(), a)
		t.Counts(timeline.Cluster, fmt.Sprintf("tokens of %s (of %d)", a, capacity), int64(left))
	}
	t.Counts(timeline.Cluster, "free addresses of the subnet", int64(h.EC2.FreeAddresses(h.EC2.Subnets()[0].ID)))
	t.Counts(timeline.Cluster, "pods ready", int64(h.Kube.Ready()))
	t.Counts(timeline.Cluster, "pods", int64(h.Kube.Len()))
	if throttled, ok := actions.MeasureEC2(h.EC2, h.Base, "calls.throttled"); ok && h.Base != nil {
		t.Counts(timeline.Cluster, "calls throttled", throttled)
	}
}
