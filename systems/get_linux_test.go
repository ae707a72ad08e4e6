package systems

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestGetFullDisk: a disk that is too small for a version ends a get with that sentence, and with as much room as before. The disk is mounted in a
// mount namespace of the test's own, in which it runs once more.
func TestGetFullDisk(t *testing.T) {
	if os.Getenv("SMALL_DISK") == "" {
		c := exec.Command(os.Args[0], "-test.run=^TestGetFullDisk$", "-test.v")
		c.Env = append(os.Environ(), "SMALL_DISK=small")
		c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
		if os.Geteuid() != 0 {
			c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
			c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
			c.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
		}
		var said strings.Builder
		c.Stdout, c.Stderr = &said, &said
		if err := c.Start(); err != nil {
			t.Skipf("needs a mount namespace: %v", err)
		}
		if err := c.Wait(); err != nil || !strings.Contains(said.String(), "--- PASS: TestGetFullDisk") {
			t.Fatalf("in its namespace: %v: %s", err, said.String())
		}
		return
	}
	must.Do(t, syscall.Mount("", "/", "", syscall.MS_PRIVATE|syscall.MS_REC, ""))
	proxy(t, map[string]map[string]string{"1.2.3": release()})
	o := getPlace(t, "")
	must.Do(t, syscall.Mount("tmpfs", o.Systems, "tmpfs", 0, "size=256k"))
	defer syscall.Unmount(o.Systems, syscall.MNT_DETACH)
	notFetched(t, "1.2.3", FromAny, true, o, "no space left on device")
	if list, err := filepath.Glob(filepath.Join(o.Systems, "mini", ".get-*+*")); err != nil || len(list) > 0 {
		t.Errorf("left: %s, %v", strings.Join(list, ", "), err)
	}
}
