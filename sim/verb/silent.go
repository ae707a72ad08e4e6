package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var silent = &Verb{
	Name: "silent", On: onIMDS,
	Params: []Param{named("for", Duration, "1m", "how long"), whose()},
	Doc:    "instance metadata does not answer",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.IMDSSilent}) },
	Needs:  Needs{Cloud: true},
}
