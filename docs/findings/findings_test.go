// Package findings holds what is wrong in released CNIs and was in nobody's tracker: a text for each, and its scenario.
package findings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/runner"
)

// TestFindings: each scenario holds with enilab's own CNI in virtual time, so what breaks it is the CNI of which its text tells.
func TestFindings(t *testing.T) {
	files, err := filepath.Glob("*.scn")
	if err != nil || len(files) == 0 {
		t.Fatalf("no findings: %v", err)
	}
	for _, file := range files {
		data := must.Get(os.ReadFile(file))(t)
		c := must.Get(runner.Load(runner.Sim(), file, data))(t)
		for seed := uint64(1); seed <= 20; seed++ {
			if r := c.Run(runner.Options{Seed: seed}); r.Status != runner.Held {
				t.Errorf("seed %d: %s", seed, r.Report())
			}
		}
		text, err := os.ReadFile(strings.TrimSuffix(file, ".scn") + ".md")
		if command := "docs/findings/" + file + "\n"; err != nil || !strings.Contains(string(text), command) {
			t.Errorf("%s: its text does not say how to play it (%s): %v", file, strings.TrimSpace(command), err)
		}
	}
}
