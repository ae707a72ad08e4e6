package netns

import (
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/impl/ipam"
)

// TestDELsThatFindNothingAreNoFigure: a runtime deletes a sandbox two or three times. With the repetitions, which are cheap, the median of all lies
// between theirs and the first ones', and jumps.
func TestDELsThatFindNothingAreNoFigure(t *testing.T) {
	var c costs
	for i, name := range []string{"a", "b"} {
		pod := ipam.Attachment{ContainerID: name}
		c.ran(time.Second, cri.ADD, pod, 90*time.Millisecond)
		c.ran(2*time.Second, cri.DEL, pod, time.Duration(70+i)*time.Millisecond)
		for range 3 {
			c.ran(3*time.Second, cri.DEL, pod, time.Millisecond)
		}
	}
	if len(c.dels) != 2 || c.dels.P50() < 70*time.Millisecond || !c.pods[0].Deleted || c.pods[0].Ended != 2*time.Second {
		t.Errorf("of eight DELs count %v, and the pods are %v", c.dels, c.pods)
	}
}
