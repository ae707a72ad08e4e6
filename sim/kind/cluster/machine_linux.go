package cluster

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// privileged says whether this process may enter the containers' namespaces.
func privileged() error {
	if err := node.Privileged(); err != nil {
		return &Lacking{"world kind: " + err.Error()}
	}
	return nil
}

// inotifyPerNode is how many inotify instances a node container holds: systemd's and its services', containerd's, kubelet's and the control plane's.
const inotifyPerNode = 20

// enoughInotify says whether this user may have the inotify instances of so many nodes. A kubelet that gets none ends again and again, and says so
// nowhere but in its own log; the containers' root is this user.
func enoughInotify(nodes int) error {
	const setting = "/proc/sys/fs/inotify/max_user_instances"
	text, err := os.ReadFile(setting)
	if err != nil {
		return nil // a kernel that does not tell may have enough
	}
	most, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("%s: %w", setting, err)
	}
	used := inotifyInstances()
	if need := nodes * inotifyPerNode; used+need > most {
		return Lackingf("world kind needs about %d inotify instances for %d nodes, and of the %d that a user may have %d are taken: sysctl fs.inotify.max_user_instances=%d",
			need, nodes, most, used, max(1024, 2*(used+need)))
	}
	return nil
}

// inotifyInstances counts those of this user's processes.
func inotifyInstances() (used int) {
	dirs, _ := filepath.Glob("/proc/[0-9]*")
	for _, dir := range dirs {
		var st unix.Stat_t
		if unix.Stat(dir, &st) != nil || int(st.Uid) != os.Getuid() {
			continue
		}
		files, _ := os.ReadDir(dir + "/fd") // of a process that has just ended: none
		for _, f := range files {
			if to, _ := os.Readlink(dir + "/fd/" + f.Name()); to == "anon_inode:inotify" {
				used++
			}
		}
	}
	return used
}

func openNetns(pid int) (*os.File, error) {
	return os.Open(filepath.Join("/proc", strconv.Itoa(pid), "ns/net"))
}

// routes are the prefixes that the host's own routes lead to; its default route is none.
func routes() ([]netip.Prefix, error) {
	list, err := netlink.RouteList(nil, netlink.FAMILY_V4)
	if err != nil {
		return nil, fmt.Errorf("list the machine's routes: %w", err)
	}
	var out []netip.Prefix
	for _, r := range list {
		if r.Dst == nil {
			continue
		}
		a, ok := netip.AddrFromSlice(r.Dst.IP.To4())
		if bits, _ := r.Dst.Mask.Size(); ok && bits > 0 {
			out = append(out, netip.PrefixFrom(a, bits))
		}
	}
	return out, nil
}

// machineSysctls leave ARP to the VPC: a machine does not answer for its addresses, and what it has learnt is not overwritten by what
// another machine's own requests say of their sender.
var machineSysctls = map[string]string{"conf/eth0/arp_ignore": "8", "neigh/eth0/locktime": "1000000"}

// addGateways gives the router's link the gateways of further subnets; the first one's is Docker's doing.
func addGateways(ns *os.File, homes []home) error {
	return vpc.Do(ns, func() error {
		link, err := netlink.LinkByName(segment)
		for _, h := range homes {
			if err == nil {
				err = netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(h.router, h.subnet.Bits())})
			}
		}
		if err != nil {
			return fmt.Errorf("give the router the gateways of the nodes' subnets: %w", err)
		}
		return nil
	})
}

func ipNet(a netip.Addr, bits int) *net.IPNet {
	return &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(bits, 32)}
}

// moveIn makes the address that a machine has of the Docker network one of its subnet, whose other subnets are beyond the router. The Docker
// host stays in reach on the link, and the way out.
func moveIn(link netlink.Link, h *home, host netip.Addr) error {
	list, err := netlink.AddrList(link, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for _, a := range list {
		address, _ := netip.AddrFromSlice(a.IP.To4())
		if bits, _ := a.Mask.Size(); !h.machines.Contains(address) || bits == h.subnet.Bits() {
			continue
		}
		if err := netlink.AddrAdd(link, &netlink.Addr{IPNet: ipNet(address, h.subnet.Bits())}); err != nil {
			return fmt.Errorf("address %v of subnet %v: %w", address, h.subnet, err)
		}
		index := link.Attrs().Index
		if err := netlink.RouteReplace(&netlink.Route{LinkIndex: index, Dst: ipNet(host, 32), Scope: netlink.SCOPE_LINK}); err != nil {
			return fmt.Errorf("route to the Docker host %v: %w", host, err)
		}
		if err := netlink.AddrDel(link, &a); err != nil && !errors.Is(err, unix.EADDRNOTAVAIL) {
			return fmt.Errorf("address %v of Docker's network: %w", address, err)
		}
		if err := netlink.RouteReplace(&netlink.Route{LinkIndex: index, Dst: ipNet(netip.IPv4Unspecified(), 0), Gw: host.AsSlice()}); err != nil {
			return fmt.Errorf("default route by the Docker host %v: %w", host, err)
		}
	}
	return nil
}

// configureMachine makes an instance of a node container: it is in its subnet, the VPC answers ARP for it, what is beyond the VPC's router is routed
// there, and instance metadata is on its loopback. The default route stays the Docker host's.
func configureMachine(ns *os.File, h *home, host netip.Addr, beyond []netip.Prefix) error {
	return vpc.Do(ns, func() error {
		link, err := netlink.LinkByName(segment)
		if err != nil {
			return err
		}
		if err := moveIn(link, h, host); err != nil {
			return err
		}
		for name, value := range machineSysctls {
			if err := os.WriteFile("/proc/sys/net/ipv4/"+name, []byte(value), 0o644); err != nil {
				return err
			}
		}
		for _, p := range beyond {
			if err := netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Dst: ipNet(p.Addr(), p.Bits()), Gw: h.router.AsSlice()}); err != nil {
				return fmt.Errorf("route %v to the VPC's router: %w", p, err)
			}
		}
		if err := forgetNeighbours(link.Attrs().Index); err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			// Of a larger scope it would be what the kernel chooses as the source on links without addresses, such as pods'.
			err = netlink.AddrAdd(lo, &netlink.Addr{IPNet: netlink.NewIPNet(netip.MustParseAddr(imdsAddr).AsSlice()), Scope: int(netlink.SCOPE_HOST)})
		}
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("give lo the address %v: %w", imdsAddr, err)
		}
		return nil
	})
}

// forgetNeighbours: what machines told each other by ARP before the VPC answered for them.
func forgetNeighbours(index int) error {
	list, err := netlink.NeighList(index, netlink.FAMILY_V4)
	if err != nil {
		return err
	}
	for i := range list {
		if err := netlink.NeighDel(&list[i]); err != nil && !errors.Is(err, unix.ENOENT) {
			return err
		}
	}
	return nil
}

// AwaitExit waits until a process has ended; false: stop was closed first.
func AwaitExit(pid int, stop <-chan struct{}) bool {
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return errors.Is(err, unix.ESRCH)
	}
	defer unix.Close(fd)
	for {
		select {
		case <-stop:
			return false
		default:
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 200)
		if n > 0 {
			return true
		}
		if err != nil && !errors.Is(err, unix.EINTR) {
			return true
		}
	}
}

// alive says whether a process runs; there is none of number 0.
func alive(pid int) bool { return pid > 0 && unix.Kill(pid, 0) == nil }
