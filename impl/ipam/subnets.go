package ipam

import (
	"iter"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// freshSubnets is how old EC2's answer about the subnets may be when an ENI is made: their tags and counts change.
	freshSubnets = time.Minute
	// seldomSubnets is the same for a full node that misses no more than its warm target: nothing is made by the answer.
	seldomSubnets = 10 * time.Minute
	// deniedPause is the wait after EC2 denied DescribeSubnets to the role: its policy may have been corrected by then.
	deniedPause = 10 * time.Minute
)

// Subnet is a subnet of the instance's VPC and zone, as DescribeSubnets shows it.
type Subnet struct {
	ID     string
	CIDR   netip.Prefix
	Free   int    // AvailableIpAddressCount, which lags behind
	Role   string // tag kubernetes.io/role/cni; "" when it has none
	Others bool   // it is tagged cni.networking.k8s.aws/cluster/… for clusters, and not for this one; false where this one has no name
}

// Tags of subnets by which amazon-vpc-cni-k8s 1.23.0 chooses among them (pkg/awsutils/awsutils.go): of the first the value
// counts, of the second, which a cluster's name follows, that it is there.
const (
	tagRole       = "kubernetes.io/role/cni"
	tagForCluster = "cni.networking.k8s.aws/cluster/"
)

// Tagged sets Role and Others from the subnet's tags. cluster is the cluster's name; "" is none. The daemon and every
// laboratory call it, so that a tag means the same to the core wherever it comes from.
func (s *Subnet) Tagged(cluster string, tags iter.Seq2[string, string]) {
	ours := cluster == ""
	for key, value := range tags {
		name, of := strings.CutPrefix(key, tagForCluster)
		switch {
		case key == tagRole:
			s.Role = value
		case of:
			s.Others, ours = true, ours || name == cluster
		}
	}
	s.Others = s.Others && !ours
}

// Site is what Policy.Suits decides by: whether a subnet is for pods.
type Site struct {
	Own    bool // the node's own, or one that an ENI of the node is in already
	Role   string
	Others bool
}

// candidate is a subnet in which ENIs may be made, and whether EC2 has refused something there.
type candidate struct {
	Subnet
	Full bool   // EC2 has refused something there, or says that no address is free: others are tried first
	Tag  uint64 // step of that refusal
}

// refusal is what EC2 has refused to give; the zero one is nothing.
type refusal struct {
	Class    Class
	Count    int
	Prefixed bool   // of prefixes
	Text     string // where, and why
}

// subnets are those in which ENIs may be made (amazon-vpc-cni-k8s 1.23.0, pkg/awsutils/awsutils.go, createENI). Where EC2 does not say which there
// are, it is the node's own.
type subnets struct {
	*life    `json:"-"`
	evidence *evidence
	custom

	// The names in JSON are those that recordings have.
	Candidates      []candidate   `json:"Grounds"` // of EC2's last complete answer, in its order
	CandidatesKnown bool          `json:"GroundsKnown"`
	CandidatesAt    time.Duration `json:"GroundsAt"`  // when EC2 was asked for them
	CandidatesErr   string        `json:"GroundsErr"` // why EC2's last answer had none
	Undescribed     bool          // for want of the permission
	Refused         bool          `json:",omitzero"` // because of who asks: EC2 makes no ENI for this caller either, so its next answer is waited for
	Awaited         bool          // growth waits for an answer of EC2 or of the API server
	LastRefusal     refusal       `json:"Turned"` // after which another subnet was tried
}

// discovers says whether there is more than one subnet to choose from.
func (sn *subnets) discovers() bool {
	return sn.Set.Discovery && !sn.Set.IMDSOnly && !sn.Set.CustomNetwork
}

// asks says whether EC2 is asked which subnets there are: to choose among them, or to find the ENIConfig's.
func (sn *subnets) asks() bool { return sn.discovers() || sn.customNetworking() }

