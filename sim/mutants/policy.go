package mutants

import (
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
)

func policies() []Mutant {
	p := func(name, rule, doc string, f func(*ipam.Policy)) Mutant {
		return Mutant{Name: name, Kind: Policy, Rule: rule, Doc: doc, Policy: f}
	}
	return []Mutant{
		p("unanswered-is-empty", "A", "a source that answers with an error, or with another runtime's list, has nothing",
			func(p *ipam.Policy) { p.Complete = believeAnyAnswer }),
		p("metadata-absence-is-proof", "A", "an ENI or address that instance metadata does not list is gone",
			func(p *ipam.Policy) { p.Absent = believeAnyAbsence }),
		p("all-attached-is-ours", "A", "an ENI that is attached to the node is the node's, whoever attached it, and whatever for",
			func(p *ipam.Policy) { p.Ours = allAttached }),
		p("views-show-now", "A", "what EC2 lists is there, also what was given back a second ago",
			func(p *ipam.Policy) { p.Stale = viewsShowNow }),
		p("metadata-is-believed", "A", "what metadata lists is there, once it is two minutes since it was given back (amazon-vpc-cni-k8s #1967)",
			func(p *ipam.Policy) { p.Vouch = believeAnySource }),
		p("link-does-not-matter", "A", "pods get addresses of an ENI, whether or not the kernel shows its link",
			func(p *ipam.Policy) { p.Serves = withoutLink }),
		p("waits-for-the-runtime", "F", "a new daemon serves nobody before the runtime has listed its sandboxes (amazon-vpc-cni-k8s 1.9 to 1.11)",
			func(p *ipam.Policy) { p.Begins = onceListed }),
		p("recover-from-runtime-only", "A", "a new daemon believes the runtime's list alone; an unreachable runtime has no sandboxes (amazon-vpc-cni-k8s 1.5.3)",
			func(p *ipam.Policy) { p.Recall = runtimeAlone }),
		p("drain-without-proof", "A", "an ENI is given back because the warm target says so",
			func(p *ipam.Policy) { p.Drainable = needsNoProof }),
		p("no-kernel-veto", "B", "a cool-down's end frees an address, whatever the kernel shows",
			func(p *ipam.Policy) { p.Veto = noUse }),
		p("quarantine-for-ever", "B", "an address that was set aside stays so, until a person says that it is free",
			func(p *ipam.Policy) { p.Cleared = neverCleared }),
		p("flows-end-by-themselves", "B", "conntrack is not made to forget the flows of a released address: its next holder gets what they bring",
			func(p *ipam.Policy) { p.Flowless = flowsEnd }),
		p("own-version-only", "C", "the daemon serves no plugin but its own version's",
			func(p *ipam.Policy) { p.Speaks = ownVersion }),
		p("free-what-has-no-pod", "D", "an address whose pod is gone from the API server is free (Terway)",
			func(p *ipam.Policy) { p.Gone = podIsGone }),
		p("no-cool-down", "D", "a released address may be given away at once",
			func(p *ipam.Policy) { p.CoolDown = noCoolDown }),
		p("forgotten-is-free", "D", "a daemon without records takes what nobody uses for free: what was released a second ago too",
			forgottenIsFree),
		p("release-by-pod-name", "E", "a DEL releases whatever the pod's name has (Calico CNI 1.5.0)",
			func(p *ipam.Policy) { p.Match = samePodName }),
		p("late-del-hits-the-first", "E", "a DEL that waited for the daemon, such as a failed ADD's, releases the first allocation that there is (amazon-vpc-cni-k8s #641)",
			func(p *ipam.Policy) { p.Match = anybodysIfLate }),
		p("unknown-del-fails", "F", "a DEL of something unknown is an error, for ever (Calico CNI 1.5.0)",
			func(p *ipam.Policy) { p.Unknown = unknownFails }),
		p("newest-evicts", "G", "a new sandbox of a pod's name deletes the older one's link",
			func(p *ipam.Policy) { p.Displace = olderIsEvicted }),
		p("no-repair", "H", "what somebody else removes from the kernel stays away",
			func(p *ipam.Policy) { p.Repair = nothing }),
		p("forward-as-found", "H", "where the policy of the chain FORWARD is DROP, pods' packets are dropped (amazon-vpc-cni-k8s)",
			func(p *ipam.Policy) { p.Repair = forwardAsFound }),
		p("no-intents", "I", "EC2 is called before anything is durable",
			func(p *ipam.Policy) { p.Intend = noMutation }),
		p("lost-is-failed", "I", "a reply that never came means that nothing happened",
			func(p *ipam.Policy) { p.Lost = failed }),
		p("no-sweep", "I", "leaked ENIs are left alone",
			func(p *ipam.Policy) { p.Sweep = noLeak }),
		p("sweeps-the-living", "I", "an ENI that was attached to nothing for half an hour is leaked, whoever it was made for",
			sweepsTheLiving),
		p("sweeps-a-neighbours", "I", "the leaked ENI of a node of any cluster, in any VPC, is swept",
			sweepsNeighbours),
		p("gc-trusts-its-list", "K", "GC releases what it is not told of, whoever uses it",
			func(p *ipam.Policy) { p.Collect = unlistedIsGone }),
		p("all-you-can-carry", "L", "a node takes all addresses that its type can carry",
			func(p *ipam.Policy) { p.Demand = allRoom }),
		p("never-gives-back", "L", "what a node needed once it keeps: nobody else in the subnet gets it",
			neverGivesBack),
		p("each-for-itself", "L", "EC2 is asked for an address as soon as one is missing, and again for the next",
			func(p *ipam.Policy) { p.TopUp = withoutDelay }),
		p("room-under-way-is-none", "L", "an ENI that is being made carries what it was made for, and the next pod needs another",
			func(p *ipam.Policy) { p.Fits = noRoom }),
		p("any-subnet", "L", "any subnet of the node's zone is for its ENIs, whatever its tags say",
			func(p *ipam.Policy) { p.Suits = anySite }),
		p("full-subnet-again", "L", "the subnet that EC2 calls full is asked again, although there are others (amazon-vpc-cni-k8s before 1.18)",
			func(p *ipam.Policy) { p.Switches = neverTurns }),
		p("waits-for-subnets", "F", "no ENI is made before EC2 has said which subnets there are, also if the role may not ask (amazon-vpc-cni-k8s 1.23.0)",
			func(p *ipam.Policy) { p.Blind = neverBlind }),
		p("groups-of-birth", "H", "an ENI keeps the security groups that it was made with",
			func(p *ipam.Policy) { p.Regroup = keepsGroups }),
		p("eniconfig-of-any-zone", "L", "an ENIConfig's subnet is taken for one of the node's zone (amazon-vpc-cni-k8s 1.23.0)",
			func(p *ipam.Policy) { p.Near = anyZone }),
		p("eniconfig-of-birth", "L", "the ENIConfig that a daemon found at its start is the node's for as long as it lives",
			func(p *ipam.Policy) { p.Current = current(ipam.LookConfig) }),
		p("tags-of-birth", "L", "where EC2 says no more which subnets there are, what it said is true for as long as it does not",
			func(p *ipam.Policy) { p.Current = current(ipam.LookSubnets) }),
		p("eniconfig-without-groups", "H", "an ENIConfig's ENI has the security groups of the primary one",
			func(p *ipam.Policy) { p.Grouped = primarysGroups }),
		p("primary-carries-pods", "L", "custom networking leaves the primary ENI to pods, in the node's own subnet",
			func(p *ipam.Policy) { p.Reserved = notReserved }),
		p("prefix-with-pods-is-idle", "A", "a prefix of which some addresses are free is given back, whoever has the others",
			func(p *ipam.Policy) { p.Idle = prefixWithPods }),
		p("prefix-forgets-cool-downs", "D", "a prefix without pods is given back at once: what was released a second ago goes to whoever gets it next",
			func(p *ipam.Policy) { p.Idle = prefixWithoutPods }),
		p("prefix-takes-sixteen-places", "L", "a prefix takes sixteen of an ENI's places: the node makes further ENIs while it has room",
			func(p *ipam.Policy) { p.Slots = sixteenEach }),
		p("waits-for-a-prefix", "L", "where the subnet has no /28 left, pods wait until it has (amazon-vpc-cni-k8s 1.9 and later)",
			func(p *ipam.Policy) { p.Bare = neverBare }),
		p("no-backoff", "L", "what EC2 throttles is asked again at once",
			func(p *ipam.Policy) { p.Backoff = atOnce }),
	}
}

