package plugin

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"runtime"

	"github.com/containernetworking/cni/pkg/types"
	"golang.org/x/sys/unix"
)

// namespace is a pod's network namespace: its file, and two rtnetlink sockets that were opened inside it. One of them goes to
// the daemon, which never enters a pod; the other is the plugin's own, for two readers of one socket take each other's
// answers.
type namespace struct {
	file   *os.File
	passed *os.File
	inode  uint64
	own    *rtnetlink
}

// self is the namespace of the calling thread.
const self = "/proc/thread-self/ns/net"

// namespace opens CNI_NETNS, and refuses what no pod can have before anything is changed.
func (v *verb) namespace() (*namespace, error) {
	f, st, err := openNamespace(v.args.Netns)
	if err != nil {
		return nil, errorf(types.ErrInvalidNetNS, "%s: CNI_NETNS=%s: %v", v, v.args.Netns, err)
	}
	if isOwn(st) && !v.override {
		f.Close()
		return nil, v.ownNamespace()
	}
	ns := &namespace{file: f, inode: st.Ino}
	if err := ns.open(); err != nil {
		ns.Close()
		return nil, errorf(types.ErrInvalidNetNS, "%s: CNI_NETNS=%s: %v", v, v.args.Netns, err)
	}
	return ns, nil
}

// openNamespace opens a network namespace, and nothing else: the path is looked at first, since opening a device can have
// an effect.
func openNamespace(path string) (*os.File, *unix.Stat_t, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(path, &fs); errors.Is(err, unix.ENOENT) || errors.Is(err, unix.ENOTDIR) {
		return nil, nil, errors.New("it does not exist")
	} else if err != nil {
		return nil, nil, os.NewSyscallError("statfs", err)
	}
	if fs.Type != unix.NSFS_MAGIC {
		return nil, nil, errors.New("it is not a namespace")
	}
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NONBLOCK|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("open", err)
	}
	f := os.NewFile(uintptr(fd), path)
	kind, err := unix.IoctlRetInt(fd, unix.NS_GET_NSTYPE)
	if err == nil && kind != unix.CLONE_NEWNET {
		err = errors.New("it is a namespace of another kind, expected a network namespace")
	}
	var st unix.Stat_t
	if err == nil {
		err = unix.Fstat(fd, &st)
	}
	if err != nil {
		f.Close()
		return nil, nil, err
	}
	return f, &st, nil
}

func isOwn(st *unix.Stat_t) bool {
	var own unix.Stat_t
	return unix.Stat(self, &own) == nil && own.Ino == st.Ino && own.Dev == st.Dev
}

// namespaceInode is what DEL tells of CNI_NETNS: 0 when it is empty or names no namespace any more, which a DEL does not
// mind.
func namespaceInode(path string) (inode uint64, own bool) {
	f, st, err := openNamespace(path)
	if err != nil {
		return 0, false
	}
	f.Close()
	return st.Ino, isOwn(st)
}

// open opens both sockets, inside.
func (ns *namespace) open() error {
	return inside(ns.file, func() error {
		fd, err := routeSocket()
		if err != nil {
			return err
		}
		ns.passed = os.NewFile(uintptr(fd), "rtnetlink")
		ns.own, err = dialRoute()
		return err
	})
}

// inside runs f on a thread that is in the namespace. A thread that cannot come back stays locked to its goroutine, and
// the error ends the process.
func inside(ns *os.File, f func() error) error {
	runtime.LockOSThread()
	home, err := os.Open(self)
	if err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("open the plugin's own namespace: %w", err)
	}
	defer home.Close()
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return fmt.Errorf("enter it (needs CAP_SYS_ADMIN): %w", err)
	}
	err = f()
	if back := unix.Setns(int(home.Fd()), unix.CLONE_NEWNET); back != nil {
		return errors.Join(err, fmt.Errorf("come back from it: %w", back))
	}
	runtime.UnlockOSThread()
	return err
}

func (ns *namespace) link(name string) (*link, error)             { return ns.own.linkByName(name) }
func (ns *namespace) addresses(index int) ([]netip.Prefix, error) { return ns.own.addresses(index) }
func (ns *namespace) routes() ([]route, error)                    { return ns.own.routes() }

// Close closes what is open of it: a file that stays open keeps the namespace.
func (ns *namespace) Close() error {
	var errs []error
	errs = append(errs, ns.file.Close())
	if ns.passed != nil {
		errs = append(errs, ns.passed.Close())
	}
	if ns.own != nil {
		errs = append(errs, ns.own.Close())
	}
	return errors.Join(errs...)
}
