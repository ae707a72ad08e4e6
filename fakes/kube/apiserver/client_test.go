package apiserver_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/features"
	clientfeaturestesting "k8s.io/client-go/features/testing"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcore "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	"k8s.io/client-go/tools/record"

	"github.com/enilab/enilab/fakes/kube/apiserver"
	"github.com/enilab/enilab/internal/must"
)

// cluster is a Cluster that a test changes.
type cluster struct {
	mu      sync.Mutex
	now     apiserver.Objects
	changed chan struct{}
}

func (c *cluster) Look(context.Context) (apiserver.Objects, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, nil
}

func (c *cluster) Changed() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// change exchanges what the cluster has.
func (c *cluster) change(f func(*apiserver.Objects)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	next := apiserver.Objects{Nodes: slices.Clone(c.now.Nodes), Pods: slices.Clone(c.now.Pods), Custom: slices.Clone(c.now.Custom)}
	f(&next)
	c.now = next
	close(c.changed)
	c.changed = make(chan struct{})
}

func node(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), Labels: map[string]string{"kubernetes.io/hostname": name}},
		Status: corev1.NodeStatus{Capacity: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("29")},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}}}
}

func pod(name, node, app string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name), Labels: map[string]string{"app": app}},
		Spec:   corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "web", Image: "web"}}},
		Status: corev1.PodStatus{Phase: corev1.PodPending}}
}

// world is a server on a socket, and clients.
type world struct {
	t      *testing.T
	c      *cluster
	s      *apiserver.Server
	config *rest.Config
	*kubernetes.Clientset
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, c: &cluster{changed: make(chan struct{}), now: apiserver.Objects{Nodes: []*corev1.Node{node("node-1"), node("node-2")},
		Pods: []*corev1.Pod{pod("web-0", "node-1", "web"), pod("web-1", "node-2", "web"), pod("db-0", "node-1", "db")}}}}
	w.s = apiserver.New(w.c, apiserver.WithToken("secret"), apiserver.WithBookmarks(50*time.Millisecond))
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = apiserver.Serve(w.s)
	srv.Start()
	t.Cleanup(srv.Close)
	t.Cleanup(srv.CloseClientConnections)
	w.config = &rest.Config{Host: srv.URL, BearerToken: "secret", QPS: 1000, Burst: 1000}
	w.Clientset = must.Get(kubernetes.NewForConfig(w.config))(t)
	return w
}

// heard is what an informer said, in order.
type heard chan string

func (h heard) watch(t *testing.T, i cache.SharedIndexInformer, show func(any) string) {
	t.Helper()
	must.Get(i.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { h <- "add " + show(o) },
		UpdateFunc: func(_, o any) { h <- "update " + show(o) },
		DeleteFunc: func(o any) { h <- "delete " + show(o) },
	}))(t)
}

func (h heard) expect(t *testing.T, want ...string) {
	t.Helper()
	for len(want) > 0 {
		select {
		case got := <-h:
			at := slices.Index(want, got)
			if at < 0 {
				t.Fatalf("heard %q, expected one of %q", got, want)
			}
			want = slices.Delete(want, at, at+1)
		case <-time.After(20 * time.Second):
			t.Fatalf("heard nothing for 20 s, expected %q", want)
		}
	}
}

func name(o any) string { return o.(metav1.Object).GetName() }

// TestInformers: client-go's informers see the state and every change, by LIST and WATCH and by a watch that begins with the state.
func TestInformers(t *testing.T) {
	for _, watchList := range []bool{false, true} {
		t.Run(fmt.Sprint("WatchList=", watchList), func(t *testing.T) {
			clientfeaturestesting.SetFeatureDuringTest(t, features.WatchListClient, watchList)
			w := newWorld(t)
			f := informers.NewSharedInformerFactoryWithOptions(w.Clientset, 0, informers.WithTweakListOptions(func(o *metav1.ListOptions) {
				o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", "node-1").String()
			}))
			pods, nodes := make(heard, 100), make(heard, 100)
			pods.watch(t, f.Core().V1().Pods().Informer(), func(o any) string { return name(o) + " " + string(o.(*corev1.Pod).Status.Phase) })
			all := informers.NewSharedInformerFactory(w.Clientset, 0)
			nodes.watch(t, all.Core().V1().Nodes().Informer(), func(o any) string { return fmt.Sprint(name(o), " ", o.(*corev1.Node).Spec.Unschedulable) })
			stop := make(chan struct{})
			defer func() { close(stop); f.Shutdown(); all.Shutdown() }()
			f.Start(stop)
			all.Start(stop)
			f.WaitForCacheSync(stop)
			all.WaitForCacheSync(stop)
			pods.expect(t, "add web-0 Pending", "add db-0 Pending")
			nodes.expect(t, "add node-1 false", "add node-2 false")
			w.c.change(func(o *apiserver.Objects) {
				p := o.Pods[0].DeepCopy()
				p.Status.Phase = corev1.PodRunning
				o.Pods[0] = p
				n := o.Nodes[1].DeepCopy()
				n.Spec.Unschedulable = true
				o.Nodes[1] = n
				o.Pods = append(o.Pods, pod("web-2", "node-1", "web"), pod("web-3", "node-2", "web"))
			})
			pods.expect(t, "update web-0 Running", "add web-2 Pending")
			nodes.expect(t, "update node-2 true")
			w.c.change(func(o *apiserver.Objects) { o.Pods, o.Nodes = o.Pods[1:], o.Nodes[1:] })
			pods.expect(t, "delete web-0 Running")
			nodes.expect(t, "delete node-1 false")
		})
	}
}

