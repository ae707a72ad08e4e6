package server

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/kube"
	"github.com/enilab/enilab/internal/must"
)

// backend is a model's cluster and its nodes, behind a lock.
type backend struct {
	mu      sync.Mutex
	cluster *kube.Cluster
	nodes   map[string]NodeInfo
	changed chan struct{}
	err     error
}

func (b *backend) Pods(_ context.Context, node string) ([]kube.Pod, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if node != "node-1" {
		return nil, b.err
	}
	return slices.Clone(b.cluster.ListPods(1)), b.err
}

func (b *backend) Node(_ context.Context, name string) (NodeInfo, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	v, ok := b.nodes[name]
	return v, ok, b.err
}

func (b *backend) ENIConfig(_ context.Context, name string) (kube.ENIConfig, bool, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, _, ok := b.cluster.ENIConfig(name)
	return e, ok, b.err
}

func (b *backend) Changed() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.changed
}

// change changes the cluster and tells watchers.
func (b *backend) change(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f()
	close(b.changed)
	b.changed = make(chan struct{})
}

type world struct {
	t   testing.TB
	b   *backend
	srv *httptest.Server
}

func newWorld(t testing.TB, options ...Option) *world {
	t.Helper()
	b := &backend{cluster: kube.New(3), changed: make(chan struct{}), nodes: map[string]NodeInfo{
		"node-1": {UID: "uid-1", MaxPods: 29, Address: netip.MustParseAddr("10.0.0.4"), Instance: "i-1", Type: "m5.large", Zone: "us-west-2a"},
		"node-2": {},
	}}
	must.Do(t, b.cluster.CreateWorkload(time.Minute, kube.Spec{Name: "web", Replicas: 7, Nodes: []int{1}}))
	w := &world{t: t, b: b, srv: httptest.NewUnstartedServer(nil)}
	w.srv.Config = Server(Handler(b, options...))
	w.srv.Start()
	t.Cleanup(w.srv.Close)
	return w
}

// answer is any object of the API.
type answer struct {
	Kind     string
	Code     int
	Reason   string
	Metadata struct{ Name, UID, ResourceVersion, Continue, DeletionTimestamp, CreationTimestamp string }
	Spec     nodeSpec
	Status   json.RawMessage
	Items    []pod
}

func (w *world) get(path string, header ...string) (a answer, status int) {
	w.t.Helper()
	p := must.Get(w.do(w.t.Context(), http.MethodGet, path, header...))(w.t)
	b, err := io.ReadAll(p.Body)
	if err := errors.Join(err, p.Body.Close(), json.Unmarshal(b, &a)); err != nil {
		w.t.Fatalf("%s: %v: %s", path, err, b)
	}
	return a, p.StatusCode
}

func (w *world) do(ctx context.Context, method, path string, header ...string) (*http.Response, error) {
	w.t.Helper()
	r := must.Get(http.NewRequestWithContext(ctx, method, w.srv.URL+path, nil))(w.t)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return w.srv.Client().Do(r)
}

const (
	oneNode = "/api/v1/nodes?fieldSelector=metadata.name%3Dnode-1"
	onePods = "/api/v1/pods?fieldSelector=spec.nodeName%3Dnode-1"
)

