package node

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/sim/interference"
)

const netnsDir = "/run/netns/"

// pod is a network namespace that the helper keeps alive. Each of file, nl and responder would by itself.
type pod struct {
	name      string
	inode     uint64
	mounted   bool
	holds     int
	file      *os.File
	nl        *netlink.Handle // a socket inside: no thread has to enter the namespace again
	responder *responder
}

func (h *helper) makeNetns(name string) (uint64, error) {
	if name == "" || len(name) > 128 || strings.ContainsAny(name, "/\x00") || name[0] == '.' {
		return 0, fmt.Errorf("%q is no name of a namespace", name)
	}
	p, err := newPod(name)
	if err != nil {
		return 0, fmt.Errorf("make namespace %s: %w", name, err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pods[p.inode] = p
	return p.inode, nil
}

// newPod makes a namespace.
func newPod(name string) (*pod, error) {
	p := &pod{name: name}
	if err := abroad(p.make); err != nil {
		p.close()
		return nil, errors.Join(err, p.unmount())
	}
	return p, nil
}

// make makes the namespace and everything in it; the calling thread is in it afterwards.
func (p *pod) make() (err error) {
	path := netnsDir + p.name
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_RDONLY, 0o444)
	if err != nil {
		return err
	}
	p.mounted = true // there is something to remove
	_ = file.Close()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("new network namespace: %w", err)
	}
	if err := mount("/proc/thread-self/ns/net", path, "", unix.MS_BIND, ""); err != nil {
		return err
	}
	if p.file, err = os.Open(path); err != nil {
		return err
	}
	var stat unix.Stat_t
	if err := unix.Fstat(int(p.file.Fd()), &stat); err != nil {
		return err
	}
	p.inode = stat.Ino
	if p.nl, err = netlink.NewHandle(unix.NETLINK_ROUTE); err != nil {
		return fmt.Errorf("open rtnetlink: %w", err)
	}
	if err := linkUp(p.nl, "lo"); err != nil {
		return err
	}
	p.responder, err = respond()
	return err
}

// unmount is what a runtime does.
func (p *pod) unmount() error {
	if !p.mounted {
		return nil
	}
	path := netnsDir + p.name
	if err := unix.Unmount(path, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) { // EINVAL: not mounted
		return fmt.Errorf("unmount %s: %w", path, err)
	}
	p.mounted = false
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// close lets go of everything that keeps the namespace alive.
func (p *pod) close() {
	if p.responder != nil {
		p.responder.close()
	}
	if p.nl != nil {
		p.nl.Close()
	}
	if p.file != nil {
		_ = p.file.Close()
	}
}

// pod is the one that has that inode. Callers hold h.mu.
func (h *helper) pod(inode uint64) (*pod, error) {
	p := h.pods[inode]
	if p == nil {
		return nil, fmt.Errorf("no pod's namespace has inode %d", inode)
	}
	return p, nil
}

// settle lets a namespace die that no process keeps. Callers hold h.mu.
func (h *helper) settle(p *pod) {
	if !p.mounted && p.holds == 0 {
		delete(h.pods, p.inode)
		p.close()
	}
}

func (h *helper) removeNetns(inode uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.pod(inode)
	if err != nil {
		return err
	}
	if !p.mounted {
		return fmt.Errorf("namespace %s (inode %d) was unmounted before", p.name, inode)
	}
	if err := p.unmount(); err != nil {
		return err
	}
	h.settle(p)
	return nil
}

func (h *helper) hold(inode uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.pod(inode)
	if err == nil {
		p.holds++
	}
	return err
}

func (h *helper) release(inode uint64) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	p, err := h.pod(inode)
	if err != nil {
		return err
	}
	if p.holds == 0 {
		return fmt.Errorf("nothing holds namespace %s (inode %d)", p.name, inode)
	}
	p.holds--
	h.settle(p)
	return nil
}

// living are the pods by inode. Callers hold h.mu.
func (h *helper) living() []*pod {
	return slices.SortedFunc(maps.Values(h.pods), func(a, b *pod) int { return cmp.Compare(a.inode, b.inode) })
}

func (h *helper) addresses(none) ([]Holder, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []Holder
	for _, p := range h.living() {
		list, err := interference.Retried(func() ([]netlink.Addr, error) { return p.nl.AddrList(nil, unix.AF_INET) })
		if err != nil {
			return nil, fmt.Errorf("addresses of %s: %w", p.name, err)
		}
		for _, a := range list {
			if addr, ok := netip.AddrFromSlice(a.IP.To4()); ok && !addr.IsLoopback() && !interference.Added(&a) {
				out = append(out, Holder{p.inode, addr})
			}
		}
	}
	return out, nil
}

// within runs f on a thread of the pod's namespace (0: the node's own).
func (h *helper) within(inode uint64, f func() error) error {
	if inode == 0 {
		return f()
	}
	h.mu.Lock()
	p, err := h.pod(inode)
	var fd int
	if err == nil {
		fd, err = unix.FcntlInt(p.file.Fd(), unix.F_DUPFD_CLOEXEC, 0) // it may be closed meanwhile
	}
	h.mu.Unlock()
	if err != nil {
		return err
	}
	return abroad(func() error {
		err := unix.Setns(fd, unix.CLONE_NEWNET)
		_ = unix.Close(fd)
		if err != nil {
			return fmt.Errorf("enter namespace with inode %d: %w", inode, err)
		}
		return f()
	})
}
