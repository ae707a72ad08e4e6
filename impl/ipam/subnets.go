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
	// freshSubnets is how old EC2's word on the subnets may be when an ENI is made: their tags and counts change.
	freshSubnets = time.Minute
	// deniedPause is until a role is asked again that may not ask for subnets, for somebody may have mended it.
	deniedPause = 10 * time.Minute
)

// Subnet is one of the instance's VPC and zone, as EC2 shows it.
type Subnet struct {
	ID     string
	CIDR   netip.Prefix
	Free   int    // AvailableIpAddressCount, which trails
	Role   string // tag kubernetes.io/role/cni; "" when it has none
	Others bool   // it is tagged cni.networking.k8s.aws/cluster/… for clusters, and not for this one; false where this one has no name
}

// Tags of subnets by which amazon-vpc-cni-k8s 1.23.0 chooses among them (pkg/awsutils/awsutils.go): of the first the value
// counts, of the second, which a cluster's name follows, that it is there.
const (
	tagRole       = "kubernetes.io/role/cni"
	tagForCluster = "cni.networking.k8s.aws/cluster/"
)

// Tagged takes over what the subnet's tags say for a cluster, which "" is where it has no name. Every shell and every world
// asks it: a tag means the same to the core wherever it comes from.
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

// Site is what is known of a subnet when it is asked whether it is for pods.
type Site struct {
	Own    bool // the node's own, or one that an ENI of the node is in already
	Role   string
	Others bool
}

// ground is a subnet with what refusals have shown of it.
type ground struct {
	Subnet
	Full bool   // EC2 has refused something there, or says that it has nothing left: others come first
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

	Grounds      []ground // by EC2's last whole word, in its order
	GroundsKnown bool
	GroundsAt    time.Duration // when EC2 had been asked for them
	GroundsErr   string        // why EC2 did not say them last
	Undescribed  bool          // and that was for want of the permission
	Awaited      bool          // growth waits for EC2's word, or for the API server's
	Turned       refusal       // the last one that made another subnet's turn
}

// discovers says whether there is more than one subnet to choose from.
func (sn *subnets) discovers() bool {
	return sn.Set.Discovery && !sn.Set.IMDSOnly && !sn.Set.CustomNetwork
}

// asks says whether EC2 is asked which subnets there are: to choose among them, or to find the ENIConfig's.
func (sn *subnets) asks() bool { return sn.discovers() || sn.sited() }

func (sn *subnets) ground(id string) *ground {
	for i := range sn.Grounds {
		if sn.Grounds[i].ID == id {
			return &sn.Grounds[i]
		}
	}
	return nil
}

// suits says whether ENIs may be made in a subnet.
func (sn *subnets) suits(g *ground) bool {
	return sn.policy.Suits(Site{Own: g.ID == sn.Inst.Subnet, Role: g.Role, Others: g.Others})
}

// shut says whether no pod is given an address of an ENI in that subnet any more: its tags exclude it.
func (sn *subnets) shut(id string) bool {
	if len(sn.Grounds) == 0 || !sn.discovers() {
		return false
	}
	g := sn.ground(id)
	return g != nil && !sn.policy.Suits(Site{Own: true, Role: g.Role, Others: g.Others})
}

// another says whether ENIs may be made in another subnet than that one.
func (sn *subnets) another(id string) bool {
	for i := range sn.Grounds {
		if g := &sn.Grounds[i]; g.ID != id && sn.suits(g) {
			return true
		}
	}
	return false
}

// spent says whether nothing is asked for in a subnet for now: EC2 has refused, and there are others.
func (sn *subnets) spent(id string) bool {
	if len(sn.Grounds) < 2 || !sn.discovers() {
		return false
	}
	g := sn.ground(id)
	return g != nil && g.Full && sn.another(id)
}

// known says whether EC2 has said which subnets there are, or is not waited for any more.
func (sn *subnets) known() bool {
	l := &sn.evidence.Looks[LookSubnets]
	return !sn.asks() || sn.GroundsKnown || sn.policy.Blind(sn.Undescribed, l.Fails)
}

// fresh says whether EC2's word is new enough for an ENI to be made by it; else EC2 is asked.
func (sn *subnets) fresh(now time.Duration) bool {
	if sn.sited() && !sn.current(now) {
		return false
	}
	if !sn.asks() || sn.GroundsKnown && now-sn.GroundsAt < freshSubnets {
		return true
	}
	l := &sn.evidence.Looks[LookSubnets]
	if l.ID == 0 && l.Want == never {
		sn.evidence.want(LookSubnets, now)
	}
	return l.Fails > 0 && sn.known() // what was heard before is better than nothing
}

