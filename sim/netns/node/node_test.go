//go:build linux

package node_test

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
)

const conflist = `{"cniVersion":"0.4.0","cniVersions":["0.4.0","1.0.0","1.1.0"],"name":"aws-cni","plugins":[{"type":"aws-cni","vethPrefix":"eni"}]}`

// patience is what anything may take here, also on a machine that is busy.
const patience = 20 * time.Second

func spec(name string) node.Spec {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return node.Spec{Name: name, Self: []string{"node.test", "helper"}, Daemon: []string{self, "daemon", "first"}, Plugin: self,
		Conflist: []byte(conflist), Log: os.Stderr}
}

func run(pod string, inode uint64) node.Run {
	return node.Run{Verb: cri.ADD, ContainerID: containerID(pod), IfName: "eth0", Netns: inode, Namespace: "default", Name: pod, UID: "uid-" + pod}
}

func containerID(pod string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(pod))) }

func start(t *testing.T, change ...func(*node.Spec)) *node.Node {
	t.Helper()
	if err := node.Privileged(); err != nil {
		t.Skip(err)
	}
	s := spec("node-1")
	for _, c := range change {
		c(&s)
	}
	n := must.Get(node.Start(s))(t)
	t.Cleanup(func() {
		if err := n.Close(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// until waits for something that others do.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v until %s", patience, what)
		}
	}
}

func next(t *testing.T, n *node.Node) node.Event {
	t.Helper()
	select {
	case e, ok := <-n.Events():
		if !ok {
			t.Fatal("the node is gone")
		}
		return e
	case <-time.After(patience):
		t.Fatalf("no event for %v", patience)
	}
	panic("not reached")
}

// cni runs the plugin and waits.
func cni(t *testing.T, n *node.Node, op uint64, r node.Run) node.Event {
	t.Helper()
	must.Do(t, n.RunPlugin(op, r))
	e := next(t, n)
	if e.Kind != node.PluginDone || e.Op != op {
		t.Fatalf("event %+v instead of op %d", e, op)
	}
	return e
}

func sh(t *testing.T, n *node.Node, script string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	out, code, err := n.Exec(ctx, []string{"sh", "-c", script})
	if err != nil || code != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s", script, code, err, out)
	}
	return string(out)
}

func TestFileSystem(t *testing.T) {
	before := hosts(t)
	n := start(t)
	for script, want := range map[string]string{
		"hostname":                 "node-1\n",
		"cat /proc/1/comm | wc -l": "1\n",
		"cat /proc/sys/net/ipv4/ip_forward; echo 0 > /proc/sys/net/ipv4/ip_forward; cat /proc/sys/net/ipv4/ip_forward": "1\n0\n",
		"ls /sys/class/net":                  "lo\n",
		"ls /opt/cni/bin /app":               "/app:\nnode.test\n\n/opt/cni/bin:\naws-cni\n",
		"cat /etc/cni/net.d/10-aws.conflist": conflist,
		"readlink /var/run":                  "../run\n",
		"touch /run/aws-node/x /var/lib/aws-node/x /var/lib/cni/x /var/log/aws-routed-eni/x /tmp/x && echo written":        "written\n",
		"touch /usr/x /bin/x /lib/x /opt/cni/bin/aws-cni 2>/dev/null || echo refused":                                      "refused\n",
		"echo x > /dev/null; head -c 3 /dev/zero | wc -c":                                                                  "3\n",
		"for f in bin sbin lib usr; do test -d /$f || echo no $f; done; ls -d /work /root/.[a-z]* /home 2>/dev/null; true": "",
	} {
		if got := sh(t, n, script); got != want {
			t.Errorf("%s: %q, want %q", script, got, want)
		}
	}
	must.Do(t, n.WriteRecords([]byte("{}")))
	if got := must.Get(os.ReadFile(n.Root() + "/var/run/aws-node/ipam.json"))(t); string(got) != "{}" {
		t.Errorf("the laboratory reads %q through Root", got)
	}
	if now := hosts(t); now != before {
		t.Errorf("the host's own folders have changed from\n%s\nto\n%s", before, now)
	}
}

// folders are those of a node that a host may have too: one with another CNI, or with ours.
var folders = []string{"/run/aws-node", "/run/netns", "/etc/cni/net.d", "/opt/cni/bin", "/var/lib/aws-node", "/var/lib/cni"}

// hosts are the host's files in these folders.
func hosts(t *testing.T) string {
	t.Helper()
	var out []string
	for _, dir := range folders {
		_ = filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
			if err == nil {
				out = append(out, path)
			}
			return nil
		})
	}
	return strings.Join(out, "\n")
}

