package node

import (
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestThreadReturns: whatever f has entered, the thread is where it was, and f's error is told.
func TestThreadReturns(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("a network namespace needs root")
	}
	const own = "/proc/thread-self/ns/net"
	broke := errors.New("f")
	var before, inside, after string
	err := onThread(func() (err error) {
		if before, err = os.Readlink(own); err != nil {
			return err
		}
		err = returning(func() error {
			if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
				return err
			}
			inside, _ = os.Readlink(own)
			return broke
		})
		after, _ = os.Readlink(own)
		return err
	})
	if err != broke || inside == before || after != before {
		t.Errorf("%v; from %s to %s, and then %s", err, before, inside, after)
	}
}
