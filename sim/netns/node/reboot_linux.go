package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/sim/interference"
)

// deathTimeout is how long SIGKILLed processes may take to end.
const deathTimeout = 10 * time.Second

func (h *helper) reboot(none) error {
	if err := h.killAll(); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	pods := h.living()
	links := h.resetLinks(pods) // before the namespaces die, which takes the kernel some time: the links are gone when this returns
	var errs []error
	for _, p := range pods {
		errs = append(errs, p.unmount())
		p.mounted, p.holds = false, 0
		h.settle(p)
	}
	_, rules := interference.FlushRules()
	_, routes := interference.FlushTables(func(t uint32) bool { return t != unix.RT_TABLE_LOCAL })
	_, nat := interference.FlushNAT()
	return errors.Join(errors.Join(errs...), links, rules, routes, nat,
		forgetFlows(),
		empty("/run/aws-node"))
}

// killAll kills every process but this one, and waits until those that have an event have told of it.
func (h *helper) killAll() error {
	h.mu.Lock()
	var done []chan struct{}
	for _, r := range h.runs {
		r.cancel(errors.New("by a reboot")) // also what is not started yet
		done = append(done, r.done)
	}
	if h.daemon != nil {
		done = append(done, h.daemon.done)
	}
	h.mu.Unlock()
	if err := unix.Kill(-1, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return fmt.Errorf("kill all processes: %w", err)
	}
	late := time.After(deathTimeout)
	for _, c := range done {
		select {
		case <-c:
		case <-late:
			return fmt.Errorf("a process has not ended %v after SIGKILL", deathTimeout)
		}
	}
	return nil
}

// resetLinks removes every link but lo and the ENIs', and leaves those as a machine finds them at boot.
func (h *helper) resetLinks(pods []*pod) error {
	links, err := interference.Retried(h.nl.LinkList)
	if err != nil {
		return fmt.Errorf("links: %w", err)
	}
	ours := map[int]bool{} // namespaces of pods, as the links' peers name them
	for _, p := range pods {
		if id, err := h.nl.GetNetNsIdByFd(int(p.file.Fd())); err == nil && id >= 0 {
			ours[id] = true
		}
	}
	var errs []error
	for _, l := range links {
		switch {
		case l.Attrs().Name == "lo":
			errs = append(errs, h.resetLink(l), linkUp(h.nl, "lo")) // which gives it 127.0.0.1 again
		case isENI(l, ours):
			errs = append(errs, h.resetLink(l))
		default:
			if err := h.nl.LinkDel(l); err != nil && !errors.Is(err, unix.ENODEV) { // gone with its peer
				errs = append(errs, fmt.Errorf("remove link %s: %w", l.Attrs().Name, err))
			}
		}
	}
	return errors.Join(errs...)
}

// isENI says whether a link is an ENI's: hardware, or a veth that leads out of the node but not into a pod.
func isENI(l netlink.Link, pods map[int]bool) bool {
	if _, _, _, _, pod := dataplane.ParseAlias(l.Attrs().Alias); pod {
		return false
	}
	switch l.Type() {
	case "device":
		return true
	case "veth":
		return l.Attrs().NetNsID >= 0 && !pods[l.Attrs().NetNsID]
	}
	return false
}

// resetLink takes a link's configuration away: it is down, has no address, and what InitPlan set is the default again.
func (k *network) resetLink(l netlink.Link) error {
	name := l.Attrs().Name
	addrs, err := interference.Retried(func() ([]netlink.Addr, error) { return k.nl.AddrList(l, unix.AF_INET) })
	if err != nil {
		return fmt.Errorf("addresses of %s: %w", name, err)
	}
	for i := range addrs {
		if err := k.nl.AddrDel(l, &addrs[i]); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) { // gone with its primary
			return fmt.Errorf("remove %v from %s: %w", addrs[i].IPNet, name, err)
		}
	}
	if err := k.nl.LinkSetDown(l); err != nil {
		return fmt.Errorf("set %s down: %w", name, err)
	}
	filter, err := os.ReadFile("/proc/sys/net/ipv4/conf/default/rp_filter")
	if err != nil {
		return err
	}
	return os.WriteFile("/proc/sys/net/ipv4/conf/"+name+"/rp_filter", filter, 0)
}

// forgetFlows empties conntrack, if the kernel has it.
func forgetFlows() error {
	if err := netlink.ConntrackTableFlush(netlink.ConntrackTable); err != nil && !interference.NoNFTables(err) && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("forget flows: %w", err)
	}
	return nil
}

// empty removes what is in a folder.
func empty(dir string) error {
	list, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range list {
		errs = append(errs, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return errors.Join(errs...)
}