// A host that is a node itself has folders of the same names. They are made in mount namespaces of the test's own.
func TestHostIsANode(t *testing.T) {
	if os.Getenv(hostVariable) != "" {
		t.Skip("it runs")
	}
	start(t) // or skipped
	c := exec.Command("/proc/self/exe", "host", "-test.run=^(TestFileSystem|TestPluginThroughLibcni|TestGC|TestStrangersAndReboot)$")
	c.Env = append(os.Environ(), hostVariable+"=1")
	c.SysProcAttr = &unix.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: unix.SIGKILL}
	if out, err := c.CombinedOutput(); err != nil || !strings.Contains(string(out), "PASS") {
		t.Errorf("%v\n%s", err, out)
	}
	if _, err := os.Stat("/run/aws-node/ipam.json"); err == nil {
		t.Error("the test's own folders are the host's")
	}
}

func TestLaboratoryServesASocketInTheNode(t *testing.T) {
	n := start(t)
	l := must.Get(net.Listen("unix", n.Root()+node.Sockets+"/clock.sock"))(t)
	defer l.Close()
	if got := sh(t, n, "test -S /run/enilab/clock.sock && echo there"); got != "there\n" {
		t.Error(got)
	}
}

func TestFurtherFiles(t *testing.T) {
	host := filepath.Join(t.TempDir(), "extra")
	must.Do(t, os.WriteFile(host, []byte("of the host"), 0o600))
	n := start(t, func(s *node.Spec) { s.Files = map[string]string{"/etc/extra/file": host} })
	if got := sh(t, n, "cat /etc/extra/file; (echo x >> /etc/extra/file) 2>/dev/null && echo written; true"); got != "of the host" {
		t.Errorf("%q", got)
	}
}

func TestDaemonLives(t *testing.T) {
	n := start(t, func(s *node.Spec) { s.Capabilities = []int{unix.CAP_NET_ADMIN, unix.CAP_NET_RAW} })
	if err := n.SignalDaemon(syscall.SIGTERM); err == nil {
		t.Error("a daemon that does not run takes a signal")
	}
	life := must.Get(n.StartDaemon([]string{"second", "child"}, map[string]string{"CLUSTER_NAME": "c1"}))(t)
	if life != 1 {
		t.Errorf("the first life is %d", life)
	}
	if _, err := n.StartDaemon(nil, nil); err == nil {
		t.Error("two daemons at a time")
	}
	until(t, "the daemon is up", func() bool { _, err := n.ReadFile("/run/aws-node/up"); return err == nil })
	must.Do(t, n.SignalDaemon(syscall.SIGTERM))
	if e := next(t, n); e.Kind != node.DaemonExited || e.Life != 1 || e.Code != 0 || e.Exit != "exit status 0" {
		t.Errorf("%+v", e)
	}
	out := string(must.Get(n.ReadFile(node.Output))(t))
	for _, want := range []string{"args [first second child] CLUSTER_NAME c1", "CapEff:\t0000000000003000\n", "CapPrm:\t0000000000003000\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s has no %q:\n%s", node.Output, want, out)
		}
	}
	until(t, "the daemon's own child is gone", func() bool {
		i, err := n.Leaks()
		return err == nil && len(i.Processes) == 0
	})
	must.Get(n.StartDaemon([]string{"exit=7"}, nil))(t)
	if e := next(t, n); e.Life != 2 || e.Code != 7 {
		t.Errorf("%+v", e)
	}
	must.Do(t, os.Remove(n.Root()+"/run/aws-node/up"))
	must.Get(n.StartDaemon(nil, nil))(t)
	until(t, "the daemon is up again", func() bool { _, err := n.ReadFile("/run/aws-node/up"); return err == nil })
	must.Do(t, n.SignalDaemon(syscall.SIGKILL))
	if e := next(t, n); e.Life != 3 || e.Code != -1 || e.Exit != "signal: killed" {
		t.Errorf("%+v", e)
	}
}

