package plugin_test

import (
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// TestConformance is what a plugin owes a runtime by the CNI specification 1.1.0 and by what runtimes really do. A row is
// a claim; each has a node of its own.
func TestConformance(t *testing.T) {
	for _, r := range []struct {
		row, says string
		test      func(*testing.T, *node)
	}{
		{"C7", "unknown keys of the configuration are ignored", unknownKeys},
		{"E2", "exit code and error JSON {cniVersion, code, msg}", errorJSON},
		{"E3", "a useless CNI_IFNAME is an error", uselessName},
		{"E3", "an interface that exists and is nobody's is an error, and nothing is left", nameTaken},
		{"A1", "ADD prints a result, after what the plugins before it printed", chained},
		{"A2", "ADD again is the same result; from another namespace an error, nothing changed", again},
		{"A3", "sandbox is CNI_NETNS, ips[].interface names the pod's end, MACs are MACs", sandbox},
		{"D2", "DEL without prevResult, and with one that makes no sense", delPrevResult},
		{"D3", "DEL of what is gone, and of what never was", delUnknown},
		{"D4", "DEL again and again", delAgain},
		{"D5", "DEL with CNI_NETNS empty, absent, a file, or another sandbox's", delNamespace},
		{"L3", "twenty sandboxes at once", concurrent},
		{"L4", "DEL under a configuration that has changed", delConf},
		{"F", "DEL without a daemon is a durable intent and success; unwritable, an error", delIntent},
		{"K1", "CHECK after ADD, also after a chained plugin added to the result", checkGood},
		{"K2", "CHECK finds what is missing", checkMissing},
		{"K4", "CHECK without prevResult is an error", checkWithout},
		{"K5", "CHECK with a configuration before 0.4.0 is code 1", checkOld},
		{"S1", "STATUS is code 50 before the first start", statusFirst},
		{"S1", "STATUS is code 50 after a minute out of reach, not before", statusMinute},
		{"S1", "STATUS answers within a second, whatever the daemon does", statusHangs},
		{"S2", "ADD and DEL work without STATUS, and while it fails", withoutStatus},
		{"V1", "VERSION prints its versions and reads nothing", versions},
		{"G1", "GC passes the valid attachments on, by either name", gcLists},
		{"G2", "GC reports the daemon's error", gcError},
		{"G6", "GC without a list is code 7, an empty list is a list", gcAbsent},
		{"X1", "the codes", codes},
		{"X2", "the plugin's own namespace is refused before anything changes", ownNamespace},
		{"X2", "CNI_PATH is optional where the specification says so", withoutPath},
		{"X2", "GC and STATUS before 1.1.0 are code 1", tooOld},
		{"R1", "results in every version, without what the version does not know", oldResults},
		{"R2", "IPv6, dual stack, and results without addresses", otherResults},
	} {
		t.Run(r.row+"/"+strings.ReplaceAll(r.says, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r.test(t, newNode(t))
		})
	}
}

func pod(t *testing.T) string { return pathOf(newNamespace(t)) }

func unknownKeys(t *testing.T, n *node) {
	c := of("ADD", pod(t)).with("tomorrow", map[string]any{"a": 1}).with("ipam", map[string]any{"type": "host-local"}).with("mtu", 9001)
	n.result(c)
}

func errorJSON(t *testing.T, n *node) {
	empty, broken, list := "", `{"cniVersion":`, `[]`
	for _, raw := range []*string{&empty, &broken, &list} {
		c := of("ADD", pod(t))
		c.raw = raw
		n.fails(c, 6)
	}
	for _, v := range []string{"0.4.0", "1.0.0", "1.1.0"} {
		c := of("ADD", "/nowhere").with("cniVersion", v)
		if f := n.fails(c, 8, "CNI_NETNS=/nowhere", "does not exist"); f.CNIVersion != v {
			t.Errorf("cniVersion %q, expected %q", f.CNIVersion, v)
		}
	}
	n.fails(of("ADD", pod(t)).with("name", nil), 7)
	n.fails(of("ADD", pod(t)).with("name", "/etc"), 7)
	n.fails(of("ADD", pod(t)).with("localProtocol", 0).with("socket", "relative"), 7, "localProtocol", "socket")
	n.fails(of("ADD", pod(t)).with("timeoutMS", 5), 7, "timeoutMS", "found 5")
	n.fails(of("ADD", pod(t)).with("mtu", "large"), 7, "mtu")
	bad := of("ADD", pod(t))
	bad.args = "K8S_POD_NAME"
	n.fails(bad, 4, "CNI_ARGS")
	if asked := n.daemon.requests(); len(asked) != 0 {
		t.Errorf("the daemon was asked: %+v", asked)
	}
}

func uselessName(t *testing.T, n *node) {
	for _, name := range []string{".", "..", "a/b", "a b", "a:b", "sixteen-letters-", "a\x01", "a\xff"} {
		c := of("ADD", pod(t))
		c.ifName = name
		n.fails(c, 4)
	}
	c := of("ADD", pod(t))
	c.id = "../c1"
	n.fails(c, 4)
	if len(n.daemon.requests()) != 0 {
		t.Error("the daemon was asked")
	}
}

func nameTaken(t *testing.T, n *node) {
	// A third party's whose other end is here, in the host's namespace, and in the host's with another sandbox's key.
	for i, other := range []any{nil, netlink.NsFd(n.host), netlink.NsFd(n.host)} {
		ns := newNamespace(t)
		attrs := netlink.NewLinkAttrs()
		attrs.Name = "eth0"
		peer := fmt.Sprint("other", i)
		must.Do(t, handle(t, ns).LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: peer, PeerNamespace: other}))
		if i == 2 {
			h := handle(t, n.host)
			l := must.Get(h.LinkByName(peer))(t)
			must.Do(t, h.LinkSetAlias(l, dataplane.Alias("aws-cni", "c2", "eth0", netip.MustParseAddr("10.0.0.9"))))
		}
		before := links(t, ns)
		n.fails(of("ADD", pathOf(ns)), 4, "CNI_IFNAME=eth0", "exists")
		if after := links(t, ns); !slices.Equal(before, after) {
			t.Errorf("links %v, before %v", after, before)
		}
	}
	if len(n.daemon.requests()) != 0 {
		t.Error("the daemon was asked, and an address was spent")
	}
}

