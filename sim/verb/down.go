package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var down = &Verb{
	Name: "down", On: onEC2,
	Params: []Param{named("for", Duration, "1m", "how long")},
	Doc:    "the EC2 endpoint answers Unavailable",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.Down}) },
	Needs:  Needs{Cloud: true},
}
