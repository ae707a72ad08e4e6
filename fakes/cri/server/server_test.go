package server

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/enilab/enilab/fakes/cri"
	"github.com/enilab/enilab/internal/must"
)

// backend is a model's node, behind a lock.
type backend struct {
	mu    sync.Mutex
	node  *cri.Node
	err   error
	hang  bool
	asked chan struct{} // a list that hangs has come
	info  Runtime
}

func (b *backend) Sandboxes(ctx context.Context) ([]cri.Sandbox, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list, complete := b.node.ListSandboxes()
	switch {
	case b.hang:
		b.asked <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	case !complete:
		return nil, status.Error(codes.Unavailable, "the runtime is restarting")
	}
	return slices.Clone(list), b.err // also what there is, with the error
}

func (b *backend) Runtime(context.Context) (Runtime, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.info, b.err
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// newBackend has the daemon's sandbox, on the host's network, and one pod's.
func newBackend(t testing.TB) *backend {
	t.Helper()
	n := cri.New(cri.Config{}, 3)
	address := netip.MustParseAddr("10.0.0.9")
	queue := n.Step(time.Second, &cri.Input{Kind: cri.PodBound, UID: "uid-web", Namespace: "shop", Name: "web-0"})
	for len(queue) > 0 {
		a := queue[0]
		queue = slices.Clone(queue[1:])
		switch a.Kind {
		case cri.MakeNetns:
			queue = append(queue, n.Step(2*time.Second, &cri.Input{Kind: cri.NetnsMade, Sandbox: a.Sandbox, Inode: 77})...)
		case cri.RunPlugin:
			queue = append(queue, n.Step(3*time.Second, &cri.Input{Kind: cri.PluginDone, Op: a.Op, Address: address})...)
		}
	}
	for at, ok := n.Next(); ok && at < time.Minute; at, ok = n.Next() {
		n.Step(at, nil)
	}
	if _, ok := n.SandboxOf("uid-web"); !ok || n.Ready() == 0 {
		t.Fatal("the model's pod is not ready")
	}
	return &backend{asked: make(chan struct{}, 1), node: n, info: Runtime{Name: "containerd", Version: "2.2.2"}}
}

// dial serves on a unix socket and connects to it.
func dial(t testing.TB, s *Server) *grpc.ClientConn {
	t.Helper()
	path := filepath.Join(t.TempDir(), "cri.sock")
	l := must.Get(net.Listen("unix", path))(t)
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	c := must.Get(grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		s.Stop()
		if err := <-served; err != nil {
			t.Errorf("Serve after Stop: %v", err)
		}
	})
	return c
}

func TestList(t *testing.T) {
	b := newBackend(t)
	c := runtime.NewRuntimeServiceClient(dial(t, New(b, WithEpoch(epoch))))
	id, _ := b.node.SandboxOf("uid-web")
	all, err := c.ListPodSandbox(t.Context(), &runtime.ListPodSandboxRequest{})
	if err != nil || len(all.Items) != 2 {
		t.Fatalf("%v, %d sandboxes", err, len(all.GetItems()))
	}
	web := all.Items[1]
	if web.Id != id || web.Metadata.Name != "web-0" || web.Metadata.Namespace != "shop" || web.Metadata.Uid != "uid-web" || web.State != runtime.PodSandboxState_SANDBOX_READY {
		t.Errorf("found %+v", web)
	}
	if l := web.Labels; l[labelName] != "web-0" || l[labelNamespace] != "shop" || l[labelUID] != "uid-web" {
		t.Errorf("labels %v", l)
	}
	if at := time.Unix(0, web.CreatedAt).UTC(); at.Before(epoch.Add(time.Second)) || at.After(epoch.Add(time.Minute)) {
		t.Errorf("created at %v, the model's instant 0 is %v", at, epoch)
	}
	ready := &runtime.PodSandboxStateValue{State: runtime.PodSandboxState_SANDBOX_READY}
	gone := &runtime.PodSandboxStateValue{State: runtime.PodSandboxState_SANDBOX_NOTREADY}
	rows := []struct {
		name   string
		filter *runtime.PodSandboxFilter
		want   int
	}{
		{"none", &runtime.PodSandboxFilter{}, 2},
		{"id", &runtime.PodSandboxFilter{Id: id}, 1},
		{"a prefix of the id", &runtime.PodSandboxFilter{Id: id[:12]}, 0},
		{"ready", &runtime.PodSandboxFilter{State: ready}, 2},
		{"not ready", &runtime.PodSandboxFilter{State: gone}, 0},
		{"a label", &runtime.PodSandboxFilter{LabelSelector: map[string]string{labelUID: "uid-web"}}, 1},
		{"two labels", &runtime.PodSandboxFilter{LabelSelector: map[string]string{labelUID: "uid-web", labelNamespace: "kube-system"}}, 0},
		{"a label that is not there", &runtime.PodSandboxFilter{LabelSelector: map[string]string{"app": ""}}, 0},
		{"id and state", &runtime.PodSandboxFilter{Id: id, State: gone}, 0},
	}
	for _, r := range rows {
		got, err := c.ListPodSandbox(t.Context(), &runtime.ListPodSandboxRequest{Filter: r.filter})
		if err != nil || len(got.Items) != r.want {
			t.Errorf("filter %s: %v, %d sandboxes, expected %d", r.name, err, len(got.GetItems()), r.want)
		}
	}
}