func TestPluginThroughLibcni(t *testing.T) {
	n := start(t)
	inode := must.Get(n.MakeNetns("cni-1"))(t)
	e := cni(t, n, 1, run("web-0", inode))
	if e.Code != 0 || e.Exit != "exit status 0" || !e.Address.IsValid() || e.Took <= 0 {
		t.Fatalf("ADD: %+v", e)
	}
	args := string(must.Get(n.ReadFile("/run/aws-node/args-web-0"))(t))
	for _, want := range []string{"IgnoreUnknown=1", "K8S_POD_NAMESPACE=default", "K8S_POD_NAME=web-0", "K8S_POD_UID=uid-web-0",
		"K8S_POD_INFRA_CONTAINER_ID=" + containerID("web-0"), "\n/var/run/netns/cni-1"} {
		if !strings.Contains(args, want) {
			t.Errorf("the plugin's arguments have no %s: %s", want, args)
		}
	}
	cached := "/var/lib/cni/results/aws-cni-" + containerID("web-0") + "-eth0"
	must.Get(n.ReadFile(cached))(t)
	if got, want := must.Get(n.Addresses())(t), []node.Holder{{Inode: inode, Addr: e.Address}}; !slices.Equal(got, want) {
		t.Errorf("addresses %v, want %v", got, want)
	}
	o := must.Get(n.Observe())(t)
	veth := o.Index().LinkByName(hostVeth(containerID("web-0")))
	if !o.Complete || veth == nil || !veth.PeerLive || !slices.Contains(veth.PeerAddresses, e.Address) {
		t.Errorf("observation %+v", o)
	}
	c := run("web-0", inode)
	c.Verb = cri.CHECK
	if e := cni(t, n, 2, c); e.Code != 0 {
		t.Errorf("CHECK: %+v", e)
	}
	if stdin := must.Get(n.ReadFile("/run/aws-node/check"))(t); !strings.Contains(string(stdin), `"prevResult"`) {
		t.Errorf("CHECK had no result of ADD: %s", stdin)
	}
	d := run("web-0", 0)
	d.Verb = cri.DEL
	if e := cni(t, n, 3, d); e.Code != 0 {
		t.Errorf("DEL: %+v", e)
	}
	if _, err := n.ReadFile(cached); err == nil {
		t.Error("libcni still has the result after DEL")
	}
	must.Do(t, n.RemoveNetns(inode))
}

func TestPluginFails(t *testing.T) {
	n := start(t)
	inode := must.Get(n.MakeNetns("cni-1"))(t)
	if e := cni(t, n, 1, run("refused", inode)); e.Code != 11 || e.Text != "no address; 14 cool down" || e.Exit != "exit status 1" {
		t.Errorf("%+v", e)
	}
	if e := cni(t, n, 2, run("broken", inode)); e.Code != 999 || !strings.Contains(e.Text, "at the disco") || e.Exit != "exit status 2" {
		t.Errorf("%+v", e)
	}
	late := run("hang", inode)
	late.Timeout = 50 * time.Millisecond
	if e := cni(t, n, 3, late); e.Code != 999 || e.Exit != "signal: killed (deadline of 50ms)" || e.Took < late.Timeout {
		t.Errorf("%+v", e)
	}
	must.Do(t, n.RunPlugin(4, run("hang", inode)))
	if err := n.RunPlugin(4, run("hang", inode)); err == nil {
		t.Error("one op runs twice at a time")
	}
	until(t, "the plugin runs", func() bool { i, err := n.Leaks(); return err == nil && len(i.Processes) == 1 })
	must.Do(t, n.KillPlugin(4))
	if e := next(t, n); e.Op != 4 || e.Exit != "signal: killed (by the runtime)" {
		t.Errorf("%+v", e)
	}
	must.Do(t, n.KillPlugin(4)) // nothing happens
	if err := n.RunPlugin(5, run("web-0", 42)); err == nil {
		t.Error("a namespace that does not exist is no error")
	}
	if err := n.RunPlugin(6, node.Run{}); err == nil {
		t.Error("no verb is no error")
	}
	sh(t, n, "mv /etc/cni/net.d/10-aws.conflist /tmp")
	if e := cni(t, n, 7, run("web-0", inode)); e.Code != 999 || !strings.Contains(e.Text, "not initialized") || e.Exit != "" {
		t.Errorf("%+v", e)
	}
	if i := must.Get(n.Leaks())(t); len(i.Processes) != 0 {
		t.Errorf("processes are left: %q", i.Processes)
	}
}

// TestPluginsAreKilled: every run ends in one event, whenever it is killed, and leaves no process.
func TestPluginsAreKilled(t *testing.T) {
	n := start(t)
	inode := must.Get(n.MakeNetns("cni-1"))(t)
	const runs = 60
	random := rand.New(rand.NewPCG(1, 2))
	for op := uint64(1); op <= runs; op++ {
		must.Do(t, n.RunPlugin(op, run("hang", inode)))
		after := time.Duration(random.IntN(20)) * time.Millisecond
		time.AfterFunc(after, func() { _ = n.KillPlugin(op) })
	}
	seen := map[uint64]bool{}
	for range runs {
		e := next(t, n)
		if seen[e.Op] || e.Code == 0 {
			t.Errorf("%+v", e)
		}
		seen[e.Op] = true
	}
	if i := must.Get(n.Leaks())(t); len(i.Processes) != 0 {
		t.Errorf("processes are left: %q", i.Processes)
	}
}