// believeAnyAnswer reads an error as an empty list (amazon-vpc-cni-k8s 1.5.3, seeds/000).
func believeAnyAnswer(ipam.Answer) bool { return true }

// onceListed waits for a list, however long.
func onceListed(_, counts bool) bool { return counts }

// believeAnyAbsence takes what metadata has not listed once for gone.
func believeAnyAbsence(ipam.Absence) bool { return true }

// allAttached asks for no tags: whatever is attached is the node's.
func allAttached(ipam.Claim) bool { return true }

// viewsShowNow does not know that EC2's replicas are behind.
func viewsShowNow(time.Duration) bool { return false }

// believeAnySource takes what metadata lists for the node's (amazon-vpc-cni-k8s #1967).
func believeAnySource(ipam.What) bool { return true }

// withoutLink does not look for the link of an ENI.
func withoutLink(bool) bool { return true }

// runtimeAlone asks the runtime, whichever it is and however it answers, and drops what the checkpoint has (amazon-vpc-cni-k8s 1.5.3,
// seeds/000).
func runtimeAlone(s *ipam.Sources) ipam.Recollection {
	var r ipam.Recollection
	for i := range s.Checkpoint {
		r.Refuted = append(r.Refuted, s.Checkpoint[i].Address)
	}
	for i := range s.Sandboxes {
		if b := &s.Sandboxes[i]; b.Address.IsValid() {
			att := ipam.Attachment{Network: s.Network, ContainerID: b.ID, IfName: "eth0"}
			r.Rows = append(r.Rows, ipam.Row{Address: b.Address, State: ipam.Assigned, Pod: b.Pod, Att: att, SeenCRI: true})
		}
	}
	return r
}

