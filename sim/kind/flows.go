package kind

import (
	"context"
	"io"
	"net/netip"
	"os"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/machine"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/verb"
	"github.com/enilab/enilab/sim/vpc"
)

// flows are TCP connections from the VPC to the pods of a node. A pod's image answers nobody: who answers is the laboratory, in the pod's network
// namespace, for as long as the pod runs, for its sockets keep the namespace alive.
type flows struct {
	m     *member
	keep  models.Flows
	to    *vpc.Flows
	peers map[netip.Addr]io.Closer
	paths map[netip.Addr]string // of the running pods' namespaces
}

var _ models.Client = (*flows)(nil)

// holdFlows begins with the flows of all nodes, or goes on with them. The judging goroutine calls it.
func (w *World) holdFlows() {
	if !w.flowing || w.now() < w.nextByte {
		return
	}
	w.nextByte = w.now() + models.FlowPeriod
	for _, m := range w.members[1:] {
		m.flows.hold()
	}
}

func (f *flows) hold() {
	if f.to == nil {
		f.to, f.peers = f.m.w.c.Network().Flows(node.EchoPort), map[netip.Addr]io.Closer{}
	}
	var running []cri.Truth
	f.paths = map[netip.Addr]string{}
	if !f.m.gone() {
		list, err := f.m.runtime.sandboxes(f.m.w.ctx)
		if err != nil {
			return // the runtime restarts, or its machine does: what runs is not known
		}
		for i := range list {
			if s := &list[i]; s.runs() && s.Address.IsValid() && s.Netns != "" {
				f.paths[s.Address] = f.m.node.Root() + s.Netns
				running = append(running, cri.Truth{Sandbox: cri.Sandbox{ID: s.ID, Name: s.Pod}, Handle: cri.SandboxID(inodeAt(f.paths[s.Address])), Address: s.Address})
			}
		}
	}
	f.keep.Hold(f.m.w.now, running, f, int(f.m.no), flowJudge{f.m.w})
}

// OpenFlows has the pods answer, and dials them.
func (f *flows) OpenFlows(pods []cri.Truth) []bool {
	out := make([]bool, len(pods))
	for i, pod := range pods {
		err := f.open(pod)
		if out[i] = err == nil; !out[i] {
			f.m.w.log("%s: no flow to %s yet: %v", f.m.name(), pod.Name, err)
		}
	}
	return out
}

func (f *flows) open(pod cri.Truth) error {
	f.CloseFlow(pod)
	ns, err := os.Open(f.paths[pod.Address])
	if err != nil {
		return err
	}
	defer ns.Close()
	peer, err := echoIn(ns)
	if err != nil {
		return err
	}
	f.peers[pod.Address] = peer
	ctx, cancel := context.WithTimeout(f.m.w.ctx, doubtPatience)
	defer cancel()
	if err := f.to.Open(ctx, pod.Address); err != nil {
		f.CloseFlow(pod)
		return err
	}
	return nil
}

// CloseFlow ends a flow, and who answers it.
func (f *flows) CloseFlow(pod cri.Truth) {
	f.to.Close(pod.Address)
	if peer := f.peers[pod.Address]; peer != nil {
		_ = peer.Close()
		delete(f.peers, pod.Address)
	}
}

// Echo lets each carry a byte there and back.
func (f *flows) Echo(pods []cri.Truth, last bool) []models.Answer {
	patience := doubtPatience
	if last {
		patience = models.LastPatience
	}
	return machine.Echo(f.to, pods, patience)
}

// close ends all, and lets the namespaces go.
func (f *flows) close() {
	for a := range f.peers {
		f.CloseFlow(cri.Truth{Address: a})
	}
}

// flowJudge is the auditor, with mu held.
type flowJudge struct{ w *World }

func (j flowJudge) FlowHeld() {
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	j.w.audit.FlowHeld()
}

func (j flowJudge) FlowCut(now time.Duration, no int, att ipam.Attachment, pod string, addr netip.Addr, why string, silent time.Duration) {
	j.w.mu.Lock()
	defer j.w.mu.Unlock()
	j.w.audit.FlowCut(now, no, att, pod, addr, why, silent)
}

// networkOf is what carries packets, for one action.
type networkOf struct{ *deed }

var _ verb.Network = networkOf{}

// HoldFlows opens a flow to every pod that runs, now and from now on.
func (k networkOf) HoldFlows() verb.Strike {
	was := k.w.flowing
	k.w.flowing = true
	k.w.holdFlows()
	open, _ := k.w.measureFlows("flows.open")
	return models.FlowsHeld(was, int(open))
}

// measureFlows is a metric of all nodes' flows.
func (w *World) measureFlows(metric string) (count int64, ok bool) {
	for _, m := range w.members[1:] {
		count += m.flows.keep.Measure(metric)
	}
	return count, true
}
