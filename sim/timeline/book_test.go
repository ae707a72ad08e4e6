package timeline_test

import (
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/sim/timeline"
)

// What EC2 refused has not happened, and when it would no longer have refused it is a matter of a millisecond: a story is no other for it.
// What it did, and what nobody knows of, is one.
func TestBookWritesWhatWasDone(t *testing.T) {
	attach := ec2.Request{Action: ec2.AttachNetworkInterface, ENI: "eni-1"}
	told := func(answers ...ec2.Response) *timeline.Book {
		b := timeline.NewBook()
		for i := range answers {
			b.Call(1, &attach, &answers[i])
		}
		return b
	}
	plain := told(ec2.Response{})
	if d := plain.Diff(told(ec2.Response{Code: "InvalidNetworkInterfaceID.NotFound"}, ec2.Response{})); len(d) > 0 {
		t.Errorf("refused, then done, is another story than done: %q", d)
	}
	for what, b := range map[string]*timeline.Book{"never done": told(), "answered by nobody": told(ec2.Response{Lost: true})} {
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
	told := func(before time.Duration, added ...string) *timeline.Book {
		b := timeline.NewBook()
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

// An ADD whose time ends while its address is being set up is undone, by itself or by its DEL: that is a matter of milliseconds. A DEL of a pod is not.
func TestBookLeavesOutWhatCameTooLate(t *testing.T) {
	att := ipam.Attachment{Network: "aws-cni", ContainerID: "c", IfName: "eth0"}
	told := func(late, del bool) *timeline.Book {
		b := timeline.NewBook()
		if late {
			b.Reply(time.Minute, 1, &ipam.Reply{Verb: ipam.VerbAdd, Att: att, Err: &ipam.Error{Code: ipam.CodeTryAgain}}, true)
		}
		if del {
			b.Reply(2*time.Minute, 1, &ipam.Reply{Verb: ipam.VerbDel, Att: att}, true)
		}
		return b
	}
	if d := told(true, true).Diff(told(true, false)); len(d) > 0 {
		t.Errorf("an ADD that was undone by its DEL, and one that undid itself: %q", d)
	}
	if d := told(true, true).Diff(told(false, false)); len(d) > 0 {
		t.Errorf("an ADD that was undone, and one that got no address: %q", d)
	}
	if d := told(false, true).Diff(told(false, false)); len(d) == 0 {
		t.Error("a DEL that released an address is the same story as none")
	}
}

// Which pod of a burst got which address decides which ENI falls empty later. How many do is the story.
func TestBookToleratesWhichENIGoes(t *testing.T) {
	told := func(gone ...ec2.ENIID) *timeline.Book {
		b := timeline.NewBook()
		for _, id := range []ec2.ENIID{"eni-1", "eni-2", "eni-3"} {
			b.Call(1, &ec2.Request{Action: ec2.AttachNetworkInterface, ENI: id}, &ec2.Response{})
		}
		b.Call(1, &ec2.Request{Action: ec2.ModifyNetworkInterfaceAttribute, ENI: "eni-1"}, &ec2.Response{})
		for _, id := range gone {
			b.Call(1, &ec2.Request{Action: ec2.DetachNetworkInterface, ENI: id}, &ec2.Response{})
			b.Call(1, &ec2.Request{Action: ec2.DeleteNetworkInterface, ENI: id}, &ec2.Response{})
		}
		return b
	}
	if d := told("eni-1", "eni-2").Diff(told("eni-2", "eni-3")); len(d) > 0 {
		t.Errorf("another ENI falls empty, and it is another story: %q", d)
	}
	for _, gone := range [][]ec2.ENIID{{}, {"eni-1"}, {"eni-1", "eni-2", "eni-3"}} {
		if d := told("eni-1", "eni-2").Diff(told(gone...)); len(d) != 1 {
			t.Errorf("two go, or %d: expected one line, found %q", len(gone), d)
		}
	}
}

// Calls that a fault meets go to whoever comes first: two ENIs, or two nodes, have changed places. What was done is the same.
func TestBookToleratesWhoMetAFault(t *testing.T) {
	create := func(b *timeline.Book, node int32, id ec2.ENIID, attach ec2.Response, more ...ec2.Action) {
		b.Call(node, &ec2.Request{Action: ec2.CreateNetworkInterface}, &ec2.Response{ENI: ec2.ENI{ID: id}})
		if attach.Lost {
			b.Call(node, &ec2.Request{Action: ec2.AttachNetworkInterface, ENI: id}, &attach)
		}
		b.Call(node, &ec2.Request{Action: ec2.AttachNetworkInterface, ENI: id}, &ec2.Response{})
		for _, a := range more {
			b.Call(node, &ec2.Request{Action: a, ENI: id}, &ec2.Response{})
		}
	}
	lost := ec2.Response{Lost: true}
	told := func(first, second ec2.Response, node int32, more ...ec2.Action) *timeline.Book {
		b := timeline.NewBook()
		create(b, 1, "eni-1", first, ec2.DetachNetworkInterface, ec2.DeleteNetworkInterface)
		create(b, node, "eni-2", second, more...)
		return b
	}
	for _, node := range []int32{1, 2} {
		if d := told(lost, ec2.Response{}, node).Diff(told(ec2.Response{}, lost, node)); len(d) > 0 {
			t.Errorf("an ENI of node 1 and one of node %d have changed places, and it is another story: %q", node, d)
		}
	}
	for name, other := range map[string]*timeline.Book{
		"nobody met it":       told(ec2.Response{}, ec2.Response{}, 2),
		"both met it":         told(lost, lost, 2),
		"one was deleted too": told(ec2.Response{}, lost, 2, ec2.DeleteNetworkInterface),
	} {
		if d := told(lost, ec2.Response{}, 2).Diff(other); len(d) == 0 {
			t.Errorf("%s, and it is the same story", name)
		}
	}
	if d := told(ec2.Response{}, ec2.Response{}, 2).Diff(told(ec2.Response{}, ec2.Response{}, 1)); len(d) == 0 {
		t.Error("nobody met a fault, and which node an ENI is of makes no difference")
	}
}

// An answer that is a little further from a death in one world than in the other is unknown in one only; it may be that page and no other.
func TestBookToleratesTheEdgeOfADeath(t *testing.T) {
	told := func(after ...time.Duration) *timeline.Book {
		b := timeline.NewBook()
		b.Died(time.Minute, 1, nil)
		for i, d := range after {
			att := ipam.Attachment{Network: "aws-cni", ContainerID: string(rune('a' + i)), IfName: "eth0"}
			b.Reply(time.Minute+d, 1, &ipam.Reply{Verb: ipam.VerbAdd, Att: att}, false)
		}
		return b
	}
	soon, late := 7900*time.Millisecond, 8100*time.Millisecond
	if d := told(soon, soon, late).Diff(told(soon, late, late)); len(d) > 0 {
		t.Errorf("one of three answers came 0.2 s later after a death: %q", d)
	}
	if d := told(soon, late).Diff(told(soon, late, late, late)); len(d) == 0 {
		t.Error("two answers more, long after a death, and one that is unknown: it is the same story")
	}
}

// Which ENI the pods of a burst got whose daemon dies decides which is empty later: how many are deleted is no part of the story then. What
// no ENI of the other world ever saw is.
func TestBookToleratesWhereABurstLanded(t *testing.T) {
	told := func(death bool, deleted int, more ...ec2.Action) *timeline.Book {
		b := timeline.NewBook()
		if death {
			b.Died(time.Minute, 1, []ipam.Attachment{{Network: "aws-cni", ContainerID: "open", IfName: "eth0"}})
		}
		for i := range 3 {
			id := ec2.ENIID("eni-" + string(rune('a'+i)))
			does := []ec2.Action{ec2.AttachNetworkInterface}
			if i < deleted {
				does = append(does, ec2.DetachNetworkInterface, ec2.DeleteNetworkInterface)
			}
			for _, a := range append(does, more...) {
				b.Call(1, &ec2.Request{Action: a, ENI: id}, &ec2.Response{})
			}
		}
		return b
	}
	if d := told(true, 1).Diff(told(true, 2)); len(d) > 0 {
		t.Errorf("after a death in a burst another ENI is emptied: %q", d)
	}
	if d := told(false, 1).Diff(told(false, 2)); len(d) == 0 {
		t.Error("nobody died, and an ENI more is deleted: it is the same story")
	}
	if d := told(true, 1).Diff(told(true, 1, ec2.DetachNetworkInterface, ec2.AttachNetworkInterface)); len(d) == 0 {
		t.Error("each ENI was detached and attached again, and it is the same story")
	}
}
