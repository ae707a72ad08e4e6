package daemon

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/enilab/enilab/fakes/kernel"
	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

const primaryMAC0 = "02:00:00:00:00:01"

// nodeKernel is the model of a kernel behind the daemon's interface. Every pod of a test passes the namespace of the test itself, so
// the model has one of its own for each attachment.
type nodeKernel struct {
	mu     sync.Mutex
	k      *kernel.Kernel
	netns  map[string]uint64 // by alias
	pods   int               // plans that came with a namespace
	before func(dataplane.Plan)
}

func newKernel() *nodeKernel {
	k := &nodeKernel{k: kernel.New(1), netns: map[string]uint64{}}
	k.k.PlugPrimary(primaryMAC0, netip.MustParsePrefix("10.0.0.10/24"), netip.MustParseAddr("10.0.0.1"))
	return k
}

func (k *nodeKernel) Apply(p dataplane.Plan, pod *linux.Pod) (int, *dataplane.Error) {
	k.mu.Lock()
	before := k.before
	k.mu.Unlock()
	if before != nil {
		before(p)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if pod != nil {
		k.pods++
	}
	q := dataplane.Plan{Ops: append([]dataplane.Op(nil), p.Ops...)}
	for i := range q.Ops {
		o := &q.Ops[i]
		if o.Netns == 0 {
			continue
		}
		if pod == nil || pod.Inode() != o.Netns {
			return i, &dataplane.Error{Kind: dataplane.NoNamespace, Op: i, Text: o.String() + ": the namespace was not passed"}
		}
		if k.netns[o.Alias] == 0 {
			k.netns[o.Alias] = k.k.NewNamespace()
		}
		o.Netns = k.netns[o.Alias]
	}
	return k.k.Apply(q, 0, len(q.Ops))
}

func (k *nodeKernel) Observe() (dataplane.Observation, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.k.Observe(), nil
}

func (k *nodeKernel) Watch(ctx context.Context, hint func()) error {
	hint()
	<-ctx.Done()
	return ctx.Err()
}

func (k *nodeKernel) gate(f func(dataplane.Plan)) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.before = f
}

// fixedCloud is an instance whose primary ENI has some addresses, and an EC2 that is never needed.
type fixedCloud struct {
	addresses int
	silent    chan struct{} // metadata waits for it; nil: it answers
}

func (c *fixedCloud) Metadata(ctx context.Context) (*ipam.IMDS, error) {
	if c.silent != nil {
		select {
		case <-c.silent:
		case <-ctx.Done():
			return nil, errors.New("no answer")
		}
	}
	e := ipam.ENI{ID: "eni-1", MAC: primaryMAC0, Subnet: "subnet-1", CIDR: netip.MustParsePrefix("10.0.0.0/24"), Primary: netip.MustParseAddr("10.0.0.10")}
	for a := netip.MustParseAddr("10.0.0.20"); len(e.Addresses) < c.addresses; a = a.Next() {
		e.Addresses = append(e.Addresses, a)
	}
	return &ipam.IMDS{Instance: ipam.Instance{ID: "i-1", Type: "c5.xlarge", Zone: "us-west-2a", Subnet: "subnet-1", PrimaryMAC: primaryMAC0,
		Address: e.Primary, VPC: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/16")}, Limits: ipam.Limits{ENIs: 4, Addresses: 100}}, ENIs: []ipam.ENI{e}}, nil
}

func (c *fixedCloud) Call(context.Context, *ipam.Call) ipam.Result {
	return ipam.Result{Class: ipam.Denied, Code: "UnauthorizedOperation"}
}
func (c *fixedCloud) ENIs(context.Context, []string) ([]ipam.ENI, error) { return nil, nil }
func (c *fixedCloud) Leaked(context.Context) ([]ipam.ENI, error)         { return nil, nil }
func (c *fixedCloud) Attached(ctx context.Context) ([]ipam.ENI, error) {
	m, err := c.Metadata(ctx)
	if err != nil {
		return nil, err
	}
	return m.ENIs, nil
}

func (c *fixedCloud) Subnets(context.Context) ([]ipam.Subnet, error) { return nil, nil }

// rig is a daemon of a test.
type rig struct {
	t      *testing.T
	c      Config
	kernel *nodeKernel
	cloud  *fixedCloud
	log    *buffer
	record *buffer
	stop   context.CancelFunc
	done   chan error
}

// buffer is what several goroutines may write to.
type buffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.b.Write(p)
}

func (b *buffer) bytes() []byte {
	b.mu.Lock()
	defer b.mu.Unlock()
	return bytes.Clone(b.b.Bytes())
}

func (b *buffer) String() string { return string(b.bytes()) }

// newRig is a node without a daemon.
func newRig(t *testing.T, addresses int) *rig {
	t.Helper()
	if why := lacking(); why != "" {
		t.Skip("needs CAP_NET_ADMIN: whose namespace a socket is in can only be asked with it")
	}
	t.Parallel() // a daemon without records takes its first pod a second after its start
	dir := folders(t)
	set := ipam.Defaults()
	set.NoProvisioning = true
	return rigOf(t, addresses, Config{Settings: set, RunDir: filepath.Join(dir, "run"), LibDir: filepath.Join(dir, "lib")})
}

// folders are a node's run and lib, in a folder whose path leaves room for a socket's.
func folders(t *testing.T) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "ipamd"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	for _, d := range []string{"run", "lib"} {
		must.Do(t, os.Mkdir(filepath.Join(dir, d), 0o755))
	}
	return dir
}

