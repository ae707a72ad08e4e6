package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	. "github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/enilab/enilab/sim/vpc"
)

// datagramPort is where datagramEcho listens.
const datagramPort = 9999

// podNetns opens the network namespace of a pod's container.
func (b *bed) podNetns(p *corev1.Pod) (*os.File, error) {
	for _, c := range processes(b.Node(p.Spec.NodeName)) {
		folder := filepath.Join("/proc", strconv.Itoa(c.pid))
		env, _ := os.ReadFile(filepath.Join(folder, "environ")) // of one that has ended: nothing
		if slices.Contains(strings.Split(string(env), "\x00"), "HOSTNAME="+p.Name) {
			return os.Open(filepath.Join(folder, "ns/net"))
		}
	}
	return nil, fmt.Errorf("no process on %s has the name of pod %s", p.Spec.NodeName, p.Name)
}

// datagramEcho sends back what comes to a pod, for a process of the pod's that has not been written.
func datagramEcho(ns *os.File, a netip.Addr) net.PacketConn {
	GinkgoHelper()
	var c net.PacketConn
	check(vpc.Do(ns, func() (err error) {
		c, err = listenWhole(netip.AddrPortFrom(a, datagramPort))
		return err
	}))
	go func() {
		b := make([]byte, 65536)
		for {
			n, from, err := c.ReadFrom(b)
			if errors.Is(err, net.ErrClosed) {
				return
			}
			if err == nil {
				_, _ = c.WriteTo(b[:n], from) // one that is lost is asked for again
			}
		}
	}()
	return c
}

// Of ip(7): on other systems, where these specs only compile, they have no names.
const ipMTUDiscover, ipPMTUDiscProbe = 10, 3

// listenWhole opens a socket that never lets a datagram be cut into fragments (ip(7), IP_PMTUDISC_PROBE).
func listenWhole(at netip.AddrPort) (net.PacketConn, error) {
	c, err := net.ListenUDP("udp4", net.UDPAddrFromAddrPort(at))
	if err != nil {
		return nil, err
	}
	raw, err := c.SyscallConn()
	if err == nil {
		err = errors.Join(raw.Control(func(fd uintptr) {
			err = os.NewSyscallError("setsockopt", syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, ipMTUDiscover, ipPMTUDiscProbe))
		}), err)
	}
	return c, err
}

// headers of IPv4 and UDP, in bytes.
const headers = 28

// askDatagrams sends datagrams of all kinds of sizes to a pod, expects them back, and expects that none is larger than the pod's MTU.
func askDatagrams(ctx context.Context, ns *os.File, from, to netip.Addr) error {
	var c net.PacketConn
	mtu := 0
	if err := vpc.Do(ns, func() (err error) {
		link, err := net.InterfaceByName("eth0")
		if err != nil {
			return err
		}
		mtu = link.MTU
		c, err = listenWhole(netip.AddrPortFrom(from, 0))
		return err
	}); err != nil {
		return err
	}
	defer c.Close()
	peer := net.UDPAddrFromAddrPort(netip.AddrPortFrom(to, datagramPort))
	for _, size := range []int{1, 1472, 1473, mtu - headers} {
		if err := echoDatagram(ctx, c, peer, bytes.Repeat([]byte{byte(size)}, size)); err != nil {
			return fmt.Errorf("a datagram of %d bytes from %v to %v, at an MTU of %d: %w", size, from, to, mtu, err)
		}
	}
	if from == to {
		return nil // the loopback's MTU is another
	}
	if _, err := c.WriteTo(make([]byte, mtu-headers+1), peer); !errors.Is(err, syscall.EMSGSIZE) {
		return fmt.Errorf("a datagram of one byte more than the MTU %d from %v to %v: expected that it does not leave, found %v", mtu, from, to, err)
	}
	return nil
}

// echoDatagram sends it each second until it comes back.
func echoDatagram(ctx context.Context, c net.PacketConn, to net.Addr, payload []byte) error {
	b := make([]byte, 65536)
	for ctx.Err() == nil {
		if _, err := c.WriteTo(payload, to); err != nil {
			return err
		}
		for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); {
			_ = c.SetReadDeadline(deadline)
			if n, _, err := c.ReadFrom(b); err == nil && bytes.Equal(b[:n], payload) { // not a late one of another size
				return nil
			}
		}
	}
	return fmt.Errorf("it does not come back: %w", context.Cause(ctx))
}
