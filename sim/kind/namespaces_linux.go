package kind

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"os"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/sim/interference"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// nsfs is the file system of namespaces (linux/magic.h): a file that is left when its namespace was unmounted is elsewhere.
const nsfs = 0x6e736673

// openNamespace opens a mounted network namespace; false: nothing is mounted there.
func openNamespace(path string) (f *os.File, inode uint64, ok bool) {
	f, err := os.Open(path)
	if err != nil {
		return nil, 0, false
	}
	var fs unix.Statfs_t
	var st unix.Stat_t
	if unix.Fstatfs(int(f.Fd()), &fs) != nil || int64(fs.Type) != nsfs || unix.Fstat(int(f.Fd()), &st) != nil {
		_ = f.Close()
		return nil, 0, false
	}
	return f, st.Ino, true
}

// netnsDir is where a node's runtime mounts network namespaces.
const netnsDir = "/run/netns/"

// namespaces are the mounted ones of a node: those that live. They are opened for the look and no longer, which would keep them alive.
func namespaces(n *cluster.Node) (out []namespace) {
	dir := n.Root() + netnsDir
	for _, name := range names(dir) {
		if ns, ok := lookInto(dir + name); ok {
			ns.name = name
			out = append(out, ns)
		}
	}
	return out
}

// lookInto reads a namespace's addresses.
func lookInto(path string) (ns namespace, ok bool) {
	f, inode, ok := openNamespace(path)
	if !ok {
		return ns, false
	}
	defer f.Close()
	ns.inode = inode
	err := vpc.Do(f, func() error {
		list, err := interference.Retried(func() ([]netlink.Addr, error) { return netlink.AddrList(nil, unix.AF_INET) })
		for _, a := range list {
			if addr, ok := netip.AddrFromSlice(a.IP.To4()); ok && !addr.IsLoopback() && !interference.Added(&a) {
				ns.addrs = append(ns.addrs, addr)
			}
		}
		return err
	})
	return ns, err == nil
}

// inodeAt is that of a mounted network namespace; 0: nothing is mounted there.
func inodeAt(path string) uint64 {
	f, inode, ok := openNamespace(path)
	if !ok {
		return 0
	}
	_ = f.Close()
	return inode
}

// within runs f in the network namespace at a path; nothing is done when none is there.
func within(path string, f func() error) error {
	ns, _, ok := openNamespace(path)
	if !ok {
		return nil
	}
	defer ns.Close()
	return vpc.Do(ns, f)
}

// observe is a node's kernel as its machine sees it.
func observe(n *cluster.Node) (o dataplane.Observation, err error) {
	ns, err := os.Open(ownNetns(n))
	if err != nil {
		return o, err
	}
	defer ns.Close()
	err = vpc.Do(ns, func() error {
		k, err := linux.Open(linux.Options{})
		if err != nil {
			return err
		}
		defer k.Close()
		o, err = k.Observe()
		return err
	})
	return o, err
}

// echoIn answers in a pod's network namespace, see node.Echo.
func echoIn(ns *os.File) (peer io.Closer, err error) {
	err = vpc.Do(ns, func() (err error) {
		peer, err = node.Echo()
		return err
	})
	return peer, err
}

// peerPID is the process at the other end of a unix socket.
func peerPID(c net.Conn) (int, error) {
	u, ok := c.(*net.UnixConn)
	if !ok {
		return 0, os.ErrInvalid
	}
	raw, err := u.SyscallConn()
	if err != nil {
		return 0, err
	}
	var cred *unix.Ucred
	e := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err := errors.Join(e, err); err != nil {
		return 0, err
	}
	return int(cred.Pid), nil
}

// sigkill ends a process, now.
func sigkill(pid int) { _ = unix.Kill(pid, unix.SIGKILL) }
