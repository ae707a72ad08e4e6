package operatorfaults_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/cri"
	criserver "github.com/enilab/enilab/fakes/cri/server"
	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/daemon"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/vpc"
)

// patience is what anything may take here, also on a machine that is busy.
const patience = 20 * time.Second

// Where a node finds its services. The metadata's address is the real one.
const (
	imdsAddr    = "169.254.169.254"
	ec2Addr     = "127.0.0.1:4566"
	criSocket   = "/run/containerd/containerd.sock"
	clockSocket = node.Sockets + "/clock.sock"
	socketPath  = node.RunDir + "/ipamd.sock"
)

var (
	vpcCIDR    = netip.MustParsePrefix("10.0.0.0/16")
	subnetCIDR = netip.MustParsePrefix("10.0.1.0/24")
)

// machine is a node with everything around it: services, a VPC, a clock that the test moves.
type machine struct {
	t    *testing.T
	box  *node.Node
	vpc  *vpc.Network
	imds *front
	ec2  *front
	env  map[string]string

	mu     sync.Mutex // guards what follows
	cloud  *ec2.Cloud
	inst   ec2.InstanceID
	links  map[string]string // by MAC
	pods   map[string]pod    // by name
	offset time.Duration
	seats  []*clock.Seat
	began  time.Duration
	ops    uint64
	ended  map[uint64]node.Event
	exits  []node.Event
	stir   chan struct{} // closed and made anew when something has ended
}

// pod is a sandbox that the runtime lists.
type pod struct {
	name, id string
	inode    uint64
	address  netip.Addr
}

// change is what a test wants otherwise.
type change func(*options)

type options struct {
	spec      node.Spec
	addresses int // secondaries of the primary ENI
	plugin    conflist.Options
}

func withCapabilities(c ...int) change { return func(o *options) { o.spec.Capabilities = c } }
func withAddresses(n int) change       { return func(o *options) { o.addresses = n } }
func withTimeout(d time.Duration) change {
	return func(o *options) { o.plugin.Timeout = d }
}

// newMachine makes a node whose services answer and whose daemon does not run.
func newMachine(t *testing.T, changes ...change) *machine {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a node, a VPC and a daemon")
	}
	if err := node.Privileged(); err != nil {
		t.Skip(err)
	}
	t.Parallel()
	o := options{addresses: 9}
	o.spec = node.Spec{Name: "node-1", Self: []string{"trouble.test", "helper"}, Daemon: []string{binary(t, "ipamd")}, Plugin: binary(t, "aws-cni"), Log: os.Stderr}
	for _, c := range changes {
		c(&o)
	}
	o.spec.Conflist = conflist.Make(o.plugin)
	m := &machine{t: t, links: map[string]string{}, pods: map[string]pod{}, ended: map[uint64]node.Event{}, stir: make(chan struct{}), began: clock.Boot().Now()}
	m.env = map[string]string{"CLUSTER_NAME": "c1", "AWS_REGION": "us-west-2", "AWS_ENDPOINT_URL_EC2": "http://" + ec2Addr, "ENILAB_RUNTIME_SOCKET": criSocket,
		"MY_POD_NAME": "aws-node-1", "MY_POD_NAMESPACE": "kube-system", "DISABLE_NETWORK_RESOURCE_PROVISIONING": "true", "HOST_CNI_BIN_PATH": "none", "HOST_CNI_CONFDIR_PATH": "none"}
	m.vpc = must.Get(vpc.New(vpc.Config{VPC: []netip.Prefix{vpcCIDR}, Subnets: []netip.Prefix{subnetCIDR}}))(m.t)
	t.Cleanup(func() { m.check(m.vpc.Close()) })
	m.box = must.Get(node.Start(o.spec))(m.t)
	t.Cleanup(func() { m.check(m.box.Close()) })
	go m.follow()
	m.launch(o.addresses)
	m.serve()
	return m
}

func (m *machine) check(err error) {
	m.t.Helper()
	if err != nil {
		m.t.Error(err)
	}
}

// now is the model's instant: the daemon's clock since the test began.
func (m *machine) now() time.Duration { return clock.Boot().Now() + m.offset - m.began }

