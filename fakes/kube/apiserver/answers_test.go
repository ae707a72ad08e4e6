package apiserver_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/enilab/enilab/fakes/kube/apiserver"
	"github.com/enilab/enilab/internal/must"
)

// ask is one request, by hand.
func (w *world) ask(method, path, body string, header ...string) (code int, answer map[string]any) {
	w.t.Helper()
	r := must.Get(http.NewRequestWithContext(w.t.Context(), method, w.config.Host+path, strings.NewReader(body)))(w.t)
	r.Header.Set("Authorization", "Bearer secret")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	p := must.Get(http.DefaultClient.Do(r))(w.t)
	defer func() { _ = p.Body.Close() }()
	b := must.Get(io.ReadAll(p.Body))(w.t)
	if err := json.Unmarshal(b, &answer); err != nil {
		w.t.Fatalf("%s %s: %v: %s", method, path, err, b)
	}
	return p.StatusCode, answer
}

// TestRefusals: what is wrong gets the Status that the real server gives.
func TestRefusals(t *testing.T) {
	w := newWorld(t)
	const nodes, leases = "/api/v1/nodes", "/apis/coordination.k8s.io/v1/namespaces/default/leases"
	const merge = "application/merge-patch+json"
	for _, row := range []struct {
		method, path, body string
		header             []string
		code               int
		reason             string
	}{
		{"GET", "/api/v2", "", nil, 404, "NotFound"},
		{"GET", "/apis/none.example", "", nil, 404, "NotFound"},
		{"GET", "/api/v1/unicorns", "", nil, 404, "NotFound"},
		{"GET", "/api/v1/namespaces/default/nodes", "", nil, 404, "NotFound"},
		{"GET", "/api/v1/pods/web-0", "", nil, 404, "NotFound"},
		{"GET", nodes + "/node-1/scale", "", nil, 404, "NotFound"},
		{"GET", nodes + "/none", "", nil, 404, "NotFound"},
		{"GET", "/api/v1/namespaces/kube-system/configmaps/amazon-vpc-cni", "", nil, 404, "NotFound"},
		{"GET", "//nodes", "", nil, 404, "NotFound"},
		{"GET", "/api/v1/nodes/..%2fx", "", nil, 404, "NotFound"},
		{"GET", nodes, "", []string{"Authorization", "Bearer wrong"}, 401, "Unauthorized"},
		{"GET", nodes, "", []string{"Accept", "application/vnd.kubernetes.protobuf"}, 406, "NotAcceptable"},
		{"GET", nodes, "", []string{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}, 406, "NotAcceptable"},
		{"GET", nodes + "?labelSelector=%3D%3D", "", nil, 400, "BadRequest"},
		{"GET", nodes + "?fieldSelector=spec.color%3Dred", "", nil, 400, "BadRequest"},
		{"GET", nodes + "?limit=x", "", nil, 400, "BadRequest"},
		{"GET", nodes + "?limit=-1", "", nil, 400, "BadRequest"},
		{"GET", nodes + "?continue=x", "", nil, 400, "BadRequest"},
		{"GET", nodes + "?continue=MS8w", "", nil, 410, "Expired"},
		{"GET", nodes + "?resourceVersion=x", "", nil, 400, "BadRequest"},
		{"GET", nodes + "?resourceVersion=99999", "", nil, 504, "Timeout"},
		{"GET", nodes + "?resourceVersion=5&resourceVersionMatch=Exact", "", nil, 410, "Expired"},
		{"GET", nodes + "?resourceVersionMatch=Exact", "", nil, 422, "Invalid"},
		{"GET", nodes + "?sendInitialEvents=true", "", nil, 422, "Invalid"},
		{"GET", nodes + "?watch=1&sendInitialEvents=true", "", nil, 422, "Invalid"},
		{"GET", nodes + "?watch=1&resourceVersionMatch=NotOlderThan", "", nil, 422, "Invalid"},
		{"GET", nodes + "?watch=maybe", "", nil, 400, "BadRequest"},
		{"GET", nodes + "?%zz", "", nil, 400, "BadRequest"},
		{"BREW", nodes, "", nil, 405, "MethodNotAllowed"},
		{"POST", "/apis", "", nil, 405, "MethodNotAllowed"},
		{"POST", nodes + "/node-1", "{}", nil, 405, "MethodNotAllowed"},
		{"DELETE", leases, "", nil, 405, "MethodNotAllowed"},
		{"POST", nodes, `{"metadata":{"name":"node-9"}}`, nil, 403, "Forbidden"},
		{"DELETE", nodes + "/node-1", "", nil, 403, "Forbidden"},
		{"POST", leases, `{"metadata":{"name":"a"}}`, []string{"Content-Type", "text/plain"}, 415, "UnsupportedMediaType"},
		{"POST", leases, "k8s", []string{"Content-Type", "application/vnd.kubernetes.protobuf"}, 400, "BadRequest"},
		{"POST", leases, "k8s\x00\xff\xff", []string{"Content-Type", "application/vnd.kubernetes.protobuf"}, 400, "BadRequest"},
		{"POST", leases, `{`, nil, 400, "BadRequest"},
		{"POST", leases, `[]`, nil, 400, "BadRequest"},
		{"POST", leases, `null`, nil, 400, "BadRequest"},
		{"POST", leases, `{"kind":"Node"}`, nil, 400, "BadRequest"},
		{"POST", leases, `{"metadata":5}`, nil, 400, "BadRequest"},
		{"POST", leases, `{"metadata":{"name":"a","labels":{"b":1}}}`, nil, 400, "BadRequest"},
		{"POST", leases, `{"metadata":{"name":"a","namespace":"other"}}`, nil, 400, "BadRequest"},
		{"POST", leases, `{"metadata":{}}`, nil, 422, "Invalid"},
		{"POST", "/apis/coordination.k8s.io/v1/namespaces/none/leases", `{"metadata":{"name":"a"}}`, nil, 404, "NotFound"},
		{"POST", leases, `"` + strings.Repeat("x", 4<<20) + `"`, nil, 413, "RequestEntityTooLarge"},
		{"PUT", leases + "/none", `{"metadata":{"name":"none"}}`, nil, 404, "NotFound"},
		{"PUT", nodes + "/node-1", `{"metadata":{"name":"node-2"}}`, nil, 400, "BadRequest"},
		{"PUT", nodes + "/node-1", `{"metadata":{"resourceVersion":"5"}}`, nil, 409, "Conflict"},
		{"PUT", nodes + "/node-1", `{"metadata":{"uid":"5"}}`, nil, 409, "Conflict"},
		{"PUT", "/apis/vpcresources.k8s.aws/v1alpha1/cninodes/none", `{}`, nil, 404, "NotFound"},
		{"PATCH", nodes + "/node-1", `{}`, []string{"Content-Type", "application/json"}, 415, "UnsupportedMediaType"},
		{"PATCH", nodes + "/node-1", `{}`, []string{"Content-Type", "application/apply-patch+yaml"}, 415, "UnsupportedMediaType"},
		{"PATCH", nodes + "/node-1", `5`, []string{"Content-Type", merge}, 400, "BadRequest"},
		{"PATCH", nodes + "/node-1", `{"metadata":null}`, []string{"Content-Type", merge}, 400, "BadRequest"},
		{"PATCH", nodes + "/node-1", `{"metadata":{"name":"b"}}`, []string{"Content-Type", merge}, 400, "BadRequest"},
		{"PATCH", nodes + "/node-1", `{"metadata":{"resourceVersion":"5"}}`, []string{"Content-Type", merge}, 409, "Conflict"},
		{"PATCH", nodes + "/node-1", `[{"op":"remove","path":"/none"}]`, []string{"Content-Type", "application/json-patch+json"}, 422, "Invalid"},
		{"PATCH", nodes + "/node-1", `[{"op":"replace","path":"","value":5}]`, []string{"Content-Type", "application/json-patch+json"}, 422, "Invalid"},
		{"PATCH", nodes + "/node-1", `{"$patch":"wish"}`, []string{"Content-Type", "application/strategic-merge-patch+json"}, 400, "BadRequest"},
		{"PATCH", nodes + "/node-1/status", `{"status":{"conditions":[{"status":"True"}]}}`, []string{"Content-Type", "application/strategic-merge-patch+json"}, 400, "BadRequest"},
		{"PATCH", "/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/none", `{}`, []string{"Content-Type", "application/strategic-merge-patch+json"}, 415, "UnsupportedMediaType"},
	} {
		body := row.body[:min(len(row.body), 60)]
		code, a := w.ask(row.method, row.path, row.body, row.header...)
		if code != row.code || a["kind"] != "Status" || a["reason"] != row.reason || a["status"] != "Failure" || a["code"] != float64(row.code) {
			t.Errorf("%s %s %s: %d %v, expected %d %s", row.method, row.path, body, code, a, row.code, row.reason)
		}
	}
	if code, a := w.ask("POST", leases, `{"metadata":{"name":"a"}}`); code != 201 {
		t.Errorf("%d %v", code, a)
	}
	if code, a := w.ask("POST", leases, `{"metadata":{"name":"a"}}`); code != 409 || a["reason"] != "AlreadyExists" {
		t.Errorf("%d %v", code, a)
	}
	if code, a := w.ask("GET", "/version", "", "Authorization", ""); code != 200 || a["gitVersion"] != apiserver.Version {
		t.Errorf("%d %v", code, a)
	}
	// Discovery in the new form is asked for first, and the old one is good enough.
	if code, a := w.ask("GET", "/apis", "", "Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"); code != 200 || a["kind"] != "APIGroupList" {
		t.Errorf("%d %v", code, a)
	}
}

