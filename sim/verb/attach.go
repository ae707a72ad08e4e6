package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/judge"
)

var attach = &Verb{
	Name: "attach", On: onEC2,
	Params: []Param{
		choice("kind", "no_manage", "what it is: tagged to be left alone, without a tag, or of a kind that carries no pods",
			"no_manage", "untagged", "trunk", "efa", "efa-only"),
		named("node", Count, "1", "whose"), named("device", Count, "0", "device index; 0 is the lowest free one"),
		named("addresses", Count, "2", "secondary addresses"), named("prefixes", Count, "0", "/28 prefixes, instead of addresses"),
	},
	Doc:    "a stranger makes an ENI and attaches it",
	Source: "amazon-vpc-cni-k8s README, MANAGE_UNTAGGED_ENI",
	Strike: func(t *Target) Strike {
		s := ec2.StrangerENI{Description: "a stranger's", Secondaries: t.Int("addresses"), Prefixes: t.Int("prefixes")}
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
		id, ok := c.Model.StrangerAttach(c.Now, c.Instance(node), t.Int("device"), s)
		if !ok {
			return Miss("EC2 refuses to attach an ENI to node-%d", node)
		}
		e, _ := c.Model.ENI(id)
		return Hit("a stranger attaches an ENI (%s) at device %d of node-%d", t.Text("kind"), e.DeviceIndex, node)
	},
	AnyCNI: Survival{Never: true, Why: "CNIs tell the ENIs that are theirs by tags of their own, and some adopt what has none"},
	Needs:  Needs{Cloud: true},
}
