package acts

import (
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim"
)

// EC2 carries out a verb of EC2. instance is the instance of a node, address that of a pod; the zero one is none.
func EC2(c *ec2.Cloud, now time.Duration, a *sim.Act, instance func(node int) ec2.InstanceID, address func(pod string) netip.Addr) {
	switch a.Verb {
	case "detach":
		if e, ok := eniAt(c, instance(a.Int("node")), a.Int("device")); ok {
			c.StrangerDetach(now, e)
		}
	case "remove":
		if e, ok := eniAt(c, instance(a.Int("node")), a.Int("device")); ok {
			c.StrangerDelete(now, e)
		}
	case "unassign":
		if pod := address(a.Text("pod")); pod.IsValid() {
			c.StrangerUnassign(now, pod)
		}
	case "drain-subnet":
		c.DrainSubnet(now, c.Subnets()[0].ID, a.Int("leave"))
	case "draw":
		c.Advance(now)
		for k := range a.Int("faults") {
			c.Fault(ec2.DrawFault(uint64(a.Int("seed"))<<20+uint64(k), now, c.Running()))
		}
	default:
		f := fault(now, a)
		if n := a.Int("node"); n > 0 {
			f.Instance = instance(n)
		}
		c.Fault(f)
	}
}

// fault is what a verb about calls has go wrong. A verb that has no times ends by the clock.
func fault(now time.Duration, a *sim.Act) ec2.Fault {
	action, _ := ec2.ParseAction(a.Text("call")) // "any" is AnyAction, as is an unknown one
	f := ec2.Fault{Action: action, Times: a.Int("times")}
	if a.Text("for") != "" {
		f.Until = now + a.Duration("for")
	}
	switch a.Verb {
	case "lose":
		if f.Kind = ec2.Lose; a.Text("after") == "dropped" {
			f.Kind = ec2.LoseRequest
		}
	case "duplicate":
		f.Kind = ec2.Duplicate
	case "fail":
		f.Kind, f.Code = ec2.Fail, a.Text("code")
	case "throttle":
		f.Kind = ec2.ThrottleBurst
	case "slow":
		if f.Kind, f.Slow = ec2.Slow, a.Duration("by"); a.Text("way") == "back" {
			f.Kind = ec2.SlowAnswer
		}
	case "deny":
		f.Kind = ec2.DenyPermission
	case "down":
		f.Kind = ec2.Down
	case "skew":
		if f.Kind, f.By = ec2.ClockSkew, a.Duration("by"); a.Text("clock") == "behind" {
			f.By = -f.By
		}
	case "stale":
		f.Kind, f.By = ec2.StaleReads, a.Duration("by")
	case "hang":
		if f.Kind = ec2.DetachHangs; a.Text("what") == "attach" {
			f.Kind = ec2.AttachHangs
		}
	case "in-use":
		f.Kind = ec2.DeleteInUse
	}
	return f
}

// eniAt is the interface in use at an instance's device index.
func eniAt(c *ec2.Cloud, i ec2.InstanceID, device int) (ec2.ENIID, bool) {
	for _, id := range c.AttachedENIs(i) {
		if e, _ := c.ENI(id); e.DeviceIndex == device {
			return id, true
		}
	}
	return "", false
}

// IMDS carries out a verb of instance metadata.
func IMDS(c *ec2.Cloud, now time.Duration, a *sim.Act, instance func(node int) ec2.InstanceID) {
	if a.Verb == "silent" {
		f := ec2.Fault{Kind: ec2.IMDSSilent, Until: now + a.Duration("for")}
		if n := a.Int("node"); n > 0 {
			f.Instance = instance(n)
		}
		c.Fault(f)
		return
	}
	by, l := ec2.Always(a.Duration("by")), c.Lag()
	l.IMDSAttach, l.IMDSAddress, l.IMDSDetach = by, by, by
	c.SetLag(l)
}