func TestGC(t *testing.T) {
	n := start(t)
	if code, text := n.GC(nil, true); code != 106 || text != "gc is not possible now" {
		t.Errorf("%d %q", code, text)
	}
	if code, text := n.Status(); code != 50 || text != "the daemon does not answer" {
		t.Errorf("%d %q", code, text)
	}
	type heard struct {
		CNIVersion string
		Name       string
		Valid      *[]struct{ ContainerID, IfName string } `json:"cni.dev/valid-attachments"`
	}
	gc := func(valid []node.Attachment, absent bool) (h heard) {
		must.Do(t, n.WriteFile("/run/aws-node/gc", []byte("wanted")))
		if code, text := n.GC(valid, absent); code != 0 {
			t.Errorf("%d %q", code, text)
		}
		must.Do(t, json.Unmarshal(must.Get(n.ReadFile("/run/aws-node/gc"))(t), &h))
		if h.CNIVersion != "1.1.0" || h.Name != "aws-cni" {
			t.Errorf("%+v", h)
		}
		return h
	}
	if h := gc(nil, true); h.Valid != nil {
		t.Error("the key is there although it should be absent")
	}
	if h := gc(nil, false); h.Valid == nil || len(*h.Valid) != 0 {
		t.Error("an empty list is not sent as one")
	}
	if h := gc([]node.Attachment{{ContainerID: "c1", IfName: "eth0"}}, false); len(*h.Valid) != 1 || (*h.Valid)[0].ContainerID != "c1" || (*h.Valid)[0].IfName != "eth0" {
		t.Errorf("%+v", *h.Valid)
	}
}

// TestNamespaceDies: a veth whose other end is in a pod goes with the pod's namespace.
func TestNamespaceDies(t *testing.T) {
	n := start(t)
	link := func() bool {
		return slices.ContainsFunc(must.Get(n.Leaks())(t).Links, func(l string) bool { return strings.HasPrefix(l, "eni") })
	}
	first := must.Get(n.MakeNetns("cni-1"))(t)
	e := cni(t, n, 1, run("web-0", first))
	to := netip.AddrPortFrom(e.Address, node.ResponderPort)
	sh(t, n, "ip addr add 10.0.77.254/32 dev lo")
	text, took, err := n.Ask(0, to, patience)
	if err != nil || text != "10.0.77.254" || took <= 0 {
		t.Fatalf("the pod answers %q after %v: %v", text, took, err)
	}
	second := must.Get(n.MakeNetns("cni-2"))(t)
	other := cni(t, n, 2, run("web-1", second))
	if text, _, err := n.Ask(second, to, patience); err != nil || text != other.Address.String() {
		t.Fatalf("the pod answers %q: %v", text, err)
	}
	if _, err := n.MakeNetns("cni-1"); err == nil {
		t.Error("two namespaces of one name")
	}
	d := run("web-1", 0)
	d.Verb = cri.DEL
	cni(t, n, 3, d)
	must.Do(t, n.RemoveNetns(second))

	must.Do(t, n.Hold(first))
	must.Do(t, n.Hold(first))
	must.Do(t, n.RemoveNetns(first))
	if err := n.RemoveNetns(first); err == nil {
		t.Error("a namespace is unmounted twice")
	}
	must.Do(t, n.Release(first))
	if text, _, err := n.Ask(0, to, patience); err != nil || text != "10.0.77.254" {
		t.Errorf("the held pod answers %q: %v", text, err)
	}
	if got := must.Get(n.Leaks())(t).Namespaces; !slices.Equal(got, []string{"cni-1 held, unmounted"}) {
		t.Errorf("namespaces %q", got)
	}
	if got := must.Get(n.Addresses())(t); len(got) != 1 {
		t.Errorf("addresses %v", got)
	}
	must.Do(t, n.Release(first))
	until(t, "the namespace is dead, and its veth with it", func() bool { return !link() })
	if err := n.Release(first); err == nil {
		t.Error("a namespace that is gone is released")
	}
	if got := must.Get(n.Addresses())(t); len(got) != 0 {
		t.Errorf("addresses %v", got)
	}
}

