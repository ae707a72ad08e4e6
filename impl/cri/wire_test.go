package cri

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	v1 "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/enilab/enilab/impl/grpclite"
	"github.com/enilab/enilab/internal/must"
)

// The generated types are the judge: what is read here is what they read.
func FuzzList(f *testing.F) {
	whole := must.Get(proto.Marshal(&v1.ListPodSandboxResponse{Items: []*v1.PodSandbox{
		{Id: "a", Metadata: &v1.PodSandboxMetadata{Name: "n", Namespace: "ns", Uid: "u", Attempt: 3}, State: v1.PodSandboxState_SANDBOX_NOTREADY,
			CreatedAt: 7, Labels: map[string]string{labelName: "other", "x": "y"}, Annotations: map[string]string{"a": "b"}, RuntimeHandler: "runc"},
		{Id: "b", Labels: map[string]string{labelName: "l", labelNamespace: "ln", labelUID: "lu"}}}}))(f)
	for n := range len(whole) + 1 {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		got, err := readList(m)
		if err != nil {
			return
		}
		var want v1.ListPodSandboxResponse
		if proto.Unmarshal(m, &want) != nil {
			return // something is wrong with a field that is not read here
		}
		if len(got) != len(want.GetItems()) {
			t.Fatalf("%d sandboxes, want %d", len(got), len(want.GetItems()))
		}
		for i, w := range want.GetItems() {
			l, m, g := w.GetLabels(), w.GetMetadata(), got[i]
			if g.ID != w.GetId() || g.Ready != (w.GetState() == v1.PodSandboxState_SANDBOX_READY) || g.Pod.Name != either(m.GetName(), l[labelName]) ||
				g.Pod.Namespace != either(m.GetNamespace(), l[labelNamespace]) || g.Pod.UID != either(m.GetUid(), l[labelUID]) {
				t.Errorf("got %+v, want %v", g, w)
			}
		}
	})
}

func FuzzDetail(f *testing.F) {
	whole := must.Get(proto.Marshal(&v1.PodSandboxStatusResponse{Info: map[string]string{"info": "{}"}, Status: &v1.PodSandboxStatus{Id: "a",
		Network: &v1.PodSandboxNetworkStatus{Ip: "2001:db8::1", AdditionalIps: []*v1.PodIP{{Ip: "10.0.0.5"}}},
		Linux:   &v1.LinuxPodSandboxStatus{Namespaces: &v1.Namespace{Options: &v1.NamespaceOption{Pid: v1.NamespaceMode_CONTAINER, TargetId: "x"}}}}}))(f)
	for n := range len(whole) + 1 {
		f.Add(whole[:n])
	}
	f.Fuzz(func(t *testing.T, m []byte) {
		got, err := readDetail(m)
		if err != nil {
			return
		}
		var want v1.PodSandboxStatusResponse
		if proto.Unmarshal(m, &want) != nil {
			return // something is wrong with a field that is not read here
		}
		if host := want.GetStatus().GetLinux().GetNamespaces().GetOptions().GetNetwork() == v1.NamespaceMode_NODE; host != got.host {
			t.Errorf("host %v, want %v", got.host, host)
		}
		texts := []string{want.GetStatus().GetNetwork().GetIp()}
		for _, a := range want.GetStatus().GetNetwork().GetAdditionalIps() {
			texts = append(texts, a.GetIp())
		}
		if a, err := chosen(texts); !got.host && (err != nil || a != got.address) {
			t.Errorf("address %v, want %v, %v", got.address, a, err)
		}
	})
}

// Answers over HTTP/2 that gRPC does not know, one header or byte off each.
func TestMalformedAnswersAreErrors(t *testing.T) {
	message := func(compressed byte, length uint32, body string) []byte {
		return append(binary.BigEndian.AppendUint32([]byte{compressed}, length), body...)
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"no status":      {reply(200, message(0, 0, ""), ""), "without gRPC's status"},
		"bad status":     {reply(200, message(0, 0, ""), "x"), "without gRPC's status"},
		"strange status": {reply(200, message(0, 0, ""), "77"), "Code(77)"},
		"negative":       {reply(200, message(0, 0, ""), "-1"), "Code(-1)"},
		"no message":     {reply(200, nil, "0"), "not one whole message"},
		"compressed":     {reply(200, message(1, 0, ""), "0"), "not one whole message"},
		"short":          {reply(200, message(0, 9, "x"), "0"), "not one whole message"},
		"two messages":   {reply(200, append(message(0, 0, ""), message(0, 0, "")...), "0"), "not one whole message"},
		"no protobuf":    {reply(200, message(0, 3, "\xff\xff\xff"), "0"), "malformed protobuf"},
		"large":          {reply(200, message(0, grpclite.MaxAnswer+1, strings.Repeat("x", grpclite.MaxAnswer+1)), "0"), "larger than max"},
		"HTTP 404":       {reply(404, nil, ""), "404"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.sock")
			l := must.Get(net.Listen("unix", path))(t)
			p := new(http.Protocols)
			p.SetUnencryptedHTTP2(true)
			s := &http.Server{Handler: tc.answer, Protocols: p, ReadHeaderTimeout: patience}
			go func() { _ = s.Serve(l) }()
			t.Cleanup(func() { _ = s.Close() })
			got, err := dial(t, path).Sandboxes(bounded(t, patience))
			if err == nil || got != nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, tc.want)
			}
		})
	}
}

func reply(status int, body []byte, grpcStatus string) http.HandlerFunc {
	return func(w http.ResponseWriter, q *http.Request) {
		_, _ = io.Copy(io.Discard, q.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.WriteHeader(status)
		_, _ = io.Copy(w, bytes.NewReader(body))
		if grpcStatus != "" {
			w.Header().Set(http.TrailerPrefix+"Grpc-Status", grpcStatus)
		}
	}
}

// TestABrokenSandboxBreaksTheList: one that cannot be read is not left out: the list would not be whole.
func TestABrokenSandboxBreaksTheList(t *testing.T) {
	sandbox := []byte{0x0a, 2, 'c', '1'} // field 1, its ID
	broken := append(sandbox, 0x12, 200) // field 2, of which most is missing
	for _, c := range []struct {
		sandbox []byte
		whole   bool
	}{{sandbox, true}, {broken, false}} {
		list, err := readList(append([]byte{0x0a, byte(len(c.sandbox))}, c.sandbox...))
		if (err == nil) != c.whole || c.whole && (len(list) != 1 || list[0].ID != "c1") {
			t.Errorf("%x: %+v, %v", c.sandbox, list, err)
		}
	}
}