func chained(t *testing.T, n *node) {
	prev := map[string]any{
		"cniVersion": "1.1.0",
		"interfaces": []any{map[string]any{"name": "net1", "sandbox": "/x", "mtu": 1500}},
		"ips":        []any{map[string]any{"interface": 0, "address": "192.0.2.1/24"}},
		"routes":     []any{map[string]any{"dst": "198.51.100.0/24", "mtu": 1400}},
		"dns":        map[string]any{"nameservers": []any{"192.0.2.53"}},
	}
	r := n.result(of("ADD", pod(t)).with("prevResult", prev))
	if len(r.Interfaces) != 3 || r.Interfaces[0].Name != "net1" || r.Interfaces[2].Name != "eth0" {
		t.Errorf("interfaces %+v", r.Interfaces)
	}
	if len(r.IPs) != 2 || *r.IPs[0].Interface != 0 || *r.IPs[1].Interface != 2 {
		t.Errorf("ips %+v", r.IPs)
	}
	if len(r.Routes) != 1 || r.Routes[0]["mtu"] != 1400.0 {
		t.Errorf("routes %+v", r.Routes)
	}
	n.fails(of("ADD", pod(t)).with("prevResult", map[string]any{"ips": "many"}), 7, "prevResult")
}

func again(t *testing.T, n *node) {
	c := of("ADD", pod(t))
	first := n.ok(c)
	if second := n.ok(c); first != second {
		t.Errorf("ADD again printed\n%s\nbefore\n%s", second, first)
	}
	other := newNamespace(t)
	n.fails(of("ADD", pathOf(other)), ipam.CodeOccupied)
	if l := links(t, other); !slices.Equal(l, []string{"lo"}) {
		t.Errorf("the other namespace has %v", l)
	}
	if n.daemon.holds() != 1 {
		t.Errorf("%d attachments, expected 1", n.daemon.holds())
	}
}

