package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var throttle = &Verb{
	Name: "throttle", On: onEC2,
	Params: []Param{call("request"), howMany(), whose()},
	Doc:    "somebody else empties the bucket before the next such requests",
	Source: "EC2 API, throttling",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.ThrottleBurst}) },
	Needs:  Needs{Cloud: true},
}
