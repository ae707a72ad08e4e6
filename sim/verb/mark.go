package verb

import (
	"time"

	"github.com/enilab/enilab/sim/draw"
	"github.com/enilab/enilab/sim/scn"
)

// configKey is the annotation, and the label, by which a node names its ENIConfig unless settings name another.
const configKey = "k8s.amazonaws.com/eniConfig"

// taken is the value that takes a label or an annotation away.
const taken = "none"

var annotate = &Verb{
	Name: "annotate", On: onNode,
	Params: marks(),
	Doc:    "somebody annotates the Node object",
	Source: "amazon-vpc-cni-k8s README, ENI_CONFIG_ANNOTATION_DEF",
	Strike: func(t *Target) Strike { return mark(t, true) },
	Draw:   drawMark("annotate", ""),
	AnyCNI: Survival{Never: true, Why: "ENIConfigs are one CNI's"},
}

var label = &Verb{
	Name: "label", On: onNode,
	Params: marks(),
	Doc:    "somebody labels the Node object",
	Source: "amazon-vpc-cni-k8s README, ENI_CONFIG_LABEL_DEF",
	Strike: func(t *Target) Strike { return mark(t, false) },
	Draw:   drawMark("label", " key=vpc.amazonaws.com/externalEniConfig"),
	AnyCNI: Survival{Never: true, Why: "ENIConfigs are one CNI's"},
}

// drawMark has a node name another ENIConfig for some minutes.
func drawMark(verb, key string) *Draw {
	return &Draw{Weight: 2, Last: true, Later: true, Fits: customized, Draw: func(p *draw.Plan, at time.Duration) {
		node := p.AnyNode()
		p.Write(at, "kube put-eniconfig other in=%d", p.Between(1, 2))
		p.Write(p.Later(at, time.Second, 3*time.Minute), "%s %s other%s", node, verb, key)
		p.Write(p.Later(at, 4*time.Minute, 9*time.Minute), "%s %s %s%s", node, verb, taken, key)
	}}
}

func marks() []Param {
	return []Param{bare("value", Word, "its value; "+taken+" takes it away"), named("key", Word, configKey, "its key")}
}

func mark(t *Target, annotation bool) Strike {
	value := t.Text("value")
	v := &value
	if value == taken {
		v = nil
	}
	no := 0
	if t.Subject.Kind == scn.Node {
		no = t.Subject.Node
	}
	return t.API.Mark(no, annotation, t.Text("key"), v)
}
