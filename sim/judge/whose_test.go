package judge_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/judge"
)

// What an available ENI's tags and VPC say decides whether a node of the cluster may touch it, and whether one has to delete it.
func TestWhoseALeakedENIIs(t *testing.T) {
	m := ec2.New(actions.Cloud([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, []sim.Subnet{{CIDR: netip.MustParsePrefix("10.0.7.0/24")}}), 1)
	launch := func() ec2.InstanceID {
		return must.Get(m.Launch(0, ec2.LaunchSpec{Type: "m5.large"}))(t)
	}
	self, living := launch(), launch()
	m.Advance(time.Hour)
	for _, c := range []struct {
		name, cluster    string // ours
		owner            ec2.InstanceID
		tagged, noManage string
		there            bool   // in the other VPC
		says             string // why it is not ours; "" is that it may be
		made             bool   // somebody of the cluster has to delete it
	}{
		{"our own", "c1", self, "c1", "", false, "", true},
		{"our own, without a name", "", self, "", "", false, "", true},
		{"a dead node's", "c1", "i-gone", "c1", "", false, "", true},
		{"a dead node's, without a name", "", "i-gone", "", "", false, "", true},
		{"a living node's", "c1", living, "c1", "", false, "lives", true},
		{"another cluster's", "c1", "i-gone", "c2", "", false, "another cluster's", false},
		{"a named cluster's, without a name", "", "i-gone", "c2", "", false, "another cluster's", false},
		{"an unnamed cluster's", "c1", "i-gone", "", "", false, "another cluster's", false},
		{"in another VPC", "c1", "i-gone", "c1", "", true, "another VPC", false},
		{"to be left alone", "c1", "i-gone", "c1", "true", false, "no_manage", false},
		{"nobody's", "c1", "", "", "", false, "", false},
	} {
		s := ec2.ThirdPartyENI{Subnet: m.Subnets()[0].ID}
		if c.there {
			s.Subnet = m.Subnets()[1].ID
		}
		for key, value := range map[string]string{judge.TagOwner: string(c.owner), judge.TagCluster: c.tagged, judge.TagNoManage: c.noManage} {
			if value != "" {
				s.Tags = append(s.Tags, ec2.Tag{Key: key, Value: value})
			}
		}
		id, ok := m.ThirdPartyCreate(time.Hour, s)
		if !ok {
			t.Fatal("EC2 makes no ENI")
		}
		e, _ := m.ENI(id)
		says := judge.Whose{Model: m, Node: self, Cluster: c.cluster}.NotOurs(id)
		if c.says == "" && says != "" || !strings.Contains(says, c.says) {
			t.Errorf("%s: it is not ours, for %q; expected %q", c.name, says, c.says)
		}
		if made := judge.Made(m, c.cluster, &e); made != c.made {
			t.Errorf("%s: somebody has to delete it: %v", c.name, made)
		}
	}
}
