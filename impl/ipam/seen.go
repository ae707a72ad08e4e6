package ipam

import (
	"cmp"
	"net/netip"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// seenKernel reads an observation of the kernel. Rows that changed after it was asked for are left alone (contract 8).
func (n *Node) seenKernel(now time.Duration, in *Seen, whole bool, asked uint64) {
	if !whole {
		n.trouble(troubleKernel, "reading links, rules and routes was cut short: "+in.Err)
		n.CoolAt = n.pool.nextCool(now)
		return
	}
	n.trouble(troubleKernel, "")
	o := in.Kernel
	if o == nil {
		o = &dataplane.Observation{} // and yet the policy takes the answer for whole
	}
	if n.Phase == recovering {
		n.Kernel = o
		return
	}
	if n.calm && (n.last == o || n.last.Equal(o)) {
		return
	}
	// what leaves a state by this look is judged by the next one (contract 8), which may show the same
	ix, rested := o.IndexBy(n.named), n.atPeace()
	alive := n.pods.testify(now, ix, asked)
	n.pods.added(ix)
	n.pods.unquarantine(now, ix, asked)
	n.pods.coolDowns(now, ix, asked)
	n.driver.drains(now, ix, asked)
	n.driver.links(now, ix)
	n.pods.answerAgains(now, ix, asked)
	if n.Phase == serving { // what a third party took away is put back (rule H)
		n.host.repair(ix)
		n.driver.repairENIs(now, ix)
		n.pods.repairPods(now, ix, asked)
		n.residue(ix, asked)
	}
	n.pods.answerChecks(ix, asked)
	n.pods.collected(now, LookKernel, asked)
	n.CoolAt = n.pool.nextCool(now)
	n.last, n.calm = o, alive && rested && n.atPeace()
}

// atPeace says whether nothing that an observation of the kernel could move is under way.
func (n *Node) atPeace() bool {
	if n.Phase != serving || !n.host.Done || n.host.Busy ||
		n.Count[Cooling]+n.Count[Quarantined]+len(n.Checks)+len(n.Agains) > 0 || n.Collecting.Req != 0 {
		return false
	}
	for i := range n.ENIs {
		if e := &n.ENIs[i]; e.Stage != 0 &&
			(e.Stage != Ready || e.busy() || e.Trimming || e.ByIMDS != 0 || !e.Linked) {
			return false
		}
	}
	return true
}

// residue removes rules and routes of addresses that no pod has. Links are never removed here: a link with our alias
// and a living peer is an allocation, and one without dies with its namespace.
func (n *Node) residue(ix *dataplane.Index, asked uint64) {
	if n.host.Busy {
		return
	}
	keep := func(ip netip.Addr, alias string) bool {
		if alias != "" {
			return true
		}
		i, known := n.byAddress[ip]
		if !known {
			return n.enis.isPrimary(ip) || n.evidence.othersHave(ip)
		}
		a := &n.Addrs[i]
		return a.State == Assigned || a.Op != noOp || a.Tag > asked || a.State == Cooling && a.Cooling == inKernel ||
			a.State == Quarantined
	}
	plan := dataplane.Residue(ix, keep)
	if len(plan.Ops) == 0 {
		return
	}
	n.note(Note{Point: ResidueRemoved, Text: plan.Ops[0].Kind.String()})
	n.host.apply(plan)
}

// seenRuntime reads the runtime's list of sandboxes.
func (n *Node) seenRuntime(now time.Duration, in *Seen, whole bool, asked uint64) {
	if !whole {
		why := cmp.Or(in.Err, "the list lacks ipamd's own sandbox: it is another runtime's")
		if n.Troubles[troubleRuntime] == "" {
			n.note(Note{Point: RuntimeListRefused, Warn: true, Text: why})
		}
		n.trouble(troubleRuntime, "the runtime's list of sandboxes cannot be believed: "+why)
	} else {
		n.trouble(troubleRuntime, "")
	}
	if n.Phase == recovering {
		n.Listed, n.ListedOK = append([]Sandbox(nil), in.Sandboxes...), whole
		n.Answered = true
		return
	}
	if !whole {
		return
	}
	listed := make(map[string]*Sandbox, len(in.Sandboxes))
	for i := range in.Sandboxes {
		listed[in.Sandboxes[i].ID] = &in.Sandboxes[i]
	}
	missing := n.pods.heard(listed, asked)
	n.pool.claims(in.Sandboxes, asked)
	if missing {
		n.calm = false
		n.evidence.want(LookKernel, now)
		n.evidence.want(LookRuntime, now+runtimePeriod/2)
	}
	n.driver.drainsRuntime(now, listed, asked)
	n.pods.collected(now, LookRuntime, asked)
}

// seenIMDS reads instance metadata: who we are, and which ENIs carry which addresses. It lags
// (amazon-ecs-cni-plugins#66), so it neither adds nor takes away (rule A): it is a reason to ask EC2.
func (n *Node) seenIMDS(now time.Duration, in *Seen, whole bool, asked uint64) {
	if !whole {
		n.trouble(troubleIMDS, "instance metadata: "+in.Err)
		if n.Phase == recovering {
			n.recovery.recollect()
		}
		return
	}
	n.trouble(troubleIMDS, "")
	if in.IMDS == nil {
		return
	}
	if len(in.IMDS.Groups) > 0 {
		n.Grouped = in.IMDS.Groups
	}
	if !n.Known || n.Deaf && n.Phase == recovering {
		n.Deaf = false
		n.Inst, n.Known = in.IMDS.Instance, true
		n.Inst.VPC, n.Inst.Limits = slices.Clone(n.Inst.VPC), n.Inst.Limits.bounded()
	}
	if n.Phase == recovering {
		n.Cloud = cloneENIs(in.IMDS.ENIs)
		return
	}
	if n.Deaf {
		n.survey.hears(now, in.IMDS.Instance)
	}
	n.host.vpcChanged(in.IMDS.Instance.VPC)
	n.survey.adoptENIs(now, LookIMDS, in.IMDS.ENIs, asked)
	n.survey.forgetDepartures(now)
	n.survey.absentENIs(now, in.IMDS.ENIs, asked)
	n.evidence.absentOthers(now, in.IMDS.ENIs)
	n.enis.tellNext()
}
