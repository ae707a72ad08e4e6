package netns

import (
	"slices"
	"testing"

	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/systems"
)

// Only a description that lists settings says that it does not know one: what lists none, and what has no daemon, excuses no expectation.
func TestUnknown(t *testing.T) {
	file, errs := scn.Parse("test.scn", []byte("cluster nodes=1\nconfig WARM_IP_TARGET=2 MAX_ENI=2\nat 1s node-1 restart MAX_ENI=3\nat 2s node-1 restart\nat 3s node-1 kill\n"))
	if errs != nil {
		t.Fatal(errs)
	}
	listed := &systems.System{Name: "cni", Version: "1.0.0", Daemon: &systems.Daemon{Settings: []string{"WARM_IP_TARGET"}}}
	for name, c := range map[string]struct {
		system *systems.System
		want   [4]bool // of each line: MAX_ENI is unknown
	}{
		"ours":        {nil, [4]bool{}},
		"lists some":  {listed, [4]bool{true, true}},
		"lists all":   {&systems.System{Daemon: &systems.Daemon{Settings: []string{"MAX_ENI", "WARM_IP_TARGET"}}}, [4]bool{}},
		"lists none":  {&systems.System{Daemon: &systems.Daemon{}}, [4]bool{}},
		"plugin only": {&systems.System{}, [4]bool{}},
	} {
		w := &World{parts: Parts{System: c.system}}
		for i := range c.want {
			_, got := w.Unknown(&file.Lines[i+1])
			if c.want[i] != slices.Equal(got, []string{"MAX_ENI"}) || !c.want[i] && len(got) > 0 {
				t.Errorf("%s, line %d: found %v", name, i+2, got)
			}
		}
	}
	starts, errs := scn.Parse("test.scn", []byte("cluster nodes=1\nat 1s expect node-1 daemon.starts == 0\nat 1s expect node-1 pods.ready == 0\n"))
	if errs != nil {
		t.Fatal(errs)
	}
	plugin := &systems.System{Name: "ptp", Version: "1.9.1"}
	if err := cannot(plugin, &starts.Lines[1]); err == nil || err.Error() != "ptp 1.9.1 has no daemon" || cannot(plugin, &starts.Lines[2]) != nil || cannot(listed, &starts.Lines[1]) != nil {
		t.Errorf("a system without a daemon: found %v", err)
	}
	if err := cannot(listed, &file.Lines[2]); err != nil { // it restarts all the same
		t.Error(err)
	}
	if err := cannot(listed, &file.Lines[1]); err == nil || err.Error() != "cni 1.0.0 does not know MAX_ENI" {
		t.Errorf("found %v", err)
	}
}
