package daemon

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// lock takes the folder for the life of this process (flock(2)). The folder itself is what is locked: that also works where
// nothing can be written, and leaves nothing behind.
func lock(dir string) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, fmt.Errorf("lock the node: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("lock the node: another ipamd has %s (%s); it has to end first", dir, holder(dir))
		}
		return nil, fmt.Errorf("lock the node: flock %s: %w", dir, err)
	}
	_ = os.WriteFile(filepath.Join(dir, holderFile), []byte(strconv.Itoa(os.Getpid())+"\n"), 0o644) // a courtesy
	return f, nil
}

// bootID is the machine's name for this boot (random(4)).
func bootID() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return ""
	}
	return string(b[:max(len(b)-1, 0)])
}
