package vpc

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Do runs f on an OS thread of its own inside the network namespace ns and waits for it. Sockets that f opens belong to that namespace
// for their life; goroutines that f starts do not run there. f's error is returned as it is, and a panic or runtime.Goexit in f goes
// on in the caller. A thread that cannot return to its namespace is thrown away.
func Do(ns *os.File, f func() error) error {
	if ns == nil {
		return errors.New("vpc: network namespace: nil file")
	}
	return apart(func() error { return control(ns, setns) }, f)
}

// NewNamespace makes an anonymous network namespace with its loopback up. It lives by the file, and by what is opened inside.
func NewNamespace() (*os.File, error) {
	var ns *os.File
	err := apart(func() error { return os.NewSyscallError("unshare", unix.Unshare(unix.CLONE_NEWNET)) }, func() (err error) {
		if ns, err = own(); err != nil {
			return err
		}
		c, err := dialRTNL(ns)
		if err == nil {
			err = c.up(loopback)
			c.close()
		}
		if err != nil {
			err = errors.Join(fmt.Errorf("loopback of a new namespace: %w", err), ns.Close())
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("vpc: new network namespace (needs CAP_SYS_ADMIN): %w", err)
	}
	return ns, nil
}

// SetMTU sets the MTU of a link in a namespace, in bytes.
func SetMTU(ns *os.File, name string, mtu int) error {
	return Do(ns, func() error {
		l, err := netlink.LinkByName(name)
		if err == nil {
			err = netlink.LinkSetMTU(l, mtu)
		}
		if err != nil {
			return fmt.Errorf("set the MTU of %s: %w", name, err)
		}
		return nil
	})
}

// visit is a function on a thread that is elsewhere.
type visit struct {
	err      error
	returned bool
	panicked any
}

// apart runs f on a thread that move has moved, and brings the thread home.
func apart(move, f func() error) error {
	var v visit
	done := make(chan struct{})
	go func() {
		defer close(done)
		v.run(move, f)
	}()
	<-done
	switch {
	case v.panicked != nil:
		panic(v.panicked)
	case !v.returned:
		runtime.Goexit()
	}
	return v.err
}

func (v *visit) run(move, f func() error) {
	runtime.LockOSThread()
	home, err := own()
	if err != nil {
		runtime.UnlockOSThread()
		v.err, v.returned = err, true
		return
	}
	defer func() {
		if control(home, setns) == nil {
			runtime.UnlockOSThread() // else the thread ends with this goroutine
		}
		_ = home.Close()
	}()
	if err := move(); err != nil {
		v.err, v.returned = err, true
		return
	}
	defer func() { v.panicked = recover() }()
	v.err = f()
	v.returned = true
}

// own is the calling thread's network namespace.
func own() (*os.File, error) { return os.Open("/proc/thread-self/ns/net") }

func setns(fd int) error { return os.NewSyscallError("setns", unix.Setns(fd, unix.CLONE_NEWNET)) }

// control lends the file's descriptor, which cannot be closed meanwhile.
func control(file *os.File, f func(fd int) error) error {
	raw, err := file.SyscallConn()
	if err != nil {
		return err
	}
	if e := raw.Control(func(fd uintptr) { err = f(int(fd)) }); e != nil {
		return e
	}
	return err
}