func TestNode(t *testing.T) {
	w := newWorld(t, WithEpoch(time.Unix(1e9, 0)))
	n, status := w.get("/api/v1/nodes/node-1")
	var s nodeState
	if err := json.Unmarshal(n.Status, &s); err != nil || status != 200 {
		t.Fatal(status, err)
	}
	if n.Kind != "Node" || n.Metadata.Name != "node-1" || n.Metadata.UID != "uid-1" || n.Spec.Unschedulable || n.Spec.ProviderID != "aws:///us-west-2a/i-1" ||
		s.Allocatable["pods"] != "29" || s.Conditions[0].Status != "True" || s.Addresses[1].Address != "10.0.0.4" || n.Metadata.CreationTimestamp != "2001-09-09T01:46:40Z" {
		t.Errorf("found %+v, %+v", n, s)
	}
	again, _ := w.get("/api/v1/nodes/node-1")
	if again.Metadata.ResourceVersion != n.Metadata.ResourceVersion {
		t.Errorf("version %s became %s, and nothing has changed", n.Metadata.ResourceVersion, again.Metadata.ResourceVersion)
	}
	w.b.change(func() { w.b.nodes["node-1"] = NodeInfo{UID: "uid-1", Cordoned: true, NotReady: true} })
	again, _ = w.get("/api/v1/nodes/node-1")
	if !again.Spec.Unschedulable || again.Spec.Taints[0].Key != "node.kubernetes.io/unschedulable" || again.Metadata.ResourceVersion == n.Metadata.ResourceVersion {
		t.Errorf("cordoned: found %+v", again)
	}
	list, status := w.get(oneNode)
	if status != 200 || list.Kind != "NodeList" || len(list.Items) != 1 || list.Items[0].Metadata.Name != "node-1" || list.Metadata.ResourceVersion == "" {
		t.Errorf("list: status %d, %+v", status, list)
	}
	if none, status := w.get("/api/v1/nodes?fieldSelector=metadata.name==node-9"); status != 200 || len(none.Items) != 0 {
		t.Errorf("list of nothing: status %d, %+v", status, none)
	}
}

func TestPods(t *testing.T) {
	w := newWorld(t)
	first := ""
	w.b.change(func() {
		p := w.b.cluster.ListPods(1)[0]
		first = p.Name
		w.b.cluster.PodStarted(2*time.Minute, p.UID, netip.MustParseAddr("10.0.0.7"))
	})
	all, status := w.get(onePods)
	if status != 200 || all.Kind != "PodList" || len(all.Items) != 7 {
		t.Fatalf("status %d, %d pods", status, len(all.Items))
	}
	p := all.Items[0]
	if p.Metadata.Name != first || p.Metadata.UID == "" || p.Spec.NodeName != "node-1" || p.Status.Phase != "Running" || p.Status.PodIP != "10.0.0.7" || p.Metadata.DeletionTimestamp != "" || all.Items[1].Status.Phase != "Pending" {
		t.Errorf("found %+v", p)
	}
	w.b.change(func() { w.b.cluster.DeletePod(3*time.Minute, "default/"+first, 0) })
	now, _ := w.get(onePods)
	if p := now.Items[0]; p.Metadata.DeletionTimestamp == "" || p.Metadata.ResourceVersion == all.Items[0].Metadata.ResourceVersion {
		t.Errorf("being deleted: found %+v", p)
	}
	if none, status := w.get("/api/v1/pods?fieldSelector=spec.nodeName=node-2"); status != 200 || len(none.Items) != 0 {
		t.Errorf("another node: status %d, %d pods", status, len(none.Items))
	}
}

// TestContinue: a list in pieces is the list as it was when the first piece was read.
func TestContinue(t *testing.T) {
	w := newWorld(t)
	var want, found []string
	whole, _ := w.get(onePods)
	for _, p := range whole.Items {
		want = append(want, p.Metadata.UID)
	}
	next, pieces := "", 0
	for {
		a, status := w.get(onePods + "&limit=3&continue=" + next)
		if status != 200 {
			t.Fatalf("status %d: %+v", status, a)
		}
		for _, p := range a.Items {
			found = append(found, p.Metadata.UID)
		}
		if pieces++; pieces == 1 {
			w.b.change(func() { w.b.cluster.Scale(time.Hour, "web", 1) })
		}
		if next = a.Metadata.Continue; next == "" {
			break
		}
	}
	if !slices.Equal(found, want) || pieces != 3 {
		t.Errorf("in %d pieces %v, expected %v", pieces, found, want)
	}
	first, _ := w.get(onePods + "&limit=3")
	if a, status := w.get("/api/v1/pods?fieldSelector=spec.nodeName=node-2&continue=" + first.Metadata.Continue); status != 400 {
		t.Errorf("a token of another list: status %d, %+v", status, a)
	}
	for range snapshotLimit {
		w.get(onePods + "&limit=3")
	}
	if a, status := w.get(onePods + "&continue=" + first.Metadata.Continue); status != 410 || a.Reason != "Expired" {
		t.Errorf("a token that is too old: status %d, %+v", status, a)
	}
}

