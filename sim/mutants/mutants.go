// Package mutants holds the mistakes that scenarios prove themselves against: each is somebody's real daemon, or a line left
// out of ours. A scenario says with `against` which invariant a mutant breaks first; a rule that no mutant can break is not
// tested.
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

// Mutant is one mistake. Exactly the part that Kind names is set, and a Policy too where a part of the shell only does harm to a daemon
// that does not expect it. The functions keep no state: a world with a mutant can be
// forked.
type Mutant struct {
	Name string
	Kind Kind
	Rule string // the rule of the design that it leaves out
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

func policies() []Mutant {
	p := func(name, rule, doc string, f func(*ipam.Policy)) Mutant {
		return Mutant{Name: name, Kind: Policy, Rule: rule, Doc: doc, Policy: f}
	}
	return []Mutant{
		p("unanswered-is-empty", "A", "a source that answers with an error, or with another runtime's list, has nothing",
			func(p *ipam.Policy) { p.Complete = nil }),
		p("metadata-absence-is-proof", "A", "an ENI or address that instance metadata does not list is gone",
			func(p *ipam.Policy) { p.Absent = nil }),
		p("all-attached-is-ours", "A", "an ENI that is attached to the node is the node's, whoever attached it, and whatever for",
			func(p *ipam.Policy) { p.Ours = nil }),
		p("views-show-now", "A", "what EC2 lists is there, also what was given back a second ago",
			func(p *ipam.Policy) { p.Stale = nil }),
		p("metadata-is-believed", "A", "what metadata lists is there, once it is two minutes since it was given back (amazon-vpc-cni-k8s #1967)",
			func(p *ipam.Policy) { p.Vouch = nil }),
		p("recorded-eni-is-there", "A", "an ENI on record is in service while metadata does not answer, whether or not the kernel has its link",
			func(p *ipam.Policy) { p.Still = nil }),
		p("recover-from-runtime-only", "A", "a new daemon believes the runtime's list alone; an unreachable runtime has no sandboxes (amazon-vpc-cni-k8s 1.5.3)",
			func(p *ipam.Policy) { p.Recall = nil }),
		p("drain-without-proof", "A", "an ENI is given back because the warm target says so",
			func(p *ipam.Policy) { p.Drainable = nil }),
		p("no-kernel-veto", "B", "a cool-down's end frees an address, whatever the kernel shows",
			func(p *ipam.Policy) { p.Veto = nil }),
		p("quarantine-for-ever", "B", "an address that was set aside stays so, until a person says that it is free",
			func(p *ipam.Policy) { p.Cleared = nil }),
		p("flows-end-by-themselves", "B", "conntrack is not made to forget the flows of a released address: its next holder gets what they bring",
			func(p *ipam.Policy) { p.Flowless = nil }),
		p("own-version-only", "C", "the daemon serves no plugin but its own version's",
			func(p *ipam.Policy) { p.Speaks = nil }),
		p("free-what-has-no-pod", "D", "an address whose pod is gone from the API server is free (Terway)",
			func(p *ipam.Policy) { p.Gone = nil }),
		p("no-cool-down", "D", "a released address may be given away at once",
			func(p *ipam.Policy) { p.CoolDown = nil }),
		p("forgotten-is-free", "D", "a daemon without records takes what nobody uses for free: what was released a second ago too",
			forgottenIsFree),
		p("release-by-pod-name", "E", "a DEL releases whatever the pod's name has (Calico CNI 1.5.0)",
			func(p *ipam.Policy) { p.Match = nil }),
		p("unknown-del-fails", "F", "a DEL of something unknown is an error, for ever (Calico CNI 1.5.0)",
			func(p *ipam.Policy) { p.Unknown = nil }),
		p("newest-evicts", "G", "a new sandbox of a pod's name deletes the older one's link",
			func(p *ipam.Policy) { p.Displace = nil }),
		p("no-repair", "H", "what somebody else removes from the kernel stays away",
			func(p *ipam.Policy) { p.Repair = nil }),
		p("no-intents", "I", "EC2 is called before anything is durable",
			func(p *ipam.Policy) { p.Intend = nil }),
		p("lost-is-failed", "I", "a reply that never came means that nothing happened",
			func(p *ipam.Policy) { p.Lost = nil }),
		p("no-sweep", "I", "leaked ENIs are left alone",
			func(p *ipam.Policy) { p.Sweep = nil }),
		p("sweeps-the-living", "I", "an ENI that was attached to nothing for half an hour is leaked, whoever it was made for",
			func(p *ipam.Policy) {
				proven := p.Sweep
				p.Sweep = func(l ipam.Leak) bool {
					l.Gone = 2
					return proven(l)
				}
			}),
		p("sweeps-a-neighbours", "I", "the leaked ENI of a node of any cluster, in any VPC, is swept",
			func(p *ipam.Policy) {
				proven := p.Sweep
				p.Sweep = func(l ipam.Leak) bool {
					l.Near = true
					return proven(l)
				}
			}),
		p("gc-trusts-its-list", "K", "GC releases what it is not told of, whoever uses it",
			func(p *ipam.Policy) { p.Collect = nil }),
		p("all-you-can-carry", "L", "a node takes all addresses that its type can carry",
			func(p *ipam.Policy) { p.Demand = nil }),
		p("never-gives-back", "L", "what a node needed once it keeps: nobody else in the subnet gets it",
			neverGivesBack),
		p("room-under-way-is-none", "L", "an ENI that is being made carries what it was made for, and the next pod needs another",
			func(p *ipam.Policy) { p.Fits = nil }),
		p("no-backoff", "L", "what EC2 throttles is asked again at once",
			func(p *ipam.Policy) { p.Backoff = nil }),
	}
}

func forgottenIsFree(p *ipam.Policy) { p.Forgotten = nil }

func neverGivesBack(p *ipam.Policy) {
	targets := p.Demand
	p.Demand = func(s ipam.Supply) ipam.Want {
		w := targets(s)
		w.Less = 0
		return w
	}
}

func wraps() []Mutant {
	return []Mutant{
		{Name: "cool-down-in-memory", Kind: Wrap, Rule: "D", Doc: "releasedAt is not in the durable record: a restart ends every cool-down",
			Effects: forgetCooling},
		{Name: "asks-once", Kind: Wrap, Rule: "A", Doc: "metadata is asked when the daemon starts and never again: what a stranger takes is never missed",
			Input: answeredOnce},
		{Name: "in-use-is-done", Kind: Wrap, Rule: "I", Doc: "a delete that EC2 refuses because the interface is in use is not repeated: whoever uses it will see to it",
			Input: usedByOthers},
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

// withoutPrefixes takes prefixes out of EC2's answers.
func withoutPrefixes(in ipam.Input) ipam.Input {
	s, ok := in.(ipam.Seen)
	if !ok || !slices.ContainsFunc(s.ENIs, func(e ipam.ENI) bool { return e.Prefixes > 0 }) {
		return in
	}
	s.ENIs = slices.Clone(s.ENIs)
	for i := range s.ENIs {
		s.ENIs[i].Prefixes = 0
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
		{Name: "rules-left-behind", Kind: Plan, Rule: "B", Doc: "a removed pod's rules stay, and no residue is removed",
			Plan: without(func(o *dataplane.Op) bool { return o.Kind == dataplane.RemoveRule })},
	}
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
