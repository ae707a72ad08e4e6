package node

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// onThread runs f on a thread of its own, which ends with f: whatever f does to it (another namespace, fewer
// capabilities) affects no other goroutine.
func onThread(f func() error) error {
	failed := make(chan error)
	go func() {
		runtime.LockOSThread()
		if unix.Gettid() != os.Getpid() {
			failed <- f() // never unlocked: Go ends the thread with the goroutine
			return
		}
		// The process's first thread never ends: Go parks it for ever as it is. While this goroutine sits on it another gets another.
		err := onThread(f)
		runtime.UnlockOSThread()
		failed <- err
	}()
	return <-failed
}

// abroad runs f on a thread that may enter another network namespace.
func abroad(f func() error) error {
	return onThread(func() error { return returning(f) })
}

// returning takes the calling thread back to its network namespace after f: a thread ends some time after it has answered, and would
// keep another one alive until then.
func returning(f func() error) error {
	home, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer home.Close()
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		err = errors.Join(err, fmt.Errorf("return to the network namespace of before: %w", back))
	}
	return err
}
