package verb

import (
	"slices"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/sim/draw"
)

// killing is an EC2 request before or after which any daemon may die: nobody else has to find what is left.
type killing struct{ Call, When string }

// killings are all of them.
var killings = []killing{{"CreateNetworkInterface", "before"}, {"AttachNetworkInterface", "after"},
	{"ModifyNetworkInterfaceAttribute", "before"},
	{"ModifyNetworkInterfaceAttribute", "after"}, {"DetachNetworkInterface", "before"}, {"DeleteNetworkInterface",
		"after"},
	{"AssignPrivateIpAddresses", "before"}, {"AssignPrivateIpAddresses", "after"}, {"UnassignPrivateIpAddresses",
		"before"},
	{"UnassignPrivateIpAddresses", "after"}, {"DescribeNetworkInterfaces", "after"}}

var killAt = &Verb{
	Name: "kill-at", On: onNode,
	Params: []Param{call("the request"), choice("when", "after", "before it is sent, or after EC2 has executed it",
		"before", "after")},
	Doc:    "kills the daemon the next time it makes that EC2 request",
	Source: "amazon-vpc-cni-k8s #69",
	Strike: func(t *Target) Strike {
		request, _ := ec2.ParseAction(t.Text("call")) // "any" is AnyAction
		if s := t.Daemon.KillAt(request, t.Text("when") == "after"); s.Fate != Armed {
			return s
		}
		return Wait("the daemon made no %s", t.Text("call"))
	},
	AnyCNI: Survival{
		Why: "not between an ENI's making and its attaching, or its detaching and its deleting: what is left is " +
			"swept within hours",
		Beyond: func(a *Act) bool { return !slices.Contains(killings, killing{a.Text("call"), a.Text("when")}) }},
	Needs: Needs{Daemon: true, Cloud: true},
	Draw:  &Draw{Weight: 5, Draw: drawKillAt},
	DrawAny: &Draw{Weight: 4, Draw: func(p *draw.Plan, at time.Duration) {
		x := draw.Pick(&p.Source, killings...)
		p.Write(at, "%s kill-at %s when=%s", p.AnyNode(), x.Call, x.When)
	}},
	AtDaemon: true,
}

func drawKillAt(p *draw.Plan, at time.Duration) {
	call := draw.Pick(&p.Source, draw.Mutations...)
	if p.Chance(10) {
		call = "DescribeNetworkInterfaces"
	}
	p.Write(at, "%s kill-at %s when=%s", p.AnyNode(), call, draw.Pick(&p.Source, "before", "after"))
}