func TestStatus(t *testing.T) {
	b := newBackend(t)
	c := runtime.NewRuntimeServiceClient(dial(t, New(b)))
	id, _ := b.node.SandboxOf("uid-web")
	list, _ := b.node.ListSandboxes()
	daemon := list[0].ID
	rows := []struct {
		id, ip string
		mode   runtime.NamespaceMode
	}{{id, "10.0.0.9", runtime.NamespaceMode_POD}, {daemon, "", runtime.NamespaceMode_NODE}}
	for _, r := range rows {
		got, err := c.PodSandboxStatus(t.Context(), &runtime.PodSandboxStatusRequest{PodSandboxId: r.id, Verbose: true})
		if err != nil {
			t.Fatal(err)
		}
		if s := got.Status; s.Id != r.id || s.Network.Ip != r.ip || s.Linux.Namespaces.Options.Network != r.mode || s.Labels[labelUID] == "" {
			t.Errorf("found %+v, expected the address %q and mode %v", s, r.ip, r.mode)
		}
	}
	for _, unknown := range []string{"", id[:20], "none"} {
		if _, err := c.PodSandboxStatus(t.Context(), &runtime.PodSandboxStatusRequest{PodSandboxId: unknown}); status.Code(err) != codes.NotFound {
			t.Errorf("sandbox %q: %v, expected NotFound", unknown, err)
		}
	}
}

func TestRuntime(t *testing.T) {
	b := newBackend(t)
	c := runtime.NewRuntimeServiceClient(dial(t, New(b)))
	v, err := c.Version(t.Context(), &runtime.VersionRequest{})
	if err != nil || v.RuntimeName != "containerd" || v.RuntimeVersion != "2.2.2" || v.RuntimeApiVersion != "v1" {
		t.Errorf("%v, %+v", err, v)
	}
	b.mu.Lock()
	b.info.NetworkBroken = "cni plugin not initialized"
	b.mu.Unlock()
	s, err := c.Status(t.Context(), &runtime.StatusRequest{})
	if err != nil || len(s.Status.Conditions) != 2 || !s.Status.Conditions[0].Status || s.Status.Conditions[1].Status || s.Status.Conditions[1].Message != "cni plugin not initialized" {
		t.Errorf("%v, %+v", err, s)
	}
}

