package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var stale = &Verb{
	Name: "stale", On: onEC2,
	Params: []Param{named("by", Duration, "10s", "how old"), named("for", Duration, "1m", "how long"), whose()},
	Doc:    "Describes answer what was true that long ago",
	Source: "EC2 API, consistency",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.StaleReads, By: t.Duration("by")}) },
	Needs:  Needs{Cloud: true},
}
