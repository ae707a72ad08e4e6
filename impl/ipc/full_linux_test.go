package ipc

import (
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// onFullDisk is set for a process whose files can have eight bytes: the limit is a process's, and a test's own has a log to write.
const onFullDisk = "ON_FULL_DISK"

// TestFullDiskLeavesNoHalfIntent: what cannot be written whole is an error and leaves nothing, and the DEL that was noted before stays.
func TestFullDiskLeavesNoHalfIntent(t *testing.T) {
	if dir := os.Getenv(onFullDisk); dir != "" {
		signal.Ignore(syscall.SIGXFSZ)
		must.Do(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 8, Max: 8}))
		for _, id := range []string{"a", "b"} {
			if WriteIntent(dir, of(id)) == nil {
				t.Errorf("half an intent of %s is written, without an error", id)
			}
		}
		return
	}
	dir := t.TempDir()
	write(t, dir, of("a"))
	c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	c.Env = append(os.Environ(), onFullDisk+"="+dir)
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	list, bad := read(t, dir)
	if len(list) != 1 || list[0].Attachment != of("a").Attachment || len(bad) > 0 {
		t.Errorf("the folder holds %v, and %v that cannot be read; expected the first intent", list, bad)
	}
}
