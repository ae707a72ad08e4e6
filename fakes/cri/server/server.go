package server

import (
	"context"
	"net"
	"time"

	"google.golang.org/grpc"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/enilab/enilab/fakes/cri"
)

// Backend is the runtime behind the socket. It is called concurrently; the model is stepped by one at a time.
// A gRPC status error passes through as it is; any other error becomes code Unknown.
type Backend interface {
	// Sandboxes are the rows of ListPodSandbox. With an error the rows are dropped: gRPC knows no partial answer. It takes
	// as long as the runtime takes; ctx ends with the caller's deadline.
	Sandboxes(ctx context.Context) ([]cri.Sandbox, error)
	// Runtime is what Version and Status say.
	Runtime(ctx context.Context) (Runtime, error)
}

// Runtime is the runtime itself.
type Runtime struct {
	Name, Version string // "containerd", "2.2.2"
	NotReady      string // why the runtime does not work; "": it does
	NetworkBroken string // why the network does not; "": it does
}

// Option is a property of the runtime that is not the model's.
type Option func(*service)

// WithEpoch is the wall clock's time at the model's instant 0, 1970 unless given: sandboxes have a time of creation.
func WithEpoch(t time.Time) Option { return func(s *service) { s.epoch = t.UnixNano() } }

// WithAlpha serves runtime.v1alpha2 beside runtime.v1, as runtimes do from Kubernetes 1.20 to 1.25 (containerd 1.6 and 1.7). only leaves
// runtime.v1 out, as dockershim does.
func WithAlpha(only bool) Option {
	return func(s *service) { s.alpha, s.stable = true, !only }
}

// Server is a CRI runtime's gRPC server.
type Server struct{ grpc *grpc.Server }

// New serves RuntimeService v1 for a Backend: Version, Status, ListPodSandbox and PodSandboxStatus. Other methods, and other
// services such as ImageService, are Unimplemented.
func New(b Backend, options ...Option) *Server {
	s, v := Unimplemented(), &service{backend: b, version: "v1", stable: true}
	for _, o := range options {
		o(v)
	}
	if v.stable {
		runtime.RegisterRuntimeServiceServer(s.grpc, v)
	}
	if v.alpha {
		old := *v
		old.version = "v1alpha2"
		s.grpc.RegisterService(alpha(), &old)
	}
	return s
}

// alpha describes runtime.v1alpha2's service. v1 was made of it without a change, so its messages and methods are the same bytes; the
// package is in no version of k8s.io/cri-api that has what v1 has today.
func alpha() *grpc.ServiceDesc {
	d := runtime.RuntimeService_ServiceDesc
	d.ServiceName = "runtime.v1alpha2.RuntimeService"
	return &d
}

// maxRequest is the largest request in bytes: a filter, a few labels.
const maxRequest = 1 << 20

// Unimplemented speaks gRPC and has no service at all, as a socket of something else than a CRI runtime (Docker's, for
// one): every call ends in code Unimplemented, "unknown service runtime.v1.RuntimeService".
func Unimplemented() *Server {
	return &Server{grpc.NewServer(grpc.MaxRecvMsgSize(maxRequest), grpc.ConnectionTimeout(10*time.Second))}
}

// Serve answers on a listener, usually a unix socket's, until Stop, and closes it. After Stop it returns nil.
func (s *Server) Serve(l net.Listener) error {
	err := s.grpc.Serve(l)
	if err == grpc.ErrServerStopped {
		return nil
	}
	return err
}

// Stop ends all listeners, connections and calls at once, as a runtime does that is killed.
func (s *Server) Stop() { s.grpc.Stop() }