// TestHistory: a version that is no longer known ends a watch with an ERROR.
func TestHistory(t *testing.T) {
	w := newWorld(t)
	for i := range 5000 {
		if err := w.s.Put(map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": map[string]any{"i": fmt.Sprint(i)}}); err != nil {
			t.Fatal(err)
		}
	}
	for version, want := range map[string]float64{"1001": 410, "9": 410, "99999": 504} {
		code, a := w.ask("GET", "/api/v1/configmaps?watch=1&resourceVersion="+version, "")
		o, _ := a["object"].(map[string]any)
		if code != 200 || a["type"] != "ERROR" || o["code"] != want {
			t.Errorf("%s: %d %v, expected %v", version, code, a, want)
		}
	}
}

// TestStrategic holds strategic merges to the real ones.
func TestStrategic(t *testing.T) {
	old := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "web-0", Namespace: "default", UID: "uid-web-0", Labels: map[string]string{"a": "1", "b": "2"}, Finalizers: []string{"x", "y"}},
		Spec: corev1.PodSpec{NodeName: "node-1", Containers: []corev1.Container{{Name: "one", Image: "1", Env: []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "B", Value: "2"}},
			Ports: []corev1.ContainerPort{{ContainerPort: 80}}}, {Name: "two"}}, Tolerations: []corev1.Toleration{{Key: "k"}},
			Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, Conditions: []corev1.PodCondition{{Type: "Ready", Status: "True"}, {Type: "Other", Status: "True"}},
			PodIPs: []corev1.PodIP{{IP: "10.0.0.1"}}}}
	original := must.Get(json.Marshal(old))(t)
	for _, patch := range []string{
		`{"metadata":{"labels":{"a":null,"c":"3"},"annotations":{"vpc.amazonaws.com/pod-ips":"10.0.0.1"}}}`,
		`{"metadata":{"labels":{"$patch":"replace","z":"9"}}}`,
		`{"metadata":{"finalizers":["z","x"]}}`,
		`{"metadata":{"$deleteFromPrimitiveList/finalizers":["x"],"$setElementOrder/finalizers":["y"]}}`,
		`{"spec":{"containers":[{"name":"one","env":[{"name":"B","value":"3"},{"name":"C","value":"4"},{"name":"A","$patch":"delete"}]},{"name":"three"}]}}`,
		`{"spec":{"containers":[{"name":"two","$patch":"delete"}],"tolerations":[{"key":"other"}]}}`,
		`{"spec":{"containers":[{"$patch":"replace"},{"name":"only"}]}}`,
		`{"spec":{"volumes":[{"name":"v","$retainKeys":["name","hostPath"],"hostPath":{"path":"/x"}}]}}`,
		`{"status":{"conditions":[{"type":"Ready","status":"False"},{"type":"New","status":"True"}],"podIPs":[{"ip":"10.0.0.2"}],"phase":"Failed"}}`,
		`{"status":{"$setElementOrder/conditions":[{"type":"Other"},{"type":"Ready"}],"conditions":[{"type":"Other","status":"False"}]}}`,
		`{}`,
	} {
		w := newWorld(t)
		w.c.change(func(o *apiserver.Objects) { o.Pods = []*corev1.Pod{old} })
		path := "/api/v1/namespaces/default/pods/web-0"
		if strings.HasPrefix(patch, `{"status`) {
			path += "/status"
		}
		code, got := w.ask("PATCH", path, patch, "Content-Type", "application/strategic-merge-patch+json")
		real, err := strategicpatch.StrategicMergePatch(original, []byte(patch), corev1.Pod{})
		if err != nil || code != 200 {
			t.Errorf("%s: %d %v %v", patch, code, got, err)
			continue
		}
		if a, b := canonical(t, got), canonical(t, real); a != b {
			t.Errorf("%s:\n%s, expected\n%s", patch, a, b)
		}
	}
}

