package node

import (
	"os"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"
)

// TestThreadLeavesItsNamespace: when f has returned, no thread is in the namespace that f made, however late the kernel ends threads.
func TestThreadLeavesItsNamespace(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	var done atomic.Bool
	defer done.Store(true)
	for range 2 * runtime.NumCPU() { // nobody has a processor to himself
		go func() {
			for !done.Load() {
			}
		}()
	}
	late := 0
	for range 200 {
		var made string
		err := abroad(func() (err error) {
			if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
				made, err = os.Readlink("/proc/thread-self/ns/net")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		tasks, err := filepath.Glob("/proc/self/task/*/ns/net")
		if err != nil {
			t.Fatal(err)
		}
		for _, task := range tasks {
			if in, _ := os.Readlink(task); in == made {
				late++
			}
		}
	}
	if late > 0 {
		t.Errorf("after %d of 200 calls a thread was still in the namespace", late)
	}
}
