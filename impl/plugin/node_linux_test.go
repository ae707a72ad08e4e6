package plugin_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/mutation"
)

// moment bounds every wait of these tests.
const moment = 20 * time.Second

// binary builds the plugin once.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "aws-cni-test")
	if err != nil {
		return "", err
	}
	built = dir
	path := filepath.Join(dir, "aws-cni")
	cmd := exec.Command("go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", path, "github.com/enilab/enilab/cmd/aws-cni")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w: %s", err, out)
	}
	return path, nil
})

var built string

func TestMain(m *testing.M) {
	code := m.Run()
	if built != "" {
		os.RemoveAll(built)
	}
	os.Exit(code)
}

// node is a machine: a network namespace for the host, the plugin's binary, and a daemon.
type node struct {
	t      testing.TB
	host   netns.NsHandle
	bin    string
	dir    string // stateDir
	daemon *daemon
}

// newNode makes a node whose daemon answers. Needs root: namespaces are made.
func newNode(t testing.TB) *node {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("needs CAP_SYS_ADMIN and CAP_NET_ADMIN (root), for network namespaces")
	}
	bin := must.Get(binary())(t)
	n := &node{t: t, host: newNamespace(t), bin: bin, dir: t.TempDir()}
	n.start()
	return n
}

func (n *node) socket() string { return filepath.Join(n.dir, "s") }

// start starts a daemon that knows nothing.
func (n *node) start() {
	n.t.Helper()
	l := must.Get(ipc.Listen(n.socket()))(n.t)
	n.daemon = &daemon{host: n.host, listener: l, rows: map[ipc.Attachment]*row{}, ready: true, left: make(chan string, 100)}
	go n.daemon.serve()
	n.t.Cleanup(n.daemon.stop)
}

// newNamespace makes a network namespace that lives as long as its file.
func newNamespace(t testing.TB) netns.NsHandle {
	t.Helper()
	type made struct {
		ns  netns.NsHandle
		err error
	}
	done := make(chan made)
	go func() {
		runtime.LockOSThread() // and the thread ends with the goroutine
		ns, err := netns.New()
		done <- made{ns, err}
	}()
	m := <-done
	if errors.Is(m.err, unix.EPERM) {
		t.Skip("needs CAP_SYS_ADMIN, for network namespaces")
	}
	if m.err != nil {
		t.Fatal(m.err)
	}
	t.Cleanup(func() { m.ns.Close() })
	return m.ns
}

// pathOf is a path that names a namespace without a mount.
func pathOf(ns netns.NsHandle) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), int(ns)) }

func inodeOf(t testing.TB, ns netns.NsHandle) uint64 {
	t.Helper()
	var st unix.Stat_t
	must.Do(t, unix.Fstat(int(ns), &st))
	return st.Ino
}

// handle talks rtnetlink with a namespace.
func handle(t testing.TB, ns netns.NsHandle) *netlink.Handle {
	t.Helper()
	h := must.Get(netlink.NewHandleAt(ns))(t)
	t.Cleanup(h.Close)
	return h
}

// links are the names of a namespace's links.
func links(t testing.TB, ns netns.NsHandle) (names []string) {
	t.Helper()
	ls := must.Get(handle(t, ns).LinkList())(t)
	for _, l := range ls {
		names = append(names, l.Attrs().Name)
	}
	slices.Sort(names)
	return names
}

// call is one run of the plugin. Empty variables are left out of its environment.
type call struct {
	verb, id, netns, ifName, args, path string

	conf map[string]any // over the defaults; a nil value takes a key away
	raw  *string        // standard input as it is, instead of conf
	env  []string
}

// got is what a run of the plugin showed.
type got struct {
	exit   int
	stdout string
	stderr string
}

// failure is an error as CNI prints it.
type failure struct {
	CNIVersion string `json:"cniVersion"`
	Code       int    `json:"code"`
	Msg        string `json:"msg"`
	Details    string `json:"details"`
}