// TestBrokenConnectionsKeepNothing: a connection whose peer is cut off does not keep the namespace alive.
func TestBrokenConnectionsKeepNothing(t *testing.T) {
	n := start(t)
	a, b := must.Get(n.MakeNetns("cni-1"))(t), must.Get(n.MakeNetns("cni-2"))(t)
	to := netip.AddrPortFrom(cni(t, n, 1, run("web-0", a)).Address, node.ResponderPort)
	cni(t, n, 2, run("web-1", b))
	for range 20 {
		if _, _, err := n.Ask(b, to, patience); err != nil {
			t.Fatal(err)
		}
	}
	sh(t, n, "ip route del "+to.Addr().String())
	if _, _, err := n.Ask(b, to, 50*time.Millisecond); err == nil {
		t.Error("a pod without a route answers")
	}
	must.Do(t, n.RemoveNetns(a))
	must.Do(t, n.RemoveNetns(b))
	until(t, "both namespaces are dead", func() bool { return len(must.Get(n.Leaks())(t).Links) == 1 })
}

// cable puts a veth into the node, as the VPC does, and gives its other end's namespace.
func cable(t *testing.T, n *node.Node, name string) *netlink.Handle {
	t.Helper()
	type made struct {
		h   *netlink.Handle
		err error
	}
	c := make(chan made)
	go func() {
		runtime.LockOSThread()
		if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
			c <- made{nil, err}
			return
		}
		h, err := netlink.NewHandle(unix.NETLINK_ROUTE)
		if err == nil {
			err = h.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "router", Flags: net.FlagUp}, PeerName: name,
				PeerHardwareAddr: net.HardwareAddr{2, 0, 0, 0, 0, 1}, PeerNamespace: netlink.NsFd(n.Netns().Fd())})
		}
		c <- made{h, err}
	}()
	m := <-c
	must.Do(t, m.err)
	t.Cleanup(m.h.Close)
	return m.h
}

