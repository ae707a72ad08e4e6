package judge

import (
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// tagGrace is for how long a node may go by tags that have changed: it hears of them when it asks.
const tagGrace = 2 * time.Minute

// attachGrace is for how long after that a node may attach what it has made by them.
const attachGrace = time.Minute

// CloudSubnet is a subnet as EC2 knows it, and what its tags say for a node.
type CloudSubnet struct {
	ID       ec2.SubnetID
	Free     int  // addresses that it could still give
	Blocks   int  // and /28 prefixes
	Suits    bool // ENIs may be made there
	Excluded bool // no pod is to get an address of an ENI that is there
}

// suits says whether ENIs of a node may be made in a subnet by its tags, as amazon-vpc-cni-k8s 1.23.0 does (pkg/awsutils/awsutils.go). It is not
// the node's own function, so that a mistake there does not excuse itself here.
func (w Whose) suits(s *ec2.Subnet, home ec2.SubnetID) bool {
	if w.Custom != nil {
		return s.ID == w.Custom.Subnet
	}
	if w.Undiscovered {
		return s.ID == home
	}
	role, others, ours := "", false, w.Cluster == ""
	for _, t := range s.Tags {
		if t.Key == TagRole {
			role = t.Value
		}
		if name, ok := strings.CutPrefix(t.Key, TagForCluster); ok {
			others, ours = true, ours || name == w.Cluster
		}
	}
	switch {
	case role == "0":
		return false
	case role == "":
		return s.ID == home
	}
	return !others || ours
}

// Subnets are those of the node's VPC and zone.
func (w Whose) Subnets() (out []CloudSubnet) {
	home, _ := w.Model.InstanceOf(w.Node)
	for _, s := range w.Model.Subnets() {
		if s.VPC == home.VPC && s.Zone == home.Zone {
			out = append(out, CloudSubnet{ID: s.ID, Free: w.Model.FreeAddresses(s.ID), Blocks: w.Model.FreePrefixes(s.ID),
				Suits: w.suits(&s, home.Subnet), Excluded: !w.Undiscovered && w.Custom == nil && !w.suits(&s, s.ID)})
		}
	}
	return out
}

// notForPods says why a node may make no ENI in a subnet; "" is that it may, or might have a moment ago.
func (w Whose) notForPods(now time.Duration, id ec2.SubnetID) string {
	home, _ := w.Model.InstanceOf(w.Node)
	for _, s := range w.Model.Subnets() {
		switch {
		case s.ID != id:
		case s.VPC != home.VPC:
			return "in another VPC"
		case s.Zone != home.Zone:
			return "in another zone"
		case w.Custom != nil:
			return w.wrongSubnet(now, id)
		case !w.suits(&s, home.Subnet) && now-w.Model.Tagged(id) >= tagGrace:
			return "not tagged for pods of this cluster"
		}
	}
	return ""
}
