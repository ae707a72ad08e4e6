package linux

import (
	"testing"

	"github.com/enilab/enilab/impl/dataplane"
)

// TestEndingNamespaces: while namespaces end, every observation is complete, and none says that one lives after its
// veth is gone or takes an ended one for an error.
func TestEndingNamespaces(t *testing.T) {
	enterNew(t)
	k := openHere(t, Options{})
	const pods = 8
	var spaces []*space
	for i := range pods {
		s := newSpace(t)
		spaces = append(spaces, s)
		p := s.pod(t)
		apply(t, k, dataplane.PodPlan(spec(i, s.inode)), p)
		must(t, p.Close())
	}
	for _, s := range spaces {
		must(t, s.netns.Close())
	}
	for left := pods; left > 0; {
		left = len(observe(t, k).Links)
	}
}
