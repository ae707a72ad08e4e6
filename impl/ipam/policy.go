package ipam

import (
	"errors"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
)

// Policy holds the decisions that outages got wrong, each a small pure function of what is known. All are set: a daemon that decides one of
// them otherwise has another function there (sim/mutants has what other daemons once did).
type Policy struct {
	// Complete (rule A) says whether a source's answer may be read as "the rest does not exist".
	Complete func(Answer) bool
	// Absent (rule A) says whether an ENI or address that stopped showing up is gone.
	Absent func(Absence) bool
	// Ours (rule A) says whether an attached ENI is this node's to use, fill and give back.
	Ours func(Claim) bool
	// Stale (rule A) says whether EC2's own view may still be of before something that was done that long ago.
	Stale func(since time.Duration) bool
	// Vouch (rule A) says whether a source that lists an address or ENI that the records do not have makes it the node's.
	Vouch func(What) bool
	// Serves (rule A) says whether pods get addresses of an ENI beside the primary one of which the kernel shows a
	// link, or none: also of one that is on record while metadata does not answer.
	Serves func(linked bool) bool
	// Begins (rule F) says whether a new daemon begins to serve, although the runtime has answered so: at all, and with a list that counts.
	Begins func(answered, counts bool) bool
	// Recall (rules A, B, E) merges what a new daemon can know about allocations, and says which sources may testify.
	Recall func(*Sources) Recollection
	// Veto (rule B) says whether a use of an address forbids giving it away.
	Veto func(evidence string) bool
	// Cleared (rule B) says whether the evidence of a quarantine is gone, after so many whole observations in a row without it.
	Cleared func(looks int) bool
	// Flowless (rule B) says whether conntrack holds nothing more of an address that has cooled; walked is that this daemon had its flows
	// forgotten since it was released.
	Flowless func(walked bool) bool
	// Drainable (rules A, B) says whether an ENI, or free addresses of it, may be given back.
	Drainable func(Evidence) bool
	// Speaks (rule C) says whether this daemon serves a plugin of that version.
	Speaks func(verb Verb, plugin, daemon int) bool
	// Gone (rule D) says whether an allocation may be released although no DEL came.
	Gone func(Absentee) bool
	// CoolDown (rule D) is how long a released address rests.
	CoolDown func(Settings) time.Duration
	// Forgotten (rule D) is how long addresses rest, from when releases are on record, that are on the node's ENIs and on no record: each
	// may have been released a moment before. Seconded is that EC2's answer is not the only one to say that the address is there.
	Forgotten func(s Settings, seconded bool) time.Duration
	// Match (rule E) says whether a DEL means what that attachment of that pod has.
	Match func(*Del, Attachment, Pod) bool
	// Unknown (rule F) is the answer to a DEL of something unknown; nil is success.
	Unknown func(Attachment) *Error
	// Displace (rule G) says how the link of an older incarnation makes room. Older is nil when no row knows that link.
	Displace func(newer, older *Row) Displacement
	// Repair (rule H) is how much is put back of what the host, an ENI or a pod lacks in the kernel.
	Repair func(lacks dataplane.Plan) dataplane.Plan
	// Intend (rule I) says whether an EC2 mutation needs a durable intent first.
	Intend func(Action) bool
	// Lost (rule I) says what to do about a mutation whose reply never came.
	Lost func(Action) Doubt
	// Sweep (rule I) says whether an available ENI is leaked.
	Sweep func(Leak) bool
	// Collect (rule K) says whether GC may release an allocation that the caller did not list.
	Collect func(Absentee) bool
	// Demand (rule L) says how many addresses are missing or too many.
	Demand func(Supply) Want
	// TopUp (rule L) is how long EC2 is not asked for addresses, from when the first of them was missing: others may be
	// missing by then, and one request brings them all. 0 is at once.
	TopUp func(s Supply, more int) time.Duration
	// Fits (rule L) says how many addresses need no further ENI, for there is that much room on one that is busy or under way.
	Fits func(room int) int
	// Suits (rule L) says whether a subnet is for pods of this cluster: whether ENIs are made there, and given to pods.
	Suits func(Site) bool
	// Turns (rule L) says whether another subnet is tried at once when EC2 has refused in one.
	Switches func(Action, Class) bool
	// Blind (rule F) says whether ENIs are made in the node's own subnet while EC2 does not say which subnets there are: denied for want of the
	// permission, or so often in a row for another reason.
	Blind func(denied bool, fails int) bool
	// Near (rule L) says whether ENIs are made in an ENIConfig's subnet: known is that EC2 has said which subnets the node's VPC and zone
	// have, and listed that it is one of them.
	Near func(known, listed bool) bool
	// Current (rule L) says whether an ENI is made by what was said that long ago: by the API server of the ENIConfig
	// (LookConfig), or by EC2 of the subnets' tags (LookSubnets), which it does not say again.
	Current func(of What, age time.Duration) bool
	// Grouped (rule H) says which security groups an ENI is made with by an ENIConfig that has some, or none.
	Grouped func(config, primary []string) []string
	// Reserved (rule L) says whether custom networking keeps an ENI from pods.
	Reserved func(primary bool) bool
	// Regroup (rule H) says whether an ENI that has some security groups is given those of the primary one.
	Regroup func(has, wants []string) bool
	// Idle (rules A, D) says whether no pod has, or had a moment ago, an address of a prefix, so that it may be given
	// back.
	Idle func(PrefixUse) bool
	// Slots (rule L) is how many of an ENI's places its single addresses and its prefixes take.
	Slots func(addresses, prefixes int) int
	// Bare (rule L) says whether a refused prefix means that the subnet has none, and addresses are to be had one by one.
	Bare func(Class) bool
	// Backoff (rule L) is the pause before try number n (from 1) of something EC2 refused.
	Backoff func(tries int) Pause
}

