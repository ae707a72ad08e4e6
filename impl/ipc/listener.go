package ipc

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"syscall"
	"time"
)

// maxPath is sockaddr_un's, the shorter one of the systems we build for, without the suffix below.
const maxPath = 103 - len(fresh)

// fresh is the suffix of a socket that does not yet have its mode.
const fresh = ".new"

// Listener accepts callers.
type Listener struct {
	unix *net.UnixListener
	path string
	made os.FileInfo
	bulk chan struct{}
}

// Memory for requests is bounded by how many large ones there are at once; the others wait, and are told to try again. A GC of a whole node has
// 20 KiB.
const (
	largeRequest = 64 << 10 // bytes
	maxLarge     = 2
)

// ErrCrowded is a large request that found no place in time.
var ErrCrowded = errors.New("too many large requests at once, try again")

// Listen makes the socket at that path, with mode 0600, in a folder that exists. A socket on which a daemon answers is
// an error: two daemons would share a node. One without a listener was left by a daemon that died, and is replaced;
// anything else of that name is an error and stays. The socket shows up with its mode and listening, or not at all.
func Listen(path string) (*Listener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("listen on %s: expected a path of at most %d bytes, found %d", path, maxPath, len(path))
	}
	if err := vacant(path); err != nil {
		return nil, err
	}
	if err := os.Remove(path + fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("listen on %s: remove what an earlier start left: %w", path, err)
	}
	u, err := net.ListenUnix("unix", &net.UnixAddr{Name: path + fresh, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	u.SetUnlinkOnClose(false)
	l := &Listener{unix: u, path: path, bulk: make(chan struct{}, maxLarge)}
	if err := l.show(); err != nil {
		u.Close()
		os.Remove(path + fresh)
		return nil, fmt.Errorf("listen on %s: %w", path, err)
	}
	return l, nil
}

// vacant returns nil where no process listens.
func vacant(path string) error {
	st, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("listen on %s: %w", path, err)
	case st.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("listen on %s: expected a socket or nothing, found %s; remove it", path, st.Mode())
	}
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	switch {
	case err == nil:
		c.Close()
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, fs.ErrNotExist):
		return nil
	case !errors.Is(err, syscall.EAGAIN):
		return fmt.Errorf("listen on %s: is somebody there? %w", path, err)
	}
	return fmt.Errorf("listen on %s: another daemon listens there; stop it first", path)
}

// show gives the socket its mode and its name.
func (l *Listener) show() (err error) {
	if err := os.Chmod(l.path+fresh, 0o600); err != nil {
		return err
	}
	if l.made, err = os.Lstat(l.path + fresh); err != nil {
		return err
	}
	return os.Rename(l.path+fresh, l.path)
}

// Accept waits for the next caller. An error other than net.ErrClosed may pass (too many open files).
func (l *Listener) Accept() (*Peer, error) {
	for {
		c, err := l.unix.AcceptUnix()
		if err != nil {
			return nil, err
		}
		p := &Peer{unix: c, bulk: l.bulk, gone: make(chan struct{})}
		if p.PID, p.UID, err = credentials(c); err != nil {
			c.Close()
			if errors.Is(err, errors.ErrUnsupported) {
				return nil, err
			}
			continue // it hung up already
		}
		_ = c.SetReadDeadline(time.Now().Add(patience)) // of a closed connection: reading says so
		return p, nil
	}
}

// Shown says whether callers find the listener by its path: the file may be gone, or another one.
func (l *Listener) Shown() bool {
	st, err := os.Lstat(l.path)
	return err == nil && os.SameFile(st, l.made)
}

// Close stops listening and removes the socket, unless another one has its name by now.
func (l *Listener) Close() error {
	if l.Shown() {
		os.Remove(l.path)
	}
	return l.unix.Close()
}

// patience is how long a peer may take to say or to hear something: it is on this machine.
const patience = 5 * time.Second
