package cli

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/enilab/enilab/sim"
	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

// branchLead is how long before the instant of --branch-at the machine may branch: by then what the branch brings has
// been unpacked beside the run.
const branchLead = 10 * time.Second

// branches lets the machine that this runs in go on as another scenario from an instant on, with a system more.
func (f *runFlags) branches(place *runner.Place, scene *vm.Scene, v *runner.Variant, w *netnsworld.World, r *sim.Run) {
	r.Call(max(0, f.branch.at-branchLead), func() error {
		scene.Branches()
		return nil
	})
	r.Call(f.branch.at, func() error {
		scene.Came()
		var brought map[string]*systems.System
		data, err := os.ReadFile(filepath.Join(vm.BranchFolder, vm.BranchFound))
		if err == nil {
			err = json.Unmarshal(data, &brought)
		}
		if err != nil {
			return fmt.Errorf("read the systems that a branch brings: %w", err)
		}
		if f.found == nil {
			f.found = map[string]*systems.System{}
		}
		for name, s := range brought {
			f.found[name] = s
			if err := netnsworld.Learn(w, name, s); err != nil {
				return err
			}
		}
		if data, err = os.ReadFile(filepath.Join(vm.BranchFolder, vm.BranchScenario)); err != nil {
			return fmt.Errorf("read the branch's scenario: %w", err)
		}
		c, err := runner.Load(place, v.File.Name, data)
		if err != nil {
			return err
		}
		for i := range c.Variants {
			if c.Variants[i].Name == v.Name {
				return r.Become(c.Variants[i].File)
			}
		}
		return fmt.Errorf("the branch's scenario has no variant %q", v.Name)
	})
}