// valid returns an error that names a decision without a function.
func (p *Policy) valid() error {
	if p == nil {
		return errors.New("there is no policy")
	}
	for _, d := range []struct {
		name  string
		taken bool
	}{
		{"Complete", p.Complete != nil}, {"Absent", p.Absent != nil}, {"Ours", p.Ours != nil},
		{"Stale", p.Stale != nil}, {"Vouch", p.Vouch != nil}, {"Serves", p.Serves != nil},
		{"Begins", p.Begins != nil}, {"Recall", p.Recall != nil}, {"Veto", p.Veto != nil}, {"Cleared", p.Cleared != nil},
		{"Flowless", p.Flowless != nil}, {"Drainable", p.Drainable != nil}, {"Speaks", p.Speaks != nil},
		{"Gone", p.Gone != nil}, {"CoolDown", p.CoolDown != nil}, {"Forgotten", p.Forgotten != nil},
		{"Match", p.Match != nil}, {"Unknown", p.Unknown != nil}, {"Displace", p.Displace != nil},
		{"Repair", p.Repair != nil}, {"Intend", p.Intend != nil}, {"Lost", p.Lost != nil},
		{"Sweep", p.Sweep != nil}, {"Collect", p.Collect != nil}, {"Demand", p.Demand != nil},
		{"TopUp", p.TopUp != nil}, {"Fits", p.Fits != nil}, {"Suits", p.Suits != nil}, {"Switches", p.Switches != nil},
		{"Blind", p.Blind != nil},
		{"Near", p.Near != nil}, {"Current", p.Current != nil}, {"Grouped", p.Grouped != nil}, {"Reserved", p.Reserved != nil},
		{"Regroup", p.Regroup != nil}, {"Idle", p.Idle != nil}, {"Slots", p.Slots != nil}, {"Bare", p.Bare != nil},
		{"Backoff", p.Backoff != nil},
	} {
		if !d.taken {
			return errors.New("the policy lacks " + d.name)
		}
	}
	return nil
}

// Sound is the policy of production. Every line is a rule: without it, a scenario of this repository fails.
func Sound() *Policy {
	return &Policy{
		Complete:  wholeAnswer,
		Absent:    twiceByEC2,
		Ours:      notSomebodyElses,
		Stale:     withinConsistency,
		Vouch:     byEC2,
		Serves:    linkIsThere,
		Begins:    onceAnswered,
		Recall:    unionOfWitnesses,
		Veto:      anyUse,
		Cleared:   unseenTwice,
		Flowless:  onceWalked,
		Drainable: provenUnused,
		Speaks:    neighbourVersions,
		Gone:      runtimeAndKernelAgree,
		CoolDown:  configuredCoolDown,
		Forgotten: coolDownOrConsistency,
		Match:     exactAttachment,
		Unknown:   unknownIsDone,
		Displace:  olderIsRenamed,
		Repair:    allThatLacks,
		Intend:    everyMutation,
		Lost:      lookOrRepeat,
		Sweep:     provenLeak,
		Collect:   runtimeAndKernelAgreeTwice,
		Demand:    warmTargets,
		TopUp:     byHalfTheTarget,
		Fits:      allOfIt,
		Suits:     byTags,
		Switches:  whereAnotherMayHelp,
		Blind:     deniedOrSilent,
		Near:      unlessElsewhere,
		Current:   whileNew,
		Grouped:   configsOrPrimarys,
		Reserved:  thePrimary,
		Regroup:   whatDiffers,
		Idle:      allSixteen,
		Slots:     oneEach,
		Bare:      noneToGive,
		Backoff:   exponentialJitter,
	}
}

