package sim

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/enilab/enilab/sim/scn"
)

// ENIConfig is one that the API server has when the nodes are launched.
type ENIConfig struct {
	Name   string
	Subnet int      // of the cluster's, from 1
	Groups []string // names of security groups, which are made
}

// configUsage is how ENIConfigs are written.
const configUsage = "such as default:2 or default:2:sg-pods+sg-db,zone-b:3"

// parseENIConfig reads NAME:SUBNET{:GROUP{+GROUP}}.
func parseENIConfig(text string) (ENIConfig, error) {
	words := strings.Split(text, ":")
	if len(words) < 2 || len(words) > 3 || words[0] == "" {
		return ENIConfig{}, fmt.Errorf("expected NAME:SUBNET or NAME:SUBNET:GROUPS, found %q", text)
	}
	n, err := strconv.Atoi(words[1])
	if err != nil || n < 1 || n > mostSubnets {
		return ENIConfig{}, fmt.Errorf("%s: expected the number of one of the cluster's subnets, found %q", words[0], words[1])
	}
	c := ENIConfig{Name: words[0], Subnet: n}
	if len(words) == 3 {
		c.Groups = strings.Split(words[2], "+")
	}
	for _, g := range c.Groups {
		if !strings.HasPrefix(g, "sg-") {
			return ENIConfig{}, fmt.Errorf("%s: %q is no name of a security group, such as sg-pods", c.Name, g)
		}
	}
	return c, nil
}

// eniConfigs reads the ENIConfigs of the cluster line.
func (c *checker) eniConfigs(kv scn.KV) {
	for _, text := range strings.Split(kv.Value, ",") {
		e, err := parseENIConfig(text)
		if err != nil {
			c.bad(kv.ValuePos, configUsage, "cluster eniconfigs: %v", err)
			return
		}
		c.configured = kv.ValuePos
		c.cluster.ENIConfigs = append(c.cluster.ENIConfigs, e)
	}
}

// placeENIConfigs finds the subnets that they name.
func (c *checker) placeENIConfigs() {
	for _, e := range c.cluster.ENIConfigs {
		if e.Subnet > c.File.Subnets {
			c.bad(c.configured, "name it with subnets=CIDR,... on the cluster line", "ENIConfig %s: there is no subnet %d: the cluster has %d",
				e.Name, e.Subnet, c.File.Subnets)
		}
	}
}