func (sn *subnets) candidate(id string) *candidate {
	for i := range sn.Candidates {
		if sn.Candidates[i].ID == id {
			return &sn.Candidates[i]
		}
	}
	return nil
}

// suits says whether ENIs may be made in a subnet.
func (sn *subnets) suits(g *candidate) bool {
	return sn.policy.Suits(Site{Own: g.ID == sn.Inst.Subnet, Role: g.Role, Others: g.Others})
}

// excluded says whether pods get no more addresses of ENIs in that subnet: its tags exclude it.
func (sn *subnets) excluded(id string) bool {
	if len(sn.Candidates) == 0 || !sn.discovers() {
		return false
	}
	g := sn.candidate(id)
	return g != nil && !sn.policy.Suits(Site{Own: true, Role: g.Role, Others: g.Others})
}

// hasOther says whether ENIs may be made in another subnet than that one.
func (sn *subnets) hasOther(id string) bool {
	for i := range sn.Candidates {
		if g := &sn.Candidates[i]; g.ID != id && sn.suits(g) {
			return true
		}
	}
	return false
}

// exhausted says whether no address is requested in a subnet for now: EC2 has refused there, and there are others.
func (sn *subnets) exhausted(id string) bool {
	if len(sn.Candidates) < 2 || !sn.discovers() {
		return false
	}
	g := sn.candidate(id)
	return g != nil && g.Full && sn.hasOther(id)
}

// known says whether EC2 has answered which subnets there are, or is not waited for any more.
func (sn *subnets) known() bool {
	l := &sn.evidence.Looks[LookSubnets]
	return !sn.asks() || sn.CandidatesKnown || !sn.Refused && sn.policy.Blind(sn.Undescribed, l.Fails)
}

// fresh says whether EC2's answer is new enough for an ENI to be made by it; else EC2 is asked again.
func (sn *subnets) fresh(now time.Duration) bool {
	if sn.customNetworking() && !sn.current(now) {
		return false
	}
	if !sn.asks() || sn.CandidatesKnown && now-sn.CandidatesAt < freshSubnets {
		return true
	}
	l := &sn.evidence.Looks[LookSubnets]
	if l.ID == 0 && l.Want == never {
		sn.evidence.want(LookSubnets, now)
	}
	return l.Fails > 0 && !sn.Refused && sn.known() // an older answer is better than none
}

// stale says whether EC2's answer is of so long ago that tags may be others by now, and EC2 does not answer any more.
func (sn *subnets) stale(now time.Duration) bool {
	return sn.evidence.Looks[LookSubnets].Fails > 0 && !sn.policy.Current(LookSubnets, now-sn.CandidatesAt)
}

// place is the subnet for the next ENI: the ENIConfig's, or else of those that suit the one with the most free addresses,
// by EC2's count less what was requested since. Its CIDR is unknown where EC2's answer lacks it. By an answer that is
// stale it is the node's own alone. False: none suits, or all that do are exhausted.
func (sn *subnets) place(now time.Duration) (Subnet, bool) {
	if sn.customNetworking() {
		return sn.configSubnet()
	}
	own := Subnet{ID: sn.Inst.Subnet}
	if !sn.discovers() || !sn.CandidatesKnown {
		return own, true
	}
	var best *candidate
	stale := sn.stale(now)
	for i := range sn.Candidates {
		g := &sn.Candidates[i]
		if sn.suits(g) && !sn.exhausted(g.ID) && (best == nil || g.Free > best.Free) && (g.ID == own.ID || !stale) {
			best = g
		}
	}
	switch {
	case best != nil:
		return best.Subnet, true
	case sn.candidate(own.ID) == nil: // a subnet of another account's that it does not show
		return own, stale || !sn.hasOther("")
	}
	return Subnet{}, false
}

// nextWord is when EC2's last answer is too old for an ENI to be made by it.
func (sn *subnets) nextWord() time.Duration {
	if sn.customNetworking() {
		return sn.ConfigAt + freshConfig
	}
	return sn.CandidatesAt + freshSubnets
}

