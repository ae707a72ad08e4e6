package verb

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

// Cloud is the model of EC2, and where its world has nodes and pods.
type Cloud struct {
	Model    *ec2.Cloud
	Cluster  string // its name, "" is none
	Now      time.Duration
	Nodes    int
	Instance func(node int) ec2.InstanceID
	Address  func(pod string) netip.Addr // of a pod; the zero one is none
}

// Subnet is one of the cluster's, from 1. A model has them before all others.
func (c *Cloud) Subnet(n int) ec2.Subnet { return c.Model.Subnets()[n-1] }

// makesENI says whether an action is about requests that make ENIs.
func (a *Act) makesENI() bool { return a.Text("call") == draw.Making || a.Text("call") == anyRequest }

// fault arms what a verb about calls has go wrong, under the action's number. A verb that has no times ends by the
// clock.
func (t *Target) fault(f ec2.Fault) Strike {
	f.ID = t.ID
	f.Action, _ = ec2.ParseAction(t.Text("call")) // "any" is AnyAction, as is none
	f.Times = t.Int("times")
	if t.Text("for") != "" {
		f.Until = t.Cloud.Now + t.Duration("for")
	}
	whose := "nobody"
	if n := t.Int("node"); n > 0 {
		f.Instance, whose = t.Cloud.Instance(n), fmt.Sprintf("node-%d never", n)
	}
	t.Cloud.Model.Fault(f)
	if call := t.Text("call"); call != "" && call != anyRequest {
		return Wait("%s made such a %s", whose, call)
	}
	return Wait("%s met it", whose)
}