// Answer is how a source answered.
type Answer struct {
	What       What
	Complete   bool // by its own word
	HoldsSelf  bool // runtime: the daemon's own sandbox is in it
	Sandboxed  bool // the daemon runs in a sandbox at all
	Configured bool
}

// onceAnswered: what a runtime did not say the records and the kernel know. Who waited for it would let every pod of the node wait.
func onceAnswered(answered, _ bool) bool { return answered }

// wholeAnswer: a runtime's list that lacks the daemon's own sandbox is another runtime's (seeds/000, the worst variant).
func wholeAnswer(a Answer) bool {
	return a.Complete && (a.What != LookRuntime || a.HoldsSelf || !a.Sandboxed)
}

// Absence is what is known of an ENI or address that stopped showing up.
type Absence struct {
	ByIMDS  int  // consecutive views without it
	ByEC2   int  // consecutive answers, asked by ID, without it; 0 while metadata alone has spoken
	Lasting bool // EC2 is not asked (ENABLE_IMDS_ONLY_MODE), and metadata has been without it for longer than it may be behind
	Linked  bool // a link still has the ENI's MAC
	Cut     bool // the kernel has shown none for a while: metadata need not say it too
	Young   bool // it is in use for so short a time that EC2 may answer with what was before
}

// twiceByEC2: and where EC2 is not asked, by metadata for long.
func twiceByEC2(a Absence) bool {
	return (a.Lasting || (a.ByIMDS >= 1 || a.Cut) && a.ByEC2 >= 2) && !a.Linked && !a.Young
}

// Claim is what is known about whose an attached ENI is.
type Claim struct {
	Primary  bool // the instance cannot be without it
	Read     bool // EC2 has said its tags, which metadata does not show; until then what follows is not known
	Kept     bool // tagged no_manage=true, or a trunk, or an Elastic@Network@Adapter
	Made     bool // tagged with this instance: a VPC CNI of it made the ENI
	Named    bool // tagged no_manage with another value: to be managed
	Untagged bool // ENIs that none made are to be managed as well (MANAGE_UNTAGGED_ENI)
	Recorded bool // our records name it
	Excluded bool // EC2 is not asked, and the settings say of its device index that what is there is not ours
}

// notSomebodyElses is what upstream's README says of MANAGE_UNTAGGED_ENI and of the tag no_manage. A trunk or an Elastic@Network@Adapter is another
// program's, whatever its tags say.
func notSomebodyElses(c Claim) bool {
	switch {
	case c.Primary:
		return true
	case c.Excluded:
		return false
	case !c.Read:
		return c.Recorded
	case c.Kept:
		return false
	}
	return c.Made || c.Named || c.Untagged
}

// withinConsistency: EC2's replicas may be minutes behind (EC2 API guide, "Eventual consistency").
func withinConsistency(since time.Duration) bool { return since < consistency }

// byEC2: metadata lists what was given back for minutes (amazon-vpc-cni-k8s #1967), and it is not documented for how
// many.
func byEC2(w What) bool { return w != LookIMDS }

// linkIsThere: whatever has become of an ENI, its link is there as long as it is attached.
func linkIsThere(linked bool) bool { return linked }

// Evidence is what is known about the use of what is to be given back.
type Evidence struct {
	KernelAsked, RuntimeAsked   bool // the source is configured and may testify
	KernelAnswer, RuntimeAnswer bool // it answered whole, asked after the drain began
	Uses                        int  // assigned, cooling, quarantined or seen in use
}

func provenUnused(e Evidence) bool {
	return e.Uses == 0 && (e.KernelAnswer || !e.KernelAsked) && (e.RuntimeAnswer || !e.RuntimeAsked)
}

func neighbourVersions(_ Verb, plugin, daemon int) bool {
	return plugin == 0 || plugin-daemon <= 1 && daemon-plugin <= 1
}

