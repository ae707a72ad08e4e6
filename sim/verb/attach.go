package verb

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/judge"
)

var attach = &Verb{
	Name: "attach", On: onEC2,
	Params: []Param{
		choice("kind", "no_manage",
			"what it is: tagged to be left alone, without a tag, or of a kind that carries no pods",
			"no_manage", "untagged", "trunk", "efa", "efa-only"),
		named("node", Count, "1", "whose"), named("device", Count, "0", "device index; 0 is the lowest free one"),
		named("addresses", Count, "2", "secondary addresses"), named("prefixes", Count, "0",
			"/28 prefixes, instead of addresses"),
	},
	Doc:    "a stranger makes an ENI and attaches it",
	Source: "amazon-vpc-cni-k8s README, MANAGE_UNTAGGED_ENI",
	Strike: func(t *Target) Strike {
		s := ec2.ThirdPartyENI{Description: "a stranger's", Secondaries: t.Int("addresses"), Prefixes: t.Int("prefixes")}
		if s.Prefixes > 0 {
			s.Secondaries = 0
		}
		switch kind := t.Text("kind"); kind {
		case "no_manage":
			s.Tags = []ec2.Tag{{Key: judge.TagNoManage, Value: "true"}}
		case "untagged":
		case "efa-only":
			s.Secondaries, s.Prefixes = 0, 0
			fallthrough
		default:
			s.Kind, _ = ec2.ParseInterfaceKind(kind)
		}
		c, node := t.Cloud, t.Int("node")
		id, ok := c.Model.ThirdPartyAttach(c.Now, c.Instance(node), t.Int("device"), s)
		if !ok {
			return Miss("EC2 refuses to attach an ENI to node-%d", node)
		}
		e, _ := c.Model.ENI(id)
		return Hit("a stranger attaches an ENI (%s) at device %d of node-%d", t.Text("kind"), e.DeviceIndex, node)
	},
	AnyCNI: Survival{Never: true,
		Why: "CNIs tell the ENIs that are theirs by tags of their own, and some adopt what has none"},
	Draw: &Draw{Weight: 3, Draw: drawAttach, Fits: hasSecondENI, Begin: beginAttach},
	Owe: func(o *draw.Owing, a *Act) {
		n := a.Int("node")
		o.Foreign[n]++
		o.Shape.Foreign = max(o.Shape.Foreign, o.Foreign[n])
		o.Shape.Prefixed = o.Shape.Prefixed || a.Int("prefixes") > 0
	},
}

// drawAttach is once or twice per node: the pods have room without these device indexes.
func drawAttach(p *draw.Plan, at time.Duration) {
	node := p.Between(1, p.Shape.Nodes)
	if p.Attached[node] == p.Shape.Foreign {
		p.Operate(at)
		return
	}
	p.Attached[node]++
	addresses := fmt.Sprintf("addresses=%d", p.Between(0, draw.MostForeign-1))
	if p.Shape.Prefixed && p.Chance(50) {
		addresses = fmt.Sprintf("prefixes=%d", p.Between(1, draw.MostPrefixes))
	}
	p.Write(at, "ec2 attach kind=%s node=%d %s", draw.Pick(&p.Source, "no_manage", "no_manage", "untagged", "trunk",
		"efa", "efa-only"), node, addresses)
}

func beginAttach(p *draw.Plan) {
	p.Shape.Foreign, p.Shape.Prefixed = 1, p.Chance(20)
	if p.Shape.ENIs > 3 && p.Chance(25) {
		p.Shape.Foreign = 2
	}
	p.Fit()
}