// TestWrites: what clients write is kept, seen by others, and stays when the cluster changes.
func TestWrites(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	seen := must.Get(w.CoreV1().Nodes().Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=node-1"}))(t)
	defer seen.Stop()
	n := (<-seen.ResultChan()).Object.(*corev1.Node)
	n.Labels["vpc.amazonaws.com/has-trunk-attached"] = "true"
	n.Status.Phase = corev1.NodeTerminated
	updated, err := w.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{})
	if err != nil || updated.Labels["vpc.amazonaws.com/has-trunk-attached"] != "true" || updated.Status.Phase != "" {
		t.Fatalf("%v, %+v", err, updated)
	}
	if e := <-seen.ResultChan(); e.Type != "MODIFIED" || e.Object.(*corev1.Node).ResourceVersion != updated.ResourceVersion {
		t.Errorf("the watch saw %+v", e)
	}
	if _, err := w.CoreV1().Nodes().Update(ctx, n, metav1.UpdateOptions{}); !apierrors.IsConflict(err) {
		t.Errorf("a stale update: %v, expected a conflict", err)
	}
	_, err = w.CoreV1().Nodes().PatchStatus(ctx, "node-1", []byte(`{"status":{"capacity":{"vpc.amazonaws.com/pod-eni":"9"},"conditions":[{"type":"NetworkUnavailable","status":"False"}]}}`))
	must.Do(t, err)
	w.c.change(func(o *apiserver.Objects) {
		n := o.Nodes[0].DeepCopy()
		n.Status.Conditions[0].Status = corev1.ConditionFalse
		n.Labels["zone"] = "a"
		o.Nodes[0] = n
	})
	n, err = w.CoreV1().Nodes().Get(ctx, "node-1", metav1.GetOptions{})
	if err != nil || n.Status.Capacity.Name("vpc.amazonaws.com/pod-eni", resource.DecimalSI).Value() != 9 || n.Status.Capacity.Pods().Value() != 29 || len(n.Status.Conditions) != 2 ||
		n.Status.Conditions[0].Status != corev1.ConditionFalse || n.Labels["zone"] != "a" || n.Labels["vpc.amazonaws.com/has-trunk-attached"] != "true" {
		t.Errorf("%v: %+v", err, n)
	}
	for kind, patch := range map[types.PatchType]string{
		types.MergePatchType:          `{"metadata":{"annotations":{"a":"1"}}}`,
		types.StrategicMergePatchType: `{"metadata":{"annotations":{"b":"2"}}}`,
		types.JSONPatchType:           `[{"op":"add","path":"/metadata/labels/c","value":"3"}]`,
	} {
		if _, err := w.CoreV1().Pods("default").Patch(ctx, "web-0", kind, []byte(patch), metav1.PatchOptions{}); err != nil {
			t.Errorf("%s: %v", kind, err)
		}
	}
	p, err := w.CoreV1().Pods("default").Get(ctx, "web-0", metav1.GetOptions{})
	if err != nil || p.Annotations["a"] != "1" || p.Annotations["b"] != "2" || p.Labels["c"] != "3" || p.Labels["app"] != "web" {
		t.Errorf("%v: %+v", err, p)
	}
	if err := w.CoreV1().Pods("default").Delete(ctx, "web-0", metav1.DeleteOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("deleting a pod: %v, expected Forbidden", err)
	}
}

