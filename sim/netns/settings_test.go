package netns

import (
	"maps"
	"slices"
	"testing"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/models"
	"github.com/enilab/enilab/sim/scn"
)

// TestWrittenSettingsReachEverySystem: what a scenario writes is in a daemon's environment, also where it is our own
// default, and nothing else is.
func TestWrittenSettingsReachEverySystem(t *testing.T) {
	f, err := scn.Parse("s.scn", []byte("cluster nodes=1\nconfig ENABLE_PREFIX_DELEGATION=true WARM_PREFIX_TARGET=1\n"))
	if err != nil {
		t.Fatal(err)
	}
	c := must.Get(sim.Check(f))(t)
	n := models.Node{Settings: c.Settings, Written: c.Written}
	want := map[string]string{"ENABLE_PREFIX_DELEGATION": "true", "WARM_PREFIX_TARGET": "1"}
	if got := settingsOf(&n); !maps.Equal(got, want) {
		t.Errorf("the environment has %v, expected %v", got, want)
	}
	known := slices.Collect(maps.Keys(actions.Environment(&n.Settings)))
	for _, name := range ipam.Variables() {
		if !slices.Contains(known, name) {
			t.Errorf("%s can be written, and is not in the environment", name)
		}
	}
}
