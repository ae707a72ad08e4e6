package story_test

import (
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/story"
)

// What EC2 refused has not happened, and when it would no longer have refused it is a matter of a millisecond: a story is no other for it.
// What it did, and what nobody knows of, is one.
func TestBookWritesWhatWasDone(t *testing.T) {
	attach := ec2.Request{Action: ec2.AttachNetworkInterface, ENI: "eni-1"}
	told := func(answers ...ec2.Response) *story.Book {
		b := story.NewBook()
		for i := range answers {
			b.Call(1, &attach, &answers[i])
		}
		return b
	}
	plain := told(ec2.Response{})
	if d := plain.Diff(told(ec2.Response{Code: "InvalidNetworkInterfaceID.NotFound"}, ec2.Response{})); len(d) > 0 {
		t.Errorf("refused, then done, is another story than done: %q", d)
	}
	for what, b := range map[string]*story.Book{"never done": told(), "answered by nobody": told(ec2.Response{Lost: true})} {
		if d := plain.Diff(b); len(d) == 0 {
			t.Errorf("%s is the same story as done", what)
		}
	}
}

// How far a burst of pods has come when their daemon is killed is a matter of milliseconds; what was done long before is not.
func TestBookLeavesOutWhatADeathCutOff(t *testing.T) {
	att := func(id string) ipam.Attachment {
		return ipam.Attachment{Network: "aws-cni", ContainerID: id, IfName: "eth0"}
	}
	told := func(before time.Duration, added ...string) *story.Book {
		b := story.NewBook()
		for _, id := range added {
			b.Reply(time.Minute-before, 1, &ipam.Reply{Verb: ipam.VerbAdd, Att: att(id)}, false)
		}
		b.Died(time.Minute, 1, []ipam.Attachment{att("open")})
		b.Reply(2*time.Minute, 1, &ipam.Reply{Verb: ipam.VerbDel, Att: att("open")}, true)
		return b
	}
	if d := told(time.Second, "a", "b").Diff(told(time.Second, "a")); len(d) > 0 {
		t.Errorf("a second before a death one pod more is another story: %q", d)
	}
	if d := told(time.Minute, "a", "b").Diff(told(time.Minute, "a")); len(d) == 0 {
		t.Error("a minute before a death one pod more is the same story")
	}
}