// TestLists: selectors and pages.
func TestLists(t *testing.T) {
	w := newWorld(t)
	for _, row := range []struct {
		namespace, labels, fields string
		want                      []string
	}{
		{"", "", "", []string{"db-0", "web-0", "web-1"}},
		{"default", "app=web", "", []string{"web-0", "web-1"}},
		{"", "app in (db)", "spec.nodeName=node-1,status.phase!=Running", []string{"db-0"}},
		{"", "!app", "", nil},
		{"kube-system", "", "", nil},
		{"", "", "metadata.name=web-1", []string{"web-1"}},
	} {
		list, err := w.CoreV1().Pods(row.namespace).List(t.Context(), metav1.ListOptions{LabelSelector: row.labels, FieldSelector: row.fields})
		var got []string
		for _, p := range list.Items {
			got = append(got, p.Name)
		}
		if err != nil || !slices.Equal(got, row.want) {
			t.Errorf("%+v: %v, %v", row, got, err)
		}
	}
	first, err := w.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 2})
	if err != nil || len(first.Items) != 2 || *first.RemainingItemCount != 1 {
		t.Fatalf("%v, %+v", err, first)
	}
	rest, err := w.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{Limit: 2, Continue: first.Continue})
	if err != nil || len(rest.Items) != 1 || rest.Continue != "" || rest.ResourceVersion != first.ResourceVersion {
		t.Errorf("%v, %+v", err, rest)
	}
	if _, err := w.CoreV1().Pods("").List(t.Context(), metav1.ListOptions{FieldSelector: "spec.color=red"}); !apierrors.IsBadRequest(err) {
		t.Errorf("%v, expected a bad request", err)
	}
}

// TestDiscovery: discovery finds what CNIs ask for.
func TestDiscovery(t *testing.T) {
	w := newWorld(t)
	v, err := w.Discovery().ServerVersion()
	if err != nil || v.GitVersion != apiserver.Version || v.Major != "1" || v.Minor != "33" {
		t.Errorf("%v, %+v", err, v)
	}
	groups, lists, err := w.Discovery().ServerGroupsAndResources()
	if err != nil || len(groups) < 5 {
		t.Fatalf("%v, %+v", err, groups)
	}
	found := map[string]bool{}
	for _, l := range lists {
		for _, r := range l.APIResources {
			found[l.GroupVersion+"/"+r.Name] = true
		}
	}
	for _, want := range []string{"v1/nodes", "v1/pods/status", "crd.k8s.amazonaws.com/v1alpha1/eniconfigs", "vpcresources.k8s.aws/v1alpha1/cninodes",
		"vpcresources.k8s.aws/v1beta1/securitygrouppolicies", "networking.k8s.aws/v1alpha1/policyendpoints", "coordination.k8s.io/v1/leases"} {
		if !found[want] {
			t.Errorf("%s is not found", want)
		}
	}
}

