package node

import (
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// onThread runs f on a thread of its own, which ends with f: whatever f does to it (another namespace, fewer
// capabilities) affects no other goroutine, and keeps no namespace alive.
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
