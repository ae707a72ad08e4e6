package netns

import (
	"testing"

	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/models"
)

// Every verb of a node or a pod has a handler here, or a row in the table of skips, and every handler is a verb's.
func TestVerbs(t *testing.T) {
	for _, gap := range actions.Gaps("netns", models.NodeVerbs(), models.PodVerbs()) {
		t.Error(gap)
	}
}