func TestStrangersAndReboot(t *testing.T) {
	n := start(t)
	cable(t, n, "eth0")
	cable(t, n, "eth1")
	sh(t, n, "ip link set eth1 up; cat /proc/sys/net/ipv4/conf/eth0/rp_filter | grep 1; echo 2 > /proc/sys/net/ipv4/conf/eth0/rp_filter")
	must.Do(t, n.ConfigurePrimary("eth0", netip.MustParsePrefix("10.0.10.5/24"), netip.MustParseAddr("10.0.10.1")))
	must.Do(t, n.ConfigurePrimary("eth0", netip.MustParsePrefix("10.0.10.5/24"), netip.MustParseAddr("10.0.10.1")))
	before := must.Get(n.Leaks())(t)
	if want := []string{"table 254 0.0.0.0/0 via 10.0.10.1 dev eth0", "table 254 10.0.10.0/24 dev eth0"}; !slices.Equal(before.Routes, want) {
		t.Errorf("routes %q", before.Routes)
	}
	inode := must.Get(n.MakeNetns("cni-1"))(t)
	cni(t, n, 1, run("web-0", inode))
	veth := "eni" + containerID("web-0")[:8]
	if veth != hostVeth(containerID("web-0")) {
		t.Fatal(veth)
	}
	rules := "ip rule add pref 512 to 10.0.77.7 lookup main; ip rule add pref 1024 fwmark 0x80/0x80 lookup main; ip rule add pref 1536 from 10.0.77.7 lookup 1000"
	sh(t, n, rules+"; ip route add default via 10.0.10.1 dev eth0 table 1000 onlink; ip route add 10.0.10.1 dev eth0 table 2; ip link set "+veth+" alias 'a b c'")
	nat(t, n)

	told(t, 1)(n.Interfere(kernel.Accident{What: kernel.FlushRoutes, Table: 1000}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.FlushRoutes, Table: 77}))
	told(t, 1)(n.Interfere(kernel.Accident{What: kernel.LoseAlias, Link: veth}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.LoseAlias, Link: veth}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.LoseAlias, Link: "nobody"}))
	told(t, 1)(n.Interfere(kernel.Accident{What: kernel.ChangeMAC, Link: veth, MAC: "02:de:ad:be:ef:01"}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.ChangeMAC, Link: veth, MAC: "02:de:ad:be:ef:01"}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.ChangeMAC, Link: "nobody", MAC: "02:de:ad:be:ef:01"}))
	if got := sh(t, n, "ip route show table 1000; ip route show table 2; ip -o link show "+veth); !strings.Contains(got, "10.0.10.1 dev eth0") ||
		strings.Contains(got, "via 10.0.10.1") || strings.Contains(got, "alias") || !strings.Contains(got, "02:de:ad:be:ef:01") {
		t.Errorf("%s", got)
	}
	if got := must.Get(n.Leaks())(t); len(got.Rules) != 3 || len(got.Tables) != 1 || got.Tables[0] != "inet other" {
		t.Errorf("rules %q, tables %q", got.Rules, got.Tables)
	}
	told(t, 3)(n.Interfere(kernel.Accident{What: kernel.FlushRules}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.FlushRules}))
	told(t, 1)(n.Interfere(kernel.Accident{What: kernel.FlushNAT}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.FlushNAT}))
	if got := sh(t, n, "ip rule | wc -l"); got != "3\n" {
		t.Errorf("%s rules are left", got)
	}
	if got := must.Get(n.Leaks())(t); len(got.Rules) != 0 || len(got.Tables) != 0 {
		t.Errorf("rules %q, tables %q", got.Rules, got.Tables)
	}
	sh(t, n, "ip neigh add proxy 169.254.1.1 dev "+veth+"; ip neigh add 10.0.10.9 lladdr 02:00:00:00:00:09 nud stale dev eth0; "+
		"ip neigh add 10.0.10.8 lladdr 02:00:00:00:00:08 nud permanent dev eth0")
	if dropped := must.Get(n.Interfere(kernel.Accident{What: kernel.DropARP}))(t); dropped < 2 {
		t.Errorf("%d neighbours dropped, expected a stale one and a proxy at least", dropped)
	}
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.DropARP}))
	if got := sh(t, n, "ip neigh show proxy; ip neigh show"); strings.Contains(got, "169.254.1.1") || strings.Contains(got, "10.0.10.9") || !strings.Contains(got, "10.0.10.8") {
		t.Errorf("after drop-arp: %q", got)
	}
	neighbour := "nsenter --net=/run/netns/cni-1 ip neigh show 169.254.1.1"
	if got := sh(t, n, neighbour); !strings.Contains(got, "PERMANENT") {
		t.Errorf("%q", got)
	}
	told(t, 1)(n.Interfere(kernel.Accident{What: kernel.LoseGateway, Netns: inode}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.LoseGateway, Netns: inode}))
	told(t, 0)(n.Interfere(kernel.Accident{What: kernel.LoseGateway, Netns: 42}))
	if got := sh(t, n, neighbour); got != "" {
		t.Errorf("%q", got)
	}
	must.Do(t, n.WriteRecords([]byte("{}")))
	told(t, true)(n.LoseRecords())
	told(t, false)(n.LoseRecords())

	// and now the reboot
	sh(t, n, rules+"; ip route add 10.9.9.9 dev lo table 3; ip addr add 10.8.8.8/32 dev lo; ip link add dummy0 type dummy; ip link add one type veth peer name other; echo x > /var/lib/aws-node/x")
	nat(t, n)
	must.Do(t, n.WriteRecords([]byte("{}")))
	must.Get(n.StartDaemon(nil, nil))(t)
	held := must.Get(n.MakeNetns("cni-2"))(t)
	must.Do(t, n.Hold(held))
	must.Do(t, n.RunPlugin(2, run("hang", held)))
	must.Do(t, n.Reboot())
	for range 2 {
		if e := next(t, n); !strings.HasPrefix(e.Exit, "signal: killed") && !strings.Contains(e.Text, "by a reboot") {
			t.Errorf("%+v", e)
		}
	}
	want := node.Inventory{Links: []string{"eth0 veth", "eth1 veth", "lo device"}, Mounts: before.Mounts,
		Files: []string{"/var/lib/aws-node/x", "/var/lib/cni/results", "/var/lib/cni/results/aws-cni-" + containerID("web-0") + "-eth0"}}
	if d := want.Diff(must.Get(n.Leaks())(t)); len(d) != 0 {
		t.Errorf("after a reboot:\n%s", strings.Join(d, "\n"))
	}
	if got := sh(t, n, "ip -o link show up; ip -4 -o addr; cat /proc/sys/net/ipv4/conf/eth0/rp_filter"); !strings.HasPrefix(got, "1: lo:") || strings.Count(got, "inet ") != 1 || strings.Contains(got, "eth") ||
		!strings.HasSuffix(got, "\n1\n") {
		t.Errorf("%s", got)
	}
	if err := n.Release(held); err == nil {
		t.Error("a namespace was held through a reboot")
	}
	must.Do(t, n.ConfigurePrimary("eth0", netip.MustParsePrefix("10.0.10.5/24"), netip.MustParseAddr("10.0.10.1")))
	if life := must.Get(n.StartDaemon(nil, nil))(t); life != 2 {
		t.Errorf("life %d", life)
	}
}

func nat(t *testing.T, n *node.Node) {
	t.Helper()
	c := must.Get(nftables.New(nftables.WithNetNSFd(int(n.Netns().Fd()))))(t)
	c.AddTable(&nftables.Table{Name: "other", Family: nftables.TableFamilyINet})
	must.Do(t, c.Flush())
}