// TestRefused: bad paths, verbs, queries.
func TestRefused(t *testing.T) {
	w := newWorld(t)
	rows := []struct {
		path   string
		status int
		reason string
	}{
		{"/api/v1/nodes/node-9", 404, "NotFound"},
		{"/api/v1/nodes/node-1/status", 404, "NotFound"},
		{"/api/v1/nodes/..%2f..%2fetc", 404, "NotFound"},
		{"/api/v1/nodes/", 404, "NotFound"},
		{"/api/v1/nodes/../pods", 404, "NotFound"},
		{"/api/v1/pods/web", 404, "NotFound"},
		{"/api/v1/secrets", 404, "NotFound"},
		{"/apis/apps/v1/deployments", 404, "NotFound"},
		{"/", 404, "NotFound"},
		{"/api/v1/nodes", 403, "Forbidden"},
		{"/api/v1/pods", 403, "Forbidden"},
		{"/api/v1/pods?fieldSelector=spec.nodeName=", 403, "Forbidden"},
		{"/api/v1/pods?fieldSelector=metadata.name=x", 400, "BadRequest"},
		{"/api/v1/pods?fieldSelector=spec.nodeName%21=x", 400, "BadRequest"},
		{"/api/v1/pods?fieldSelector=spec.nodeName=x,status.phase=Running", 400, "BadRequest"},
		{"/api/v1/pods?fieldSelector=spec.nodeName", 400, "BadRequest"},
		{onePods + "&labelSelector=app=x", 400, "BadRequest"},
		{onePods + "&limit=-1", 400, "BadRequest"},
		{onePods + "&limit=x", 400, "BadRequest"},
		{onePods + "&continue=x", 400, "BadRequest"},
		{onePods + "&continue=MS8tMQ", 400, "BadRequest"}, // "1/-1"
		{onePods + "&watch=1", 405, "MethodNotAllowed"},
		{onePods + "&watch=maybe", 400, "BadRequest"},
		{onePods + "&%zz=1", 400, "BadRequest"},
		{oneNode + "&watch=1&resourceVersion=x", 400, "BadRequest"},
		{oneNode + "&watch=1&timeoutSeconds=-1", 400, "BadRequest"},
		{oneNode + "&watch=1&allowWatchBookmarks=x", 400, "BadRequest"},
		{"/api/v1/nodes?watch=1", 403, "Forbidden"},
	}
	for _, r := range rows {
		if a, status := w.get(r.path); status != r.status || a.Reason != r.reason || a.Kind != "Status" || a.Code != status {
			t.Errorf("%s: status %d, %+v; expected %d, %s", r.path, status, a, r.status, r.reason)
		}
	}
	for _, accept := range []string{"application/vnd.kubernetes.protobuf", "application/json;as=Table;v=v1;g=meta.k8s.io", "text/html"} {
		if _, status := w.get("/api/v1/nodes/node-1", "Accept", accept); status != 406 {
			t.Errorf("accepting %s: status %d, expected 406", accept, status)
		}
	}
	if _, status := w.get("/api/v1/nodes/node-1", "Accept", "application/vnd.kubernetes.protobuf, application/json"); status != 200 {
		t.Errorf("accepting JSON too: status %d", status)
	}
	for _, method := range []string{"POST", "PUT", "DELETE", "PATCH", "HEAD", "BREW"} {
		p, err := w.do(t.Context(), method, "/api/v1/nodes/node-1")
		if err != nil || p.StatusCode != 405 {
			t.Errorf("%s: %v, %+v, expected status 405", method, err, p)
			continue
		}
		_ = p.Body.Close()
	}
}

func TestToken(t *testing.T) {
	w := newWorld(t, WithToken("secret"))
	for _, header := range []string{"", "secret", "Bearer", "Bearer ", "Bearer secrets", "bearer secret", "Basic secret"} {
		if a, status := w.get("/api/v1/nodes/node-1", "Authorization", header); status != 401 || a.Reason != "Unauthorized" {
			t.Errorf("%q: status %d, expected 401", header, status)
		}
	}
	if _, status := w.get("/api/v1/nodes/node-1", "Authorization", "Bearer secret"); status != 200 {
		t.Errorf("the token: status %d", status)
	}
}

