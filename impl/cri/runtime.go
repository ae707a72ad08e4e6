package cri

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strings"

	"google.golang.org/grpc"
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
	path string
	turn chan struct{} // one list at a time: it guards what follows, and keeps requests one after another
	conn *grpc.ClientConn
	// known are details of the sandboxes of the last list.
	known map[string]detail
	ended bool
}

// detail is what PodSandboxStatus says of a sandbox that never changes.
type detail struct {
	host    bool       // in the host's network: no address of its own
	address netip.Addr // invalid: it has none yet, which is asked again
}

// Dial names a socket: a path, or unix:// and a path. It connects when something is first asked, and again after a failure, so it
// fails on a name alone.
func Dial(socket string) (*Runtime, error) {
	path := strings.TrimPrefix(strings.TrimPrefix(socket, "unix://"), "unix:")
	if !filepath.IsAbs(path) {
		return nil, fmt.Errorf("runtime socket %q: expected an absolute path such as /run/containerd/containerd.sock", socket)
	}
	r := &Runtime{path: path, turn: make(chan struct{}, 1), known: map[string]detail{}}
	return r, nil
}

// Close ends the connection after the list under way.
func (r *Runtime) Close() error {
	r.turn <- struct{}{}
	defer func() { <-r.turn }()
	r.ended = true
	return r.hangUp()
}

// connection is the one there is, or a new one. gRPC would keep a failed one and repeat its error until a pause is over; whoever asks
// again wants to know how things are now, and paces itself.
func (r *Runtime) connection() (*grpc.ClientConn, error) {
	if r.ended {
		return nil, errors.New("the runtime's socket was closed by the daemon")
	}
	if r.conn != nil {
		return r.conn, nil
	}
	conn, err := grpc.NewClient("passthrough:///localhost",
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", r.path)
		}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(mostAnswer)),
		grpc.WithNoProxy(), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(), grpc.WithDisableHealthCheck(),
		grpc.WithReadBufferSize(8<<10), grpc.WithWriteBufferSize(8<<10))
	if err != nil {
		return nil, fmt.Errorf("runtime socket %s: %w", r.path, err)
	}
	r.conn = conn
	return conn, nil
}

func (r *Runtime) hangUp() error {
	if r.conn == nil {
		return nil
	}
	conn := r.conn
	r.conn = nil
	return conn.Close()
}

// Sandboxes are all pod sandboxes of the runtime, whatever their state. Address is that of a ready one with a network of its own. The
// list is whole, or there is an error with the runtime's text.
func (r *Runtime) Sandboxes(ctx context.Context) ([]ipam.Sandbox, error) {
	select {
	case r.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, fmt.Errorf("waiting for another list of sandboxes: %w", ctx.Err())
	}
	defer func() { <-r.turn }()
	conn, err := r.connection()
	if err != nil {
		return nil, err
	}
	out, err := r.list(ctx, v1.NewRuntimeServiceClient(conn))
	if status.Code(err) == codes.Unavailable {
		_ = r.hangUp() // it is of no use any more, whatever closing says
	}
	return out, err
}

func (r *Runtime) list(ctx context.Context, api v1.RuntimeServiceClient) ([]ipam.Sandbox, error) {
	list, err := api.ListPodSandbox(ctx, &v1.ListPodSandboxRequest{})
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
		d, known := r.known[s.ID]
		if s.Ready && !known {
			if d, err = ask(ctx, api, s.ID); err != nil {
				return nil, fmt.Errorf("status of sandbox %s: %w", s.ID, err)
			}
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

// ask is a sandbox's status. One that was removed since the list was made stays in the list, which it was in, without an address.
func ask(ctx context.Context, api v1.RuntimeServiceClient, id string) (detail, error) {
	p, err := api.PodSandboxStatus(ctx, &v1.PodSandboxStatusRequest{PodSandboxId: id})
	switch {
	case status.Code(err) == codes.NotFound:
		return detail{}, nil
	case err != nil:
		return detail{}, err
	case p.GetStatus() == nil:
		return detail{}, errors.New("the answer is empty")
	case p.GetStatus().GetLinux().GetNamespaces().GetOptions().GetNetwork() == v1.NamespaceMode_NODE:
		return detail{host: true}, nil
	}
	a, err := addressOf(p.GetStatus().GetNetwork())
	return detail{address: a}, err
}

// addressOf is the IPv4 address of a sandbox; a runtime with two families names either first.
func addressOf(n *v1.PodSandboxNetworkStatus) (netip.Addr, error) {
	texts := []string{n.GetIp()}
	for _, more := range n.GetAdditionalIps() {
		texts = append(texts, more.GetIp())
	}
	for _, text := range texts {
		if text == "" {
			continue
		}
		a, err := netip.ParseAddr(text)
		if err != nil {
			return a, err
		}
		if a = a.Unmap(); a.Is4() {
			return a, nil
		}
	}
	return netip.Addr{}, nil
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