// launch makes the instance and its primary ENI.
func (m *machine) launch(addresses int) {
	m.t.Helper()
	none := ec2.Always(0)
	cfg := ec2.Config{VPCs: []ec2.VPC{{CIDRs: []netip.Prefix{vpcCIDR}}}, Subnets: []ec2.SubnetConfig{{CIDR: subnetCIDR}}}
	cfg.Latency = ec2.Latency{Attach: ec2.Always(time.Millisecond), Link: none, Detach: none}
	cfg.Lag = ec2.Lag{IMDSAttach: none, IMDSPartial: none, IMDSAddress: none, IMDSDetach: none, Describe: none, Mutation: none, FreedAddress: none}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.cloud = ec2.New(cfg, 1)
	m.inst = must.Get(m.cloud.Launch(m.now(), ec2.LaunchSpec{Type: "c5.xlarge", SecondaryAddresses: addresses}))(m.t)
	m.pump()
	in, _ := m.cloud.InstanceOf(m.inst)
	must.Do(m.t, m.box.ConfigurePrimary(m.links[in.PrimaryMAC], netip.PrefixFrom(in.PrimaryAddress, subnetCIDR.Bits()), subnetCIDR.Masked().Addr().Next()))
}

// pump carries what has happened at EC2 to the VPC. mu is held.
func (m *machine) pump() {
	for moved := true; moved; {
		moved = false
		for _, e := range slices.Clone(m.cloud.Events()) {
			moved = true
			switch e.Kind {
			case ec2.ENICreated, ec2.ENIAttached:
				if v, ok := m.cloud.ENI(e.ENI); ok {
					for _, a := range append([]netip.Addr{v.Primary}, v.Secondaries...) {
						m.check(m.vpc.Assign(v.MAC, a))
					}
				}
			case ec2.AddressAssigned:
				m.check(m.vpc.Assign(m.cloud.MAC(e.ENI), e.Address))
			case ec2.AddressUnassigned:
				m.check(m.vpc.Unassign(e.Address))
			case ec2.LinkPlugged:
				name := fmt.Sprintf("eth%d", e.Device)
				m.links[e.MAC] = name
				m.check(m.vpc.Plug(m.box.Netns(), name, e.MAC, 9001))
			}
		}
	}
}

// front stands before a service: it counts who asks, and can be told to answer something else.
type front struct {
	next http.Handler

	mu    sync.Mutex
	wrong func(http.ResponseWriter, *http.Request) // nil: nothing is
	asked int
}

func (f *front) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	f.mu.Lock()
	f.asked++
	wrong := f.wrong
	f.mu.Unlock()
	if wrong != nil {
		wrong(w, q)
		return
	}
	f.next.ServeHTTP(w, q)
}

// answers is what is wrong from now on; nil ends it.
func (f *front) answers(wrong func(http.ResponseWriter, *http.Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.wrong = wrong
}

func (f *front) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

// silence never answers.
func silence(_ http.ResponseWriter, q *http.Request) {
	<-q.Context().Done()
	panic(http.ErrAbortHandler)
}

// status answers with a status alone.
func status(code int) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// serve opens metadata, EC2, the runtime and the clock inside the node.
func (m *machine) serve() {
	m.t.Helper()
	b := backend{m}
	m.imds = &front{next: imdsserver.Handler(imdsserver.Config{View: b.view, Now: b.now, Role: "node"})}
	m.ec2 = &front{next: ec2server.Handler(b)}
	must.Do(m.t, vpc.Do(m.box.Netns(), func() error {
		lo, err := netlink.LinkByName("lo")
		if err == nil {
			err = netlink.AddrAdd(lo, &netlink.Addr{IPNet: netlink.NewIPNet(net.ParseIP(imdsAddr))})
		}
		return err
	}))
	for addr, s := range map[string]*http.Server{imdsAddr + ":80": imdsserver.Server(m.imds), ec2Addr: ec2server.Server(m.ec2)} {
		l := m.listen("tcp", addr)
		go func() { _ = s.Serve(l) }()
		m.t.Cleanup(func() { s.Close() })
	}
	runtime := criserver.New(b)
	l := must.Get(net.Listen("unix", m.box.Root()+criSocket))(m.t)
	go func() { _ = runtime.Serve(l) }()
	m.t.Cleanup(runtime.Stop)
	c := must.Get(net.Listen("unix", m.box.Root()+clockSocket))(m.t)
	go m.tellTime(c)
	m.t.Cleanup(func() { c.Close() })
	done := make(chan struct{})
	go m.advance(done)
	m.t.Cleanup(func() { close(done) })
}

// listen opens a listener in the node's network namespace.
func (m *machine) listen(network, addr string) (l net.Listener) {
	m.t.Helper()
	must.Do(m.t, vpc.Do(m.box.Netns(), func() (err error) { l, err = net.Listen(network, addr); return err }))
	return l
}

// advance lets time pass at EC2.
func (m *machine) advance(done chan struct{}) {
	for tick := time.NewTicker(5 * time.Millisecond); ; {
		select {
		case <-done:
			tick.Stop()
			return
		case <-tick.C:
			m.mu.Lock()
			m.cloud.Advance(m.now())
			m.pump()
			m.mu.Unlock()
		}
	}
}

// tellTime tells daemons the time.
func (m *machine) tellTime(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		s, err := clock.NewSeat(conn, m.offset)
		if err == nil {
			m.seats = append(m.seats, s)
		}
		m.mu.Unlock()
		go func() {
			for err == nil {
				_, err = s.Read()
			}
			conn.Close()
		}()
	}
}