// takes counts addresses that are requested in a subnet as no longer free there.
func (sn *subnets) takes(id string, count int) {
	if g := sn.candidate(id); g != nil {
		g.Free -= count
	}
}

// tryAnother notes that EC2 has refused something in a subnet, so that another one is tried next. It returns false where
// there is no other, or another would not help.
func (sn *subnets) tryAnother(id string, a Action, f refusal) bool {
	g := sn.candidate(id)
	if !sn.discovers() || g == nil || !sn.policy.Switches(a, f.Class) || !sn.hasOther(id) {
		return false
	}
	g.Full, g.Tag, sn.LastRefusal = true, sn.Steps, f
	return true
}

// forgive lets all subnets be tried again after each has refused. It returns the last refusal.
func (sn *subnets) forgive() (last refusal, any bool) {
	for i := range sn.Candidates {
		any = any || sn.Candidates[i].Full
		sn.Candidates[i].Full = false
	}
	last, sn.LastRefusal = sn.LastRefusal, refusal{}
	return last, any
}

// seen takes EC2's answer about the subnets, which was asked for in that step at the instant at.
func (sn *subnets) seen(now time.Duration, in *Seen, whole bool, asked uint64, at time.Duration) {
	sn.Awaited = false
	if !whole {
		if in.Denied && !sn.Undescribed {
			sn.note(Note{Point: SubnetsDenied, Warn: true, Text: in.Err})
		}
		sn.CandidatesErr, sn.Undescribed, sn.Refused = in.Err, in.Denied, in.Refused
		if in.Denied {
			l := &sn.evidence.Looks[LookSubnets]
			l.Want = now + deniedPause + time.Duration(sn.random()*float64(deniedPause)/4)
		}
		return
	}
	next := make([]candidate, 0, min(len(in.Subnets), mostSubnets))
	for _, s := range in.Subnets[:min(len(in.Subnets), mostSubnets)] {
		g := candidate{Subnet: s, Full: s.Free <= 0}
		if old := sn.candidate(s.ID); old != nil && old.Full && old.Tag > asked {
			g.Full, g.Tag = true, old.Tag
		}
		next = append(next, g)
	}
	sn.Candidates, sn.CandidatesKnown, sn.CandidatesAt = next, true, at
	sn.CandidatesErr, sn.Undescribed, sn.Refused = "", false, false
}

// mostSubnets bounds how many subnets of a zone are considered; a VPC has 200 by default ("Amazon VPC quotas").
const mostSubnets = 1000

// problem says why a further ENI is made where it is, or nowhere (rule J); "" is that there is nothing to report.
// wanting: pods wait.
func (sn *subnets) problem(wanting bool) string {
	switch {
	case sn.customNetworking():
		return sn.unusable(wanting)
	case !sn.discovers():
		return ""
	case sn.CandidatesErr != "" && wanting && sn.Refused:
		return "EC2 does not say which subnets are for pods, and no network interface is made before it does: " + sn.CandidatesErr
	case sn.CandidatesErr != "" && wanting && sn.CandidatesKnown:
		return "EC2 does not say any more which subnets are for pods: " + sn.CandidatesErr
	case sn.CandidatesErr != "" && wanting:
		return "EC2 does not say which subnets are for pods, and network interfaces are made in the node's own: " + sn.CandidatesErr
	case sn.candidate(sn.Inst.Subnet) == nil:
		return ""
	case !slices.ContainsFunc(sn.Candidates, func(g candidate) bool { return sn.suits(&g) }):
		return "none of the " + strconv.Itoa(len(sn.Candidates)) + " subnets in zone " + sn.Inst.Zone + " is for pods of this cluster: the node's own has to have" +
			" another tag kubernetes.io/role/cni than 0, or another one the tag kubernetes.io/role/cni=1"
	}
	return ""
}
