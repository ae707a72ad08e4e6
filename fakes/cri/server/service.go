package server

import (
	"context"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/enilab/enilab/fakes/cri"
)

// Labels that kubelet gives to sandboxes (k8s.io/kubelet/pkg/types).
const (
	labelName      = "io.kubernetes.pod.name"
	labelNamespace = "io.kubernetes.pod.namespace"
	labelUID       = "io.kubernetes.pod.uid"
)

type service struct {
	runtime.UnimplementedRuntimeServiceServer
	backend Backend
	epoch   int64 // the model's instant 0, in nanoseconds since 1970
	version string
	stable  bool // runtime.v1 is served
	alpha   bool // runtime.v1alpha2 is served
}

// failure is a Backend's error as gRPC says it.
func failure(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.FromContextError(err).Err() // Unknown, unless it is of a context
}

// Version is answered by kubelet's version of the API, and names the runtime.
func (s *service) Version(ctx context.Context, _ *runtime.VersionRequest) (*runtime.VersionResponse, error) {
	r, err := s.backend.Runtime(ctx)
	if err != nil {
		return nil, failure(err)
	}
	return &runtime.VersionResponse{Version: "0.1.0", RuntimeName: r.Name, RuntimeVersion: r.Version, RuntimeApiVersion: s.version}, nil
}

// Status gives the two conditions that every runtime has.
func (s *service) Status(ctx context.Context, _ *runtime.StatusRequest) (*runtime.StatusResponse, error) {
	r, err := s.backend.Runtime(ctx)
	if err != nil {
		return nil, failure(err)
	}
	return &runtime.StatusResponse{Status: &runtime.RuntimeStatus{Conditions: []*runtime.RuntimeCondition{
		condition(runtime.RuntimeReady, "RuntimeNotReady", r.NotReady),
		condition(runtime.NetworkReady, "NetworkPluginNotReady", r.NetworkBroken),
	}}}, nil
}

func condition(kind, reason, message string) *runtime.RuntimeCondition {
	if message == "" {
		return &runtime.RuntimeCondition{Type: kind, Status: true}
	}
	return &runtime.RuntimeCondition{Type: kind, Reason: reason, Message: message}
}

// ListPodSandbox lists what the filter lets through.
func (s *service) ListPodSandbox(ctx context.Context, r *runtime.ListPodSandboxRequest) (*runtime.ListPodSandboxResponse, error) {
	rows, err := s.backend.Sandboxes(ctx)
	if err != nil {
		return nil, failure(err)
	}
	out := &runtime.ListPodSandboxResponse{}
	for i := range rows {
		if row := &rows[i]; matches(row, r.GetFilter()) {
			out.Items = append(out.Items, &runtime.PodSandbox{
				Id: row.ID, Metadata: metadata(row), State: state(row), CreatedAt: s.epoch + int64(row.Created), Labels: labels(row),
			})
		}
	}
	return out, nil
}

// PodSandboxStatus is one sandbox. The model has no process, so verbose adds nothing.
func (s *service) PodSandboxStatus(ctx context.Context, r *runtime.PodSandboxStatusRequest) (*runtime.PodSandboxStatusResponse, error) {
	rows, err := s.backend.Sandboxes(ctx)
	if err != nil {
		return nil, failure(err)
	}
	for i := range rows {
		if row := &rows[i]; row.ID == r.GetPodSandboxId() {
			return &runtime.PodSandboxStatusResponse{Status: &runtime.PodSandboxStatus{
				Id: row.ID, Metadata: metadata(row), State: state(row), CreatedAt: s.epoch + int64(row.Created), Labels: labels(row),
				Network: network(row), Linux: &runtime.LinuxPodSandboxStatus{Namespaces: namespaces(row)},
			}}, nil
		}
	}
	return nil, status.Errorf(codes.NotFound, "an error occurred when try to find sandbox: sandbox %q: not found", r.GetPodSandboxId())
}

func matches(row *cri.Sandbox, f *runtime.PodSandboxFilter) bool {
	if f == nil {
		return true
	}
	if f.Id != "" && f.Id != row.ID || f.State != nil && f.State.State != state(row) {
		return false
	}
	have := labels(row)
	for k, v := range f.LabelSelector {
		if got, ok := have[k]; !ok || got != v {
			return false
		}
	}
	return true
}

func metadata(row *cri.Sandbox) *runtime.PodSandboxMetadata {
	return &runtime.PodSandboxMetadata{Name: row.Name, Uid: row.UID, Namespace: row.Namespace, Attempt: uint32(row.Attempt)}
}

func labels(row *cri.Sandbox) map[string]string {
	return map[string]string{labelName: row.Name, labelNamespace: row.Namespace, labelUID: row.UID}
}

func state(row *cri.Sandbox) runtime.PodSandboxState {
	if row.Ready {
		return runtime.PodSandboxState_SANDBOX_READY
	}
	return runtime.PodSandboxState_SANDBOX_NOTREADY
}

func network(row *cri.Sandbox) *runtime.PodSandboxNetworkStatus {
	if row.HostNetwork || !row.IP.IsValid() {
		return &runtime.PodSandboxNetworkStatus{}
	}
	return &runtime.PodSandboxNetworkStatus{Ip: row.IP.String()}
}

func namespaces(row *cri.Sandbox) *runtime.Namespace {
	mode := runtime.NamespaceMode_POD
	if row.HostNetwork {
		mode = runtime.NamespaceMode_NODE
	}
	return &runtime.Namespace{Options: &runtime.NamespaceOption{Network: mode, Pid: runtime.NamespaceMode_CONTAINER}}
}
