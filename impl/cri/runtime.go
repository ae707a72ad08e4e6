package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/enilab/enilab/impl/ipam"
)

// Labels that kubelet puts on every sandbox (k8s.io/kubelet, pkg/types/labels.go). They are what the metadata is made from, and
// stand in where a runtime leaves it empty.
const (
	labelNamespace = "io.kubernetes.pod.namespace"
	labelName      = "io.kubernetes.pod.name"
	labelUID       = "io.kubernetes.pod.uid"
)

// mostAnswer is a bound on one answer: 16 MiB, kubelet's own (k8s.io/cri-client).
const mostAnswer = 16 << 20

// Runtime is a container runtime behind a unix socket. Its methods may be called at once; they take turns.
type Runtime struct {
	conn *grpc.ClientConn
	api  v1.RuntimeServiceClient

	mu    sync.Mutex // one list at a time: it guards known, and keeps requests one after another
	known map[string]detail
}

// detail is what PodSandboxStatus says of a sandbox that never changes. Without an address the sandbox is in the host's network, or
// has none yet, which is asked again.
type detail struct {
	host    bool
	address netip.Addr
}

// Dial names a socket: a path, or unix:// and a path. It connects when something is first asked, and again whenever the connection
// was lost, so it fails on a name alone.
func Dial(socket string) (*Runtime, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(socket, "unix://"), "unix:")
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("runtime socket %q: expected an absolute path such as /run/containerd/containerd.sock", socket)
	}
	conn, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", path)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer)),
		grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithDisableHealthCheck(),
		grpc.WithReadBufferSize(8<<10), grpc.WithWriteBufferSize(8<<10),
		grpc.WithConnectParams(grpc.ConnectParams{ // a runtime that restarts is back within seconds
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}, MinConnectTimeout: 2 * time.Second}))
	if err != nil {
		return nil, fmt.Errorf("runtime socket %q: %w", socket, err)
	}
	return &Runtime{conn: conn, api: v1.NewRuntimeServiceClient(conn), known: map[string]detail{}}, nil
}

// Close ends the connection; what is asked at that moment fails.
func (r *Runtime) Close() error { return r.conn.Close() }

// Sandboxes are all pod sandboxes of the runtime, whatever their state. Address is that of a ready one with a network of its own. The
// list is whole, or there is an error with the runtime's text.
func (r *Runtime) Sandboxes(ctx context.Context) ([]ipam.Sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("waiting for another list of sandboxes: %w", err)
	}
	list, err := r.api.ListPodSandbox(ctx, &v1.ListPodSandboxRequest{})
	if err != nil {
		return nil, err
	}
	out := make([]ipam.Sandbox, 0, len(list.GetItems()))
	next := make(map[string]detail, len(list.GetItems()))
	for _, item := range list.GetItems() {
		s, err := sandboxOf(item)
		if err != nil {
			return nil, err
		}
		d, gone, err := r.detail(ctx, s)
		if err != nil {
			return nil, err
		}
		if gone {
			continue
		}
		if d.host || d.address.IsValid() {
			next[s.ID] = d
		}
		if s.Ready {
			s.Address = d.address
		}
		out = append(out, s)
	}
	r.known = next
	return out, nil
}

// detail asks for a sandbox's status unless it is known. One that was removed since the list was made is gone.
func (r *Runtime) detail(ctx context.Context, s ipam.Sandbox) (d detail, gone bool, err error) {
	d, known := r.known[s.ID]
	if known || !s.Ready {
		return d, false, nil
	}
	p, err := r.api.PodSandboxStatus(ctx, &v1.PodSandboxStatusRequest{PodSandboxId: s.ID})
	if status.Code(err) == codes.NotFound {
		return d, true, nil
	}
	if err != nil {
		return d, false, fmt.Errorf("status of sandbox %s: %w", s.ID, err)
	}
	if p.GetStatus() == nil {
		return d, false, fmt.Errorf("status of sandbox %s: the answer is empty", s.ID)
	}
	if p.GetStatus().GetLinux().GetNamespaces().GetOptions().GetNetwork() == v1.NamespaceMode_NODE {
		return detail{host: true}, false, nil
	}
	if text := p.GetStatus().GetNetwork().GetIp(); text != "" {
		if d.address, err = netip.ParseAddr(text); err != nil {
			return d, false, fmt.Errorf("status of sandbox %s: %w", s.ID, err)
		}
	}
	return d, false, nil
}

// sandboxOf translates a member of the list.
func sandboxOf(p *v1.PodSandbox) (ipam.Sandbox, error) {
	if p.GetId() == "" {
		return ipam.Sandbox{}, errors.New("the runtime lists a sandbox without an ID")
	}
	m, l := p.GetMetadata(), p.GetLabels()
	return ipam.Sandbox{
		ID:    p.GetId(),
		Pod:   ipam.Pod{Namespace: either(m.GetNamespace(), l[labelNamespace]), Name: either(m.GetName(), l[labelName]), UID: either(m.GetUid(), l[labelUID])},
		Ready: p.GetState() == v1.PodSandboxState_SANDBOX_READY,
	}, nil
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
