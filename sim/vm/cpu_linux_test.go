package vm

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
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

// TestStarvedEmulatorDoesNotHang: what waits for a CPU is not given up, what sleeps is, after the same time.
func TestStarvedEmulatorDoesNotHang(t *testing.T) {
	var allowed, one unix.CPUSet
	must.Do(t, unix.SchedGetaffinity(0, &allowed))
	for cpu := range len(allowed) * 64 {
		if allowed.IsSet(cpu) {
			one.Set(cpu)
			break
		}
	}
	busy := exec.Command("sh", "-c", "while :; do :; done")
	asleep := exec.Command("sleep", "1000")
	for _, c := range []*exec.Cmd{busy, asleep} {
		must.Do(t, c.Start())
		defer func() { _ = c.Process.Kill(); _ = c.Wait() }()
	}
	must.Do(t, unix.SchedSetaffinity(busy.Process.Pid, &one))
	if err := unix.SchedSetAttr(busy.Process.Pid, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_IDLE}, 0); err != nil {
		t.Skip(err)
	}

	const limit = 50 * time.Millisecond
	of := func(emulator int) func() string {
		r := &run{sign: [3]int64{-1}, Machine: &Machine{Quiet: limit}, channel: &channel{mem: make([]byte, 4096)}, console: must.Get(memoryFile("console"))(t)}
		t.Cleanup(func() { r.console.Close() })
		return func() string { return r.stuck(emulator) }
	}
	starves, sleeps := of(busy.Process.Pid), of(asleep.Process.Pid)
	runtime.LockOSThread() // the thread ends with this goroutine, and what it is pinned to
	must.Do(t, unix.SchedSetaffinity(0, &one))
	for began := time.Now(); ; {
		if why := starves(); why != "" {
			t.Fatal(why)
		}
		why, took := sleeps(), time.Since(began)
		switch {
		case why != "" && took < starved*limit:
			t.Fatalf("what sleeps was given up after %v, before its time: %s", took, why)
		case strings.Contains(why, "hangs") && took > 2*starved*limit:
			return
		case took > time.Minute:
			t.Fatalf("expected that what sleeps hangs, found %q after a minute", why)
		}
	}
}