// rigOf is a node whose daemon will have c, on a model of a kernel and with a primary ENI of so many addresses.
func rigOf(t *testing.T, addresses int, c Config) *rig {
	r := &rig{t: t, c: c, kernel: newKernel(), cloud: &fixedCloud{addresses: addresses}, log: &buffer{}, record: &buffer{}}
	r.c.Clock, r.c.Kernel, r.c.Cloud, r.c.Record = clock.Boot(), r.kernel, r.cloud, r.record
	r.c.Log = slog.New(slog.NewTextHandler(r.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return r
}

// start begins the daemon's life.
func (r *rig) start() *rig {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	r.stop, r.done = stop, done
	c := r.c
	go func() { done <- Run(ctx, c) }()
	r.t.Cleanup(r.end)
	return r
}

// startSilent starts a daemon that metadata does not answer before r.cloud.silent is closed.
func (r *rig) startSilent() {
	r.t.Helper()
	r.cloud.silent = make(chan struct{})
	r.start()
	r.eventually("the socket is there", func() bool { return exists(r.socket()) })
}

// end is SIGTERM and the wait for it.
func (r *rig) end() {
	if r.stop == nil {
		return
	}
	r.stop()
	r.stop = nil
	select {
	case err := <-r.done:
		if err != nil {
			r.t.Errorf("Run: %v", err)
		}
	case <-time.After(soon):
		buf := make([]byte, 1<<20)
		r.t.Fatalf("the daemon did not end within %v of SIGTERM\n%s\n%s", soon, r.log, buf[:runtime.Stack(buf, true)])
	}
}

func (r *rig) socket() string { return filepath.Join(r.c.RunDir, "ipamd.sock") }

// eventually waits for a condition.
func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	for end := time.Now().Add(soon); !ok(); {
		if time.Now().After(end) {
			r.t.Fatalf("not within %v: %s\nlog:\n%s", soon, what, r.log)
		}
		time.Sleep(time.Millisecond)
	}
}

// call asks the daemon.
func (r *rig) call(q *ipc.Request, files ...*os.File) (*ipc.Response, error) {
	c, err := ipc.Dial(r.socket(), soon)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	return c.Call(q, soon, files...)
}

// must is call that works.
func (r *rig) must(q *ipc.Request, files ...*os.File) *ipc.Response {
	r.t.Helper()
	out, err := r.call(q, files...)
	if err != nil {
		r.t.Fatalf("%v\nlog:\n%s", err, r.log)
	}
	return out
}

// status is what a daemon says that is not busy: on a machine that is, it may be for longer than STATUS waits.
func (r *rig) status() (out *ipc.Response) {
	r.t.Helper()
	r.eventually("STATUS has time to say how the daemon is", func() bool {
		out = r.must(&ipc.Request{Verb: ipc.Status})
		return !out.Busy
	})
	return out
}

// serves waits until pods can be taken.
func (r *rig) serves() *rig {
	r.t.Helper()
	r.eventually("the daemon is ready", func() bool {
		out, err := r.call(&ipc.Request{Verb: ipc.Status})
		return err == nil && out.Ready && r.view().View.Serving
	})
	return r
}

func (r *rig) view() (v Inspection) {
	r.t.Helper()
	must.Do(r.t, json.Unmarshal(r.must(&ipc.Request{Verb: ipc.View}).Body, &v))
	return v
}

// passed is what the plugin passes of a namespace: this test's own.
func passed(t *testing.T) []*os.File {
	t.Helper()
	ns := must.Get(os.Open("/proc/thread-self/ns/net"))(t)
	fd := must.Get(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_ROUTE))(t)
	s := os.NewFile(uintptr(fd), "rtnetlink")
	t.Cleanup(func() { ns.Close(); s.Close() })
	return []*os.File{ns, s}
}

func addOf(id string) *ipc.Request {
	return &ipc.Request{Verb: ipc.Add, Network: "aws-cni", ContainerID: id, IfName: "eth0", PodNamespace: "default", PodName: "pod-" + id}
}

func delOf(id string) *ipc.Request {
	q := addOf(id)
	q.Verb = ipc.Del
	return q
}

// add wires a pod, which works.
func (r *rig) add(id string) *ipc.Response {
	r.t.Helper()
	out := r.must(addOf(id), passed(r.t)...)
	if out.Code != 0 {
		r.t.Fatalf("add %s: code %d: %s\nlog:\n%s", id, out.Code, out.Text, r.log)
	}
	return out
}

// del takes a pod's address back, which works.
func (r *rig) del(id string) {
	r.t.Helper()
	if out := r.must(delOf(id)); out.Code != 0 {
		r.t.Fatalf("del %s: code %d: %s\nlog:\n%s", id, out.Code, out.Text, r.log)
	}
}

// replays checks that the stream can be stepped again to the same effects.
func (r *rig) replays() ipam.Replayed {
	r.t.Helper()
	got, err := ipam.Replay(r.record.bytes(), func(string) (*ipam.Policy, bool) { return ipam.Sound(), true }, nil)
	if err != nil {
		r.t.Fatalf("the recording does not replay: %v", err)
	}
	return got
}

// rows are those of RunStore's file.
func (r *rig) rows() []ipam.Row {
	r.t.Helper()
	data := must.Get(os.ReadFile(filepath.Join(r.c.RunDir, "ipam.json")))(r.t)
	rows := must.Get(ipam.DecodeRun(0, 0, data))(r.t)
	return rows
}
