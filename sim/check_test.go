package sim_test

import (
	"strings"
	"testing"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// TestAClusterThatCannotBe is told with its line, before anything is made of it.
func TestAClusterThatCannotBe(t *testing.T) {
	for lines, says := range map[string]string{
		"cluster type=m5.large subnet=10.0.0.0/8\n":             `no.scn:1:30: cluster subnet: expected an IPv4 CIDR from /16 to /28, as a VPC's and its subnets' are, found "10.0.0.0/8"`,
		"cluster type=m5.large subnet=::/64\n":                  `found "::/64"`,
		"cluster type=m5.large\nstart pods web 433 on node-1\n": "no.scn:2:1: pods web: expected at most 432 on a node, which is what a m5.large can have addresses for, found 433",
		"cluster nodes=1\nconfig ENABLE_IMDS_ONLY_MODE=true\nconfig AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG=true WARM_IP_TARGET=1\n": "no.scn:3:8: config AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG: with ENABLE_IMDS_ONLY_MODE=true",
		"cluster type=m5.large nodes=2\nstart pods web 432 on node-*\n":                                                         "",
	} {
		f, err := scn.Parse("no.scn", []byte(lines+"at 1m kube create db 1\nfinally converges within 20m\n"))
		if err == nil {
			_, err = sim.Check(f)
		}
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says)) {
			t.Errorf("%q: expected %q, found %v", lines, says, err)
		}
	}
}
