package process_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/internal/must"
)

// TestHangs: a run that does not end is ended with all that it started, after its time or when nobody wants it any more.
func TestHangs(t *testing.T) {
	for _, stopped := range []bool{false, true} {
		p := player(t, "hang")
		pid := filepath.Join(t.TempDir(), "pid")
		t.Setenv("ENILAB_STUB_PID", pid)
		var stop func() bool
		if stopped {
			stop = func() bool { data, err := os.ReadFile(pid); return err == nil && len(data) > 0 }
		} else {
			p.Within = 2 * time.Second
		}
		o := must.Get(p.Play("x.scn", scenario, 1, stop))(t)
		if o.Cut != stopped || !stopped && o.Unknown != "the run had not ended after 2s of this machine's time" {
			t.Errorf("stopped %v: %+v", stopped, o)
		}
		data := must.Get(os.ReadFile(pid))(t)
		if n, err := strconv.Atoi(string(data)); err != nil || !ends(t, n) {
			t.Errorf("process %s, which the run had started, lives", data)
		}
	}
}

// ends waits until a process has ended, for some seconds.
func ends(t *testing.T, pid int) bool {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) {
		return true
	}
	must.Do(t, err)
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int((10 * time.Second).Milliseconds()))
	return err == nil && n == 1
}
