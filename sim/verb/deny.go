package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var deny = &Verb{
	Name: "deny", On: onEC2,
	Params: []Param{call("request"), named("for", Duration, "1m", "how long"), whose()},
	Doc:    "the node's role loses the permission",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.DenyPermission}) },
	Needs:  Needs{Cloud: true},
}
