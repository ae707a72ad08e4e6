package cluster

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestSource: the module is found from inside, and nowhere else.
func TestSource(t *testing.T) {
	if dir, err := Source(t.TempDir(), "."); err == nil {
		t.Errorf("a relative path led to %s", dir)
	}
	here := must.Get(filepath.Abs("."))(t)
	if dir, err := Source(t.TempDir(), here); err != nil || dir != filepath.Dir(filepath.Dir(filepath.Dir(here))) {
		t.Errorf("%s, %v", dir, err)
	}
	if _, err := Source(t.TempDir()); err == nil || !strings.Contains(err.Error(), "run it inside of a clone") {
		t.Errorf("elsewhere: %v", err)
	}
}
