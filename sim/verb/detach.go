package verb

import (
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

var detach = &Verb{
	Name: "detach", On: onEC2,
	Params: []Param{named("node", Count, "1", "whose"), named("device", Count, "1", "device index")},
	Doc:    "a stranger detaches an ENI",
	Strike: func(t *Target) Strike { return t.atDevice(t.Cloud.Model.ThirdPartyDetach, "detached") },
	Check:  hasDevice,
	Survives: Survival{
		Why: "not while the cloud fails or the daemon dies: nobody can notice and attach it again in time"},
	AnyCNI: Survival{Never: true, Why: "a CNI need not attach again what a stranger detached"},
	Draw:   &Draw{Weight: 2, Draw: drawDetach, Fits: hasSecondENI},
	Owe: func(o *draw.Owing, _ *Act) {
		if o.At < o.Wanted+young {
			o.Say("at %s an ENI is detached by a stranger that may be too new to be missed: pods came or went less "+
				"than %s before",
				draw.Short(o.At), draw.Short(young))
		}
	},
}

// hasDevice refuses a device index at which a node never has an ENI that may go.
func hasDevice(f *File, a *Act) {
	if a.Int("node") < 1 {
		f.bad("", "there is no node-%d: the cluster has nodes=%d", a.Int("node"), f.Nodes)
	}
	limits, _ := ec2.LimitsOf(f.Type)
	if d := a.Int("device"); (d < 1 || d >= limits.ENIs) && f.Headed {
		f.bad("device 0 is the primary ENI, which stays",
			"%s device=%d strikes nobody: a %s has further ENIs at devices 1 to %d",
			a.Verb, d, f.Type, limits.ENIs-1)
	}
}

// atDevice does what a third party does to the interface at a node's device index.
func (t *Target) atDevice(do func(now time.Duration, e ec2.ENIID) bool, what string) Strike {
	node, device := t.Int("node"), t.Int("device")
	for _, id := range t.Cloud.Model.AttachedENIs(t.Cloud.Instance(node)) {
		if e, _ := t.Cloud.Model.ENI(id); e.DeviceIndex == device {
			if !do(t.Cloud.Now, id) {
				return Miss("EC2 refuses it: the ENI at device %d of node-%d cannot be %s now", device, node, what)
			}
			return Hit("the ENI at device %d of node-%d is %s", device, node, what)
		}
	}
	return Miss("node-%d has no ENI at device %d", node, device)
}

func drawDetach(p *draw.Plan, at time.Duration) {
	if at < p.Wanted+young {
		p.Operate(at)
		return
	}
	p.Detaches = true
	p.Write(at, "ec2 detach node=%d device=%d", p.Between(1, p.Shape.Nodes), p.Between(1, p.Shape.ENIs-1))
}

// young is how long after pods came or went an ENI may be too new to be missed: for two minutes EC2 may not know it
// yet.
const young = 150 * time.Second
