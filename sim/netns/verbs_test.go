package netns

import (
	"maps"
	"slices"
	"testing"

	"github.com/enilab/enilab/sim/actions"
)

// Every verb of a node or a pod has a handler here, or a row in the table of skips, and every handler is a verb's.
func TestVerbs(t *testing.T) {
	for _, gap := range actions.Gaps("netns", slices.Collect(maps.Keys(nodeVerbs)), slices.Collect(maps.Keys(podVerbs))) {
		t.Error(gap)
	}
}