// Absentee is an allocation that some list lacks.
type Absentee struct {
	Runtime      bool          // a runtime socket is configured
	Listed       bool          // by the last whole runtime list
	Ever         bool          // by any earlier one
	Absences     int           // consecutive whole lists without it
	Ended        int           // consecutive whole lists that show its sandbox, and not ready
	KernelLive   bool          // by the last whole observation: its veth with a living peer, or its address in a namespace
	KernelAbsent int           // consecutive whole observations without either
	Age          time.Duration // of the allocation
	PodGone      bool          // the API server lists no such pod: a hint, never proof
	Lists        int           // GC: lists without it
}

// unseenGrace is how long a sandbox may stay unlisted: containerd lists it only after its ADD has returned.
const unseenGrace = 5 * time.Minute

func runtimeAndKernelAgree(a Absentee) bool {
	if a.KernelLive {
		return false
	}
	if !a.Runtime {
		return a.KernelAbsent >= 2 && a.Age >= unseenGrace
	}
	if a.Listed { // a sandbox that died while it was made is listed for as long as it is its pod's newest, and no DEL comes
		return a.Ended >= 2 && a.KernelAbsent >= 2 && a.Age >= unseenGrace
	}
	return a.Absences >= 2 && a.KernelAbsent >= 1 && (a.Ever || a.Age >= unseenGrace)
}

func runtimeAndKernelAgreeTwice(a Absentee) bool {
	return a.Lists >= 2 && !a.KernelLive && a.KernelAbsent >= 2 && (!a.Runtime || !a.Listed && a.Absences >= 2)
}

func anyUse(string) bool { return true }

// unseenTwice: a pod's address is missing for a moment while a program in it changes its addresses.
func unseenTwice(looks int) bool { return looks >= 2 }

// onceWalked: what an earlier daemon had wanted may never have happened.
func onceWalked(walked bool) bool { return walked }

func configuredCoolDown(s Settings) time.Duration { return s.CoolDown }

// coolDownOrConsistency: what EC2 alone lists may be listed by a replica that is behind, and the record of giving it back be lost.
func coolDownOrConsistency(s Settings, seconded bool) time.Duration {
	if seconded {
		return s.CoolDown
	}
	return max(s.CoolDown, consistency)
}

func exactAttachment(d *Del, att Attachment, _ Pod) bool { return d.Att == att }

func unknownIsDone(Attachment) *Error { return nil }

// Displacement is what happens to the link that holds a name which a newer incarnation needs.
type Displacement uint8

const (
	Evict  Displacement = iota // deleted: what upstream does (driver.go:427)
	Rename                     // it keeps its traffic under another name
)

func olderIsRenamed(_, _ *Row) Displacement { return Rename }

func allThatLacks(p dataplane.Plan) dataplane.Plan { return p }

func everyMutation(Action) bool { return true }

// Doubt is how a lost reply is resolved.
type Doubt uint8

const (
	Forget Doubt = iota // it failed
	Repeat              // the same request again: EC2 knows its client token
	Ask                 // look first
)

// lookOrRepeat: CreateNetworkInterface is the only one of these calls that takes a client token.
func lookOrRepeat(a Action) Doubt {
	if a == CreateENI {
		return Repeat
	}
	return Ask
}

// Leak is an available ENI that a VPC CNI made, as far as its tags tell, and that this node has no record of.
type Leak struct {
	Ours bool          // tagged with this instance
	Near bool          // tagged with this cluster, and in this instance's VPC
	Gone int           // consecutive looks by which the instance that it is tagged with does not live
	Age  time.Duration // by its createdAt tag; negative when it has none
	Seen time.Duration // for so long every look has found it available
	Used bool          // an attachment of this node has one of its addresses
	Kept bool          // it is tagged no_manage, or of another kind
}

// A neighbour's ENI may wait for a throttled attach for long, for its daemon, or to be attached again after a third
// party took it: its age says nothing, nor how long it has been available, while its instance lives. One of our own
// has an intent while it is in doubt.
const (
	ownLeakAge   = 5 * time.Minute
	otherLeakAge = 30 * time.Minute
)

func provenLeak(l Leak) bool {
	switch {
	case l.Used, l.Kept:
		return false
	case l.Ours:
		return l.Age >= ownLeakAge
	}
	return l.Near && l.Age >= 0 && l.Seen >= otherLeakAge && l.Gone >= 2
}

