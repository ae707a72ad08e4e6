//go:build unix

package systems

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// lockPoll is how often a get looks whether another one has ended, which takes minutes.
const lockPoll = 200 * time.Millisecond

// lock waits until no other get of this version works in the folder. The kernel ends it with the process, however that ends; the file stays.
func (g *getter) lock() (unlock func(), err error) {
	f, err := os.OpenFile(filepath.Join(filepath.Dir(g.folder), ".get-"+g.version+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	poll := time.NewTicker(lockPoll)
	defer poll.Stop()
	for told := false; ; told = true {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, syscall.EWOULDBLOCK) && !errors.Is(err, syscall.EINTR) {
			return nil, errors.Join(err, f.Close())
		}
		if !told {
			g.o.Tell("waiting for another enilab systems get of " + g.d.Name + "@" + g.version)
		}
		select {
		case <-g.ctx.Done():
			return nil, errors.Join(g.ctx.Err(), f.Close())
		case <-poll.C:
		}
	}
}