// passes moves the clock by d in steps, between which the daemon gets time to work.
func (m *machine) passes(d time.Duration) {
	m.t.Helper()
	step := max(250*time.Millisecond, d/300)
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for range d / step {
		<-tick.C
		m.mu.Lock()
		m.offset += step
		for _, s := range m.seats {
			_ = s.Tell(m.offset) // a daemon that has ended hears nothing
		}
		m.mu.Unlock()
	}
}

// backend is EC2, metadata and the runtime of this instance.
type backend struct{ m *machine }

func (b backend) now() time.Duration {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	return b.m.now()
}

func (b backend) view(context.Context) (ec2.IMDS, bool) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	return b.m.cloud.IMDS(b.m.now(), b.m.inst)
}

func (b backend) Do(_ context.Context, r *ec2.Request) (ec2.Response, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	r.Caller = b.m.inst
	resp := b.m.cloud.Serve(b.m.now(), r)
	b.m.pump()
	if resp.Lost {
		return resp, errors.New("nobody answers")
	}
	return resp, nil
}

func (b backend) Runtime(context.Context) (criserver.Runtime, error) {
	return criserver.Runtime{Name: "containerd", Version: "2.2.2"}, nil
}

func (b backend) Sandboxes(context.Context) ([]cri.Sandbox, error) {
	b.m.mu.Lock()
	defer b.m.mu.Unlock()
	out := []cri.Sandbox{{ID: identity("aws-node-1"), Namespace: "kube-system", Name: "aws-node-1", UID: "u-aws-node", Ready: true, HostNetwork: true}}
	for _, name := range slices.Sorted(maps.Keys(b.m.pods)) {
		p := b.m.pods[name]
		out = append(out, cri.Sandbox{ID: p.id, Namespace: "default", Name: name, UID: "u-" + name, Ready: true, IP: p.address})
	}
	return out, nil
}

func identity(name string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(name))) }

// follow takes what ends in the node.
func (m *machine) follow() {
	for e := range m.box.Events() {
		m.mu.Lock()
		if e.Kind == node.PluginDone {
			m.ended[e.Op] = e
		} else {
			m.exits = append(m.exits, e)
		}
		close(m.stir)
		m.stir = make(chan struct{})
		m.mu.Unlock()
	}
}

// awaits waits until get finds something that has ended in the node.
func awaits[T any](m *machine, what string, get func() (T, bool)) T {
	m.t.Helper()
	deadline := time.After(patience)
	for {
		m.mu.Lock()
		v, ok := get()
		stir := m.stir
		m.mu.Unlock()
		if ok {
			return v
		}
		select {
		case <-stir:
		case <-deadline:
			m.t.Fatalf("not within %v: %s\n%s", patience, what, m.log())
		}
	}
}