// TestCustom: the dynamic client reads and writes custom resources, also of a CustomResourceDefinition that it makes.
func TestCustom(t *testing.T) {
	w := newWorld(t)
	d := must.Get(dynamic.NewForConfig(w.config))(t)
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "ciliumnodes.cilium.io"}, "spec": map[string]any{"group": "cilium.io", "scope": "Cluster",
			"names":    map[string]any{"plural": "ciliumnodes", "kind": "CiliumNode"},
			"versions": []any{map[string]any{"name": "v2", "served": true, "storage": true, "subresources": map[string]any{"status": map[string]any{}}}}}}}
	nodes := schema.GroupVersionResource{Group: "cilium.io", Version: "v2", Resource: "ciliumnodes"}
	if _, err := d.Resource(nodes).List(t.Context(), metav1.ListOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("before there is a definition: %v", err)
	}
	must.Get(d.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}).
		Create(t.Context(), crd, metav1.CreateOptions{}))(t)
	made, err := d.Resource(nodes).Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{"apiVersion": "cilium.io/v2", "kind": "CiliumNode",
		"metadata": map[string]any{"name": "node-1"}, "spec": map[string]any{"eni": map[string]any{"first-interface-index": int64(1)}}}}, metav1.CreateOptions{})
	must.Do(t, err)
	made.Object["status"] = map[string]any{"ok": true}
	if made, err = d.Resource(nodes).UpdateStatus(t.Context(), made, metav1.UpdateOptions{}); err != nil || made.Object["status"] == nil {
		t.Fatalf("%v, %+v", err, made)
	}
	list, err := d.Resource(nodes).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetKind() != "CiliumNode" {
		t.Errorf("%v, %+v", err, list)
	}
	if err := d.Resource(nodes).Delete(t.Context(), "node-1", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
	configs := schema.GroupVersionResource{Group: "crd.k8s.amazonaws.com", Version: "v1alpha1", Resource: "eniconfigs"}
	empty, err := d.Resource(configs).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(empty.Items) != 0 {
		t.Errorf("%v, %+v", err, empty)
	}
	watch, err := d.Resource(configs).Watch(t.Context(), metav1.ListOptions{ResourceVersion: empty.GetResourceVersion()})
	must.Do(t, err)
	defer watch.Stop()
	must.Do(t, w.s.Put(map[string]any{"apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": "ENIConfig", "metadata": map[string]any{"name": "us-west-2a"},
		"spec": map[string]any{"subnet": "subnet-1"}}))
	if e := <-watch.ResultChan(); e.Type != "ADDED" || name(e.Object) != "us-west-2a" {
		t.Errorf("the watch saw %+v", e)
	}
	of := func(kind, subnet string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "crd.k8s.amazonaws.com/v1alpha1", "kind": kind,
			"metadata": map[string]any{"name": "us-west-2b"}, "spec": map[string]any{"subnet": subnet}}}
	}
	for _, c := range []struct {
		custom []*unstructured.Unstructured
		event  string
	}{
		{[]*unstructured.Unstructured{of("ENIConfig", "subnet-2"), of("Unserved", "subnet-2")}, "ADDED subnet-2"},
		{[]*unstructured.Unstructured{of("ENIConfig", "subnet-3")}, "MODIFIED subnet-3"},
		{nil, "DELETED subnet-3"},
	} {
		w.c.change(func(o *apiserver.Objects) { o.Custom = c.custom })
		e := <-watch.ResultChan()
		subnet, _, _ := unstructured.NestedString(e.Object.(*unstructured.Unstructured).Object, "spec", "subnet")
		if got := string(e.Type) + " " + subnet; got != c.event {
			t.Errorf("the watch saw %s, expected %s", got, c.event)
		}
	}
}

// TestLeader: an election by a lease, and events.
func TestLeader(t *testing.T) {
	w := newWorld(t)
	b := record.NewBroadcaster()
	defer b.Shutdown()
	b.StartRecordingToSink(&typedcore.EventSinkImpl{Interface: w.CoreV1().Events("")})
	recorder := b.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "aws-node"})
	lead := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		leaderelection.RunOrDie(ctx, leaderelection.LeaderElectionConfig{
			Lock: &resourcelock.LeaseLock{LeaseMeta: metav1.ObjectMeta{Name: "one", Namespace: "kube-system"}, Client: w.CoordinationV1(),
				LockConfig: resourcelock.ResourceLockConfig{Identity: "me"}},
			LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond, ReleaseOnCancel: true,
			Callbacks: leaderelection.LeaderCallbacks{OnStartedLeading: func(context.Context) { close(lead) }, OnStoppedLeading: func() {}},
		})
	}()
	<-lead
	events, err := w.CoreV1().Events("default").Watch(t.Context(), metav1.ListOptions{FieldSelector: "involvedObject.name=web-0"})
	must.Do(t, err)
	defer events.Stop()
	for range 2 { // the second is a PATCH of the first
		recorder.Event(pod("web-0", "node-1", "web"), corev1.EventTypeWarning, "MissingIAMPermissions", "no")
	}
	for _, want := range []string{"ADDED 1", "MODIFIED 2"} {
		e := <-events.ResultChan()
		if got := fmt.Sprint(e.Type, " ", e.Object.(*corev1.Event).Count); got != want {
			t.Errorf("event %q, expected %q", got, want)
		}
	}
	cancel()
	<-done
	var lease *coordinationv1.Lease
	if lease, err = w.CoordinationV1().Leases("kube-system").Get(t.Context(), "one", metav1.GetOptions{}); err != nil || *lease.Spec.HolderIdentity != "" {
		t.Errorf("%v, %+v", err, lease)
	}
}

// play sends the server a request of a fuzzer's.
func play(t *testing.T, s *apiserver.Server, method, target, body, kind string) {
	t.Helper()
	if strings.Contains(strings.ToLower(target), "watch") {
		t.Skip("it would wait")
	}
	r, err := http.NewRequestWithContext(t.Context(), method, "http://server"+target, strings.NewReader(body))
	if err != nil || method == http.MethodHead {
		t.Skip("net/http refuses it, or it has no body")
	}
	r.Header.Set("Content-Type", kind)
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	if strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		return // health
	}
	var a map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || len(a) == 0 {
		t.Errorf("%s %q: %v: %s", method, target, err, w.Body)
	}
}
