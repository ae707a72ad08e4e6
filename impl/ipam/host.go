package ipam

import (
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// host is the node's own rules and routes, without which no pod is served.
type host struct {
	*life    `json:"-"`
	ledger   *ledger
	evidence *evidence

	HostDone  bool
	HostBusy  bool
	HostTries int           // failures in a row
	HostAt    time.Duration // not before, after a failure
}

// vpcChanged: a CIDR added to the VPC must not be SNATed to (amazon-vpc-cni-k8s #1423). IMDS has been seen without
// secondary CIDRs on some types (lyft cni-ipvlan-vpc-k8s, aws/bugs.go), so CIDRs are only added.
func (h *host) vpcChanged(cidrs []netip.Prefix) {
	grown := false
	for _, c := range cidrs {
		if !slices.Contains(h.Inst.VPC, c) {
			h.Inst.VPC = append(slices.Clone(h.Inst.VPC), c)
			grown = true
		}
	}
	if grown && h.HostDone && !h.HostBusy {
		h.applyHost(dataplane.HostPlan(h.hostSpec()))
	}
}

func (h *host) hostSpec() dataplane.HostSpec {
	return dataplane.HostSpec{PrimaryMAC: h.Inst.PrimaryMAC, NodeAddress: h.Inst.Address, VPCCIDRs: h.Inst.VPC,
		ExternalSNAT: h.Set.ExternalSNAT, NodePort: h.Set.NodePort, MTU: h.Set.MTU}
}

func (h *host) applyHost(plan dataplane.Plan) {
	h.HostBusy = true
	h.emit(&Apply{ID: h.ledger.await(hostPlan, 0), Lane: Lane{Kind: HostLane}, Plan: plan})
}

func (h *host) hostApplied(now time.Duration, in Applied) {
	h.HostBusy = false
	if in.Err != nil {
		h.trouble(troubleHost, in.Err.Error())
		h.HostTries++
		h.HostAt = now + removalPause<<min(h.HostTries-1, 5)
		h.evidence.want(LookKernel, h.HostAt)
		return
	}
	h.trouble(troubleHost, "")
	h.HostDone, h.HostTries = true, 0
}

// repairHost puts back what the kernel lacks of the host's rules.
func (h *host) repairHost(ix *dataplane.Index) {
	plan := h.policy.Repair(dataplane.RepairHost(h.hostSpec(), ix))
	if len(plan.Ops) > 0 && h.HostDone && !h.HostBusy {
		h.note(Note{Point: DriftRepaired, Warn: true, Text: plan.Ops[0].Kind.String()})
		h.applyHost(plan)
	}
}

// waitsFor names what recovery lacks.
func (h *host) waitsFor() string {
	what, why := "the runtime has not answered", h.Troubles[troubleRuntime]
	switch {
	case !h.Known:
		what, why = "instance metadata has not answered", h.Troubles[troubleIMDS]
	case h.evidence.Kernel == nil && !h.HostBusy && !h.HostDone:
		what, why = "the kernel has not been read", h.Troubles[troubleKernel]
	case !h.HostDone:
		what, why = "the host's rules are not set up", h.Troubles[troubleHost]
	}
	if why == "" { // nothing has failed so far
		return what + " yet"
	}
	return what + ": " + why
}