// Supply is what a node has and what is asked of it, in addresses.
type Supply struct {
	Settings    Settings
	Prefixes    Delegation
	PerENI      int // secondaries that one ENI can carry
	Room        int // addresses that could still be had: slots on attached ENIs and whole further ENIs
	Near        int // of these, on ENIs that are attached or under way
	Free        int // available now
	Coming      int // of growth under way
	Waiting     int // ADDs without an address
	Assigned    int
	Cooling     int
	Quarantined int
}

// Delegation is how prefixes are had.
type Delegation struct {
	On   bool // slots are to carry prefixes
	Bare bool // and the subnet has none: they carry addresses meanwhile
	Free int  // prefixes all of whose addresses are available
}

// Want is how many addresses are missing, or may go.
type Want struct {
	More  int  // addresses to get
	Whole bool // get and give back whole ENIs
	Less  int  // addresses that may go
}

// warmTargets follows upstream's README ("WARM_ENI_TARGET", "WARM_IP_TARGET", "MINIMUM_IP_TARGET"): cooling addresses
// are not available, and demand counts what lives or waits, nothing else.
func warmTargets(s Supply) Want {
	if s.Settings.WarmIPTarget > 0 || s.Settings.MinimumIPTarget > 0 {
		return warmIPs(s)
	}
	if s.Prefixes.On {
		return warmPrefixes(s)
	}
	w := Want{Whole: true}
	target := s.Settings.WarmENITarget * s.PerENI
	w.More = max(0, target+s.Waiting-s.Free-s.Coming)
	if keep := target + s.PerENI; s.Waiting == 0 && s.Coming == 0 && s.Free >= keep {
		w.Less = s.Free - target
	}
	w.More = limitToPods(s, w.More)
	return w
}

func warmIPs(s Supply) Want {
	var w Want
	used := s.Assigned + s.Waiting
	have := s.Assigned + s.Free + s.Coming
	want := max(used+s.Settings.WarmIPTarget, s.Settings.MinimumIPTarget)
	if have < want {
		w.More = limitToPods(s, want-have)
	} else if s.Waiting == 0 && s.Coming == 0 && have > want {
		w.Less = s.Prefixes.whole(min(have-want, s.Free))
	}
	return w
}

// warmPrefixes follows upstream's README ("WARM_PREFIX_TARGET") and its ipamd.go (isDatastorePoolTooLow, getPrefixesNeeded,
// isDatastorePoolTooHigh): with fewer addresses available than so many prefixes have, as many prefixes are had as are missing
// of wholly free ones, and wholly free ones beyond it are given back. A target of 0 keeps an address available. Upstream's
// gives the prefix of that one back, and has another made.
func warmPrefixes(s Supply) Want {
	var w Want
	target := s.Settings.WarmPrefixTarget
	available := s.Free + s.Coming - s.Waiting
	if available < max(target*prefixSize, 1) {
		w.More = max(target*prefixSize, 1) - available
		if !s.Prefixes.Bare {
			w.More = max(w.More, (target-s.Prefixes.Free)*prefixSize-s.Coming)
		}
		w.More = limitToPods(s, w.More)
		return w
	}
	if s.Waiting > 0 || s.Coming > 0 {
		return w
	}
	keep := target
	if target == 0 && s.Free == s.Prefixes.Free*prefixSize {
		keep = 1
	}
	w.Less = max(s.Prefixes.Free-keep, 0) * prefixSize
	if over := s.Free - max(target*prefixSize, 1); s.Prefixes.Bare && over >= prefixSize { // single ones come and go with pods
		w.Less = over
	}
	return w
}

// topUpWithin is how long a pool stays short of its target, while no pod waits: amazon-vpc-cni-k8s looks at its own every
// five seconds (ipamd.go, ipPoolMonitorInterval).
const topUpWithin = 5 * time.Second

// byHalfTheTarget: single addresses are had in batches of half the target, so that the other half serves pods meanwhile,
// or of what was missing for a while. Whole ENIs and prefixes are batches. A further ENI takes seconds to be made, so it
// is begun with the first address that has no place otherwise.
func byHalfTheTarget(s Supply, more int) time.Duration {
	target := s.Settings.WarmIPTarget
	if target == 0 && s.Settings.MinimumIPTarget == 0 && s.Prefixes.Bare {
		target = s.Settings.WarmPrefixTarget * prefixSize
	}
	switch {
	case s.Prefixes.On && !s.Prefixes.Bare:
	case s.Free+s.Coming <= s.Waiting, s.Near == 0:
	case s.Assigned+s.Free+s.Coming < s.Settings.MinimumIPTarget:
	case 2*more < target:
		return topUpWithin
	}
	return 0
}

