package vm

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestCPUTimeIsWhatAProcessHasWorked: a process that sleeps spends none, and one that has ended has none.
func TestCPUTimeIsWhatAProcessHasWorked(t *testing.T) {
	before := cpuTime(os.Getpid())
	for deadline := time.Now().Add(time.Minute); cpuTime(os.Getpid()) < before+10*time.Millisecond; {
		if time.Now().After(deadline) {
			t.Fatalf("it has worked for a minute and spent %v", cpuTime(os.Getpid())-before)
		}
	}
	c := exec.Command("sleep", "1000")
	if err := c.Start(); err != nil {
		t.Skip(err)
	}
	pid := c.Process.Pid
	if spent := cpuTime(pid); spent > 5*time.Second {
		t.Errorf("a process that sleeps has spent %v", spent)
	}
	_ = c.Process.Kill()
	_ = c.Wait()
	if spent := cpuTime(pid); spent != 0 {
		t.Errorf("a process that has ended has spent %v", spent)
	}
}
