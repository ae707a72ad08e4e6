package kind

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/kind/cluster"
)

// listed is a runtime that has these sandboxes, and notes what is asked of it.
type listed struct {
	cri.UnimplementedRuntimeServiceServer
	items []*cri.PodSandbox
	asked []string
}

func (l *listed) ListPodSandbox(context.Context, *cri.ListPodSandboxRequest) (*cri.ListPodSandboxResponse, error) {
	return &cri.ListPodSandboxResponse{Items: l.items}, nil
}

func (l *listed) ListContainers(context.Context, *cri.ListContainersRequest) (*cri.ListContainersResponse, error) {
	return &cri.ListContainersResponse{}, nil
}

func (l *listed) PodSandboxStatus(context.Context, *cri.PodSandboxStatusRequest) (*cri.PodSandboxStatusResponse, error) {
	return &cri.PodSandboxStatusResponse{}, nil
}

func (l *listed) StopPodSandbox(_ context.Context, r *cri.StopPodSandboxRequest) (*cri.StopPodSandboxResponse, error) {
	l.asked = append(l.asked, "stop "+r.PodSandboxId)
	if r.PodSandboxId == "stuck" {
		return nil, errors.New("the plugin's DEL failed")
	}
	return &cri.StopPodSandboxResponse{}, nil
}

func (l *listed) RemovePodSandbox(_ context.Context, r *cri.RemovePodSandboxRequest) (*cri.RemovePodSandboxResponse, error) {
	l.asked = append(l.asked, "remove "+r.PodSandboxId)
	return &cri.RemovePodSandboxResponse{}, nil
}

// TestGarbageIsWhatHasEndedOfPodsThatAreGone: what runs, what belongs to a pod that is there and what is not the scenario's stays; what cannot be
// stopped is not removed.
func TestGarbageIsWhatHasEndedOfPodsThatAreGone(t *testing.T) {
	const ended, runs = cri.PodSandboxState_SANDBOX_NOTREADY, cri.PodSandboxState_SANDBOX_READY
	runtime := &listed{}
	for i, s := range []struct {
		id, namespace, uid string
		state              cri.PodSandboxState
	}{{"garbage", namespaceOfPods, "gone", ended}, {"living", namespaceOfPods, "gone", runs}, {"before", namespaceOfPods, "there", ended},
		{"other", "kube-system", "gone", ended}, {"stuck", namespaceOfPods, "gone", ended}} {
		runtime.items = append(runtime.items, &cri.PodSandbox{Id: s.id, State: s.state, CreatedAt: int64(i),
			Metadata: &cri.PodSandboxMetadata{Namespace: s.namespace, Uid: s.uid}})
	}
	socket := filepath.Join(t.TempDir(), "s")
	server := grpc.NewServer()
	cri.RegisterRuntimeServiceServer(server, runtime)
	listener := must.Get(net.Listen("unix", socket))(t)
	go func() { _ = server.Serve(listener) }()
	defer server.Stop()
	conn := must.Get(grpc.NewClient("unix://"+socket, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
	defer conn.Close()
	node := &cluster.Node{}
	m := &member{node: node, runtime: &containerRuntime{node: node, conn: conn},
		w: &World{pods: &pods{byUID: map[string]*pod{"there": {}}}}}
	m.collectGarbage(t.Context())
	if want := []string{"stop garbage", "remove garbage", "stop stuck"}; !slices.Equal(runtime.asked, want) {
		t.Errorf("the runtime was asked to %q, expected %q", runtime.asked, want)
	}
}
