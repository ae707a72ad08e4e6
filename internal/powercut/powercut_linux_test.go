package powercut

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestRun: what was synced outlives the cut, and nothing else does.
func TestRun(t *testing.T) {
	write := func(path string, synced bool) {
		f, err := os.Create(path)
		if err == nil {
			_, err = f.WriteString("content")
		}
		if err == nil && synced {
			err = f.Sync()
		}
		must.Do(t, err)
		f.Close()
	}
	Run(t, func(dir string) {
		write(filepath.Join(dir, "synced"), true)
		write(filepath.Join(dir, "unsynced"), false)
	}, func(dir string) {
		if data, _ := os.ReadFile(filepath.Join(dir, "synced")); string(data) != "content" {
			t.Errorf("what was synced is %q", data)
		}
		if data, _ := os.ReadFile(filepath.Join(dir, "unsynced")); len(data) > 0 {
			t.Errorf("what was not synced is %q", data)
		}
	})
}
