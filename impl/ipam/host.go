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

	Done  bool          `json:"HostDone"`
	Busy  bool          `json:"HostBusy"`
	Tries int           `json:"HostTries"` // failures in a row
	At    time.Duration `json:"HostAt"`    // not before, after a failure
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
	if grown && h.Done && !h.Busy {
		h.apply(dataplane.HostPlan(h.spec()))
	}
}

func (h *host) spec() dataplane.HostSpec {
	return dataplane.HostSpec{PrimaryMAC: h.Inst.PrimaryMAC, NodeAddress: h.Inst.Address, VPCCIDRs: h.Inst.VPC,
		ExternalSNAT: h.Set.ExternalSNAT, NodePort: h.Set.NodePort, MTU: h.Set.MTU, VethPrefix: h.Set.VethPrefix}
}

func (h *host) apply(plan dataplane.Plan) {
	h.Busy = true
	h.emit(&Apply{ID: h.ledger.await(hostPlan, 0), Lane: Lane{Kind: HostLane}, Plan: plan})
}

func (h *host) applied(now time.Duration, in Applied) {
	h.Busy = false
	if in.Err != nil {
		h.trouble(troubleHost, in.Err.Error())
		h.Tries++
		h.At = now + removalPause<<min(h.Tries-1, 5)
		h.evidence.want(LookKernel, h.At)
		return
	}
	h.trouble(troubleHost, "")
	h.Done, h.Tries = true, 0
}

// repair puts back what the kernel lacks of the host's rules.
func (h *host) repair(ix *dataplane.Index) {
	plan := h.policy.Repair(dataplane.RepairHost(h.spec(), ix))
	if len(plan.Ops) > 0 && h.Done && !h.Busy {
		h.note(Note{Point: DriftRepaired, Warn: true, Text: plan.Ops[0].Kind.String()})
		h.apply(plan)
	}
}

// waitsFor names what recovery lacks.
func (h *host) waitsFor() string {
	what, why := "the runtime has not answered", h.Troubles[troubleRuntime]
	switch {
	case !h.Known:
		what, why = "instance metadata has not answered", h.Troubles[troubleIMDS]
	case h.evidence.Kernel == nil && !h.Busy && !h.Done:
		what, why = "the kernel has not been read", h.Troubles[troubleKernel]
	case !h.Done:
		what, why = "the host's rules are not set up", h.Troubles[troubleHost]
	}
	if why == "" { // nothing has failed so far
		return what + " yet"
	}
	return what + ": " + why
}