// canonical is a pod without what the server gives it, its lists by name: their order has no meaning.
func canonical(t *testing.T, v any) string {
	t.Helper()
	b, ok := v.([]byte)
	if !ok {
		b = must.Get(json.Marshal(v))(t)
	}
	var p corev1.Pod
	must.Do(t, json.Unmarshal(b, &p))
	p.TypeMeta, p.ResourceVersion, p.CreationTimestamp = metav1.TypeMeta{}, "", metav1.Time{}
	conditions := map[string]corev1.PodCondition{}
	for _, c := range p.Status.Conditions {
		conditions[string(c.Type)] = c
	}
	ips := map[string]bool{}
	for _, ip := range p.Status.PodIPs {
		ips[ip.IP] = true
	}
	containers := map[string]any{}
	for _, c := range p.Spec.Containers {
		env := map[string]string{}
		for _, e := range c.Env {
			env[e.Name] = e.Value
		}
		c.Env = nil
		containers[c.Name] = []any{c, env}
	}
	finalizers := map[string]bool{}
	for _, f := range p.Finalizers {
		finalizers[f] = true
	}
	p.Finalizers, p.Status.Conditions, p.Status.PodIPs, p.Spec.Containers = nil, nil, nil, nil
	return string(must.Get(json.Marshal([]any{p, finalizers, conditions, ips, containers}))(t))
}

// FuzzRequest: no method, path and body makes the server panic or answer anything but a JSON object.
func FuzzRequest(f *testing.F) {
	for _, path := range []string{"/api/v1/nodes?fieldSelector=metadata.name%3Dx", "/apis/coordination.k8s.io/v1/namespaces/default/leases", "/api", "/apis/apps", "/%"} {
		f.Add("GET", path, "", "")
		f.Add("PATCH", path+"/node-1", `{"status":{"conditions":[{"type":{"a":[]}}]}}`, "application/strategic-merge-patch+json")
		f.Add("POST", path, `{"metadata":{"generateName":"a"}}`, "application/json")
		f.Add("POST", path, "k8s\x00\x0a\x02\x0a\x00", "application/vnd.kubernetes.protobuf")
	}
	c := &cluster{changed: make(chan struct{}), now: apiserver.Objects{Nodes: []*corev1.Node{node("node-1")}, Pods: []*corev1.Pod{pod("web-0", "node-1", "web")}}}
	s := apiserver.New(c)
	f.Fuzz(func(t *testing.T, method, target, body, kind string) { play(t, s, method, target, body, kind) })
}
