package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var inUse = &Verb{
	Name: "in-use", On: onEC2,
	Params: []Param{howMany(), whose()},
	Doc:    "the next ENIs to be deleted are said to be in use",
	Source: "amazon-vpc-cni-k8s #608",
	Strike: func(t *Target) Strike { return t.fault(ec2.Fault{Kind: ec2.DeleteInUse}) },
	Needs:  Needs{Cloud: true},
}
