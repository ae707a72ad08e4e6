package linux

import (
	"fmt"
	"net/netip"
	"os"
	"runtime"
	"testing"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/internal/must"
)

// needsKernel skips where namespaces cannot be made.
func needsKernel(t testing.TB) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN and CAP_NET_ADMIN: makes network namespaces of its own")
	}
}

// enterNew puts the test's own thread into a new network namespace. The thread is never unlocked, so it
// ends with the test, and the namespace with it.
func enterNew(t testing.TB) {
	t.Helper()
	needsKernel(t)
	runtime.LockOSThread()
	must.Do(t, unix.Unshare(unix.CLONE_NEWNET))
}

// openHere opens the thread's namespace.
func openHere(t testing.TB, o Options) *Kernel {
	t.Helper()
	k := must.Get(Open(o))(t)
	t.Cleanup(func() { k.Close() })
	return k
}

// openNew opens a new namespace, in which the test goes on.
func openNew(t testing.TB, o Options) *Kernel {
	t.Helper()
	enterNew(t)
	return openHere(t, o)
}

// withPod is a new namespace of a node with one pod.
func withPod(t testing.TB) (*Kernel, dataplane.PodSpec) {
	t.Helper()
	k, _, _, w := withOpenPod(t, Options{})
	return k, w
}

// withOpenPod is withPod on a kernel of these options, and gives the pod's namespace and the socket in it, too.
func withOpenPod(t testing.TB, o Options) (*Kernel, *space, *Pod, dataplane.PodSpec) {
	t.Helper()
	k, s := openNew(t, o), newSpace(t)
	p, w := s.pod(t), spec(1, s.inode)
	apply(t, k, dataplane.PodPlan(w), p)
	return k, s, p, w
}

// space is a namespace of a pod, a router, the internet.
type space struct {
	netns *os.File
	inode uint64
}

// onThread runs f on a thread of its own, which ends with it.
func onThread(f func() error) error {
	done := make(chan error)
	go func() {
		runtime.LockOSThread()
		done <- f()
	}()
	return <-done
}

func newSpace(t testing.TB) *space {
	t.Helper()
	s := &space{}
	must.Do(t, onThread(func() (err error) {
		if err = unix.Unshare(unix.CLONE_NEWNET); err == nil {
			s.netns, err = os.Open("/proc/thread-self/ns/net")
		}
		return err
	}))
	t.Cleanup(func() { s.netns.Close() })
	s.inode = must.Get(inodeOf(int(s.netns.Fd())))(t)
	return s
}

// in runs f in the namespace.
func (s *space) in(f func() error) error {
	return onThread(func() error {
		if err := unix.Setns(int(s.netns.Fd()), unix.CLONE_NEWNET); err != nil {
			return err
		}
		return f()
	})
}

func (s *space) run(t testing.TB, f func() error) {
	t.Helper()
	must.Do(t, s.in(f))
}

// pod is what the plugin passes.
func (s *space) pod(t testing.TB) *Pod {
	t.Helper()
	var sock int
	must.Do(t, s.in(func() (err error) {
		sock, err = unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		return err
	}))
	fd := must.Get(unix.FcntlInt(s.netns.Fd(), unix.F_DUPFD_CLOEXEC, 0))(t)
	p := must.Get(NewPod(os.NewFile(uintptr(fd), "netns"), os.NewFile(uintptr(sock), "rtnetlink")))(t)
	t.Cleanup(func() { p.Close() })
	return p
}

// plug makes an ENI: a veth with that name and MAC here, whose cable ends in the router as cable.
func plug(t testing.TB, router *space, name, mac, cable string) {
	t.Helper()
	hw, ok := parseMAC(mac)
	if !ok {
		t.Fatalf("plug %s: malformed MAC %s", name, mac)
	}
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.HardwareAddr = name, hw[:]
	must.Do(t, netlink.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: cable, PeerNamespace: netlink.NsFd(int(router.netns.Fd()))}))
	router.run(t, func() error {
		l, err := netlink.LinkByName(cable)
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(l)
	})
}

func writeSysctl(t testing.TB, key, value string) {
	t.Helper()
	must.Do(t, onSysctl(key, value))
}

// spec is pod number n of a test.
func spec(n int, netns uint64) dataplane.PodSpec {
	a := netip.AddrFrom4([4]byte{10, 0, byte(10 + n/200), byte(20 + n%200)})
	return dataplane.PodSpec{
		Alias:    dataplane.Alias("aws-cni", fmt.Sprintf("%064x", n), "eth0", a),
		HostVeth: dataplane.HostVethName("eni", "default", fmt.Sprint("web-", n)),
		Netns:    netns, Address: a, Table: 2, MTU: 9001,
	}
}

func apply(t testing.TB, k *Kernel, p dataplane.Plan, pod *Pod) {
	t.Helper()
	if done, err := k.Apply(p, pod); err != nil {
		t.Fatalf("done %d of %d: %v", done, len(p.Ops), err)
	}
}

func observe(t testing.TB, k *Kernel) dataplane.Observation {
	t.Helper()
	o := must.Get(k.Observe())(t)
	return o
}

// onSysctl writes one of the thread's namespace.
func onSysctl(key, value string) error {
	return os.WriteFile("/proc/sys/net/ipv4/"+key, []byte(value), 0)
}