// until waits for a condition.
func (m *machine) until(what string, ok func() bool) {
	m.t.Helper()
	tick := time.NewTicker(4 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !ok(); <-tick.C {
		if time.Now().After(end) {
			m.t.Fatalf("not within %v: %s\nthe log:\n%s", patience, what, m.log())
		}
	}
}

// log is all that the daemons of this node printed.
func (m *machine) log() string {
	out, err := m.box.ReadFile(node.Output)
	if err != nil {
		return err.Error()
	}
	return string(out)
}

// start starts the daemon, with settings over the machine's own as NAME=VALUE. It does not wait.
func (m *machine) start(settings ...string) {
	m.t.Helper()
	env := maps.Clone(m.env)
	for _, s := range settings {
		k, v, _ := strings.Cut(s, "=")
		env[k] = v
	}
	must.Get(m.box.StartDaemon([]string{"--clock", "unix:" + clockSocket}, env))(m.t)
}

// init is what the init container does before the daemon.
func (m *machine) init() {
	m.t.Helper()
	m.sh("env AWS_REGION=us-west-2 HOST_CNI_BIN_PATH=none /app/ipamd init")
}

// serving is a machine whose daemon was initialized and started, and serves.
func serving(t *testing.T) *machine {
	t.Helper()
	m := newMachine(t)
	m.init()
	m.start()
	m.serves()
	return m
}

// exit waits for the daemon's end.
func (m *machine) exit() node.Event {
	m.t.Helper()
	n := 0
	return awaits(m, "the daemon ends", func() (e node.Event, ok bool) {
		if len(m.exits) > n {
			e, ok = m.exits[n], true
			m.exits = m.exits[n+1:]
		}
		return e, ok
	})
}

// term is SIGTERM and the wait for its end, which has to be a good one.
func (m *machine) term() {
	m.t.Helper()
	must.Do(m.t, m.box.SignalDaemon(unix.SIGTERM))
	if e := m.exit(); e.Code != 0 {
		m.t.Fatalf("the daemon ended with %s\n%s", e.Exit, m.log())
	}
}

// kill is SIGKILL.
func (m *machine) kill() {
	m.t.Helper()
	must.Do(m.t, m.box.SignalDaemon(unix.SIGKILL))
	m.exit()
}

// up says that no daemon has ended by itself.
func (m *machine) up() {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.exits) > 0 {
		m.t.Fatalf("the daemon has ended: %s\n%s", m.exits[0].Exit, m.log())
	}
}

// call asks the daemon on its socket.
func (m *machine) call(q *ipc.Request) (*ipc.Response, error) {
	c, err := ipc.Dial(m.box.Root()+socketPath, time.Second)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Call(q, patience)
}

// status is what the daemon says of itself, once it listens.
func (m *machine) status() (out *ipc.Response) {
	m.t.Helper()
	m.until("the daemon answers STATUS", func() (ok bool) {
		r, err := m.call(&ipc.Request{Verb: ipc.Status})
		out = r
		return err == nil
	})
	return out
}

// view is what the daemon shows.
func (m *machine) view() (v daemon.Inspection) {
	m.t.Helper()
	var r *ipc.Response
	m.until("the daemon answers view", func() bool {
		var err error
		r, err = m.call(&ipc.Request{Verb: ipc.View})
		return err == nil
	})
	must.Do(m.t, json.Unmarshal(r.Body, &v))
	return v
}

// says waits until STATUS and view give a reason with these words.
func (m *machine) says(words ...string) {
	m.t.Helper()
	m.documented(words[0])
	last := ""
	m.until(fmt.Sprintf("STATUS and view say %q", words), func() bool {
		last = strings.Join(m.status().Reasons, "; ")
		return hasAll(last, words) && hasAll(strings.Join(m.view().Reasons, "; "), words)
	})
}

// logs waits until the log has these words in one line.
func (m *machine) logs(words ...string) {
	m.t.Helper()
	m.documented(words[0])
	m.until(fmt.Sprintf("the log has a line with %q", words), func() bool {
		for line := range strings.Lines(m.log()) {
			if hasAll(line, words) {
				return true
			}
		}
		return false
	})
}

// manual is what operators read.
var manual = sync.OnceValues(func() (string, error) {
	text, err := os.ReadFile("../../../docs/ipamd.md")
	return string(text), err
})

// documented says that the manual has what the daemon says.
func (m *machine) documented(words string) {
	m.t.Helper()
	text := must.Get(manual())(m.t)
	if !strings.Contains(text, words) {
		m.t.Errorf("docs/ipamd.md does not have %q", words)
	}
}

func hasAll(text string, words []string) bool {
	for _, w := range words {
		if !strings.Contains(text, w) {
			return false
		}
	}
	return true
}

// serves waits until pods can be taken, and lets pass what a node without records waits for.
func (m *machine) serves() {
	m.t.Helper()
	m.until("the daemon is ready", func() bool {
		m.up()
		r, err := m.call(&ipc.Request{Verb: ipc.Status})
		if err != nil || !r.Ready || !m.view().View.Serving {
			m.passes(250 * time.Millisecond)
			return false
		}
		return true
	})
}

// notReady: the daemon is up and says that it is not ready.
func (m *machine) notReady() {
	m.t.Helper()
	m.up()
	if r := m.status(); r.Ready || len(r.Reasons) == 0 {
		m.t.Errorf("STATUS: ready %v, reasons %q", r.Ready, r.Reasons)
	}
	if code, text := m.box.Status(); code != 50 {
		m.t.Errorf("the plugin's STATUS has code %d (%s), want 50", code, text)
	}
}