// TestErrors: what the Backend says goes through, and no list comes with it.
func TestErrors(t *testing.T) {
	b := newBackend(t)
	c := runtime.NewRuntimeServiceClient(dial(t, New(b)))
	rows := []struct {
		err  error
		want codes.Code
	}{
		{status.Error(codes.DeadlineExceeded, "the list is cut"), codes.DeadlineExceeded},
		{status.Error(codes.Unavailable, "restarting"), codes.Unavailable},
		{context.DeadlineExceeded, codes.DeadlineExceeded},
		{errors.New("metadata.db is corrupt"), codes.Unknown},
	}
	for _, r := range rows {
		b.mu.Lock()
		b.err = r.err
		b.mu.Unlock()
		got, err := c.ListPodSandbox(t.Context(), &runtime.ListPodSandboxRequest{})
		if status.Code(err) != r.want || len(got.GetItems()) > 0 {
			t.Errorf("%v: %v and %d rows, expected %v", r.err, err, len(got.GetItems()), r.want)
		}
		_, err = c.PodSandboxStatus(t.Context(), &runtime.PodSandboxStatusRequest{PodSandboxId: "x"})
		_, err2 := c.Version(t.Context(), &runtime.VersionRequest{})
		_, err3 := c.Status(t.Context(), &runtime.StatusRequest{})
		for _, err := range []error{err, err2, err3} {
			if status.Code(err) != r.want {
				t.Errorf("%v: %v, expected %v", r.err, err, r.want)
			}
		}
	}
}

// TestDeadline: a runtime that hangs costs the caller its own deadline.
func TestDeadline(t *testing.T) {
	b := newBackend(t)
	b.hang = true
	c := runtime.NewRuntimeServiceClient(dial(t, New(b)))
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.ListPodSandbox(ctx, &runtime.ListPodSandboxRequest{}); status.Code(err) != codes.DeadlineExceeded {
		t.Errorf("found %v", err)
	}
}

// TestUnimplemented: what a runtime does not have, and a socket of something else.
func TestUnimplemented(t *testing.T) {
	conn := dial(t, New(newBackend(t)))
	c := runtime.NewRuntimeServiceClient(conn)
	_, err := c.StopPodSandbox(t.Context(), &runtime.StopPodSandboxRequest{})
	_, err2 := runtime.NewImageServiceClient(conn).ListImages(t.Context(), &runtime.ListImagesRequest{})
	err3 := conn.Invoke(t.Context(), "/runtime.v1alpha2.RuntimeService/ListPodSandbox", &runtime.ListPodSandboxRequest{}, &runtime.ListPodSandboxResponse{})
	for _, err := range []error{err, err2, err3} {
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("found %v", err)
		}
	}
	stream, err := c.GetContainerEvents(t.Context(), &runtime.GetEventsRequest{})
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("events: %v", err)
	}
	docker := runtime.NewRuntimeServiceClient(dial(t, Unimplemented()))
	_, err = docker.ListPodSandbox(t.Context(), &runtime.ListPodSandboxRequest{})
	if status.Code(err) != codes.Unimplemented || status.Convert(err).Message() != "unknown service runtime.v1.RuntimeService" {
		t.Errorf("a socket without the service: %v", err)
	}
}

// TestStop cuts calls off, as a runtime that is killed does.
func TestStop(t *testing.T) {
	b := newBackend(t)
	b.hang = true
	s := New(b)
	c := runtime.NewRuntimeServiceClient(dial(t, s))
	go func() {
		<-b.asked
		s.Stop()
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	if _, err := c.ListPodSandbox(ctx, &runtime.ListPodSandboxRequest{}); status.Code(err) != codes.Unavailable {
		t.Errorf("found %v, expected Unavailable", err)
	}
}

// BenchmarkList lists 110 sandboxes.
func BenchmarkList(b *testing.B) {
	rows := make([]cri.Sandbox, 110)
	for i := range rows {
		rows[i] = cri.Sandbox{ID: string(rune('a' + i%26)), Namespace: "default", Name: "web", UID: "0b5c4f3e-0000-0000-0000-000000000000", Ready: true}
	}
	c := runtime.NewRuntimeServiceClient(dial(b, New(fixed(rows))))
	for b.Loop() {
		must.Get(c.ListPodSandbox(b.Context(), &runtime.ListPodSandboxRequest{}))(b)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

type fixed []cri.Sandbox

func (f fixed) Sandboxes(context.Context) ([]cri.Sandbox, error) { return f, nil }
func (f fixed) Runtime(context.Context) (Runtime, error)         { return Runtime{}, nil }
