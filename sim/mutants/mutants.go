// Package mutants holds the daemons that scenarios prove themselves against: each is another project's real one, or
// ours with a line left out. A scenario says with `against` which invariant a mutant breaks first; a rule that no
// mutant can break is not tested.
//
// A mutant is one of four kinds: policy (one field of ipam.Policy), wrap (rewrites the inputs or effects around a Node),
// plan (rewrites a dataplane.Plan before it runs) and shell (another part of the daemon or plugin around the core). Mutants
// are linked into bin/enilab, which can play the daemon, and never into bin/ipamd.
package mutants

import (
	"net/netip"
	"slices"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

// Kind of a mutant.
type Kind uint8

const (
	Policy Kind = iota + 1
	Wrap
	Plan
	ShellPart
)

var kindNames = [...]string{"", "policy", "wrap", "plan", "shell"}

func (k Kind) String() string { return kindNames[k] }

// Shell are parts of the shell that a mutant replaces. A world asks for each by name.
type Shell uint8

const (
	// AckEarly reports a Save as durable before it is.
	AckEarly Shell = 1 << iota
	// DropSaves never writes what it reports as written.
	DropSaves
	// RetryCalls repeats a failed EC2 request by itself, as an SDK does.
	RetryCalls
	// RefuseOtherVersions reads no record that another version wrote.
	RefuseOtherVersions
)

// Mutant is a daemon that leaves one rule out. Exactly the part that Kind names is set, and a Policy too where a part of the shell only does harm to a daemon
// that does not expect it. The functions keep no state: a world with a mutant can be
// forked.
type Mutant struct {
	Name string
	Kind Kind
	Rule string // the rule that it leaves out (docs/architecture.md)
	Doc  string

	Policy  func(*ipam.Policy)
	Input   func(ipam.Input) ipam.Input
	Effects func([]ipam.Effect) []ipam.Effect
	Plan    func(ipam.Lane, dataplane.Plan) dataplane.Plan
	Shell   Shell
}

// All mutants, in the order of the rules they leave out.
func All() []Mutant {
	return slices.Concat(policies(), wraps(), plans(), shells())
}

// ByName finds a mutant.
func ByName(name string) (Mutant, bool) {
	for _, m := range All() {
		if m.Name == name {
			return m, true
		}
	}
	return Mutant{}, false
}

// Names of all mutants.
func Names() []string {
	var out []string
	for _, m := range All() {
		out = append(out, m.Name)
	}
	return out
}

func wraps() []Mutant {
	return []Mutant{
		{Name: "cool-down-in-memory", Kind: Wrap, Rule: "D", Doc: "releasedAt is not in the durable record: a restart ends every cool-down",
			Effects: forgetCooling},
		{Name: "asks-once", Kind: Wrap, Rule: "A", Doc: "metadata is asked when the daemon starts and never again: what a stranger takes is never missed",
			Input: answeredOnce},
		{Name: "in-use-is-done", Kind: Wrap, Rule: "I", Doc: "a delete that EC2 refuses because the interface is in use is not repeated: whoever uses it will see to it",
			Input: usedByOthers},
		{Name: "detached-is-gone", Kind: Wrap, Rule: "I", Doc: "an interface that EC2, asked for it, shows attached to nothing is taken for one that does not exist",
			Input: noneAvailable},
		{Name: "mac-of-its-own", Kind: Wrap, Rule: "C", Doc: "a daemon that starts gives the host veths of all pods that run the MAC of its own scheme, which is not what the pods have as their gateway's",
			Input: anotherScheme},
		{Name: "mac-as-found", Kind: Wrap, Rule: "H", Doc: "where records are lost, a host veth's MAC is right as it is found: nobody asks who made the link",
			Input: allAdopted},
		{Name: "refused-is-tried-again", Kind: Wrap, Rule: "L", Doc: "an attach that EC2 refuses is tried again, for as long as EC2 refuses it",
			Input: refusedForNow},
		{Name: "added-is-used", Kind: Wrap, Rule: "B", Doc: "whatever is configured in a pod's namespace is in use: a pod that adds the node's addresses to itself has them all set aside",
			Input: allRouted},
		{Name: "no-intent-for-later", Kind: Wrap, Rule: "F", Doc: "a DEL that the daemon cannot do yet, because it recovers or stops, is an error and no intent",
			Effects: laterIsNever},
		{Name: "prefixes-are-room", Kind: Wrap, Rule: "L", Doc: "a prefix takes no place on its ENI: addresses are asked for that EC2 refuses, and no further ENI is made",
			Input: withoutPrefixes},
		{Name: "mute", Kind: Wrap, Rule: "contract", Doc: "a reply in twenty is never sent", Effects: mute},
	}
}

// laterIsNever takes the word that a DEL may be left for later out of its answer.
func laterIsNever(effs []ipam.Effect) []ipam.Effect {
	for i, e := range effs {
		r, ok := e.(*ipam.Reply)
		if !ok || r.Verb != ipam.VerbDel || r.Err == nil || r.Err.Code != ipam.CodeTryAgain {
			continue
		}
		c := *r
		c.Err = &ipam.Error{Code: ipam.CodeIO, Text: r.Err.Text}
		effs[i] = &c
	}
	return effs
}

// forgetCooling turns the durable row of a cooling address into no row.
func forgetCooling(effs []ipam.Effect) []ipam.Effect {
	for i, e := range effs {
		s, ok := e.(*ipam.Save)
		if !ok || s.Store != ipam.RunStore || !slices.ContainsFunc(s.Put, func(r ipam.Row) bool { return r.State == ipam.Cooling }) {
			continue
		}
		c := *s
		c.Put, c.Drop = nil, slices.Clone(s.Drop)
		for _, r := range s.Put {
			if r.State == ipam.Cooling {
				c.Drop = append(c.Drop, r.Key())
			} else {
				c.Put = append(c.Put, r)
			}
		}
		effs[i] = &c
	}
	return effs
}

// firstLooks is how many effects a daemon begins at once when it starts: metadata, kernel and runtime are asked.
const firstLooks = 3

// answeredOnce turns every later answer of metadata into none.
func answeredOnce(in ipam.Input) ipam.Input {
	s, ok := in.(ipam.Seen)
	if !ok || s.What != ipam.LookIMDS || s.ID <= firstLooks {
		return in
	}
	return ipam.Seen{ID: s.ID, What: s.What, Err: "nobody asks"}
}

// usedByOthers takes "currently in use" for the end of it.
func usedByOthers(in ipam.Input) ipam.Input {
	c, ok := in.(ipam.Called)
	if ok && c.Result.Class == ipam.InUse {
		c.Result = ipam.Result{Class: ipam.OK}
		return c
	}
	return in
}

// noneAvailable leaves out of EC2's answers about single ENIs those that are attached to nothing.
func noneAvailable(in ipam.Input) ipam.Input {
	s, ok := in.(ipam.Seen)
	if !ok || s.What != ipam.LookENI {
		return in
	}
	s.ENIs = slices.DeleteFunc(slices.Clone(s.ENIs), func(e ipam.ENI) bool { return e.Status == "available" })
	return s
}

// anotherScheme puts another version's idea of a host veth's MAC into the records.
func anotherScheme(in ipam.Input) ipam.Input {
	s, ok := in.(ipam.Start)
	if !ok {
		return in
	}
	s.Rows = slices.Clone(s.Rows)
	for i := range s.Rows {
		if r := &s.Rows[i]; r.State == ipam.Assigned {
			r.MAC = "0a:58:a9:fe:01:01"
		}
	}
	return s
}

// allAdopted shows every link as one that another CNI made.
func allAdopted(in ipam.Input) ipam.Input {
	s, ok := in.(ipam.Seen)
	if !ok || s.Kernel == nil {
		return in
	}
	o := *s.Kernel
	o.Links = slices.Clone(o.Links)
	for i := range o.Links {
		o.Links[i].Adopted = true
	}
	s.Kernel = &o
	return s
}

// allRouted shows a host route to every address in a pod's namespace, but to those that have one.
func allRouted(in ipam.Input) ipam.Input {
	s, ok := in.(ipam.Seen)
	if !ok || s.Kernel == nil {
		return in
	}
	o := *s.Kernel
	o.Routes = slices.Clone(o.Routes)
	for i := range o.Links {
		for _, a := range o.Links[i].PeerAddresses {
			r := dataplane.Route{Table: dataplane.MainTable, Dst: netip.PrefixFrom(a, a.BitLen()), Link: o.Links[i].Name}
			if !slices.ContainsFunc(o.Routes, func(have dataplane.Route) bool { return have.Table == r.Table && have.Dst == r.Dst }) {
				o.Routes = append(o.Routes, r)
			}
		}
	}
	o.Sort()
	s.Kernel = &o
	return s
}

// refusedForNow takes a refused attach for a passing trouble of EC2's.
func refusedForNow(in ipam.Input) ipam.Input {
	c, ok := in.(ipam.Called)
	if ok && (c.Result.Code == "AttachmentLimitExceeded" || c.Result.Class == ipam.Invalid && c.Result.Code == "InvalidParameterValue") {
		c.Result.Class = ipam.Unavailable
		return c
	}
	return in
}

// withoutPrefixes takes prefixes out of EC2's answers, and out of metadata's.
func withoutPrefixes(in ipam.Input) ipam.Input {
	s, ok := in.(ipam.Seen)
	if !ok {
		return in
	}
	none := func(list []ipam.ENI) []ipam.ENI {
		list = slices.Clone(list)
		for i := range list {
			list[i].Prefixes = nil
		}
		return list
	}
	if s.ENIs = none(s.ENIs); s.IMDS != nil {
		view := *s.IMDS
		view.ENIs = none(view.ENIs)
		s.IMDS = &view
	}
	return s
}

func mute(effs []ipam.Effect) []ipam.Effect {
	return slices.DeleteFunc(effs, func(e ipam.Effect) bool {
		r, ok := e.(*ipam.Reply)
		return ok && r.Req%20 == 7
	})
}

func plans() []Mutant {
	return []Mutant{
		{Name: "no-rule-from-pod", Kind: Plan, Rule: "datapath", Doc: "pods of secondary ENIs answer by the primary: the VPC drops it",
			Plan: without(func(o *dataplane.Op) bool {
				return o.Kind == dataplane.EnsureRule && o.Priority == dataplane.PriorityFromPod
			})},
		{Name: "no-gateway-answer", Kind: Plan, Rule: "H", Doc: "the host veth does not answer ARP for the gateway: a pod that lost its entry is lost",
			Plan: without(func(o *dataplane.Op) bool { return o.Kind == dataplane.ProxyNeighbour })},
		{Name: "sweeps-foreign-rules", Kind: Plan, Rule: "H", Doc: "with an interface that is set up, rules go that no pod has, third parties' too",
			Plan: sweepForeignRules},
		{Name: "rules-left-behind", Kind: Plan, Rule: "B", Doc: "a removed pod's rules stay, and no residue is removed",
			Plan: without(func(o *dataplane.Op) bool { return o.Kind == dataplane.RemoveRule })},
	}
}

// sweepForeignRules removes a rule that the CNI did not make with each interface's plan.
func sweepForeignRules(lane ipam.Lane, p dataplane.Plan) dataplane.Plan {
	if lane.Kind != ipam.ENILane {
		return p
	}
	return dataplane.Plan{Ops: append(slices.Clone(p.Ops), dataplane.Op{Kind: dataplane.RemoveRule, Priority: 30000, Mark: 0x4000, Table: 4000})}
}

// without leaves operations out of every plan.
func without(drop func(*dataplane.Op) bool) func(ipam.Lane, dataplane.Plan) dataplane.Plan {
	return func(_ ipam.Lane, p dataplane.Plan) dataplane.Plan {
		var q dataplane.Plan
		for i := range p.Ops {
			if !drop(&p.Ops[i]) {
				q.Ops = append(q.Ops, p.Ops[i])
			}
		}
		return q
	}
}

func shells() []Mutant {
	return []Mutant{
		{Name: "durable-before-written", Kind: ShellPart, Rule: "contract", Doc: "a Save is reported durable before it is", Shell: AckEarly},
		{Name: "nothing-written", Kind: ShellPart, Rule: "contract", Doc: "no Save is ever written, and what no record names is free", Shell: DropSaves, Policy: forgottenIsFree},
		{Name: "sdk-retries", Kind: ShellPart, Rule: "L", Doc: "the SDK repeats failed requests by itself", Shell: RetryCalls},
		{Name: "checkpoint-of-another-version", Kind: ShellPart, Rule: "C", Doc: "a record that another version wrote is refused, and what no record names is free",
			Shell: RefuseOtherVersions, Policy: forgottenIsFree},
	}
}