// needsNoProof gives back whatever is too much.
func needsNoProof(ipam.Evidence) bool { return true }

// noUse lets nothing that the kernel shows keep an address.
func noUse(string) bool { return false }

// neverCleared leaves what was once in use for a person to free.
func neverCleared(int) bool { return false }

// flowsEnd leaves conntrack alone.
func flowsEnd(bool) bool { return true }

// ownVersion refuses the plugin of yesterday, and that of tomorrow.
func ownVersion(_ ipam.Verb, plugin, daemon int) bool { return plugin == 0 || plugin == daemon }

// podIsGone takes the API server's list for proof (Terway, seeds/002).
func podIsGone(a ipam.Absentee) bool { return a.PodGone }

// noCoolDown gives a released address to the next pod.
func noCoolDown(ipam.Settings) time.Duration { return 0 }

// forgottenIsFree gives it also when the record of its release is lost.
func forgottenIsFree(p *ipam.Policy) {
	p.Forgotten = func(ipam.Settings, bool) time.Duration { return 0 }
}

// samePodName releases what the pod's name has, which may be its next sandbox's (Calico CNI 1.5.0, seeds/003).
func samePodName(d *ipam.Del, _ ipam.Attachment, pod ipam.Pod) bool {
	return pod.Namespace == d.Pod.Namespace && pod.Name == d.Pod.Name
}

// anybodysIfLate finds something for every DEL that waited on disk, as the kernel finds a rule for a source that is not given
// (amazon-vpc-cni-k8s 1.5.4, #641).
func anybodysIfLate(d *ipam.Del, att ipam.Attachment, _ ipam.Pod) bool {
	return d.Intent || att == d.Att
}

// unknownFails keeps the runtime from ever ending the sandbox (Calico CNI 1.5.0, seeds/003).
func unknownFails(att ipam.Attachment) *ipam.Error {
	return &ipam.Error{Code: ipam.CodeIO, Text: "cni del " + att.String() + ": resource does not exist"}
}