// place is the subnet for the next ENI: the ENIConfig's, or else of those that suit the one with the most free addresses, by EC2's count and what has been asked for since.
// Its CIDR is not known where EC2 has not spoken of it. False: none suits, or all that do are spent.
func (sn *subnets) place() (Subnet, bool) {
	if sn.sited() {
		return sn.site()
	}
	own := Subnet{ID: sn.Inst.Subnet}
	if !sn.discovers() || !sn.GroundsKnown {
		return own, true
	}
	var best *ground
	for i := range sn.Grounds {
		g := &sn.Grounds[i]
		if sn.suits(g) && !sn.spent(g.ID) && (best == nil || g.Free > best.Free) {
			best = g
		}
	}
	switch {
	case best != nil:
		return best.Subnet, true
	case sn.ground(own.ID) == nil: // a subnet of another account's that it does not show
		return own, !sn.another("")
	}
	return Subnet{}, false
}

// nextWord is when what was heard is too old for an ENI to be made by it.
func (sn *subnets) nextWord() time.Duration {
	if sn.sited() {
		return sn.ConfigAt + freshConfig
	}
	return sn.GroundsAt + freshSubnets
}

// takes notes that so many addresses are asked for in a subnet.
func (sn *subnets) takes(id string, count int) {
	if g := sn.ground(id); g != nil {
		g.Free -= count
	}
}

// turn notes that EC2 has refused something in a subnet; false: there is no other, or another would not help.
func (sn *subnets) turn(id string, a Action, f refusal) bool {
	g := sn.ground(id)
	if !sn.discovers() || g == nil || !sn.policy.Turns(a, f.Class) || !sn.another(id) {
		return false
	}
	g.Full, g.Tag, sn.Turned = true, sn.Steps, f
	return true
}

// forgive lets all subnets be asked again, for each has refused. It returns the last refusal.
func (sn *subnets) forgive() (last refusal, any bool) {
	for i := range sn.Grounds {
		any = any || sn.Grounds[i].Full
		sn.Grounds[i].Full = false
	}
	last, sn.Turned = sn.Turned, refusal{}
	return last, any
}

// seen takes EC2's word on the subnets, asked for in that step at the instant at.
func (sn *subnets) seen(now time.Duration, in *Seen, whole bool, asked uint64, at time.Duration) {
	sn.Awaited = false
	if !whole {
		if in.Denied && !sn.Undescribed {
			sn.note(Note{Point: SubnetsDenied, Warn: true, Text: in.Err})
		}
		if sn.GroundsErr, sn.Undescribed = in.Err, in.Denied; in.Denied {
			l := &sn.evidence.Looks[LookSubnets]
			l.Want = now + deniedPause + time.Duration(sn.random()*float64(deniedPause)/4)
		}
		return
	}
	next := make([]ground, 0, min(len(in.Subnets), mostSubnets))
	for _, s := range in.Subnets[:min(len(in.Subnets), mostSubnets)] {
		g := ground{Subnet: s, Full: s.Free <= 0}
		if old := sn.ground(s.ID); old != nil && old.Full && old.Tag > asked {
			g.Full, g.Tag = true, old.Tag
		}
		next = append(next, g)
	}
	sn.Grounds, sn.GroundsKnown, sn.GroundsAt, sn.GroundsErr, sn.Undescribed = next, true, at, "", false
}

// mostSubnets bounds how many of a zone are looked at; a VPC has 200 by default ("Amazon VPC quotas").
const mostSubnets = 1000

// doubts say why a further ENI is made where it is, or nowhere (rule J); "" is that nothing is to be said. wanting: pods wait.
func (sn *subnets) doubts(wanting bool) string {
	switch {
	case sn.sited():
		return sn.unusable(wanting)
	case !sn.discovers():
		return ""
	case sn.GroundsErr != "" && wanting && sn.GroundsKnown:
		return "EC2 does not say any more which subnets are for pods: " + sn.GroundsErr
	case sn.GroundsErr != "" && wanting:
		return "EC2 does not say which subnets are for pods, and network interfaces are made in the node's own: " + sn.GroundsErr
	case !sn.GroundsKnown || len(sn.Grounds) == 0 || sn.ground(sn.Inst.Subnet) == nil:
		return ""
	case !slices.ContainsFunc(sn.Grounds, func(g ground) bool { return sn.suits(&g) }):
		return "none of the " + strconv.Itoa(len(sn.Grounds)) + " subnets in zone " + sn.Inst.Zone + " is for pods of this cluster: the node's own has to have" +
			" another tag kubernetes.io/role/cni than 0, or another one the tag kubernetes.io/role/cni=1"
	}
	return ""
}