// result is ADD's result as CNI prints it.
type result struct {
	CNIVersion string `json:"cniVersion"`
	Interfaces []struct {
		Name    string `json:"name"`
		Mac     string `json:"mac"`
		MTU     *int   `json:"mtu"`
		Sandbox string `json:"sandbox"`
	} `json:"interfaces"`
	IPs []struct {
		Version   string `json:"version"`
		Interface *int   `json:"interface"`
		Address   string `json:"address"`
		Gateway   string `json:"gateway"`
	} `json:"ips"`
	Routes []map[string]any `json:"routes"`
}

func (n *node) stdin(c call) string {
	if c.raw != nil {
		return *c.raw
	}
	conf := map[string]any{
		"cniVersion": "1.1.0", "name": "aws-cni", "type": "aws-cni", "vethPrefix": "eni", "mtu": "9001",
		"podSGEnforcingMode": "strict", "socket": n.socket(), "stateDir": n.dir,
	}
	for k, v := range c.conf {
		if v == nil {
			delete(conf, k)
		} else {
			conf[k] = v
		}
	}
	return string(must.Get(json.Marshal(conf))(n.t))
}

// command is the plugin's process, not yet started.
func (n *node) command(c call) *exec.Cmd {
	cmd := exec.Command(n.bin)
	cmd.Env = slices.Concat([]string{"PATH=" + os.Getenv("PATH")}, mutation.Environ(), c.env)
	for _, kv := range [][2]string{
		{"CNI_COMMAND", c.verb}, {"CNI_CONTAINERID", c.id}, {"CNI_NETNS", c.netns},
		{"CNI_IFNAME", c.ifName}, {"CNI_ARGS", c.args}, {"CNI_PATH", c.path},
	} {
		if kv[1] != "" {
			cmd.Env = append(cmd.Env, kv[0]+"="+kv[1])
		}
	}
	cmd.Stdin = strings.NewReader(n.stdin(c))
	return cmd
}

// startIn starts a process in a network namespace.
func startIn(ns netns.NsHandle, cmd *exec.Cmd) error {
	runtime.LockOSThread()
	home, err := netns.Get()
	if err != nil {
		return err
	}
	defer home.Close()
	if err := netns.Set(ns); err != nil {
		return err
	}
	started := cmd.Start()
	if err := netns.Set(home); err != nil {
		return err // the thread stays locked
	}
	runtime.UnlockOSThread()
	return started
}

// run runs the plugin on the node, as a runtime does.
func (n *node) run(c call) got {
	n.t.Helper()
	cmd := n.command(c)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	must.Do(n.t, startIn(n.host, cmd))
	late := time.AfterFunc(moment, func() { cmd.Process.Kill() })
	cmd.Wait()
	if !late.Stop() {
		n.t.Fatalf("%s: waited %v for the plugin to end", c.verb, moment)
	}
	return got{cmd.ProcessState.ExitCode(), out.String(), errs.String()}
}

// of is a whole call of a verb for sandbox c1.
func of(verb string, netns string) call {
	c := call{verb: verb, id: "c1", netns: netns, ifName: "eth0", path: "/opt/cni/bin",
		args: "K8S_POD_UID=u1;IgnoreUnknown=1;K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=default;K8S_POD_INFRA_CONTAINER_ID=c1"}
	if verb == "GC" || verb == "STATUS" {
		c.id, c.ifName, c.args, c.netns = "", "", "", ""
	}
	return c
}

// with changes the configuration.
func (c call) with(key string, value any) call {
	conf := map[string]any{key: value}
	for k, v := range c.conf {
		if k != key {
			conf[k] = v
		}
	}
	c.conf = conf
	return c
}

// ok expects success and returns what was printed.
func (n *node) ok(c call) string {
	n.t.Helper()
	g := n.run(c)
	if g.exit != 0 {
		n.t.Fatalf("%s: exit %d, %s%s; expected success", c.verb, g.exit, g.stdout, g.stderr)
	}
	return g.stdout
}

// result expects success and a result.
func (n *node) result(c call) result {
	n.t.Helper()
	out := n.ok(c)
	var r result
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		n.t.Fatalf("%s printed %q: %v", c.verb, out, err)
	}
	return r
}

