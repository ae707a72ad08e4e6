package linux

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/netlink"
)

// Pod is what the plugin passes of a pod's network namespace: its file, and an rtnetlink socket that was
// opened inside. It pins the namespace until Close. One plan at a time.
type Pod struct {
	netns, rtnetlink *os.File
	inode            uint64
	s                *netlink.Socket
}

// podBuffer holds the acknowledgements of a pod's side, nothing else.
const podBuffer = 4 << 10

// NewPod takes over both files; on an error they stay the caller's. It refuses files that are not a
// network namespace and an rtnetlink socket inside it, so that a plan never changes another namespace.
func NewPod(netns, rtnetlink *os.File) (*Pod, error) {
	if netns == nil || rtnetlink == nil {
		return nil, errors.New("a pod needs its network namespace and an rtnetlink socket inside it")
	}
	p := &Pod{netns: netns, rtnetlink: rtnetlink}
	if err := p.checkNamespace(); err != nil {
		return nil, fmt.Errorf("the pod's namespace: %w", err)
	}
	if err := p.checkSocket(); err != nil {
		return nil, fmt.Errorf("the pod's rtnetlink socket: %w", err)
	}
	return p, nil
}

func (p *Pod) checkNamespace() error {
	kind, err := unix.IoctlRetInt(int(p.netns.Fd()), unix.NS_GET_NSTYPE)
	if err != nil {
		return fmt.Errorf("the file is not a namespace: %w", err)
	}
	if kind != unix.CLONE_NEWNET {
		return fmt.Errorf("the file is a namespace of kind %#x, not a network namespace", kind)
	}
	p.inode, err = inodeOf(int(p.netns.Fd()))
	return err
}

func inodeOf(fd int) (uint64, error) {
	var st unix.Stat_t
	err := unix.Fstat(fd, &st)
	return st.Ino, err
}

// checkSocket asks the kernel which namespace the socket is in (SIOCGSKNS).
func (p *Pod) checkSocket() error {
	fd := int(p.rtnetlink.Fd())
	for _, o := range []struct{ option, want int }{{unix.SO_DOMAIN, unix.AF_NETLINK}, {unix.SO_PROTOCOL, unix.NETLINK_ROUTE}} {
		got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, o.option)
		if err != nil {
			return err
		}
		if got != o.want {
			return errors.New("the file is another kind of socket")
		}
	}
	ns, err := unix.IoctlRetInt(fd, unix.SIOCGSKNS)
	if err != nil {
		return fmt.Errorf("ask for its namespace: %w", err)
	}
	defer unix.Close(ns)
	inode, err := inodeOf(ns)
	if err != nil {
		return err
	}
	if inode != p.inode {
		return fmt.Errorf("it is in namespace %d, not in %d", inode, p.inode)
	}
	p.s = netlink.Adopt(fd, podBuffer)
	return p.s.Options()
}

// Inode is the number of the namespace, as CNI_NETNS's file has it.
func (p *Pod) Inode() uint64 { return p.inode }

// Close closes both files, and with that lets go of the namespace.
func (p *Pod) Close() error { return errors.Join(p.rtnetlink.Close(), p.netns.Close()) }
