// Package powercut is a disk for tests that loses what was not synced: an ext4 file system in a file, which is copied while it is mounted. The
// copy has what had reached the disk at that moment, as after a power cut.
package powercut

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// size of the disk: the least that ext4 takes with a journal is half of it.
const size = 16 << 20

// options: nothing is written on its own while a test runs, and a rename over another file does not sync what is renamed.
const options = "loop,noauto_da_alloc,commit=300"

// Run has before write below a folder of the disk, cuts the power when it returns, and has after look at what is left. Both run on the caller's
// goroutine, the only one whose thread sees the disk; files that before opens have to be closed.
func Run(t *testing.T, before, after func(dir string)) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs root, to mount a file system of its own")
	}
	for _, program := range []string{"mkfs.ext4", "mount", "umount"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("needs %s: %v", program, err)
		}
	}
	runtime.LockOSThread() // never unlocked: the thread ends with the test, and its mounts with it
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		t.Skipf("needs a mount namespace of its own: %v", err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	disk, later := filepath.Join(dir, "disk"), filepath.Join(dir, "later")
	f, err := os.Create(disk)
	if err == nil {
		err = f.Truncate(size)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.Close()
	run(t, "mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0,lazy_journal_init=0", disk)
	on(t, disk, filepath.Join(dir, "a"), func(at string) {
		before(at)
		if err := duplicate(disk, later); err != nil {
			t.Fatal(err)
		}
	})
	on(t, later, filepath.Join(dir, "b"), after)
}

// on mounts a disk for as long as f takes.
func on(t *testing.T, disk, at string, f func(at string)) {
	t.Helper()
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", options, disk, at).CombinedOutput(); err != nil {
		t.Skipf("needs loop devices: mount %s: %v: %s", disk, err, out)
	}
	defer run(t, "umount", at)
	f(at)
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatal(fmt.Errorf("%s %v: %w: %s", name, args, err, out))
	}
}

func duplicate(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if closed := out.Close(); err == nil {
		err = closed
	}
	return err
}
