package verb

import (
	"github.com/enilab/enilab/fakes/ec2"
)

var fail = &Verb{
	Name: "fail", On: onEC2,
	Params: []Param{call("request"), bare("code", Word, "error code"), howMany(),
		choice("after", "dropped", "whether EC2 executes it all the same", "dropped", "executed"), whose()},
	Doc: "the next such requests fail with that code",
	Strike: func(t *Target) Strike {
		return t.fault(ec2.Fault{Kind: ec2.Fail, Code: t.Text("code"), Executed: t.Text("after") == "executed"})
	},
	Needs: Needs{Cloud: true},
}
