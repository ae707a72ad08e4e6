package plugin

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// contact is what one STATUS tells the next about the daemon, in two files on the tmpfs; a reboot forgets them. Neither is
// needed for anything but STATUS, so one that cannot be written fails nothing.
type contact struct{ dir string }

func (v *verb) contact() contact { return contact{v.conf.StateDir} }

const (
	servedFile = "plugin-served"      // the daemon has taken pods since the boot
	missedFile = "plugin-unreachable" // CLOCK_BOOTTIME of the first and last time that it did not answer, in nanoseconds
)

// served says whether the daemon has taken pods since the boot. When that cannot be known, it has: a node is not tainted
// for want of a file.
func (c contact) served() bool {
	_, err := os.Stat(filepath.Join(c.dir, servedFile))
	return !errors.Is(err, fs.ErrNotExist)
}

// reached: the daemon has answered.
func (c contact) reached(serves bool) {
	os.Remove(filepath.Join(c.dir, missedFile))
	if !serves {
		return
	}
	if _, err := os.Lstat(filepath.Join(c.dir, servedFile)); err == nil {
		return
	}
	if f, err := os.OpenFile(filepath.Join(c.dir, servedFile), os.O_CREATE|os.O_WRONLY, 0o600); err == nil {
		f.Close()
	}
}

// missed: the daemon has not answered. It returns for how long it has not been heard of, as far as STATUS was asked:
// two misses with a long silence between them are two, for the daemon may have answered nothing because nothing was
// asked.
func (c contact) missed(now time.Duration) (since time.Duration, served bool) {
	path := filepath.Join(c.dir, missedFile)
	first := now
	if raw, err := os.ReadFile(path); err == nil {
		var f, last time.Duration
		if _, err := fmt.Sscan(string(raw), &f, &last); err == nil && f <= last && last <= now && now-last <= unreachable {
			first = f
		}
	}
	fresh := fmt.Sprintf("%s.%d", path, os.Getpid())
	if os.WriteFile(fresh, fmt.Appendf(nil, "%d %d\n", first, now), 0o600) != nil || os.Rename(fresh, path) != nil {
		os.Remove(fresh)
	}
	return now - first, c.served()
}