// olderIsEvicted deletes the link of a sandbox that may live, as upstream does (driver.go:427).
func olderIsEvicted(_, _ *ipam.Row) ipam.Displacement { return ipam.Evict }

// nothing is put back.
func nothing(dataplane.Plan) dataplane.Plan { return dataplane.Plan{} }

// forwardAsFound leaves what a firewall drops of pods' packets to the operator.
func forwardAsFound(lacks dataplane.Plan) dataplane.Plan {
	lacks.Ops = slices.DeleteFunc(lacks.Ops, func(o dataplane.Op) bool { return o.Kind == dataplane.AcceptForward })
	return lacks
}

// noMutation is durable before it is asked for.
func noMutation(ipam.Action) bool { return false }

// failed takes a lost reply for a refusal.
func failed(ipam.Action) ipam.Doubt { return ipam.Forget }

// noLeak is ever found.
func noLeak(ipam.Leak) bool { return false }

// sweepsTheLiving does not ask whether the instance that an ENI was made for lives.
func sweepsTheLiving(p *ipam.Policy) {
	proven := p.Sweep
	p.Sweep = func(l ipam.Leak) bool {
		l.Gone = 2
		return proven(l)
	}
}

// sweepsNeighbours does not ask for which cluster.
func sweepsNeighbours(p *ipam.Policy) {
	proven := p.Sweep
	p.Sweep = func(l ipam.Leak) bool {
		l.Near = true
		return proven(l)
	}
}

// unlistedIsGone asks neither kernel nor runtime.
func unlistedIsGone(ipam.Absentee) bool { return true }

// allRoom is asked for at once.
func allRoom(s ipam.Supply) ipam.Want { return ipam.Want{More: s.Room} }

// neverGivesBack keeps what was needed once.
func neverGivesBack(p *ipam.Policy) {
	targets := p.Demand
	p.Demand = func(s ipam.Supply) ipam.Want {
		w := targets(s)
		w.Less = 0
		return w
	}
}

// withoutDelay asks for each missing address by itself.
func withoutDelay(ipam.Supply, int) time.Duration { return 0 }

// noRoom is on an ENI that is not in service.
func noRoom(int) int { return 0 }

// atOnce tries again, and throttles slow nothing down.
func atOnce(int) ipam.Pause { return ipam.Pause{} }

// anySite reads no tags.
func anySite(ipam.Site) bool { return true }

// neverTurns asks again where EC2 has refused.
func neverTurns(ipam.Action, ipam.Class) bool { return false }

// neverBlind asks once more whether the node's own subnet is excluded, and makes no ENI without an answer (amazon-vpc-cni-k8s 1.23.0,
// pkg/awsutils/awsutils.go, createENI).
func neverBlind(bool, int) bool { return false }

// keepsGroups leaves ENIs as they were made.
func keepsGroups(_, _ []string) bool { return false }

// anyZone believes the ENIConfig in every case.
func anyZone(_, _ bool) bool { return true }

// current needs no newer word.
func current(of ipam.What) func(ipam.What, time.Duration) bool {
	sound := ipam.Sound().Current
	return func(w ipam.What, age time.Duration) bool { return w == of || sound(w, age) }
}

// primarysGroups reads the ENIConfig's subnet alone.
func primarysGroups(_, primary []string) []string { return primary }

// notReserved gives pods every ENI.
func notReserved(bool) bool { return false }

// prefixWithPods counts the free addresses of a prefix and ignores the others.
func prefixWithPods(u ipam.PrefixUse) bool { return u.Free > 0 }

// prefixWithoutPods gives back what cools with what is free.
func prefixWithoutPods(u ipam.PrefixUse) bool { return u.Held == 0 }

// sixteenEach takes a prefix's addresses for so many on their own.
func sixteenEach(addresses, prefixes int) int { return addresses + 16*prefixes }

// neverBare waits for the subnet to have a prefix again.
func neverBare(ipam.Class) bool { return false }