func sandbox(t *testing.T, n *node) {
	ns := newNamespace(t)
	r := n.result(of("ADD", pathOf(ns)))
	if len(r.Interfaces) != 2 || len(r.IPs) != 1 {
		t.Fatalf("result %+v", r)
	}
	host, in := r.Interfaces[0], r.Interfaces[1]
	if host.Sandbox != "" || in.Sandbox != pathOf(ns) || in.Name != "eth0" {
		t.Errorf("interfaces %+v", r.Interfaces)
	}
	if r.IPs[0].Interface == nil || *r.IPs[0].Interface != 1 || r.IPs[0].Address != "10.0.0.10/32" {
		t.Errorf("ips %+v", r.IPs)
	}
	l := must.Get(handle(t, ns).LinkByName("eth0"))(t)
	if in.Mac != l.Attrs().HardwareAddr.String() || in.MTU == nil || *in.MTU != 9001 {
		t.Errorf("eth0 %+v, the kernel says %v", in, l.Attrs().HardwareAddr)
	}
	if _, err := net.ParseMAC(host.Mac); err != nil || !slices.Contains(links(t, n.host), host.Name) {
		t.Errorf("the host's end %+v: %v", host, err)
	}
	q := n.daemon.requests()[0]
	want := ipc.Request{Version: ipam.Version, Verb: ipc.Add, Network: "aws-cni", ContainerID: "c1", IfName: "eth0",
		PodNamespace: "default", PodName: "web-0", PodUID: "u1", Inode: inodeOf(t, ns), TimeoutMS: 30000}
	if !reflect.DeepEqual(q, want) {
		t.Errorf("asked %+v, expected %+v", q, want)
	}
}

func delPrevResult(t *testing.T, n *node) {
	for _, prev := range []any{nil, map[string]any{}, "nonsense", map[string]any{"ips": 7}, map[string]any{ // amazon-vpc-cni-k8s's
		"interfaces": []any{map[string]any{"name": "eth0", "mac": "254"}, map[string]any{"name": "dummy0", "mac": "0", "sandbox": "0"}},
	}} {
		n.result(of("ADD", pod(t)))
		n.ok(of("DEL", "").with("prevResult", prev))
		if n.daemon.holds() != 0 {
			t.Errorf("prevResult %v: still there", prev)
		}
	}
}

func delUnknown(t *testing.T, n *node) {
	n.ok(of("DEL", pod(t)))
	c := of("DEL", "")
	c.args = "K8S_POD_NAME" // a runtime's mistake that must not keep a pod
	n.ok(c)
}

func delAgain(t *testing.T, n *node) {
	p := pod(t)
	n.result(of("ADD", p))
	for range 3 {
		n.ok(of("DEL", p))
		n.ok(of("DEL", ""))
	}
	if l := links(t, n.host); !slices.Equal(l, []string{"lo"}) {
		t.Errorf("links %v", l)
	}
}

func delNamespace(t *testing.T, n *node) {
	file := filepath.Join(t.TempDir(), "cni-1")
	must.Do(t, os.WriteFile(file, nil, 0o600))
	fifo := filepath.Join(t.TempDir(), "fifo")
	must.Do(t, unix.Mkfifo(fifo, 0o600))
	for _, path := range []string{"", "/var/run/netns/cni-gone", file, file + "/x", fifo, "/proc/self/ns/mnt"} {
		n.ok(of("DEL", path))
		if q := n.daemon.requests(); q[len(q)-1].Inode != 0 {
			t.Errorf("CNI_NETNS=%s: the daemon was told namespace %d", path, q[len(q)-1].Inode)
		}
	}
	// The path names another sandbox by now: the daemon hears which, and nothing of that one is touched.
	other := newNamespace(t)
	c := of("ADD", pathOf(other))
	c.id = "c2"
	n.result(c)
	n.ok(of("DEL", pathOf(other)))
	q := n.daemon.requests()
	if last := q[len(q)-1]; last.Inode != inodeOf(t, other) || last.ContainerID != "c1" {
		t.Errorf("asked %+v", last)
	}
	if !slices.Contains(links(t, other), "eth0") {
		t.Error("the other sandbox lost its interface")
	}
}

