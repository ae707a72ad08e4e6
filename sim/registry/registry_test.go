package registry_test

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/registry"
)

// TestNote: an entry is there until it is forgotten, and the folder goes with the last one.
func TestNote(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	f := registry.Folder{Name: "enilab-test", Prefix: "thing", Noun: "things"}
	if files, err := f.Files(); err != nil || len(files) != 0 {
		t.Fatalf("no folder: %v, %v", files, err)
	}
	first := must.Get(f.Note([]byte("1")))(t)
	second := must.Get(f.Note([]byte("2")))(t)
	if files, err := f.Files(); err != nil || len(files) != 2 {
		t.Fatalf("%v, %v", files, err)
	}
	f.Forget(first)
	if files, err := f.Files(); err != nil || len(files) != 1 || files[0].Path != second || string(files[0].Data) != "2" {
		t.Errorf("%v, %v", files, err)
	}
	f.Forget(second)
	if _, err := os.Stat(f.Path()); !os.IsNotExist(err) {
		t.Errorf("the folder is left: %v", err)
	}
	f.Forget(second)
}

// TestProcess: a process is itself for as long as it lives.
func TestProcess(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs /proc")
	}
	self, err := registry.Self()
	if err != nil || !self.Alive() {
		t.Fatalf("this process: %+v, %v", self, err)
	}
	c := exec.Command("sleep", "600")
	must.Do(t, c.Start())
	reaped := make(chan struct{})
	go func() { _ = c.Wait(); close(reaped) }()
	stat := must.Get(os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.Process.Pid)))(t)
	begun := must.Get(strconv.ParseUint(strings.Fields(string(stat))[21], 10, 64))(t)
	other := registry.Process{PID: c.Process.Pid, Begun: begun - 1}
	if err := other.End(time.Second); err != nil || other.Alive() {
		t.Errorf("another process of that PID is taken for it: %v", err)
	}
	p := registry.Process{PID: c.Process.Pid, Begun: begun}
	if !p.Alive() {
		t.Error("it lives, or somebody else's End ended it")
	}
	if err := p.End(30 * time.Second); err != nil {
		t.Error(err)
	}
	select {
	case <-reaped:
	case <-time.After(30 * time.Second):
		t.Error("SIGTERM did not come")
		_ = c.Process.Kill()
	}
}
