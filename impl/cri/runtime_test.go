package cri

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/enilab/enilab/impl/grpclite"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
)

// fake is a runtime: what it answers is set by the test.
type fake struct {
	v1.UnimplementedRuntimeServiceServer

	mu       sync.Mutex
	items    []*v1.PodSandbox
	statuses map[string]*v1.PodSandboxStatus
	listErr  error
	askErr   map[string]error
	asked    []string
	hang     bool

	running, most atomic.Int32
}

func (s *fake) enter() func() {
	if n := s.running.Add(1); n > s.most.Load() {
		s.most.Store(n)
	}
	return func() { s.running.Add(-1) }
}

func (s *fake) ListPodSandbox(ctx context.Context, _ *v1.ListPodSandboxRequest) (*v1.ListPodSandboxResponse, error) {
	defer s.enter()()
	s.mu.Lock()
	hang := s.hang
	s.mu.Unlock()
	if hang {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return &v1.ListPodSandboxResponse{Items: s.items}, s.listErr
}

func (s *fake) PodSandboxStatus(_ context.Context, q *v1.PodSandboxStatusRequest) (*v1.PodSandboxStatusResponse, error) {
	defer s.enter()()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked = append(s.asked, q.PodSandboxId)
	if err := s.askErr[q.PodSandboxId]; err != nil {
		return nil, err
	}
	p, ok := s.statuses[q.PodSandboxId]
	if !ok {
		return nil, status.Error(codes.NotFound, "an error occurred when try to find sandbox: not found")
	}
	return &v1.PodSandboxStatusResponse{Status: p}, nil
}

// put makes the runtime list a sandbox.
func (s *fake) put(id, name, ip string, ready, host bool) {
	state, mode := v1.PodSandboxState_SANDBOX_NOTREADY, v1.NamespaceMode_POD
	if ready {
		state = v1.PodSandboxState_SANDBOX_READY
	}
	if host {
		mode = v1.NamespaceMode_NODE
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	m := &v1.PodSandboxMetadata{Namespace: "default", Name: name, Uid: "uid-" + id}
	s.items = append(s.items, &v1.PodSandbox{Id: id, Metadata: m, State: state})
	s.statuses[id] = &v1.PodSandboxStatus{Id: id, Metadata: m, State: state, Network: &v1.PodSandboxNetworkStatus{Ip: ip},
		Linux: &v1.LinuxPodSandboxStatus{Namespaces: &v1.Namespace{Options: &v1.NamespaceOption{Network: mode}}}}
}

func newService() *fake {
	return &fake{statuses: map[string]*v1.PodSandboxStatus{}, askErr: map[string]error{}}
}

// serve listens until the test ends or stop is called.
func serve(t *testing.T, path string, register func(*grpc.Server)) (stop func()) {
	t.Helper()
	l := must.Get(net.Listen("unix", path))(t)
	g := grpc.NewServer()
	register(g)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	stop = sync.OnceFunc(func() { g.Stop(); <-done })
	t.Cleanup(stop)
	return stop
}

func dial(t *testing.T, path string) *Runtime {
	t.Helper()
	r := must.Get(Dial("unix://" + path))(t)
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func start(t *testing.T) (*fake, *Runtime) {
	t.Helper()
	s, path := newService(), filepath.Join(t.TempDir(), "cri.sock")
	serve(t, path, func(g *grpc.Server) { v1.RegisterRuntimeServiceServer(g, s) })
	return s, dial(t, path)
}

// patience bounds what should come by itself.
const patience = 20 * time.Second

func bounded(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestSandboxes(t *testing.T) {
	s, r := start(t)
	s.put("a", "web-0", "10.0.0.5", true, false)
	s.put("b", "proxy", "10.0.0.1", true, true)
	s.put("c", "old", "10.0.0.6", false, false)
	s.put("d", "two-families", "2001:db8::1", true, false)
	s.statuses["d"].Network.AdditionalIps = []*v1.PodIP{{Ip: "10.0.0.7"}}
	want := []ipam.Sandbox{
		{ID: "a", Pod: ipam.Pod{Namespace: "default", Name: "web-0", UID: "uid-a"}, Ready: true, Address: netip.MustParseAddr("10.0.0.5")},
		{ID: "b", Pod: ipam.Pod{Namespace: "default", Name: "proxy", UID: "uid-b"}, Ready: true},
		{ID: "c", Pod: ipam.Pod{Namespace: "default", Name: "old", UID: "uid-c"}},
		{ID: "d", Pod: ipam.Pod{Namespace: "default", Name: "two-families", UID: "uid-d"}, Ready: true, Address: netip.MustParseAddr("10.0.0.7")},
	}
	for range 3 { // the second and third list ask for no status again
		got, err := r.Sandboxes(bounded(t, patience))
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("got %v, %v\nwant %v", got, err, want)
		}
	}
	if want := []string{"a", "b", "d"}; !slices.Equal(s.asked, want) {
		t.Errorf("statuses asked for: %v, want %v once each", s.asked, want)
	}
}

// TestFirstIPv4AddressIsTheSandboxes: of all that the runtime says, in its order; what is empty or of the
// other family is passed over.
func TestFirstIPv4AddressIsTheSandboxes(t *testing.T) {
	for _, tc := range []struct {
		said, want string
		bad        bool
	}{
		{said: "10.0.0.5,10.0.0.6", want: "10.0.0.5"},
		{said: ",10.0.0.6", want: "10.0.0.6"},
		{said: "2001:db8::1,,10.0.0.6", want: "10.0.0.6"},
		{said: "::ffff:10.0.0.7", want: "10.0.0.7"},
		{said: "2001:db8::1"},
		{said: "2001:db8::1,x", bad: true},
	} {
		s, r := start(t)
		texts := strings.Split(tc.said, ",")
		s.put("a", "web-0", texts[0], true, false)
		for _, more := range texts[1:] {
			s.statuses["a"].Network.AdditionalIps = append(s.statuses["a"].Network.AdditionalIps, &v1.PodIP{Ip: more})
		}
		var want netip.Addr
		if tc.want != "" {
			want = netip.MustParseAddr(tc.want)
		}
		got, err := r.Sandboxes(bounded(t, patience))
		if (err != nil) != tc.bad || !tc.bad && (len(got) != 1 || got[0].Address != want) {
			t.Errorf("the runtime says %q: got %v, %v", tc.said, got, err)
		}
	}
}

func TestLabelsStandInForMetadata(t *testing.T) {
	s, r := start(t)
	s.items = []*v1.PodSandbox{{Id: "a", Labels: map[string]string{labelNamespace: "n", labelName: "p", labelUID: "u"}}}
	got, err := r.Sandboxes(bounded(t, patience))
	if err != nil || len(got) != 1 || got[0].Pod != (ipam.Pod{Namespace: "n", Name: "p", UID: "u"}) {
		t.Errorf("got %v, %v", got, err)
	}
}

// An address that is not there yet is asked for again; a sandbox that is forgotten and comes back is asked for again too.
func TestAddressComesLater(t *testing.T) {
	s, r := start(t)
	s.put("a", "web-0", "", true, false)
	list := func() ipam.Sandbox {
		t.Helper()
		got, err := r.Sandboxes(bounded(t, patience))
		if err != nil || len(got) != 1 {
			t.Fatalf("got %v, %v", got, err)
		}
		return got[0]
	}
	if a := list().Address; a.IsValid() {
		t.Fatalf("address %v before there is one", a)
	}
	s.mu.Lock()
	s.statuses["a"].Network.Ip = "10.0.0.5"
	s.mu.Unlock()
	if a := list().Address; a != netip.MustParseAddr("10.0.0.5") {
		t.Errorf("address %v", a)
	}
}

// A sandbox that goes between the list and its status was in the list.
func TestRemovedMeanwhile(t *testing.T) {
	s, r := start(t)
	s.put("a", "web-0", "10.0.0.5", true, false)
	delete(s.statuses, "a")
	got, err := r.Sandboxes(bounded(t, patience))
	if err != nil || len(got) != 1 || got[0].Address.IsValid() {
		t.Errorf("got %v, %v", got, err)
	}
}

// An answer that is not whole is never an empty list.
func TestIncompleteAnswerIsNoEmptyList(t *testing.T) {
	cases := map[string]struct {
		set  func(*fake)
		want string
	}{
		"list":           {func(s *fake) { s.listErr = status.Error(codes.Unavailable, "server is not initialized yet") }, "server is not initialized yet"},
		"status":         {func(s *fake) { s.askErr["b"] = status.Error(codes.Unknown, "netns is broken") }, "status of sandbox b: rpc error: code = Unknown desc = netns is broken"},
		"empty status":   {func(s *fake) { s.statuses["b"] = nil }, "the answer is empty"},
		"bad address":    {func(s *fake) { s.statuses["b"].Network.Ip = "10.0.0.x" }, "10.0.0.x"},
		"no ID":          {func(s *fake) { s.items[1].Id = "" }, "without an ID"},
		"too large":      {func(s *fake) { s.items[0].Metadata.Name = strings.Repeat("x", grpclite.MaxAnswer) }, "larger than max"},
		"hangs":          {func(s *fake) { s.hang = true }, "DeadlineExceeded"},
		"invalid string": {func(s *fake) { s.items[0].Metadata.Name = "\xff" }, "UTF-8"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			s, r := start(t)
			s.put("a", "web-0", "10.0.0.5", true, false)
			s.put("b", "web-1", "10.0.0.6", true, false)
			c.set(s)
			d := patience
			if s.hang {
				d = 100 * time.Millisecond
			}
			got, err := r.Sandboxes(bounded(t, d))
			if err == nil || got != nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
}

// Docker's socket speaks no CRI: amazon-vpc-cni-k8s 1.5.3 was once shown containerd's on a Docker node.
func TestUnimplemented(t *testing.T) {
	path := filepath.Join(t.TempDir(), "docker.sock")
	serve(t, path, func(*grpc.Server) {})
	got, err := dial(t, path).Sandboxes(bounded(t, patience))
	if grpclite.CodeOf(err) != int(codes.Unimplemented) || got != nil || !strings.Contains(err.Error(), "unknown service runtime.v1.RuntimeService") {
		t.Errorf("got %v, %v", got, err)
	}
}

// The socket comes, goes and comes again: every list says how things are at that moment, without a pause in which an old error is
// repeated.
func TestReconnects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cri.sock")
	r := dial(t, path)
	for range 3 {
		ctx := bounded(t, patience)
		got, err := r.Sandboxes(ctx)
		if err == nil || got != nil || !strings.Contains(err.Error(), "dial unix "+path) {
			t.Fatalf("without a socket: %v, %v", got, err)
		}
		if ctx.Err() != nil {
			t.Error("without a socket an answer took all of the caller's time")
		}
		s := newService()
		s.put("a", "web-0", "10.0.0.5", true, false)
		stop := serve(t, path, func(g *grpc.Server) { v1.RegisterRuntimeServiceServer(g, s) })
		if got, err := r.Sandboxes(bounded(t, patience)); err != nil || len(got) != 1 {
			t.Fatalf("with a socket: %v, %v", got, err)
		}
		stop()
	}
}

// What answers on the socket may be anything.
func TestSocketWithoutGRPCIsAnError(t *testing.T) {
	for _, answer := range []string{"", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi", strings.Repeat("\x00", 4096), "PRI * HTTP/2.0"} {
		path := filepath.Join(t.TempDir(), "x.sock")
		l := must.Get(net.Listen("unix", path))(t)
		go accept.Each(l.Accept, func(c net.Conn) {
			_, _ = c.Write([]byte(answer))
			_ = c.Close()
		})
		got, err := dial(t, path).Sandboxes(bounded(t, patience))
		if err == nil || got != nil {
			t.Errorf("%q: got %v, %v", answer, got, err)
		}
		_ = l.Close()
	}
}

func TestOneRequestAtATime(t *testing.T) {
	s, r := start(t)
	for i := range 10 {
		s.put(fmt.Sprint("s", i), "p", "10.0.0.5", true, false)
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if got, err := r.Sandboxes(bounded(t, patience)); err != nil || len(got) != 10 {
				t.Errorf("got %v, %v", got, err)
			}
		})
	}
	all.Wait()
	if n := s.most.Load(); n != 1 {
		t.Errorf("%d requests under way at once", n)
	}
}

func TestDialRefusesNames(t *testing.T) {
	for _, name := range []string{"", "run/x.sock", "tcp://1.2.3.4:5", "unix://"} {
		if _, err := Dial(name); err == nil {
			t.Errorf("%q was taken for a socket", name)
		}
	}
}

func TestClose(t *testing.T) {
	_, r := start(t)
	must.Do(t, r.Close())
	if _, err := r.Sandboxes(bounded(t, patience)); err == nil {
		t.Error("a list after Close")
	}
}
