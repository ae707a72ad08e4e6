package ec2

import "time"

// statusChecks is how long after it began to run an instance passes its first status checks: they are made every
// minute ("Status checks for Amazon EC2 instances").
const statusChecks = time.Minute

// InstanceStatus is what the status checks say of an instance. Every instance that runs passes the model's checks.
type InstanceStatus struct {
	Instance InstanceID
	Zone     Zone
	State    string // spelt as Instance.State
	// Status is that of the system and of the instance: "initializing" until the first checks, then "ok";
	// "not-applicable" for an instance that does not run.
	Status string
}

// describeStatus answers for the instances that run, with AllStates for all.
func (c *Cloud) describeStatus(from int32, r *Request) Response {
	at := c.readAt(from, r.Action)
	asked, p := c.asked(r, at)
	if p.Code != "" {
		return p
	}
	for _, n := range asked {
		if i := &c.instances[n]; r.AllStates || i.stateAt(at) == running {
			zone := c.subnets[i.subnet].zone
			p.Statuses = append(p.Statuses, InstanceStatus{
				Instance: i.id, Zone: Zone{zone, ZoneID(c.cfg.Region, zone), c.cfg.Region}, State: i.stateAt(at).String(), Status: i.statusAt(at),
			})
		}
	}
	return p
}

// statusAt is what the status checks had found at an instant.
func (i *instance) statusAt(at time.Duration) string {
	switch {
	case i.stateAt(at) != running:
		return "not-applicable"
	case i.changed <= at && at-i.changed < statusChecks:
		return "initializing"
	}
	return "ok"
}
