package server

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	runtime "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// TestAlpha: runtime.v1alpha2 answers as runtime.v1 does, and only when it is asked for.
func TestAlpha(t *testing.T) {
	const alpha = "/runtime.v1alpha2.RuntimeService/"
	b := newBackend(t)
	id, _ := b.node.SandboxOf("uid-web")
	for _, row := range []struct {
		name          string
		options       []Option
		stable, alpha codes.Code
	}{
		{"v1", nil, codes.OK, codes.Unimplemented},
		{"both", []Option{WithAlpha(false)}, codes.OK, codes.OK},
		{"dockershim", []Option{WithAlpha(true)}, codes.Unimplemented, codes.OK},
	} {
		t.Run(row.name, func(t *testing.T) {
			c := dial(t, New(b, row.options...))
			var version runtime.VersionResponse
			if err := c.Invoke(t.Context(), alpha+"Version", &runtime.VersionRequest{}, &version); status.Code(err) != row.alpha {
				t.Fatalf("Version of v1alpha2: %v, expected %v", err, row.alpha)
			}
			if _, err := runtime.NewRuntimeServiceClient(c).Version(t.Context(), &runtime.VersionRequest{}); status.Code(err) != row.stable {
				t.Errorf("Version of v1: %v, expected %v", err, row.stable)
			}
			if row.alpha != codes.OK {
				return
			}
			var list runtime.ListPodSandboxResponse
			ready := &runtime.PodSandboxFilter{State: &runtime.PodSandboxStateValue{State: runtime.PodSandboxState_SANDBOX_READY}}
			if err := c.Invoke(t.Context(), alpha+"ListPodSandbox", &runtime.ListPodSandboxRequest{Filter: ready}, &list); err != nil || len(list.Items) == 0 {
				t.Fatalf("%v, %v", err, &list)
			}
			var one runtime.PodSandboxStatusResponse
			for _, p := range list.Items {
				if p.Metadata.Uid != "uid-web" {
					continue
				}
				if err := c.Invoke(t.Context(), alpha+"PodSandboxStatus", &runtime.PodSandboxStatusRequest{PodSandboxId: p.Id}, &one); err != nil {
					t.Fatal(err)
				}
			}
			if version.RuntimeApiVersion != "v1alpha2" || one.GetStatus().GetNetwork().GetIp() != "10.0.0.9" {
				t.Errorf("%v, %v (sandbox %v)", &version, &one, id)
			}
		})
	}
}

// TestDocker: the sandboxes are what dockershim's containers look like.
func TestDocker(t *testing.T) {
	b := newBackend(t)
	h := Docker(b, WithEpoch(epoch))
	ask := func(method, path string) (int, string) {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
		return w.Code, w.Body.String()
	}
	for _, path := range []string{"/v1.24/containers/json?limit=0", "/containers/json?all=1"} {
		code, body := ask(http.MethodGet, path)
		var rows []container
		if err := json.Unmarshal([]byte(body), &rows); err != nil || code != 200 {
			t.Fatal(code, err, body)
		}
		found := false
		for _, c := range rows {
			found = found || c.Labels["io.kubernetes.pod.uid"] == "uid-web" && c.Labels["io.kubernetes.docker.type"] == "podsandbox" && c.State == "running" &&
				c.Names[0] == "/k8s_POD_web-0_shop_uid-web_0" && len(c.ID) == 64 && c.HostConfig.NetworkMode == "none" && c.Created > epoch.Add(-time.Hour).Unix()
		}
		if !found {
			t.Errorf("%s: %+v", path, rows)
		}
	}
	for path, want := range map[string]int{"/_ping": 200, "/v1.30/version": 200, "/info": 200, "/v1.99/version": 400, "/containers/json?filters={\"status\":1}": 400,
		"/images/json": 404, "/v1.24": 404} {
		if code, body := ask(http.MethodGet, strings.ReplaceAll(path, "\"", "%22")); code != want {
			t.Errorf("%s: %d %s, expected %d", path, code, body, want)
		}
	}
	if code, _ := ask(http.MethodPost, "/containers/create"); code != 404 {
		t.Errorf("creating a container: %d", code)
	}
	b.err = status.Error(codes.Unavailable, "the runtime is restarting")
	if code, body := ask(http.MethodGet, "/containers/json"); code != 500 || !strings.Contains(body, "restarting") {
		t.Errorf("%d %s", code, body)
	}
}
