package actions

import (
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/verb"
)

// ENIConfig is one as the API server has it: its subnet is EC2's, and so are its security groups, which are made if they are not there.
func ENIConfig(m *ec2.Cloud, now time.Duration, e *sim.ENIConfig) kube.ENIConfig {
	for _, g := range e.Groups {
		m.ThirdPartyMakeGroup(now, "", g)
	}
	return kube.ENIConfig{Name: e.Name, Subnet: string(m.Subnets()[e.Subnet-1].ID), Groups: e.Groups}
}

// ENIConfigPut is what came of that; it may have been so already.
func ENIConfigPut(e *kube.ENIConfig, changed bool) verb.Strike {
	switch {
	case !changed:
		return verb.Miss("ENIConfig %s is so already", e.Name)
	case len(e.Groups) == 0:
		return verb.Hit("ENIConfig %s names %s", e.Name, e.Subnet)
	}
	return verb.Hit("ENIConfig %s names %s and %s", e.Name, e.Subnet, strings.Join(e.Groups, ", "))
}

// ENIConfigDeleted is what came of a deletion.
func ENIConfigDeleted(name string, was bool) verb.Strike {
	if !was {
		return verb.Miss("there is no ENIConfig %s", name)
	}
	return verb.Hit("ENIConfig %s is gone", name)
}

// Mark sets a label or an annotation of a node, or takes it away when the value is nil, and says what came of it.
func Mark(c *kube.Cluster, now time.Duration, node int, annotation bool, key string, value *string) verb.Strike {
	set, what := c.Label, "label"
	if annotation {
		set, what = c.Annotate, "annotation"
	}
	switch changed := set(now, node, key, value); {
	case !changed:
		return verb.Miss("node-%d's %s %s is so already", node, what, key)
	case value == nil:
		return verb.Hit("the %s %s is gone", what, key)
	}
	return verb.Hit("the %s %s is %s", what, key, *value)
}

// Custom is what the ENIConfig of a node wants, as the API server has it; nil without custom networking, which was switched on or off at on.
func Custom(c *kube.Cluster, node int, zone string, s *ipam.Settings, on time.Duration) *judge.Custom {
	if !s.CustomNetwork {
		return nil
	}
	labels, annotations, marked := c.Marks(node)
	custom := judge.CustomOf(zone, s.ConfigAnnotation, s.ConfigLabel, labels, annotations, marked,
		func(name string) (ec2.SubnetID, []string, time.Duration) {
			e, changed, ok := c.ENIConfig(name)
			if !ok {
				return "", nil, changed
			}
			return ec2.SubnetID(e.Subnet), e.Groups, changed
		})
	custom.On = on
	for _, p := range c.Parted() {
		custom.Away = append(custom.Away, judge.Span(p))
	}
	return custom
}
