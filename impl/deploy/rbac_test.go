package deploy

import (
	"context"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	fake "github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/fakes/kube/server"
	"github.com/enilab/enilab/impl/daemon"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/kube"
	"github.com/enilab/enilab/internal/must"
)

// TestRoleAllowsWhatTheDaemonAsksAndNoMore: with exactly the role's rules everything works that the daemon asks, and
// no rule is left over.
func TestRoleAllowsWhatTheDaemonAsksAndNoMore(t *testing.T) {
	if n := reflect.TypeFor[daemon.Pods]().NumMethod(); n != 3 {
		t.Fatalf("the daemon asks the API server for %d things; this test knows Pods, Watch and ENIConfig", n)
	}
	granted := permissions(role().Rules)
	a := newAuthorizer(granted)
	if refused := a.ask(t); refused != "" {
		t.Errorf("the role is not enough: the daemon may not %s", refused)
	}
	if used := slices.Sorted(maps.Keys(a.used)); !slices.Equal(used, slices.Sorted(maps.Keys(granted))) {
		t.Errorf("the daemon used %v, the role grants %v", used, slices.Sorted(maps.Keys(granted)))
	}
}

// TestEveryRuleIsNeeded: without one of them something is refused.
func TestEveryRuleIsNeeded(t *testing.T) {
	for p := range permissions(role().Rules) {
		fewer := permissions(role().Rules)
		delete(fewer, p)
		if refused := newAuthorizer(fewer).ask(t); refused != p {
			t.Errorf("without %q the daemon was refused %q", p, refused)
		}
	}
}

// permissions are rules as "verb resource".
func permissions(rules []rbacv1.PolicyRule) map[string]bool {
	out := map[string]bool{}
	for _, r := range rules {
		for _, v := range r.Verbs {
			for _, resource := range r.Resources {
				group := map[string]string{"networkpolicies": "networking.k8s.io", "eniconfigs": "crd.k8s.amazonaws.com"}[resource]
				out[v+" "+resource] = slices.Equal(r.APIGroups, []string{group}) && len(r.ResourceNames)+len(r.NonResourceURLs) == 0
			}
		}
	}
	return out
}

// authorizer stands before an API server, as RBAC does.
type authorizer struct {
	granted map[string]bool
	cluster *oneNode
	next    http.Handler
	refused chan string // the first that was

	mu   sync.Mutex
	used map[string]bool
}

func newAuthorizer(granted map[string]bool) *authorizer {
	c := &oneNode{changed: make(chan struct{})}
	return &authorizer{granted: granted, cluster: c, next: server.Handler(c), refused: make(chan string, 1), used: map[string]bool{}}
}

func (a *authorizer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p := permission(r)
	a.mu.Lock()
	a.used[p] = true
	a.mu.Unlock()
	if a.granted[p] {
		a.next.ServeHTTP(w, r)
		return
	}
	w.WriteHeader(http.StatusForbidden)
	select {
	case a.refused <- p:
	default:
	}
}

// permission is what a request needs (k8s.io/apiserver/pkg/endpoints/request, RequestInfo).
func permission(r *http.Request) string {
	path := r.URL.Path
	for _, group := range []string{"/api/v1/", "/apis/networking.k8s.io/v1/", "/apis/crd.k8s.amazonaws.com/v1alpha1/"} {
		path = strings.TrimPrefix(path, group)
	}
	parts := strings.Split(path, "/")
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	verb := map[string]string{http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete"}[r.Method]
	if r.Method == http.MethodGet {
		verb = "get"
		if len(parts) == 1 {
			verb = "list"
		}
		if r.URL.Query().Get("watch") == "true" {
			verb = "watch"
		}
	}
	return verb + " " + parts[0]
}

// ask does what the daemon does: it makes an Event, asks for network policies, lists the node's pods, reads its ENIConfig, and watches the node
// until it is cordoned. It returns what was refused.
func (a *authorizer) ask(t *testing.T) (refused string) {
	t.Helper()
	s := httptest.NewServer(a)
	defer s.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := must.Get(kube.New(kube.Config{Node: "node-1", Endpoint: s.URL, Account: t.TempDir()}))(t)
	if err := r.Tell(ctx, "NetworkImpaired", "a test"); err != nil {
		return <-a.refused
	}
	defer r.Close()
	if _, err := r.HasPolicies(ctx); err != nil {
		return <-a.refused
	}
	var daemon daemon.Pods = r
	if pods, err := daemon.Pods(ctx); len(pods) != 1 && len(a.refused) == 0 {
		t.Fatalf("the node's pods: %v, %v", pods, err)
	}
	set := ipam.Defaults()
	if c, err := daemon.ENIConfig(ctx, &set); c.Subnet != "subnet-1" && len(a.refused) == 0 {
		t.Fatalf("the node's ENIConfig: %+v, %v", c, err)
	}
	facts := make(chan kube.NodeFacts)
	ended := make(chan error, 1)
	watching, stop := context.WithCancel(ctx)
	go func() {
		ended <- daemon.Watch(watching, func(f kube.NodeFacts) {
			select {
			case facts <- f:
			case <-watching.Done():
			}
		})
	}()
	defer func() { stop(); <-ended }()
	for {
		select {
		case refused := <-a.refused:
			return refused
		case f := <-facts:
			if f.Cordoned {
				return ""
			}
			a.cluster.cordon()
		case <-ctx.Done():
			t.Fatal("the watch has not said in time that the node was cordoned, and nothing was refused")
		}
	}
}

// oneNode is a cluster of one node with one pod.
type oneNode struct {
	mu       sync.Mutex
	cordoned bool
	changed  chan struct{}
}

func (c *oneNode) Pods(context.Context, string) ([]fake.Pod, error) {
	return []fake.Pod{{Namespace: "default", Name: "web-0", UID: "u-1"}}, nil
}

func (c *oneNode) Node(_ context.Context, name string) (server.NodeInfo, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return server.NodeInfo{UID: "n-1", Cordoned: c.cordoned, MaxPods: 17}, name == "node-1", nil
}

func (c *oneNode) ENIConfig(context.Context, string) (fake.ENIConfig, bool, error) {
	return fake.ENIConfig{Name: "default", Subnet: "subnet-1"}, true, nil
}

func (c *oneNode) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

func (c *oneNode) cordon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cordoned = true
	close(c.changed)
	c.changed = make(chan struct{})
}