func TestExec(t *testing.T) {
	n := start(t)
	out, code, err := n.Exec(t.Context(), []string{"sh", "-c", "echo out; echo err >&2; exit 3"})
	if string(out) != "out\nerr\n" || code != 3 || err != nil {
		t.Errorf("%q %d %v", out, code, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, code, err := n.Exec(ctx, []string{"sh", "-c", "sleep 1000; true"}); err == nil || code != -1 {
		t.Errorf("%d %v", code, err)
	}
	if _, _, err := n.Exec(t.Context(), []string{"nothing-of-that-name"}); err == nil {
		t.Error("a command that is not there")
	}
	until(t, "nothing of it is left", func() bool { return len(must.Get(n.Leaks())(t).Processes) == 0 })
}

func TestEnter(t *testing.T) {
	n := start(t)
	self := must.Get(os.Executable())(t)
	out, err := exec.Command(self, "enter", strconv.Itoa(n.PID()), "sh", "-c", "hostname; ls /app; ls /sys/class/net; readlink /proc/self/ns/net; exit 5").CombinedOutput()
	code := -1
	if e, ok := err.(*exec.ExitError); ok {
		code = e.ExitCode()
	}
	ns := must.Get(os.Readlink(fmt.Sprintf("/proc/%d/ns/net", n.PID())))(t)
	if want := "node-1\nnode.test\nlo\n" + ns + "\n"; string(out) != want || code != 5 {
		t.Errorf("exit code %d, %q instead of %q", code, out, want)
	}
}

// TestOrphansAreReaped: PID 1 leaves no zombies.
func TestOrphansAreReaped(t *testing.T) {
	n := start(t)
	sh(t, n, "for i in 1 2 3 4 5; do (sleep 0.01 &) ; done; true")
	until(t, "no process is left", func() bool { return len(must.Get(n.Leaks())(t).Processes) == 0 })
}

func TestClosedNode(t *testing.T) {
	n := start(t)
	must.Get(n.StartDaemon([]string{"child"}, nil))(t)
	must.Get(n.MakeNetns("cni-1"))(t)
	router := cable(t, n, "eth0")
	pid := n.PID()
	must.Do(t, n.Close())
	must.Do(t, n.Close())
	if _, err := os.Stat("/proc/" + strconv.Itoa(pid)); err == nil {
		t.Error("the helper lives")
	}
	until(t, "the node's network namespace is dead, and the cable with it", func() bool {
		l, err := router.LinkList()
		return err == nil && len(l) == 1
	})
	if _, err := n.MakeNetns("cni-2"); err == nil || !strings.Contains(err.Error(), "helper") {
		t.Errorf("a closed node says %v", err)
	}
	for range n.Events() { // ends
	}
}

func TestHelperDies(t *testing.T) {
	n := start(t)
	must.Get(n.StartDaemon(nil, nil))(t)
	must.Do(t, syscall.Kill(n.PID(), syscall.SIGKILL))
	select {
	case <-n.Gone():
	case <-time.After(patience):
		t.Fatal("the helper survives SIGKILL")
	}
	if _, err := n.Leaks(); err == nil {
		t.Error("a dead node answers")
	}
}

func TestSeveralNodes(t *testing.T) {
	if err := node.Privileged(); err != nil {
		t.Skip(err)
	}
	const nodes, pods = 4, 5
	var wg sync.WaitGroup
	for k := range nodes {
		wg.Go(func() {
			n, err := node.Start(spec("node-" + strconv.Itoa(k)))
			if err != nil {
				t.Error(err)
				return
			}
			defer n.Close()
			var inodes []uint64
			for p := range pods {
				inode, err := n.MakeNetns("cni-" + strconv.Itoa(p))
				if err == nil {
					err = n.RunPlugin(uint64(p+1), run("web-"+strconv.Itoa(p), inode))
				}
				if err != nil {
					t.Error(err)
					return
				}
				inodes = append(inodes, inode)
			}
			for range pods {
				if e := next(t, n); e.Code != 0 {
					t.Errorf("%+v", e)
				}
			}
			if a, err := n.Addresses(); err != nil || len(a) != pods {
				t.Errorf("addresses %v: %v", a, err)
			}
			for _, i := range inodes {
				if err := n.RemoveNetns(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

// TestKilledLaboratory: whatever a laboratory leaves behind when it is killed goes by itself, and the host never saw any of it.
func TestKilledLaboratory(t *testing.T) {
	if err := node.Privileged(); err != nil {
		t.Skip(err)
	}
	before := takeHost(t)
	cmd := exec.Command(must.Get(os.Executable())(t), "laboratory")
	cmd.Stderr = os.Stderr
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	var pids []int
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ready" {
		pids = append(pids, must.Get(strconv.Atoi(lines.Text()))(t))
	}
	if len(pids) != 2 {
		_ = cmd.Process.Kill()
		t.Fatalf("the laboratory has %d nodes", len(pids))
	}
	mine := map[string]bool{} // namespaces of the two nodes
	for _, pid := range pids {
		for _, kind := range kinds {
			ns := must.Get(os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, kind)))(t)
			if before.namespaces[ns] {
				t.Errorf("a node is in the host's %s", ns)
			}
			mine[ns] = true
		}
	}
	if d := before.differ(takeHost(t)); d != "" {
		t.Errorf("the host sees the nodes: %s", d)
	}
	if got := members(t, mine); len(got) < 2*3 {
		t.Errorf("only %d processes are in the nodes' namespaces", len(got))
	}
	must.Do(t, cmd.Process.Kill())
	_ = cmd.Wait()
	until(t, "no process is in a namespace of the nodes", func() bool { return len(members(t, mine)) == 0 })
	if d := before.differ(takeHost(t)); d != "" {
		t.Errorf("the host is not what it was: %s", d)
	}
}

var kinds = []string{"mnt", "net", "pid", "ipc", "uts"}

// host is what a node must never change.
type host struct {
	mounts, run string
	namespaces  map[string]bool
}

func takeHost(t *testing.T) host {
	h := host{mounts: string(must.Get(os.ReadFile("/proc/self/mountinfo"))(t)), namespaces: map[string]bool{}}
	for _, dir := range []string{"/run", "/run/netns", "/opt", "/var/lib", "/etc/cni"} {
		list, _ := os.ReadDir(dir)
		for _, e := range list {
			h.run += filepath.Join(dir, e.Name()) + "\n"
		}
	}
	for _, kind := range kinds {
		h.namespaces[must.Get(os.Readlink("/proc/self/ns/"+kind))(t)] = true
	}
	return h
}

func (h host) differ(g host) string {
	switch {
	case h.mounts != g.mounts:
		return fmt.Sprintf("mounts:\n%s\ninstead of\n%s", g.mounts, h.mounts)
	case h.run != g.run:
		return fmt.Sprintf("folders:\n%s\ninstead of\n%s", g.run, h.run)
	}
	return ""
}

// members are the processes that are, or have a thread that is, in one of the namespaces.
func members(t *testing.T, namespaces map[string]bool) (out []string) {
	t.Helper()
	for _, pattern := range []string{"/proc/[0-9]*/ns/*", "/proc/[0-9]*/task/[0-9]*/ns/net"} {
		for _, p := range must.Get(filepath.Glob(pattern))(t) {
			if ns, err := os.Readlink(p); err == nil && namespaces[ns] {
				if pid := strings.Split(p, "/")[2]; !slices.Contains(out, pid) {
					out = append(out, pid)
				}
			}
		}
	}
	return out
}

func TestBadSpec(t *testing.T) {
	if err := node.Privileged(); err != nil {
		t.Skip(err)
	}
	for what, change := range map[string]func(*node.Spec){
		"Name":      func(s *node.Spec) { s.Name = "" },
		"Self":      func(s *node.Spec) { s.Self = nil },
		"no helper": func(s *node.Spec) { s.Self = []string{"node.test", "-test.run=^$"} },
		"Plugin":    func(s *node.Spec) { s.Plugin = "/nowhere/aws-cni" },
		"Daemon":    func(s *node.Spec) { s.Daemon = []string{"/nowhere/ipamd"} },
		"Files":     func(s *node.Spec) { s.Files = map[string]string{"/x": "/nowhere/x"} },
		"read-only": func(s *node.Spec) { s.Files = map[string]string{"/usr/nowhere/x": "/etc/passwd"} },
	} {
		s := spec("node-1")
		s.Log = nil
		change(&s)
		if n, err := node.Start(s); err == nil {
			t.Errorf("%s: no error", what)
			n.Close()
		} else {
			t.Log(err)
		}
	}
}

// TestMainByHand: the helper's command does nothing when it is not started by Start.
func TestMainByHand(t *testing.T) {
	out, err := exec.Command(must.Get(os.Executable())(t), "helper").CombinedOutput()
	if err == nil || !strings.Contains(string(out), "by the laboratory") {
		t.Errorf("%v: %s", err, out)
	}
}

// told holds what the kernel says of a change to what was there to be changed.
func told[T comparable](t *testing.T, want T) func(T, error) {
	t.Helper()
	return func(got T, err error) {
		t.Helper()
		if must.Do(t, err); got != want {
			t.Errorf("found %v, want %v", got, want)
		}
	}
}