// run runs the plugin to its end.
func (m *machine) run(r node.Run) node.Event {
	m.t.Helper()
	return m.wait(m.begin(r))
}

func (m *machine) begin(r node.Run) (op uint64) {
	m.t.Helper()
	m.mu.Lock()
	m.ops++
	op = m.ops
	m.mu.Unlock()
	must.Do(m.t, m.box.RunPlugin(op, r))
	return op
}

func (m *machine) wait(op uint64) node.Event {
	m.t.Helper()
	return awaits(m, fmt.Sprintf("plugin run %d ends", op), func() (e node.Event, ok bool) { e, ok = m.ended[op]; return e, ok })
}

func runOf(verb cri.Verb, p pod) node.Run {
	return node.Run{Verb: verb, ContainerID: p.id, IfName: "eth0", Netns: p.inode, Namespace: "default", Name: p.name, UID: "u-" + p.name}
}

// sandbox makes a pod's namespace, without an ADD.
func (m *machine) sandbox(name string) pod {
	m.t.Helper()
	inode := must.Get(m.box.MakeNetns("cni-" + name))(m.t)
	return pod{name: name, id: identity(name), inode: inode}
}

// crowd begins the ADDs of n new pods at once.
func (m *machine) crowd(n int) (pods []pod, ops []uint64) {
	m.t.Helper()
	for i := range n {
		pods = append(pods, m.sandbox(fmt.Sprint("web-", i)))
	}
	for _, p := range pods {
		ops = append(ops, m.begin(runOf(cri.ADD, p)))
	}
	return pods, ops
}

// runs makes the runtime list the pod.
func (m *machine) runs(p pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pods[p.name] = p
}

// gone makes the runtime forget the pod.
func (m *machine) gone(p pod) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.pods, p.name)
}

// add makes a pod that works.
func (m *machine) add(name string) pod {
	m.t.Helper()
	p := m.sandbox(name)
	e := m.run(runOf(cri.ADD, p))
	for try := 0; e.Code == 11 && try < 20; try++ { // as kubelet does
		m.passes(time.Second)
		e = m.run(runOf(cri.ADD, p))
	}
	if e.Code != 0 {
		m.t.Fatalf("ADD %s: code %d: %s\n%s", name, e.Code, e.Text, m.log())
	}
	p.address = e.Address
	m.runs(p)
	return p
}

// del ends a pod.
func (m *machine) del(p pod) {
	m.t.Helper()
	if e := m.run(runOf(cri.DEL, p)); e.Code != 0 {
		m.t.Fatalf("DEL %s: code %d: %s\n%s", p.name, e.Code, e.Text, m.log())
	}
	m.gone(p)
	must.Do(m.t, m.box.RemoveNetns(p.inode))
}

// answer says that pods answer packets from the VPC.
func (m *machine) answer(pods ...pod) {
	m.t.Helper()
	addrs := make([]netip.Addr, len(pods))
	for i, p := range pods {
		addrs[i] = p.address
	}
	for i, ok := range m.vpc.Ping(addrs, patience/4) {
		if !ok {
			m.t.Errorf("pod %s does not answer at %v", pods[i].name, addrs[i])
		}
	}
}

// sh runs a script in the node.
func (m *machine) sh(script string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	out, code, err := m.box.Exec(ctx, []string{"sh", "-c", script})
	if err != nil || code != 0 {
		m.t.Fatalf("%s: exit code %d, %v\n%s", script, code, err, out)
	}
	return string(out)
}

// readOnly makes a folder's file system read-only, or writable again.
func (m *machine) readOnly(dir string, yes bool) {
	m.t.Helper()
	mode := "rw"
	if yes {
		mode = "ro"
	}
	m.sh("mount -o remount," + mode + " " + dir)
}

// inventory is all that there is in the node.
func (m *machine) inventory() node.Inventory {
	m.t.Helper()
	i := must.Get(m.box.Leaks())(m.t)
	return i
}

// same says that nothing was left behind but what is allowed by a prefix.
func (m *machine) same(before node.Inventory, allowed ...string) {
	m.t.Helper()
	var diff []string
	m.until("nothing is left behind", func() bool {
		diff = slices.DeleteFunc(before.Diff(m.inventory()), func(d string) bool {
			return slices.ContainsFunc(allowed, func(a string) bool { return strings.Contains(d, a) })
		})
		if len(diff) > 0 {
			m.t.Logf("%s", strings.Join(diff, "\n"))
		}
		return len(diff) == 0
	})
}
