package daemon

import (
	"fmt"
	"net"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/percentiles"
)

// namespaceThread is a goroutine whose thread is in a network namespace of its own, which dies with it.
type namespaceThread struct{ do chan func() }

func newNamespace(t testing.TB) *namespaceThread {
	n := &namespaceThread{make(chan func())}
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends, and with it the namespace
		failed <- unix.Unshare(unix.CLONE_NEWNET)
		for f := range n.do {
			f()
		}
	}()
	if err := <-failed; err != nil {
		t.Skipf("needs CAP_SYS_ADMIN to make a network namespace: %v", err)
	}
	t.Cleanup(func() { close(n.do) })
	return n
}

func (n *namespaceThread) run(t testing.TB, f func() error) {
	t.Helper()
	done := make(chan error)
	n.do <- func() { done <- f() }
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// pass is what the plugin passes of the namespace.
func (n *namespaceThread) pass(t testing.TB) (files []*os.File, inode uint64) {
	t.Helper()
	n.run(t, func() error {
		ns, err := os.Open("/proc/thread-self/ns/net")
		if err != nil {
			return err
		}
		fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE)
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Fstat(int(ns.Fd()), &st); err != nil {
			return err
		}
		files, inode = []*os.File{ns, os.NewFile(uintptr(fd), "rtnetlink")}, st.Ino
		return nil
	})
	return files, inode
}

// realNode is a rig whose kernel is real: a namespace with a primary link.
func realNode(t *testing.T, addresses int) (*rig, *namespaceThread) {
	r := newRig(t, addresses)
	host := newNamespace(t)
	wire, _ := newNamespace(t).pass(t)
	host.run(t, func() error {
		mac, err := net.ParseMAC(primaryMAC0)
		if err != nil {
			return err
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		link := &netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "ens5", HardwareAddr: mac, MTU: 9001}, PeerName: "wire", PeerNamespace: netlink.NsFd(int(wire[0].Fd()))}
		if err := netlink.LinkAdd(link); err != nil {
			return err
		}
		address, err := netlink.ParseAddr("10.0.0.10/24")
		if err != nil {
			return err
		}
		for _, err := range []error{netlink.LinkSetUp(lo), netlink.AddrAdd(link, address), netlink.LinkSetUp(link)} {
			if err != nil {
				return err
			}
		}
		k, err := linux.Open(linux.Options{})
		if err != nil {
			return err
		}
		t.Cleanup(func() { k.Close() })
		r.c.Kernel = k
		return nil
	})
	return r, host
}

// realPod adds a pod with a namespace of its own, which works. files and inode are what the plugin passes of that.
func (r *rig) realPod() (pod *namespaceThread, files []*os.File, inode uint64, out *ipc.Response) {
	r.t.Helper()
	pod = newNamespace(r.t)
	files, inode = pod.pass(r.t)
	if out = r.must(addOf("one"), files...); out.Code != 0 {
		r.t.Fatalf("add: %+v\n%s", out, r.log)
	}
	return pod, files, inode, out
}

// TestRealKernel: the daemon, the local protocol and a kernel. An ADD makes a pod that answers, a DEL takes it away.
func TestRealKernel(t *testing.T) {
	r, host := realNode(t, 4)
	r.start().serves()
	pod, files, inode, out := r.realPod()
	var l net.Listener
	pod.run(t, func() (err error) {
		l, err = net.Listen("tcp4", net.JoinHostPort(out.Address.String(), "80"))
		return err
	})
	defer l.Close()
	go accept.Each(l.Accept, func(c net.Conn) {
		fmt.Fprint(c, c.RemoteAddr())
		c.Close()
	})
	hello := func() (text string, err error) {
		host.run(t, func() error {
			var c net.Conn
			if c, err = net.DialTimeout("tcp4", net.JoinHostPort(out.Address.String(), "80"), 2*time.Second); err != nil {
				return nil
			}
			defer c.Close()
			b := make([]byte, 64)
			n, _ := c.Read(b)
			text = string(b[:n])
			return nil
		})
		return text, err
	}
	if text, err := hello(); err != nil || text == "" {
		t.Fatalf("the node cannot reach its pod: %q %v\n%s", text, err, r.log)
	}
	check := addOf("one")
	check.Verb, check.Inode = ipc.Check, inode
	if out := r.must(check); out.Code != 0 {
		t.Errorf("check: %+v", out)
	}
	for _, f := range files {
		f.Close()
	}
	if open := openNamespaces(t, inode); open > 0 {
		t.Errorf("after the ADD the daemon holds the pod's namespace %d times", open)
	}
	r.del("one")
	pod.run(t, func() error {
		if _, err := netlink.LinkByName("eth0"); err == nil {
			return fmt.Errorf("after the DEL the pod still has eth0")
		}
		return nil
	})
	r.end()
	r.replays()
}