// whole is how many of some addresses that may go can: all of a prefix, or none.
func (d *Delegation) whole(less int) int {
	if !d.On || d.Bare {
		return less
	}
	return min(less/prefixSize, d.Free) * prefixSize
}

func allOfIt(room int) int { return room }

// byTags is what amazon-vpc-cni-k8s 1.23.0 does (pkg/awsutils/awsutils.go, isSubnetValidForENICreation, IsSubnetExcluded): the node's own subnet
// needs no tag, others are asked for by one, and only one with it is asked whose it is.
func byTags(s Site) bool {
	switch s.Role {
	case "0":
		return false
	case "":
		return s.Own
	}
	return !s.Others
}

// whereAnotherMayHelp: a full subnet, one that is gone or that the role may not use; not an account's quota, and nothing that will pass.
func whereAnotherMayHelp(a Action, c Class) bool {
	return c == SubnetFull || a == CreateENI && (c == Denied || c == NotFound || c == Invalid)
}

// mostSilent is how often in a row EC2 may not say which subnets there are before pods wait for that no longer.
const mostSilent = 4

// deniedOrSilent: a node that waited for a permission would never have pods (amazon-vpc-cni-k8s 1.23.0 makes no ENI then, against its README).
func deniedOrSilent(denied bool, fails int) bool { return denied || fails >= mostSilent }

// unlessElsewhere: EC2 makes an ENI in a subnet of another zone, and attaches it to no instance of this one.
func unlessElsewhere(known, listed bool) bool { return listed || !known }

// whileNew: what the API server said can be had anew, and what EC2 said is the best there is until it is likely wrong.
func whileNew(of What, age time.Duration) bool {
	if of == LookSubnets {
		return age < 2*freshSubnets
	}
	return age < freshConfig
}

// configsOrPrimarys is what amazon-vpc-cni-k8s 1.23.0 does (pkg/awsutils/awsutils.go, createENIUsingCustomCfg).
func configsOrPrimarys(config, primary []string) []string {
	if len(config) > 0 {
		return config
	}
	return primary
}

// thePrimary: it is in the node's own subnet (amazon-vpc-cni-k8s 1.23.0 asks for no address on it, and would give away those that it has).
func thePrimary(primary bool) bool { return primary }

// whatDiffers: groups have no order.
func whatDiffers(has, wants []string) bool {
	return len(has) != len(wants) || slices.ContainsFunc(has, func(g string) bool { return !slices.Contains(wants, g) })
}

// PrefixUse is what the books have of a prefix's addresses.
type PrefixUse struct {
	Free    int
	Cooling int
	Held    int // assigned or quarantined
}

// allSixteen: EC2 takes a prefix back as a whole, with the address that peers still send to.
func allSixteen(u PrefixUse) bool { return u.Free == prefixSize }

// oneEach: a prefix takes the place of one address (EC2 user guide, "Assign prefixes to network interfaces").
func oneEach(addresses, prefixes int) int { return addresses + prefixes }

// noneToGive: InsufficientCidrBlocks. A request that EC2 calls invalid will be so the next time, and pods wait.
func noneToGive(c Class) bool { return c == SubnetFull || c == Invalid }

// limitToPods: a node that may run no more pods needs no more addresses.
func limitToPods(s Supply, more int) int {
	if s.Settings.MaxPods == 0 {
		return more
	}
	return min(more, max(0, s.Settings.MaxPods-s.Assigned-s.Free-s.Coming))
}

// Pause is how a node holds back after a refusal of EC2's.
type Pause struct {
	Least  time.Duration // before the same is tried again
	Jitter time.Duration // as much longer, by chance, at most
	Gap    time.Duration // after a throttle: between any two of the node's mutations at least. It doubles with each further one
}

// Backoff bounds: EC2's mutating buckets refill 5 per second, shared by the account (EC2 API throttling guide).
const (
	firstPause = time.Second
	lastPause  = 64 * time.Second
	firstGap   = 500 * time.Millisecond
)

// exponentialJitter is the "full jitter" that the throttling guide asks for, with a floor of half.
func exponentialJitter(tries int) Pause {
	pause := firstPause << min(max(tries-1, 0), 6)
	pause = min(pause, lastPause)
	return Pause{Least: pause / 2, Jitter: pause, Gap: firstGap}
}
