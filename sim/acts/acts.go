// Package acts carries out what a scenario does to the models of the cluster and of the cloud, and reads their metrics: the same
// in every world, since every world has these models.
package acts

import (
	"net/netip"
	"strings"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/sim"
)

// Describe is an action as a story tells it.
func Describe(a *sim.Act) string {
	s := a.Subject.String() + " " + a.Verb
	for _, k := range []string{"cri", "to", "part", "call", "when", "valid", "name", "count", "times", "for", "by", "pod"} {
		if v := a.Text(k); v != "" {
			s += " " + v
		}
	}
	for _, k := range a.Keys {
		s += " " + k.Key + "=" + k.Value
	}
	return strings.TrimSpace(s)
}

// Kube carries out a verb of the API server. all are the nodes that pods may be placed on.
func Kube(c *kube.Cluster, now time.Duration, a *sim.Act, all []int) {
	name := a.Text("name")
	switch a.Verb {
	case "create":
		s := kube.Spec{Name: name, Replicas: a.Int("count"), Nodes: all}
		if only := a.Int("node"); only > 0 {
			s.Nodes = []int{only}
		}
		if a.Text("kind") == "statefulset" {
			s.Kind = kube.StatefulSet
		}
		_ = c.CreateWorkload(now, s) // a name that exists: total verbs do nothing
	case "scale":
		c.Scale(now, name, a.Int("count"))
	case "roll":
		c.Roll(now, name, a.Int("count"))
	}
}

// AddressIn finds pods' addresses in the model of the API server.
func AddressIn(k *kube.Cluster) func(pod string) netip.Addr {
	return func(pod string) netip.Addr {
		p, _ := k.Find(pod)
		return p.Address
	}
}

// EC2 carries out a verb of EC2. instance is the instance of a node, address that of a pod; the zero one is none.
func EC2(c *ec2.Cloud, now time.Duration, a *sim.Act, instance func(node int) ec2.InstanceID, address func(pod string) netip.Addr) {
	action, _ := ec2.ParseAction(a.Text("call")) // "any" is AnyAction, as is an unknown one
	f := ec2.Fault{Action: action, Times: a.Int("times")}
	switch a.Verb {
	case "lose":
		if f.Kind = ec2.Lose; a.Text("after") == "dropped" {
			f.Kind = ec2.LoseRequest
		}
	case "fail":
		f.Kind, f.Code = ec2.Fail, a.Text("code")
	case "throttle":
		f.Kind = ec2.ThrottleBurst
	case "slow":
		f.Kind, f.Slow = ec2.Slow, a.Duration("by")
	case "deny":
		f.Kind, f.Until, f.Times = ec2.DenyPermission, now+a.Duration("for"), 0
	case "down":
		f.Kind, f.Until, f.Times = ec2.Down, now+a.Duration("for"), 0
	case "detach":
		strangerDetach(c, now, instance(a.Int("node")), a.Int("device"))
		return
	case "unassign":
		if pod := address(a.Text("pod")); pod.IsValid() {
			c.StrangerUnassign(now, pod)
		}
		return
	case "drain-subnet":
		c.DrainSubnet(now, c.Subnets()[0].ID, a.Int("leave"))
		return
	}
	c.Fault(f)
}

func strangerDetach(c *ec2.Cloud, now time.Duration, i ec2.InstanceID, device int) {
	for _, id := range c.AttachedENIs(i) {
		if e, _ := c.ENI(id); e.DeviceIndex == device {
			c.StrangerDetach(now, id)
		}
	}
}

// IMDS carries out a verb of instance metadata.
func IMDS(c *ec2.Cloud, now time.Duration, a *sim.Act) {
	if a.Verb == "silent" {
		c.Fault(ec2.Fault{Kind: ec2.IMDSSilent, Until: now + a.Duration("for")})
		return
	}
	by := ec2.Always(a.Duration("by"))
	c.SetLag(ec2.Lag{IMDSAttach: by, IMDSAddress: by, IMDSDetach: by})
}

// MeasureKube reads a metric of the API server.
func MeasureKube(c *kube.Cluster, metric string) (int64, bool) {
	if metric == "pods.ready" {
		return int64(c.Ready()), true
	}
	return int64(c.Len()), true
}

// Ledger is how often each action was called.
func Ledger(c *ec2.Cloud) []ec2.Count {
	out := make([]ec2.Count, ec2.ActionCount)
	for a := range out {
		out[a] = c.Calls(ec2.Action(a))
	}
	return out
}

// MeasureEC2 reads a metric of EC2; calls count from a ledger taken before.
func MeasureEC2(c *ec2.Cloud, base []ec2.Count, metric string) (int64, bool) {
	switch metric {
	case "enis.available":
		return int64(c.CountENIs(ec2.Available)), true
	case "enis.total":
		return int64(len(c.AllENIs())), true
	}
	name, ok := strings.CutPrefix(metric, "calls.")
	if !ok {
		return 0, false
	}
	var total, throttled int64
	for a := range base {
		n := c.Calls(ec2.Action(a))
		d := n.Total - base[a].Total
		if ec2.Action(a).String() == name {
			return int64(d), true
		}
		total += int64(d)
		throttled += int64(n.Throttled - base[a].Throttled)
	}
	if name == "throttled" {
		return throttled, true
	}
	return total, name == "total"
}