// fails expects an error with that code and these words, and nothing changed in the host's namespace.
func (n *node) fails(c call, code int, words ...string) failure {
	n.t.Helper()
	before := links(n.t, n.host)
	g := n.run(c)
	var f failure
	if err := json.Unmarshal([]byte(g.stdout), &f); err != nil || g.exit == 0 {
		n.t.Fatalf("%s: exit %d, %q; expected an error as JSON", c.verb, g.exit, g.stdout)
	}
	if f.Code != code {
		n.t.Errorf("%s: code %d, expected %d: %s", c.verb, f.Code, code, f.Msg)
	}
	if f.CNIVersion == "" {
		n.t.Errorf("%s: an error without cniVersion", c.verb)
	}
	all := f.Msg + " " + f.Details
	for _, w := range words {
		if !strings.Contains(all, w) {
			n.t.Errorf("%s: %q does not say %q", c.verb, all, w)
		}
	}
	for _, w := range []string{"not found", "no such file"} { // go-cni takes these for success
		if strings.Contains(strings.ToLower(all), w) {
			n.t.Errorf("%s: %q says %q", c.verb, all, w)
		}
	}
	if after := links(n.t, n.host); !slices.Equal(before, after) {
		n.t.Errorf("%s failed and left links: %v, before %v", c.verb, after, before)
	}
	return f
}

// daemon is a small one that speaks the local protocol and makes links, so that the plugin has something to find.
type daemon struct {
	host     netns.NsHandle
	listener *ipc.Listener
	left     chan string // verbs whose caller hung up while they hung

	mu     sync.Mutex
	rows   map[ipc.Attachment]*row
	asked  []ipc.Request
	ready  bool
	hang   bool // never answers
	hangUp bool // closes the connection
	refuse *ipc.Response
	change func(*ipc.Response)
	broken bool // says that it made a link, and made none

	make func(*ipc.Request, *row, []*os.File) error // instead of wire
}

type row struct {
	inode uint64
	addr  netip.Addr
	veth  string
}

func (d *daemon) stop() { d.listener.Close() }

func (d *daemon) serve() {
	accept.Each(d.listener.Accept, func(p *ipc.Peer) { go d.talk(p) })
}

func (d *daemon) talk(p *ipc.Peer) {
	defer p.Close()
	r, files, err := p.Read()
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	if err != nil {
		return
	}
	d.mu.Lock()
	d.asked = append(d.asked, *r)
	hang, hangUp := d.hang, d.hangUp
	d.mu.Unlock()
	switch {
	case hang:
		<-p.Gone()
		d.left <- r.Verb
	case !hangUp:
		p.Write(d.answer(r, files))
	}
}

func (d *daemon) set(f func(d *daemon)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	f(d)
}

// requests are those so far.
func (d *daemon) requests() []ipc.Request {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.asked)
}

func (d *daemon) answer(r *ipc.Request, files []*os.File) *ipc.Response {
	d.mu.Lock()
	defer d.mu.Unlock()
	res := &ipc.Response{}
	switch {
	case d.refuse != nil:
		return d.refuse
	case r.Verb == ipc.Add:
		res = d.add(r, files)
	case r.Verb == ipc.Del:
		d.del(r.Attachment())
	case r.Verb == ipc.Check:
		if d.rows[r.Attachment()] == nil {
			res = &ipc.Response{Code: ipam.CodeDrifted, Text: "cni check: the attachment has no address; add it"}
		}
	case r.Verb == ipc.Status:
		res.Ready = d.ready
		if !d.ready {
			res.Reasons = []string{"instance metadata is silent"}
		}
	}
	if d.change != nil {
		d.change(res)
	}
	return res
}