// TestDropped: an error of the Backend is a connection without an answer.
func TestDropped(t *testing.T) {
	w := newWorld(t)
	w.b.err = errors.New("the API server is down")
	for _, path := range []string{"/api/v1/nodes/node-1", oneNode, onePods, oneNode + "&watch=1"} {
		if p, err := w.do(t.Context(), http.MethodGet, path); err == nil {
			t.Errorf("%s: status %d, expected no answer", path, p.StatusCode)
			_ = p.Body.Close()
		}
	}
}

// stream is a watch that is read line by line.
type stream struct {
	t      testing.TB
	lines  chan string
	cancel context.CancelFunc
}

func (w *world) watch(query string) *stream {
	w.t.Helper()
	ctx, cancel := context.WithCancel(w.t.Context())
	p, err := w.do(ctx, http.MethodGet, oneNode+"&watch=true"+query)
	if err != nil || p.StatusCode != 200 {
		w.t.Fatalf("watch%s: %v, %+v", query, err, p)
	}
	s := &stream{w.t, make(chan string, 100), cancel}
	go func() {
		defer close(s.lines)
		for in := bufio.NewScanner(p.Body); in.Scan(); {
			s.lines <- in.Text()
		}
		_ = p.Body.Close()
	}()
	w.t.Cleanup(cancel)
	return s
}

// next is one event, as "TYPE VERSION cordoned", or "end".
func (s *stream) next() string {
	s.t.Helper()
	select {
	case line, more := <-s.lines:
		if !more {
			return "end"
		}
		var e struct {
			Type   string
			Object answer
		}
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			s.t.Fatalf("%v: %s", err, line)
		}
		if e.Type == "ERROR" {
			return fmt.Sprint("ERROR ", e.Object.Code, " ", e.Object.Reason)
		}
		return fmt.Sprint(e.Type, " ", e.Object.Metadata.ResourceVersion, " ", e.Object.Spec.Unschedulable)
	case <-time.After(20 * time.Second):
		s.t.Fatal("no event for 20 s")
	}
	return ""
}

func (s *stream) expect(want string) {
	s.t.Helper()
	if got := s.next(); got != want {
		s.t.Fatalf("event %q, expected %q", got, want)
	}
}

func (w *world) cordon(on bool) {
	w.b.change(func() {
		v := w.b.nodes["node-1"]
		v.Cordoned = on
		w.b.nodes["node-1"] = v
	})
}

func TestWatch(t *testing.T) {
	w := newWorld(t)
	fresh := w.watch("")
	fresh.expect("ADDED 1001 false")
	w.cordon(true)
	fresh.expect("MODIFIED 1002 true")
	w.b.change(func() { w.b.nodes["node-2"] = NodeInfo{MaxPods: 5} }) // somebody else's
	w.cordon(false)
	fresh.expect("MODIFIED 1003 false")

	late := w.watch("&resourceVersion=1001")
	late.expect("MODIFIED 1002 true")
	late.expect("MODIFIED 1003 false")
	w.b.change(func() { delete(w.b.nodes, "node-1") })
	for _, s := range []*stream{fresh, late} {
		s.expect("DELETED 1004 false")
	}
	empty := w.watch("&resourceVersion=0")
	w.b.change(func() { w.b.nodes["node-1"] = NodeInfo{} })
	empty.expect("ADDED 1005 false")
	fresh.expect("ADDED 1005 false")

	w.watch("&resourceVersion=9999").expect("ERROR 504 Timeout")
	w.watch("&resourceVersion=1").expect("ERROR 410 Expired")
	gone := w.watch("&resourceVersion=999")
	gone.expect("ERROR 410 Expired")
	gone.expect("end")
}

