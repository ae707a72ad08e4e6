package ipam

import (
	"slices"
	"strconv"
	"strings"
	"time"
)

// freshConfig is how old the API server's answer about the node's ENIConfig may be when an ENI is made, and how often it
// is asked while pods need an ENI and none can be made by it.
const freshConfig = 30 * time.Second

// mostGroups bounds the security groups that are read of an ENIConfig; EC2 takes five for an interface, and 16 when the quota is
// raised ("Amazon VPC quotas").
const mostGroups = 16

// ENIConfig is this node's ENIConfig object (crd.k8s.amazonaws.com/v1alpha1), as the API server shows it.
type ENIConfig struct {
	Name    string
	Missing bool     `json:",omitzero"` // there is none of that name
	Subnet  string   `json:",omitzero"`
	Groups  []string `json:",omitzero"` // IDs of security groups; none: those of the primary ENI
}

// Where a node says which ENIConfig is its own (amazon-vpc-cni-k8s 1.23.0, pkg/eniconfig/eniconfig.go).
const (
	labelExternal = "vpc.amazonaws.com/externalEniConfig"
	configKey     = "k8s.amazonaws.com/eniConfig" // of the annotation and of the label, unless a setting names another
	configDefault = "default"
)

// ConfigName is the name of a node's ENIConfig: the value of the label that is set from outside the cluster, or else of the
// annotation, or else of the label that the settings name, also where the value is empty; else "default". The daemon and
// every laboratory call it.
func (s *Settings) ConfigName(labels, annotations map[string]string) string {
	if name, ok := labels[labelExternal]; ok {
		return name
	}
	if name, ok := annotations[s.ConfigAnnotation]; ok {
		return name
	}
	if name, ok := labels[s.ConfigLabel]; ok {
		return name
	}
	return configDefault
}

// custom is what is known of the node's ENIConfig (custom networking).
type custom struct {
	Config      ENIConfig
	ConfigKnown bool
	ConfigAt    time.Duration // when the API server was asked for it
	ConfigErr   string        // why the API server's last answer lacked it
}

// customNetworking says whether ENIs are made where an ENIConfig says.
func (sn *subnets) customNetworking() bool { return sn.Set.CustomNetwork && !sn.Set.IMDSOnly }

// listed says whether EC2 has answered which subnets the zone has, and whether the ENIConfig's is one of them.
func (sn *subnets) listed() (known, listed bool) {
	return sn.CandidatesKnown, sn.candidate(sn.Config.Subnet) != nil
}

// configSubnet is the subnet of the node's ENIConfig. False: the ENIConfig is unknown, missing or names no subnet, or EC2
// does not list that subnet in the node's zone.
func (sn *subnets) configSubnet() (Subnet, bool) {
	if !sn.ConfigKnown || sn.Config.Missing || sn.Config.Subnet == "" || !sn.policy.Near(sn.listed()) {
		return Subnet{}, false
	}
	if g := sn.candidate(sn.Config.Subnet); g != nil {
		return g.Subnet, true
	}
	return Subnet{ID: sn.Config.Subnet}, true
}

// current says whether the API server's answer is new enough for an ENI to be made by it; else the API server is asked.
// While that fails, an older answer is better than none.
func (sn *subnets) current(now time.Duration) bool {
	if sn.young(now) {
		return true
	}
	l := &sn.evidence.Looks[LookConfig]
	if l.ID == 0 && l.Want == never {
		sn.evidence.want(LookConfig, now)
	}
	return l.Fails > 0 && sn.ConfigKnown
}

// young says whether the API server has answered not long ago.
func (sn *subnets) young(now time.Duration) bool {
	return sn.ConfigKnown && sn.policy.Current(LookConfig, now-sn.ConfigAt)
}

// heard says whether the answer is new enough for an ENI to be attached by it that was made at that instant; else it is asked for. One that did not
// come is as good: what an earlier daemon has made goes on by what that one knew.
func (sn *subnets) heard(now, made time.Duration) bool {
	what, fresh := LookSubnets, !sn.discovers() || sn.Undescribed || sn.CandidatesKnown && now-sn.CandidatesAt < 2*freshSubnets
	if sn.customNetworking() {
		what, fresh = LookConfig, sn.young(now)
	}
	l := &sn.evidence.Looks[what]
	if !fresh && l.ID == 0 && (l.Fails == 0 || l.At < made) { // who did not answer before may be back
		sn.evidence.want(what, now)
	}
	return fresh || l.ID == 0 && l.Fails > 0 && l.At >= made
}

