package netns_test

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/enilab/enilab/fakes/kube/apiserver"
	"github.com/enilab/enilab/internal/must"
)

// TestWholeCluster: an informer of client-go sees every pod of every node, and each change without having asked for it. ENIConfigs are there too.
func TestWholeCluster(t *testing.T) {
	w := open(t, `# Pods come and go, and an informer of the whole cluster sees it.
cluster nodes=2 type=m5.large vpc=10.0.0.0/16 subnet=10.0.40.0/24 subnets=10.0.42.0/24 eniconfigs=us-west-2a:2:sg-pods runtime=containerd
start   pods web 2 on node-*
at 1h   expect kube pods.ready == 4
`)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = apiserver.Serve(apiserver.New(w.WholeCluster()))
	srv.Start()
	defer srv.Close()
	defer srv.CloseClientConnections()
	client := must.Get(kubernetes.NewForConfig(&rest.Config{Host: srv.URL}))(t)
	config := make(chan string, 1)
	go func() {
		data, err := client.Discovery().RESTClient().Get().AbsPath("/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/us-west-2a").DoRaw(t.Context())
		config <- fmt.Sprintf("%s, %v", data, err)
	}()
	var mu sync.Mutex
	pods, nodes := map[string]*corev1.Pod{}, map[string]*corev1.Node{}
	put := func(o any) {
		mu.Lock()
		defer mu.Unlock()
		switch o := o.(type) {
		case *corev1.Pod:
			pods[o.Name] = o
		case *corev1.Node:
			nodes[o.Name] = o
		}
	}
	handler := cache.ResourceEventHandlerFuncs{AddFunc: put, UpdateFunc: func(_, o any) { put(o) }, DeleteFunc: func(o any) {
		mu.Lock()
		defer mu.Unlock()
		if p, ok := o.(*corev1.Pod); ok {
			delete(pods, p.Name)
		}
	}}
	f := informers.NewSharedInformerFactory(client, 0)
	for _, i := range []cache.SharedIndexInformer{f.Core().V1().Pods().Informer(), f.Core().V1().Nodes().Informer()} {
		must.Get(i.AddEventHandler(handler))(t)
	}
	stop := make(chan struct{})
	defer func() { close(stop); srv.CloseClientConnections(); f.Shutdown() }()
	f.Start(stop)

	// seen lets the world go on until the informer has seen that.
	seen := func(what string, holds func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; {
			mu.Lock()
			ok := holds()
			mu.Unlock()
			if ok {
				return
			}
			if time.Now().After(end) {
				mu.Lock()
				defer mu.Unlock()
				t.Fatalf("the informer has not seen %s for a minute: %v, %v", what, pods, nodes)
			}
			w.Until(w.Now()+5*time.Second, nil)
		}
	}
	running := func(count int) func() bool {
		return func() bool {
			for _, p := range pods {
				if p.Status.Phase != corev1.PodRunning || p.Status.PodIP == "" || p.Spec.NodeName == "" || p.Status.HostIP == "" || p.DeletionTimestamp != nil {
					return false
				}
			}
			return len(pods) == count && len(nodes) == 2
		}
	}
	seen("four pods that run", running(4))
	w.Kube.Scale(w.Clock(), "web", 6)
	seen("six", running(6))
	w.Kube.Scale(w.Clock(), "web", 3)
	seen("three", running(3))
	w.Kube.Cordon(w.Clock(), 1, true)
	seen("a cordoned node", func() bool { return nodes["node-1"].Spec.Unschedulable && !nodes["node-2"].Spec.Unschedulable })
	want := `"spec":{"securityGroups":["sg-pods"],"subnet":"` + string(w.EC2.Subnets()[1].ID) + `"}`
	if got := <-config; !strings.Contains(got, want) {
		t.Errorf("ENIConfig: expected %s, found %s", want, got)
	}
	if n := nodes["node-2"]; n.Status.Allocatable.Pods().IsZero() || n.Labels[corev1.LabelTopologyZone] == "" || len(n.Status.Addresses) != 2 {
		t.Errorf("node-2 is %+v", n)
	}
}
