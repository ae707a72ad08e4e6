package virtual

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/sim"
)

// TestOtherSeeds: a scenario's figures are those of one seed, and its numbers are judged there; what must never break, is repaired in
// time and has settled does not depend on the draw.
func TestOtherSeeds(t *testing.T) {
	seeds := uint64(20)
	if testing.Short() {
		seeds = 2
	}
	files, err := filepath.Glob("../../scenarios/*.scn")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		f := parse(t, name, string(data))
		for _, vars := range f.Variants() {
			t.Run(strings.TrimSpace(strings.TrimSuffix(filepath.Base(name), ".scn")+" "+f.VariantName(vars)), func(t *testing.T) {
				g, err := f.Expand(vars)
				if err != nil {
					t.Fatal(err)
				}
				c, err := sim.Check(g)
				if err != nil {
					t.Fatal(err)
				}
				if c.Nodes > crashNodes {
					t.Skipf("%d nodes: more than %d", c.Nodes, crashNodes)
				}
				for seed := uint64(2); seed < 2+seeds; seed++ {
					w, err := Open(c, seed, nil)
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					r, err := sim.NewRun(g, w, "sim")
					if err != nil {
						t.Fatal(err)
					}
					if v := r.Finish(nil); len(v.Violations) > 0 {
						t.Errorf("seed %d: %v\n%s", seed, v.Violations[0], v.Story)
					}
				}
			})
		}
	}
}
