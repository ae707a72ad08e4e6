package cli

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestMemoryOfAFleet: the largest scenario, on one processor, stays near what a run may have. Without a limit it has a gigabyte.
func TestMemoryOfAFleet(t *testing.T) {
	const near = 100 << 20 // the program itself, and what the collector had not noticed
	c := exec.Command(binaries(t), "run", "fleet-burst", "--seed", "2")
	c.Env = append(os.Environ(), "GOMAXPROCS=1", "GOMEMLIMIT=")
	must.Do(t, c.Run())
	if n := c.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10; n > memoryOfRun+near {
		t.Errorf("fleet-burst had %d MB, expected at most %d", n>>20, (memoryOfRun+near)>>20)
	}
}