// outdated says why an ENI would not be made where and as it is any more; "" is that it would. EC2 may have made it long after it was asked to: the
// request is repeated as it was, since its client token allows no other.
func (sn *subnets) outdated(e *eni, primary []string) string {
	switch {
	case sn.customNetworking():
		if sn.ConfigKnown && (e.Subnet != sn.Config.Subnet || len(e.Groups) > 0 && sn.policy.Regroup(e.Groups, sn.groups(primary))) {
			return "the node's ENIConfig has changed"
		}
	case sn.discovers():
		if g := sn.candidate(e.Subnet); g != nil && !sn.suits(g) {
			return "the tags of its subnet have changed"
		}
	}
	return ""
}

// expects says whether the first answer of the API server or of EC2 is still awaited, on which it depends whether an ENI
// is made.
func (sn *subnets) expects() bool {
	ev := sn.evidence
	return !sn.ConfigKnown && ev.Looks[LookConfig].Fails == 0 || !sn.known() && ev.Looks[LookSubnets].Fails == 0
}

// seenConfig takes the API server's answer about the node's ENIConfig, which was asked for at the instant at.
func (sn *subnets) seenConfig(in *Seen, whole bool, at time.Duration) {
	sn.Awaited = false
	if !whole {
		sn.ConfigErr = in.Err
		return
	}
	c := *in.Config
	c.Groups = slices.Clone(c.Groups[:min(len(c.Groups), mostGroups)])
	before, known := sn.Config, sn.ConfigKnown
	sn.Config, sn.ConfigKnown, sn.ConfigAt, sn.ConfigErr = c, true, at, ""
	if known && (before.Name != c.Name || before.Missing != c.Missing || before.Subnet != c.Subnet ||
		!slices.Equal(before.Groups, c.Groups)) {
		sn.note(Note{Point: ConfigChanged, Text: c.Name + ": " + c.Subnet})
	}
}

// groups are the security groups of an ENI that is made.
func (sn *subnets) groups(primary []string) []string {
	if !sn.customNetworking() {
		return primary
	}
	return sn.policy.Grouped(sn.Config.Groups, primary)
}

// home is the subnet that messages name as the source of further addresses: the ENIConfig's, or the node's own.
func (sn *subnets) home() string {
	if sn.customNetworking() && sn.Config.Subnet != "" {
		return sn.Config.Subnet
	}
	return sn.Inst.Subnet
}

// unusable says why no ENI is made by the node's ENIConfig (rule J); "" is that one may be. wanting: pods wait.
func (sn *subnets) unusable(wanting bool) string {
	c := &sn.Config
	mend := "; no network interface is made until that is mended, and running pods keep what they have"
	known, listed := sn.listed()
	switch {
	case !sn.Set.API:
		return "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: no API server can be asked which ENIConfig is this node's, and no network interface is made"
	case sn.ConfigErr != "" && !sn.ConfigKnown:
		return "the API server does not say which ENIConfig is this node's, and no network interface is made: " + sn.ConfigErr
	case sn.ConfigErr != "" && wanting:
		return "the API server does not say any more what ENIConfig " + c.Name + " has: " + sn.ConfigErr
	case !sn.ConfigKnown:
		return ""
	case c.Missing:
		return "there is no ENIConfig " + strconv.Quote(c.Name) + ", which this node's label or annotation names (" + configDefault +
			", if it has none)" + mend
	case c.Subnet == "":
		return "ENIConfig " + c.Name + " names no subnet" + mend
	case known && !listed:
		return "ENIConfig " + c.Name + " names " + c.Subnet + ", which is no subnet of zone " + sn.Inst.Zone + " in the VPC of this node" + mend
	}
	return ""
}

// reserved says whether an ENI is kept from pods because it is the primary one, and pods have ENIs of their own (custom networking).
func (es *enis) reserved(e *eni) bool {
	return es.subnets.customNetworking() && e.Stage >= Attached && !e.Foreign && es.policy.Reserved(e.Device == 0)
}

// shutOut names the ENIs from which pods get nothing because their subnets' tags exclude them; "" is none.
func (es *enis) shutOut() string {
	var ids []string
	for i := range es.ENIs {
		if e := &es.ENIs[i]; e.Stage >= Attached && e.Stage <= Ready && !e.Foreign && es.subnets.excluded(e.Subnet) {
			ids = append(ids, e.ID+" in "+e.Subnet)
		}
	}
	if len(ids) == 0 {
		return ""
	}
	return "no pod gets an address of " + strings.Join(ids, ", ") + ": the tags of these subnets keep them from pods of this cluster"
}

// excluded says whether pods get no more addresses of an ENI. Its free addresses are given back.
func (es *enis) excluded(e *eni) bool { return es.reserved(e) || es.subnets.excluded(e.Subnet) }