func concurrent(t *testing.T, n *node) {
	var wg sync.WaitGroup
	addrs := make([]string, 20)
	for i := range addrs {
		c := of("ADD", pod(t))
		c.id = fmt.Sprint("sandbox-", i)
		wg.Go(func() {
			if r := n.run(c); r.exit != 0 {
				t.Errorf("%s: %s", c.id, r.stdout)
			} else {
				var res result
				json.Unmarshal([]byte(r.stdout), &res)
				addrs[i] = res.IPs[0].Address
			}
			if i%2 == 0 {
				d := c
				d.verb = "DEL"
				if r := n.run(d); r.exit != 0 {
					t.Errorf("%s: %s", c.id, r.stdout)
				}
			}
		})
	}
	wg.Wait()
	if n.daemon.holds() != len(addrs)/2 || len(links(t, n.host)) != 1+len(addrs)/2 {
		t.Errorf("%d attachments, links %v", n.daemon.holds(), links(t, n.host))
	}
}

func delConf(t *testing.T, n *node) {
	for _, v := range []string{"0.4.0", "1.0.0"} {
		n.result(of("ADD", pod(t)))
		n.ok(of("DEL", "").with("cniVersion", v).with("mtu", "much").with("vethPrefix", 7).with("timeoutMS", "soon").with("pluginLogFile", "/"))
		if n.daemon.holds() != 0 {
			t.Errorf("%s: still there", v)
		}
	}
}

func delIntent(t *testing.T, n *node) {
	folder := filepath.Join(n.dir, "del")
	one := func(how string) {
		t.Helper()
		n.ok(of("DEL", pod(t)).with("timeoutMS", 100).with("localProtocol", 1))
		es, bad, err := ipc.ReadIntents(folder)
		if err != nil || len(bad) != 0 || len(es) != 1 {
			t.Fatalf("%s: intents %v, %v, %v", how, es, bad, err)
		}
		want := ipc.Intent{Attachment: ipam.Attachment{Network: "aws-cni", ContainerID: "c1", IfName: "eth0"},
			Pod: ipam.Pod{Namespace: "default", Name: "web-0", UID: "u1"}, Version: 1}
		if es[0].Intent != want {
			t.Errorf("%s: intent %+v", how, es[0].Intent)
		}
		must.Do(t, ipc.RemoveIntent(folder, es[0]))
	}
	n.daemon.set(func(d *daemon) { d.hang = true })
	one("a daemon that hangs")
	await(t, "the daemon to see the caller go", n.daemon.left)
	n.daemon.set(func(d *daemon) { d.hang, d.hangUp = false, true })
	one("a daemon that hangs up")
	n.daemon.set(func(d *daemon) {
		d.hangUp, d.refuse = false, &ipc.Response{Code: ipam.CodeTryAgain, Text: "cni del aws-cni/c1/eth0: ipamd is still recovering"}
	})
	one("a daemon that cannot do it now")
	n.daemon.stop()
	one("no daemon")
	n.fails(of("DEL", "").with("stateDir", "/proc/nowhere"), 5, "could not be noted", "try again")
	n.fails(of("ADD", pod(t)), 11, "try again")
	n.fails(of("CHECK", pod(t)).with("prevResult", map[string]any{}), ipam.CodeDrifted)
}

// checked is a CHECK of what an ADD printed.
func checked(netns, printed string) call {
	return of("CHECK", netns).with("prevResult", json.RawMessage(printed))
}

func checkGood(t *testing.T, n *node) {
	for _, v := range []string{"0.4.0", "1.0.0", "1.1.0"} {
		p := pod(t)
		out := n.ok(of("ADD", p).with("cniVersion", v))
		n.ok(checked(p, out).with("cniVersion", v))

		var more map[string]any
		json.Unmarshal([]byte(out), &more)
		more["interfaces"] = append(more["interfaces"].([]any), map[string]any{"name": "dummy1", "mac": "0", "sandbox": "1"})
		more["ips"] = append(more["ips"].([]any), map[string]any{"version": "4", "interface": 2, "address": "169.254.172.9/22"})
		n.ok(of("CHECK", p).with("prevResult", more).with("cniVersion", v))
		n.ok(of("DEL", p))
	}
}

