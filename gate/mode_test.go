package gate

import (
	"strings"
	"testing"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/systems"
)

// TestModesAreRefusedToWhoDoesNotKnowThem: each mode is a scenario that can be played, and none is played with a version
// that does not know its settings.
func TestModesAreRefusedToWhoDoesNotKnowThem(t *testing.T) {
	old := &systems.System{Name: "a", Version: "1.0.0", Daemon: &systems.Daemon{Settings: []string{"WARM_IP_TARGET"}}}
	for _, mode := range Modes() {
		knows := &systems.System{Name: "a", Version: "1.1.0", Daemon: &systems.Daemon{Settings: []string{"WARM_IP_TARGET"}}}
		for key := range modes[mode] {
			knows.Daemon.Settings = append(knows.Daemon.Settings, key)
		}
		g := &gating{Config: Config{Modes: []string{mode, mode}}, from: knows, to: knows} // said twice is played once
		list, err := g.inModes()
		if err != nil || len(list) != 1 {
			t.Fatalf("%s: expected one scenario, found %d, %v", mode, len(list), err)
		}
		c, err := runner.Load(&runner.Place{Name: "netns"}, list[0].name, list[0].data)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		for key := range modes[mode] {
			if !strings.Contains(c.File.String(), key+"="+modes[mode][key]) {
				t.Errorf("%s: expected that %s is set in\n%s", mode, key, c.File)
			}
		}
		for _, pair := range [][2]*systems.System{{old, knows}, {knows, old}} {
			g.from, g.to = pair[0], pair[1]
			if _, err := g.inModes(); err == nil || !strings.Contains(err.Error(), "which a 1.0.0 does not know") {
				t.Errorf("%s from %s to %s: expected that 1.0.0 is refused, found %v", mode, g.from.Version, g.to.Version, err)
			}
		}
	}
}