// TestRealKernelAddAgain: whatever somebody takes from a pod between two ADDs, the second one says yes to a network that is there.
func TestRealKernelAddAgain(t *testing.T) {
	r, host := realNode(t, 4)
	r.start().serves()
	pod, _, inode, first := r.realPod()
	to := netlink.NewIPNet(first.Address.AsSlice())
	eth0 := func(do func(netlink.Link) error) func() error {
		return func() error {
			l, err := netlink.LinkByName("eth0")
			if err != nil {
				return err
			}
			return do(l)
		}
	}
	for _, d := range []struct {
		name string
		in   *namespaceThread
		do   func() error
	}{
		{"nothing", pod, func() error { return nil }},
		{"eth0 deleted", pod, eth0(netlink.LinkDel)},
		{"the address deleted", pod, eth0(func(l netlink.Link) error { return netlink.AddrDel(l, &netlink.Addr{IPNet: to}) })},
		{"the host route deleted", host, func() error { return netlink.RouteDel(&netlink.Route{Dst: to, Scope: netlink.SCOPE_LINK}) }},
		{"the rule deleted", host, func() error {
			rule := netlink.NewRule()
			rule.Dst, rule.Priority = to, dataplane.PriorityToPod
			return netlink.RuleDel(rule)
		}},
	} {
		d.in.run(t, d.do)
		files, _ := pod.pass(t)
		if out := r.must(addOf("one"), files...); out.Code != 0 || out.Address != first.Address {
			t.Fatalf("%s: add again: %+v\n%s", d.name, out, r.log)
		}
		check := addOf("one")
		check.Verb, check.Inode = ipc.Check, inode
		if out := r.must(check); out.Code != 0 {
			t.Errorf("%s: ADD said yes, and CHECK says %+v", d.name, out)
		}
		pod.run(t, eth0(func(l netlink.Link) error {
			if list, err := netlink.AddrList(l, netlink.FAMILY_V4); err != nil || len(list) != 1 || !list[0].IP.Equal(to.IP) {
				return fmt.Errorf("%s: ADD said yes, and eth0 has %v, %v", d.name, list, err)
			}
			return nil
		}))
	}
	r.del("one")
	r.end()
	r.replays()
}

// openNamespaces counts this process's files that are the namespace of that inode.
func openNamespaces(t *testing.T, inode uint64) (n int) {
	t.Helper()
	list := must.Get(os.ReadDir("/proc/self/fd"))(t)
	for _, e := range list {
		if to, err := os.Readlink("/proc/self/fd/" + e.Name()); err == nil && to == fmt.Sprintf("net:[%d]", inode) {
			n++
		}
	}
	return n
}

// TestRealKernelForgotten: with the record lost, everything comes back from the links' aliases.
func TestRealKernelForgotten(t *testing.T) {
	r, _ := realNode(t, 4)
	r.start().serves()
	_, _, _, one := r.realPod()
	r.end()
	must.Do(t, os.WriteFile(r.c.RunDir+"/ipam.json", []byte("{"), 0o600))
	r.record = &buffer{}
	r.c.Record = r.record
	r.start().serves()
	v := r.view()
	if v.View.Assigned != 1 {
		t.Fatalf("%d assigned\n%s", v.View.Assigned, r.log)
	}
	for _, row := range v.Rows {
		if row.State == ipam.Assigned && (row.Address != one.Address || row.Att.ContainerID != "one") {
			t.Errorf("row %+v", row)
		}
	}
}

// TestFigures prints what an ADD and a DEL cost without the plugin's exec.
func TestFigures(t *testing.T) {
	if testing.Short() || os.Getenv("ENILAB_FIGURES") == "" {
		t.Skip("prints figures: set ENILAB_FIGURES=1")
	}
	r, _ := realNode(t, 95)
	r.c.Record = nil
	r.start().serves()
	var adds, dels percentiles.Times
	for i := range 90 {
		pod := newNamespace(t)
		files, _ := pod.pass(t)
		began := time.Now()
		out := r.must(addOf(fmt.Sprint("pod-", i)), files...)
		if adds = append(adds, time.Since(began)); out.Code != 0 {
			t.Fatalf("%+v", out)
		}
		for _, f := range files {
			f.Close()
		}
	}
	for i := range 90 {
		began := time.Now()
		r.del(fmt.Sprint("pod-", i))
		dels = append(dels, time.Since(began))
	}
	for what, l := range map[string]percentiles.Times{"ADD": adds[1:], "DEL": dels} {
		t.Logf("%s p50 %v p99 %v", what, l.P50(), l.P99())
	}
}