func checkMissing(t *testing.T, n *node) {
	ns := newNamespace(t)
	h := handle(t, ns)
	out := n.ok(of("ADD", pathOf(ns)))
	c := checked(pathOf(ns), out)
	eth0 := func() netlink.Link {
		return must.Get(h.LinkByName("eth0"))(t)
	}
	// Each damage is CHECKed, and repaired by doing the whole set-up again.
	for what, damage := range map[string]func() error{
		"169.254.1.1/32": func() error {
			return h.RouteDel(&netlink.Route{Dst: cidr("169.254.1.1/32"), LinkIndex: eth0().Attrs().Index, Scope: netlink.SCOPE_LINK})
		},
		"0.0.0.0/0 via": func() error {
			return h.RouteDel(&netlink.Route{Dst: cidr("0.0.0.0/0"), LinkIndex: eth0().Attrs().Index})
		},
		"address 10.0.0.10": func() error { return h.AddrDel(eth0(), &netlink.Addr{IPNet: cidr("10.0.0.10/32")}) },
		"is down":           func() error { return h.LinkSetDown(eth0()) },
		"has MAC":           func() error { return h.LinkSetHardwareAddr(eth0(), net.HardwareAddr{2, 0, 0, 0, 0, 9}) },
	} {
		if err := damage(); err != nil {
			t.Fatal(what, err)
		}
		n.fails(c, ipam.CodeDrifted, what)
		n.ok(of("DEL", ""))
		out = n.ok(of("ADD", pathOf(ns)))
		c = checked(pathOf(ns), out)
		n.ok(c)
	}
	var routed map[string]any
	json.Unmarshal([]byte(out), &routed)
	routed["routes"] = []any{map[string]any{"dst": "192.0.2.0/24"}}
	n.fails(of("CHECK", pathOf(ns)).with("prevResult", routed), ipam.CodeDrifted, "192.0.2.0/24")
	must.Do(t, h.RouteAdd(&netlink.Route{Dst: cidr("192.0.2.0/24"), LinkIndex: eth0().Attrs().Index}))
	n.ok(of("CHECK", pathOf(ns)).with("prevResult", routed))

	n.fails(checked(pod(t), out), ipam.CodeDrifted, "eth0") // another namespace than ADD's
	other := netip.MustParseAddr("10.9.9.9")
	n.daemon.set(func(d *daemon) { d.change = func(r *ipc.Response) { r.Address = other } })
	n.fails(c, ipam.CodeDrifted, "10.9.9.9")
	n.daemon.set(func(d *daemon) {
		d.change, d.refuse = nil, &ipc.Response{Code: ipam.CodeDrifted, Text: "cni check: a rule is missing"}
	})
	n.fails(c, ipam.CodeDrifted, "a rule is missing")
	n.daemon.set(func(d *daemon) { d.refuse = nil })
	must.Do(t, h.LinkDel(eth0()))
	n.fails(c, ipam.CodeDrifted, "gone")
}

func cidr(s string) *net.IPNet {
	ip, n, err := net.ParseCIDR(s)
	if err != nil {
		panic(err)
	}
	n.IP = ip
	return n
}

func checkWithout(t *testing.T, n *node) {
	n.fails(of("CHECK", pod(t)), 7, "prevResult")
	n.fails(of("CHECK", pod(t)).with("prevResult", map[string]any{"ips": []any{map[string]any{"interface": 9, "address": "10.0.0.1/32"}}}), ipam.CodeDrifted)
	p := pod(t)
	n.fails(of("CHECK", p).with("prevResult", map[string]any{
		"interfaces": []any{map[string]any{"name": "eth0", "sandbox": p}},
		"ips":        []any{map[string]any{"interface": -1, "address": "10.0.0.1/32"}},
	}), 7, "interface")
}

func checkOld(t *testing.T, n *node) {
	n.fails(of("CHECK", pod(t)).with("cniVersion", "0.3.1"), 1)
}