// TestForgotten: a watch from before what is remembered must begin anew; one from within misses nothing.
func TestForgotten(t *testing.T) {
	w := newWorld(t)
	first, _ := w.get("/api/v1/nodes/node-1")
	for i := range logLimit {
		w.cordon(i%2 == 0)
		w.get("/api/v1/nodes/node-1")
	}
	w.watch("&resourceVersion=" + first.Metadata.ResourceVersion).expect("MODIFIED 1002 true")
	w.cordon(true)
	w.get("/api/v1/nodes/node-1")
	w.cordon(false)
	w.get("/api/v1/nodes/node-1")
	w.watch("&resourceVersion=" + first.Metadata.ResourceVersion).expect("ERROR 410 Expired")
}

func TestBookmarks(t *testing.T) {
	w := newWorld(t, WithBookmarks(20*time.Millisecond))
	s := w.watch("&allowWatchBookmarks=true")
	s.expect("ADDED 1001 false")
	s.expect("BOOKMARK 1001 false")
	s.expect("BOOKMARK 1001 false")
	quiet := w.watch("&timeoutSeconds=1")
	quiet.expect("ADDED 1001 false")
	quiet.expect("end")
}

// TestPatient: a watch outlives what a request may take to arrive.
func TestPatient(t *testing.T) {
	const readIn = 300 * time.Millisecond // on a busy machine too
	w := newWorld(t)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = Server(Handler(w.b))
	srv.Config.ReadTimeout = readIn
	srv.Start()
	t.Cleanup(srv.Close)
	w.srv = srv
	s := w.watch("")
	s.expect("ADDED 1001 false")
	time.AfterFunc(3*readIn, func() { w.cordon(true) })
	s.expect("MODIFIED 1002 true")
}

// TestTogether: many readers at once see each change once, in order.
func TestTogether(t *testing.T) {
	w := newWorld(t)
	var streams []*stream
	for range 8 {
		s := w.watch("")
		s.expect("ADDED 1001 false")
		streams = append(streams, s)
	}
	for i := range 20 {
		w.cordon(i%2 == 0)
		want := fmt.Sprintf("MODIFIED %d %v", 1002+i, i%2 == 0)
		for _, s := range streams {
			s.expect(want)
		}
	}
}

// TestNames: asking for names that do not exist costs no memory without end.
func TestNames(t *testing.T) {
	b := newWorld(t).b
	a := newAPI(b)
	for i := range nodeLimit + 10 {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequest(http.MethodGet, fmt.Sprint("/api/v1/nodes/none-", i), nil))
		if w.Code != 404 {
			t.Fatal(w.Code)
		}
	}
	if n := len(a.log.known); n > nodeLimit {
		t.Errorf("%d names are kept", n)
	}
}

// FuzzRequest: no path and query makes the server panic or answer anything but a JSON object.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{oneNode, onePods + "&limit=1&continue=MS8x", "/api/v1/nodes/x", "/api/v1//", "/%"} {
		f.Add(path)
	}
	b := newWorld(f).b
	h := Handler(b)
	f.Fuzz(func(t *testing.T, target string) {
		if strings.Contains(strings.ToLower(target), "watch") {
			t.Skip("it would wait")
		}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		u, err := r.URL.Parse(target)
		if err != nil {
			t.Skip("net/http refuses it")
		}
		r.URL = u
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		var a struct{ Kind string }
		if err := json.Unmarshal(w.Body.Bytes(), &a); err != nil || a.Kind == "" {
			t.Errorf("%q: %v: %s", target, err, w.Body)
		}
	})
}

// BenchmarkPods lists 110 pods over HTTP.
func BenchmarkPods(b *testing.B) {
	w := newWorld(b)
	w.b.cluster.Scale(0, "web", 110)
	for b.Loop() {
		p := must.Get(w.do(b.Context(), http.MethodGet, onePods))(b)
		must.Get(io.Copy(io.Discard, p.Body))(b)
		_ = p.Body.Close()
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}

// BenchmarkNode reads a node over HTTP.
func BenchmarkNode(b *testing.B) {
	w := newWorld(b)
	for b.Loop() {
		if _, status := w.get("/api/v1/nodes/node-1"); status != 200 {
			b.Fatal(status)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