func (d *daemon) add(r *ipc.Request, files []*os.File) *ipc.Response {
	if w := d.rows[r.Attachment()]; w != nil {
		if w.inode != r.Inode {
			return &ipc.Response{Code: ipam.CodeOccupied, Text: "cni add: the attachment has another namespace"}
		}
		return &ipc.Response{Address: w.addr, Table: 254, Veth: w.veth}
	}
	if len(files) != 2 {
		return &ipc.Response{Code: 999, Text: fmt.Sprintf("%d files came, expected 2", len(files))}
	}
	w := &row{inode: r.Inode, addr: netip.AddrFrom4([4]byte{10, 0, 0, byte(10 + len(d.rows))}), veth: dataplane.HostVethName("eni", r.PodNamespace, r.ContainerID)}
	if !d.broken {
		make := d.make
		if make == nil {
			make = d.wire
		}
		if err := make(r, w, files); err != nil {
			return &ipc.Response{Code: ipam.CodeIO, Text: err.Error()}
		}
	}
	d.rows[r.Attachment()] = w
	return &ipc.Response{Address: w.addr, Table: 254, Veth: w.veth}
}

// wire makes the veth pair and sets the pod's end, whose namespace the socket must be in.
func (d *daemon) wire(r *ipc.Request, w *row, files []*os.File) error {
	netnsFile, rtnetlink := files[0], files[1]
	in, err := unix.IoctlRetInt(int(rtnetlink.Fd()), unix.SIOCGSKNS)
	if err != nil {
		return err
	}
	defer unix.Close(in)
	var st unix.Stat_t
	if err := unix.Fstat(in, &st); err != nil {
		return err
	}
	if st.Ino != r.Inode {
		return fmt.Errorf("the socket is in namespace %d, expected %d", st.Ino, r.Inode)
	}
	host, err := netlink.NewHandleAt(d.host)
	if err != nil {
		return err
	}
	defer host.Close()
	pod, err := netlink.NewHandleAt(netns.NsHandle(netnsFile.Fd()))
	if err != nil {
		return err
	}
	defer pod.Close()
	attrs := netlink.NewLinkAttrs()
	attrs.Name, attrs.MTU = w.veth, 9001
	if err := host.LinkAdd(&netlink.Veth{LinkAttrs: attrs, PeerName: r.IfName, PeerNamespace: netlink.NsFd(netnsFile.Fd())}); err != nil {
		return err
	}
	l, err := host.LinkByName(w.veth)
	if err == nil {
		err = host.LinkSetAlias(l, dataplane.Alias(r.Network, r.ContainerID, r.IfName, w.addr))
	}
	if err == nil {
		err = host.LinkSetUp(l)
	}
	if err != nil {
		return err
	}
	return configure(pod, r.IfName, w.addr)
}

// configure sets the pod's end as dataplane.PodPlan says.
func configure(pod *netlink.Handle, name string, addr netip.Addr) error {
	l, err := pod.LinkByName(name)
	if err != nil {
		return err
	}
	one := net.CIDRMask(32, 32)
	gw := dataplane.Gateway().AsSlice()
	return errors.Join(
		pod.LinkSetUp(l),
		pod.AddrAdd(l, &netlink.Addr{IPNet: &net.IPNet{IP: addr.AsSlice(), Mask: one}}),
		pod.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Scope: netlink.SCOPE_LINK, Dst: &net.IPNet{IP: gw, Mask: one}}),
		pod.RouteAdd(&netlink.Route{LinkIndex: l.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4zero, Mask: net.CIDRMask(0, 32)}, Gw: gw}),
	)
}

func (d *daemon) del(a ipc.Attachment) {
	w := d.rows[a]
	if w == nil {
		return
	}
	delete(d.rows, a)
	h, err := netlink.NewHandleAt(d.host)
	if err != nil {
		return
	}
	defer h.Close()
	if l, err := h.LinkByName(w.veth); err == nil {
		h.LinkDel(l)
	}
}

// holds is the number of attachments that the daemon has.
func (d *daemon) holds() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.rows)
}

// await waits for a condition.
func await(t testing.TB, what string, c <-chan string) string {
	t.Helper()
	select {
	case s := <-c:
		return s
	case <-time.After(moment):
		t.Fatalf("waited %v for %s", moment, what)
		return ""
	}
}

// silent is a standard input that stays open and says nothing.
func silent(t testing.TB) io.Reader {
	t.Helper()
	r, w, err := os.Pipe()
	must.Do(t, err)
	t.Cleanup(func() { r.Close(); w.Close() })
	return r
}