func statusFirst(t *testing.T, n *node) {
	n.daemon.set(func(d *daemon) { d.ready = false })
	n.fails(of("STATUS", ""), 50, "instance metadata is silent")
	n.daemon.stop()
	n.fails(of("STATUS", ""), 50, "first start")
	n.start()
	n.ok(of("STATUS", ""))
	n.daemon.set(func(d *daemon) { d.ready = false }) // it has no address left, or recovers: no reason to empty the node
	n.ok(of("STATUS", ""))
}

func statusMinute(t *testing.T, n *node) {
	n.ok(of("STATUS", ""))
	n.daemon.stop()
	n.ok(of("STATUS", ""))
	miss := filepath.Join(n.dir, "plugin-unreachable")
	age := func(first, last time.Duration) {
		t.Helper()
		var ts unix.Timespec
		must.Do(t, unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts))
		now := time.Duration(ts.Nano())
		must.Get(os.Stat(miss))(t)
		must.Do(t, os.WriteFile(miss, fmt.Appendf(nil, "%d %d\n", now-first, now-last), 0o600))
	}
	age(50*time.Second, 5*time.Second)
	n.ok(of("STATUS", ""))
	age(61*time.Second, 5*time.Second)
	n.fails(of("STATUS", ""), 50, "1m1s")
	age(time.Hour, 30*time.Minute) // nobody asked for half an hour
	n.ok(of("STATUS", ""))
	age(61*time.Second, 5*time.Second)
	n.start()
	n.ok(of("DEL", "")) // any answer is an answer
	n.daemon.stop()
	n.ok(of("STATUS", ""))
}

func statusHangs(t *testing.T, n *node) {
	n.ok(of("STATUS", ""))
	n.daemon.set(func(d *daemon) { d.hang = true })
	n.ok(of("STATUS", "")) // by its own patience, which TestStatusPatience holds to a second: a daemon that hangs never answers
}

func withoutStatus(t *testing.T, n *node) {
	n.daemon.set(func(d *daemon) { d.ready = false })
	n.fails(of("STATUS", ""), 50)
	n.result(of("ADD", pod(t)))
	n.ok(of("STATUS", "")) // who serves an ADD has started
	n.ok(of("DEL", ""))
}

func versions(t *testing.T, n *node) {
	cmd := n.command(call{verb: "VERSION"})
	cmd.Stdin = silent(t)
	out, err := cmd.Output()
	var v struct {
		CNIVersion        string
		SupportedVersions []string
	}
	if err != nil || json.Unmarshal(out, &v) != nil {
		t.Fatalf("VERSION printed %q: %v", out, err)
	}
	for _, want := range []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		if !slices.Contains(v.SupportedVersions, want) {
			t.Errorf("%s is not among %v", want, v.SupportedVersions)
		}
	}
	if v.CNIVersion != "1.1.0" {
		t.Errorf("cniVersion %q", v.CNIVersion)
	}
}

func gcLists(t *testing.T, n *node) {
	a := []any{map[string]any{"containerID": "c1", "ifname": "eth0"}}
	ab := append(a, map[string]any{"containerID": "c2", "ifname": "eth0"})
	n.ok(of("GC", "").with("cni.dev/valid-attachments", ab))
	n.ok(of("GC", "").with("cni.dev/attachments", a))
	n.ok(of("GC", "").with("cni.dev/attachments", a).with("cni.dev/valid-attachments", ab))
	att := func(id string) ipc.Attachment {
		return ipc.Attachment{Network: "aws-cni", ContainerID: id, IfName: "eth0"}
	}
	want := [][]ipc.Attachment{{att("c1"), att("c2")}, {att("c1")}, {att("c1"), att("c2")}}
	for i, q := range n.daemon.requests() {
		if q.Verb != ipc.GC || q.ValidAbsent || q.Network != "aws-cni" || !reflect.DeepEqual(q.Valid, want[i]) {
			t.Errorf("GC %d asked %+v", i, q)
		}
	}
}

