package kind

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	cri "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// runtimeSocket is containerd's, inside a node.
const runtimeSocket = "/run/containerd/containerd.sock"

// runtimeTimeout is how long the runtime may take to say what runs.
const runtimeTimeout = 5 * time.Second

// sandbox is a pod's, as the runtime knows it.
type sandbox struct {
	ID, Namespace, Pod, UID string
	Created                 int64 // wall clock, nanoseconds
	Ready                   bool
	Host                    bool       // it is in the machine's network
	Address                 netip.Addr // of a ready one
	Netns                   string     // path of the network namespace inside the node; empty: not known
	Running                 bool       // a container of the pod runs in it
}

// runs says whether a container of a scenario's pod runs in it.
func (s *sandbox) runs() bool { return s.Namespace == namespaceOfPods && s.Ready && s.Running }

// containerRuntime asks a node's runtime. What of a sandbox never changes is asked for once, while its processes answer: a runtime may hang on
// one whose shim does.
type containerRuntime struct {
	node *cluster.Node

	mu    sync.Mutex // one look at a time
	pid   int        // of the node when conn was opened
	conn  *grpc.ClientConn
	known map[string]detail
}

// detail is what PodSandboxStatus adds.
type detail struct {
	host    bool
	address netip.Addr
	netns   string
}

func (d *detail) whole() bool { return d.host || d.address.IsValid() && d.netns != "" }

// client is a connection to the runtime of the node as it runs now.
func (r *containerRuntime) client() (cri.RuntimeServiceClient, error) {
	pid := r.node.PID()
	if r.conn == nil || r.pid != pid {
		r.shut()
		c, err := grpc.NewClient("unix://"+r.node.Root()+runtimeSocket, grpc.WithTransportCredentials(insecure.NewCredentials()),
			grpc.WithConnectParams(grpc.ConnectParams{Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.5, MaxDelay: time.Second}}))
		if err != nil {
			return nil, err
		}
		r.conn, r.pid, r.known = c, pid, map[string]detail{}
	}
	return cri.NewRuntimeServiceClient(r.conn), nil
}

func (r *containerRuntime) shut() {
	if r.conn != nil {
		_ = r.conn.Close()
		r.conn = nil
	}
}

func (r *containerRuntime) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.shut()
}

// sandboxes are all of the node, oldest first. The list is whole, or there is an error.
func (r *containerRuntime) sandboxes(ctx context.Context) ([]sandbox, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	c, err := r.client()
	if err != nil {
		return nil, err
	}
	list, err := c.ListPodSandbox(ctx, &cri.ListPodSandboxRequest{})
	if err != nil {
		return nil, fmt.Errorf("%s: list sandboxes: %w", r.node.Name, err)
	}
	running, err := c.ListContainers(ctx, &cri.ListContainersRequest{Filter: &cri.ContainerFilter{
		State: &cri.ContainerStateValue{State: cri.ContainerState_CONTAINER_RUNNING}}})
	if err != nil {
		return nil, fmt.Errorf("%s: list containers: %w", r.node.Name, err)
	}
	runs := map[string]bool{}
	for _, k := range running.Containers {
		runs[k.PodSandboxId] = true
	}
	next := map[string]detail{}
	var out []sandbox
	for _, i := range list.Items {
		d, err := r.detail(ctx, c, i)
		if err != nil {
			return nil, fmt.Errorf("%s: sandbox %.8s: %w", r.node.Name, i.Id, err)
		}
		next[i.Id] = d
		s := sandbox{ID: i.Id, Namespace: i.Metadata.GetNamespace(), Pod: i.Metadata.GetName(), UID: i.Metadata.GetUid(), Created: i.CreatedAt,
			Ready: i.State == cri.PodSandboxState_SANDBOX_READY, Host: d.host, Netns: d.netns, Running: runs[i.Id]}
		if s.Ready {
			s.Address = d.address
		}
		out = append(out, s)
	}
	r.known = next
	slices.SortFunc(out, func(a, b sandbox) int { return int(a.Created - b.Created) })
	return out, nil
}

// remove stops and removes what has ended, as kubelet does (pkg/kubelet/kuberuntime/kuberuntime_gc.go, removeSandbox): the runtime runs its plugins'
// DELs once more. What cannot be had is left for the next time, as kubelet leaves it.
func (r *containerRuntime) remove(ctx context.Context, id string) {
	r.mu.Lock()
	c, err := r.client()
	r.mu.Unlock()
	if err != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, runtimeTimeout)
	defer cancel()
	if _, err := c.StopPodSandbox(ctx, &cri.StopPodSandboxRequest{PodSandboxId: id}); err == nil {
		_, _ = c.RemovePodSandbox(ctx, &cri.RemovePodSandboxRequest{PodSandboxId: id})
	}
}

// detail asks for what is not known yet. One that was removed since the list was made is in the list.
func (r *containerRuntime) detail(ctx context.Context, c cri.RuntimeServiceClient, i *cri.PodSandbox) (detail, error) {
	d, known := r.known[i.Id]
	if known && (d.whole() || i.State != cri.PodSandboxState_SANDBOX_READY) {
		return d, nil
	}
	s, err := c.PodSandboxStatus(ctx, &cri.PodSandboxStatusRequest{PodSandboxId: i.Id, Verbose: true})
	if status.Code(err) == codes.NotFound {
		return d, nil
	}
	if err != nil {
		return d, err
	}
	d.host = s.Status.GetLinux().GetNamespaces().GetOptions().GetNetwork() == cri.NamespaceMode_NODE
	d.address, _ = netip.ParseAddr(s.Status.GetNetwork().GetIp())
	if p, err := netnsOf(s.Info["info"]); err == nil {
		d.netns = p
	}
	return d, nil
}

// netnsOf finds the path of a sandbox's network namespace in what containerd says of it when asked to be verbose.
func netnsOf(info string) (string, error) {
	var v struct {
		RuntimeSpec struct {
			Linux struct {
				Namespaces []struct{ Type, Path string }
			}
		}
	}
	if err := json.Unmarshal([]byte(info), &v); err != nil {
		return "", err
	}
	for _, n := range v.RuntimeSpec.Linux.Namespaces {
		if n.Type == "network" {
			return strings.TrimPrefix(n.Path, "/var"), nil // /var/run is an absolute link, which would be followed on the host
		}
	}
	return "", errors.New("no network namespace is named")
}

// shimOf is the process, as the node numbers it, that containerd has for a sandbox.
func shimOf(n *cluster.Node, id string) (pid int, ok bool) {
	for _, p := range processes(n) {
		if i := slices.Index(p.args, "-id"); i >= 0 && i+1 < len(p.args) && p.args[i+1] == id && strings.HasPrefix(path.Base(p.args[0]), "containerd-shim") {
			return p.pid, true
		}
	}
	return 0, false
}

// process of a node, with the node's number.
type process struct {
	pid  int
	args []string
}

// processes of a node.
func processes(n *cluster.Node) (out []process) {
	proc := n.Root() + "/proc/"
	for _, name := range names(proc) {
		pid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
		if line, err := os.ReadFile(proc + name + "/cmdline"); err == nil && len(line) > 0 {
			out = append(out, process{pid, strings.Split(strings.TrimSuffix(string(line), "\x00"), "\x00")})
		}
	}
	return out
}
