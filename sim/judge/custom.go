package judge

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// Custom is what custom networking wants of a node's ENIs, by the truth of the API server.
type Custom struct {
	Subnet ec2.SubnetID  // where they are made; "" is nowhere
	Groups []string      // with which security groups; none: the primary one's
	Since  time.Duration // when that has changed last; 0 is never
	On     time.Duration // when the node's settings were changed to custom networking; 0 is that they always were
	Away   []Span        // when the API server was away
}

// Span is from when until when something was so.
type Span struct{ From, Until time.Duration }

// mustKnow says whether a daemon that asked for an ENI at that instant must have known the ENIConfig as it is now.
func (c *Custom) mustKnow(at time.Duration) bool {
	away := slices.ContainsFunc(c.Away, func(p Span) bool { return p.From <= at && !past(p.Until, at) })
	return past(c.Since, at) && past(c.On, at) && !away
}

// past says whether what began at since, 0 is never, is so old at an instant that a daemon must know.
func past(since, at time.Duration) bool { return since == 0 || at-since >= tagGrace }

// CustomOf is what the ENIConfig of a node wants. The order in which it is found is amazon-vpc-cni-k8s 1.23.0's (pkg/eniconfig/eniconfig.go,
// GetNodeSpecificENIConfigName); it is not the node's own function, so that a mistake there does not excuse itself here. zone is the node's,
// which its cloud provider labels it with; annotation and label are the keys that its settings name. since says when the node's labels and
// annotations have changed last, and config what the API server has of a name: without a subnet there is none.
func CustomOf(zone, annotation, label string, labels, annotations map[string]string, since time.Duration,
	config func(name string) (ec2.SubnetID, []string, time.Duration)) *Custom {
	name := "default"
	if v, ok := labels[label]; ok {
		name = v
	} else if label == zoneLabel {
		name = zone
	}
	if v, ok := annotations[annotation]; ok {
		name = v
	}
	if v, ok := labels["vpc.amazonaws.com/externalEniConfig"]; ok {
		name = v
	}
	subnet, groups, changed := config(name)
	return &Custom{Subnet: subnet, Groups: groups, Since: max(since, changed)}
}

const zoneLabel = "topology.kubernetes.io/zone"

// wrongSubnet says why the subnet of an ENI that a node asks EC2 for is not its ENIConfig's; "" is that it is, or was
// a moment ago.
func (w Whose) wrongSubnet(now time.Duration, id ec2.SubnetID) string {
	switch {
	case w.Custom == nil || !w.Custom.mustKnow(now) || w.Custom.Subnet == id:
		return ""
	case w.Custom.Subnet == "":
		return "not for this node, which has no ENIConfig"
	}
	return "not the one of its ENIConfig, " + string(w.Custom.Subnet)
}

// reserved says why a node may have no more addresses on an ENI; "" is that it may.
func (w Whose) reserved(now time.Duration, id ec2.ENIID) string {
	e, ok := w.Model.ENI(id)
	if ok && w.Custom != nil && past(w.Custom.On, now) && e.Instance == w.Node && primary(&e) {
		return "the primary one, which custom networking keeps from pods"
	}
	return ""
}

// Grouped are the ENIs of a node's, made by its CNI and attached, that have other security groups than they should: without custom networking
// those of the primary one, with it, where the ENIConfig has some, those that it had when they were made.
func (w Whose) Grouped() (wrong []ec2.ENI) {
	if w.Custom == nil {
		return OtherGroups(w.Model, w.Node)
	}
	if len(w.Custom.Groups) == 0 {
		return nil
	}
	for _, id := range w.Model.AttachedENIs(w.Node) {
		e, _ := w.Model.ENI(id)
		if ours(&e, w.Node) && w.Custom.mustKnow(e.Created) && !slices.Equal(sorted(e.SecurityGroups), sorted(w.Custom.Groups)) {
			wrong = append(wrong, e)
		}
	}
	return wrong
}