func gcError(t *testing.T, n *node) {
	n.daemon.set(func(d *daemon) { d.refuse = &ipc.Response{Code: 11, Text: "another GC runs; two entries not found"} })
	n.fails(of("GC", "").with("cni.dev/valid-attachments", []any{}), 11, "another GC runs", "ipamd refuses")
	n.daemon.stop()
	n.fails(of("GC", "").with("cni.dev/valid-attachments", []any{}), 11, "try again")
}

func gcAbsent(t *testing.T, n *node) {
	n.fails(of("GC", ""), 7, "cni.dev/valid-attachments")
	n.fails(of("GC", "").with("cni.dev/valid-attachments", json.RawMessage("null")), 7)
	n.fails(of("GC", "").with("cni.dev/valid-attachments", "all"), 7)
	n.fails(of("GC", "").with("cni.dev/valid-attachments", []any{map[string]any{"containerID": "c1"}}), 7, "[0]")
	n.fails(of("GC", "").with("cni.dev/valid-attachments", []any{nil}), 7)
	if q := n.daemon.requests(); len(q) != 0 {
		t.Errorf("the daemon was asked %+v", q)
	}
	n.ok(of("GC", "").with("cni.dev/valid-attachments", []any{}))
	if q := n.daemon.requests(); len(q) != 1 || q[0].ValidAbsent || len(q[0].Valid) != 0 {
		t.Errorf("asked %+v", q)
	}
}

func codes(t *testing.T, n *node) {
	n.fails(of("ADD", pod(t)).with("cniVersion", "9.0.0"), 1)
	n.fails(of("DEL", pod(t)).with("cniVersion", "9.0.0"), 1)
	missing := of("ADD", "")
	missing.id, missing.path = "", ""
	n.fails(missing, 4, "CNI_CONTAINERID", "CNI_NETNS", "CNI_PATH")
	n.fails(of("SUB", pod(t)), 4, "SUB")
	n.fails(call{}, 4, "CNI_COMMAND")
	file := filepath.Join(t.TempDir(), "f")
	os.WriteFile(file, nil, 0o600)
	for path, why := range map[string]string{"/nowhere": "does not exist", file: "not a namespace", "/proc/self/ns/mnt": "another kind", t.TempDir(): "not a namespace"} {
		n.fails(of("ADD", path), 8, "CNI_NETNS="+path, why)
	}
	n.daemon.set(func(d *daemon) { d.refuse = &ipc.Response{Code: 11, Text: "cni add web-0: no address"} })
	n.fails(of("ADD", pod(t)), 11, "no address")
	n.daemon.set(func(d *daemon) { d.refuse = &ipc.Response{Code: -3, Text: "what?"} })
	n.fails(of("ADD", pod(t)), 999, "what?")
	n.daemon.set(func(d *daemon) { d.refuse = nil; d.hangUp = true })
	n.fails(of("ADD", pod(t)), 11, "hung up")
	n.daemon.set(func(d *daemon) { d.hangUp, d.hang = false, true })
	ns := newNamespace(t)
	n.fails(of("ADD", pathOf(ns)).with("timeoutMS", 100), 11, "did not answer", "try again")
	if await(t, "the daemon to see the caller go", n.daemon.left) != ipc.Add || !slices.Equal(links(t, ns), []string{"lo"}) {
		t.Error("something is left")
	}
	// A daemon that says it made what is not there: its attachment is given back.
	n.daemon.set(func(d *daemon) { d.hang, d.broken = false, true })
	n.fails(of("ADD", pod(t)), 5, "not there")
	if n.daemon.holds() != 0 {
		t.Error("the attachment stays")
	}
	n.daemon.set(func(d *daemon) { d.broken = false; d.change = func(r *ipc.Response) { r.Address = netip.Addr{} } })
	n.fails(of("ADD", pod(t)), 5, "no address")
	if n.daemon.holds() != 0 {
		t.Error("the attachment stays")
	}
}

func ownNamespace(t *testing.T, n *node) {
	own := pathOf(n.host)
	n.fails(of("ADD", own), 8, "own network namespace")
	n.fails(of("DEL", own), 8, "own network namespace")
	n.fails(of("CHECK", own).with("prevResult", map[string]any{"interfaces": []any{map[string]any{"name": "eth0", "sandbox": own}}}), 8, "own network namespace")
	if q := n.daemon.requests(); len(q) != 0 {
		t.Errorf("the daemon was asked %+v", q)
	}
	c := of("DEL", own)
	c.env = []string{"CNI_NETNS_OVERRIDE=1"}
	n.ok(c)
}

