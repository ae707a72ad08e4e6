package ipc

import (
	"path/filepath"
	"testing"

	"github.com/enilab/enilab/internal/powercut"
)

// TestIntentsOutliveAPowerCut: the plugin has told the runtime that the DEL is done.
func TestIntentsOutliveAPowerCut(t *testing.T) {
	powercut.Run(t, func(dir string) {
		write(t, filepath.Join(dir, "del"), of("a"))
		write(t, filepath.Join(dir, "del"), of("b"))
	}, func(dir string) {
		if es, bad := read(t, filepath.Join(dir, "del")); len(es) != 2 || len(bad) != 0 {
			t.Errorf("%d of 2 intents are left, and %v", len(es), bad)
		}
	})
}
