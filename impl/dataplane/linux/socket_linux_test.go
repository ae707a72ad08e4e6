package linux

import (
	"testing"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// TestEndingNamespaces: while namespaces end, every observation is complete, and none says that one lives after its
// veth is gone or takes an ended one for an error.
func TestEndingNamespaces(t *testing.T) {
	k := openNew(t, Options{})
	const pods = 8
	var spaces []*space
	for i := range pods {
		s := newSpace(t)
		spaces = append(spaces, s)
		p := s.pod(t)
		apply(t, k, dataplane.PodPlan(spec(i, s.inode)), p)
		must.Do(t, p.Close())
	}
	for _, s := range spaces {
		must.Do(t, s.netns.Close())
	}
	for left := pods; left > 0; {
		left = len(observe(t, k).Links)
	}
}