func withoutPath(t *testing.T, n *node) {
	for _, c := range []call{of("DEL", ""), of("GC", "").with("cni.dev/valid-attachments", []any{}), of("STATUS", "")} {
		c.path = ""
		n.ok(c)
	}
}

func tooOld(t *testing.T, n *node) {
	for _, verb := range []string{"GC", "STATUS"} {
		n.fails(of(verb, "").with("cniVersion", "1.0.0"), 1)
	}
}

func oldResults(t *testing.T, n *node) {
	prev := func(v string) map[string]any {
		r := map[string]any{
			"cniVersion": v,
			"interfaces": []any{map[string]any{"name": "net1", "sandbox": "/x", "mtu": 1500, "socketPath": "/s", "pciID": "1"}},
			"ips":        []any{map[string]any{"version": "4", "interface": 0, "address": "192.0.2.1/24"}},
			"routes":     []any{map[string]any{"dst": "198.51.100.0/24", "gw": "192.0.2.254", "mtu": 1400, "advmss": 1, "priority": 2, "table": 3, "scope": 4}},
		}
		return r
	}
	for _, v := range []string{"0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0"} {
		p := pod(t)
		out := n.ok(of("ADD", p).with("cniVersion", v).with("prevResult", prev(v)))
		var r result
		if err := json.Unmarshal([]byte(out), &r); err != nil || r.CNIVersion != v || len(r.IPs) != 2 || *r.IPs[1].Interface != 2 {
			t.Fatalf("%s: %s", v, out)
		}
		if old := v < "1.0.0"; old != (r.IPs[1].Version == "4") {
			t.Errorf("%s: ips[].version is %q", v, r.IPs[1].Version)
		}
		for _, key := range []string{"mtu", "advmss", "priority", "table", "scope", "socketPath", "pciID"} {
			if there := strings.Contains(out, `"`+key+`"`); there != (v == "1.1.0") {
				t.Errorf("%s: %q is there: %v", v, key, there)
			}
		}
		n.ok(of("DEL", p))
	}
	var first struct {
		IP4 struct{ IP string } `json:"ip4"`
	}
	out := n.ok(of("ADD", pod(t)).with("cniVersion", "0.2.0"))
	if json.Unmarshal([]byte(out), &first); first.IP4.IP != "10.0.0.10/32" {
		t.Errorf("0.2.0: %s", out)
	}
}

func otherResults(t *testing.T, n *node) {
	prev := map[string]any{"ips": []any{map[string]any{"address": "2001:db8::1/64"}, map[string]any{"address": "192.0.2.1/24"}}}
	r := n.result(of("ADD", pod(t)).with("prevResult", prev))
	if len(r.IPs) != 3 || r.IPs[0].Interface != nil || r.IPs[0].Address != "2001:db8::1/64" || *r.IPs[2].Interface != 1 {
		t.Errorf("dual stack: %+v", r)
	}
	n.ok(of("DEL", ""))
	r = n.result(of("ADD", pod(t)).with("prevResult", map[string]any{"ips": []any{}}))
	if len(r.IPs) != 1 {
		t.Errorf("no addresses before: %+v", r)
	}
	n.ok(of("DEL", ""))
	six := netip.MustParseAddr("2001:db8::7")
	n.daemon.set(func(d *daemon) {
		d.change = func(r *ipc.Response) {
			if r.Address.IsValid() {
				r.Address = six
			}
		}
	})
	for _, v := range []string{"0.3.1", "0.4.0", "1.1.0"} {
		r = n.result(of("ADD", pod(t)).with("cniVersion", v))
		if r.IPs[0].Address != "2001:db8::7/128" || v != "1.1.0" && r.IPs[0].Version != "6" {
			t.Errorf("IPv6 in %s: %+v", v, r.IPs)
		}
		n.ok(of("DEL", ""))
	}
}
