package story_test

import (
	"testing"

	"github.com/enilab/enilab/fakes/ec2"
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
