package kube

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// apiServer serves what a handler answers, and keeps what was asked.
type apiServer struct {
	*httptest.Server
	mu    sync.Mutex
	asked []*http.Request
}

func (s *apiServer) requests() []*http.Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func serve(t *testing.T, h http.HandlerFunc) *apiServer {
	t.Helper()
	s := &apiServer{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		s.mu.Lock()
		s.asked = append(s.asked, q)
		s.mu.Unlock()
		h(w, q)
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// patience bounds what should come by itself.
const patience = 20 * time.Second

func reader(t *testing.T, url string) *Reader {
	t.Helper()
	return readerFor(t, url, patience)
}

// readerFor gives a request up after a time.
func readerFor(t *testing.T, url string, timeout time.Duration) *Reader {
	t.Helper()
	r := must.Get(New(Config{Node: "node-1", Endpoint: url, Account: t.TempDir(), Timeout: timeout}))(t)
	t.Cleanup(r.Close)
	return r
}

func bounded(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func pod(name, phase string) string {
	return fmt.Sprintf(`{"metadata":{"namespace":"default","name":%q,"uid":"uid-%s"},"spec":{"nodeName":"node-1"},"status":{"phase":%q}}`, name, name, phase)
}

func podPage(next string, pods ...string) string {
	return fmt.Sprintf(`{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"7","continue":%q},"items":[%s]}`, next, strings.Join(pods, ","))
}

func TestPods(t *testing.T) {
	pages := map[string]string{
		"":   podPage("c1", pod("a", "Running"), pod("b", "Succeeded")),
		"c1": podPage("c2", pod("c", "Failed")),
		"c2": podPage("", pod("d", "Pending"), pod("e", "Unknown")),
	}
	s := serve(t, func(w http.ResponseWriter, q *http.Request) { _, _ = io.WriteString(w, pages[q.FormValue("continue")]) })
	got, err := reader(t, s.URL).Pods(bounded(t, 2*patience))
	want := []ipam.Pod{{Namespace: "default", Name: "a", UID: "uid-a"}, {Namespace: "default", Name: "d", UID: "uid-d"}, {Namespace: "default", Name: "e", UID: "uid-e"}}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, q := range s.requests() {
		if q.URL.Path != "/api/v1/pods" || q.FormValue("fieldSelector") != "spec.nodeName=node-1" || q.FormValue("limit") != "50" {
			t.Errorf("asked for %s", q.URL)
		}
	}
}

// A continue token that is too old begins the list anew, once.
func TestPodsExpired(t *testing.T) {
	for _, again := range []bool{true, false} {
		gone := 0
		s := serve(t, func(w http.ResponseWriter, q *http.Request) {
			switch {
			case q.FormValue("continue") == "":
				_, _ = io.WriteString(w, podPage("c1", pod("a", "Running")))
			case gone == 0 || !again:
				gone++
				w.WriteHeader(http.StatusGone)
				_, _ = io.WriteString(w, `{"kind":"Status","message":"The provided continue parameter is too old","code":410}`)
			default:
				_, _ = io.WriteString(w, podPage("", pod("b", "Running")))
			}
		})
		got, err := reader(t, s.URL).Pods(bounded(t, 2*patience))
		if again && (err != nil || len(got) != 2) || !again && (err == nil || got != nil || gone != 2) {
			t.Errorf("again=%v: got %v, %v after %d", again, got, err, gone)
		}
	}
}

// A list that is not whole is an error, whatever came of it.
func TestPodsErrors(t *testing.T) {
	whole := podPage("", pod("a", "Running"))
	cases := map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"cut off":    {text(200, whole[:len(whole)-3]), "unexpected EOF"},
		"other kind": {text(200, `{"kind":"Status","message":"x"}`), "expected a PodList"},
		"empty":      {text(200, ``), "EOF"},
		"no JSON":    {text(200, `<html>`), "invalid character"},
		"wrong type": {text(200, `{"kind":"PodList","items":{"a":1}}`), "cannot unmarshal"},
		"no UID":     {text(200, `{"kind":"PodList","items":[{"metadata":{"name":"a"}}]}`), "without name or UID"},
		"forbidden":  {text(403, `{"kind":"Status","message":"pods is forbidden: User \"x\" cannot list"}`), "HTTP 403: pods is forbidden"},
		"proxy":      {text(502, `<html>bad gateway`), "HTTP 502"},
		"redirect":   {func(w http.ResponseWriter, q *http.Request) { http.Redirect(w, q, "/elsewhere", http.StatusFound) }, "HTTP 302"},
		"endless":    {text(200, podPage("again", pod("a", "Running"))), "more than 200 pages"},
		"drops":      {drop, "EOF"},
		"hangs":      {func(_ http.ResponseWriter, q *http.Request) { <-q.Context().Done() }, "timeout|deadline exceeded"}, // two timers of one length,
		"short body": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "9999")
			_, _ = io.WriteString(w, whole)
		}, "unexpected EOF"},
		"deep nesting": {text(200, `{"kind":"PodList","items":`+strings.Repeat("[", 20000)), "max depth"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			timeout := patience
			if name == "hangs" {
				timeout = time.Second
			}
			got, err := readerFor(t, serve(t, c.answer).URL, timeout).Pods(bounded(t, 2*patience))
			said := func(want string) bool { return strings.Contains(err.Error(), want) }
			if err == nil || got != nil || !slices.ContainsFunc(strings.Split(c.want, "|"), said) {
				t.Errorf("got %v, %v; want an error with %q", got, err, c.want)
			}
		})
	}
}

func TestLargeAnswer(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"kind":"Node","x":"`)
		for range mostNode/1024 + 1 {
			if _, err := io.WriteString(w, strings.Repeat("x", 1024)); err != nil {
				return
			}
		}
	})
	_, err := reader(t, s.URL).Node(bounded(t, 2*patience))
	if err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("got %v", err)
	}
}

func text(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// drop closes the connection without an answer.
func drop(w http.ResponseWriter, _ *http.Request) {
	c, _, err := w.(http.Hijacker).Hijack()
	if err == nil {
		_ = c.Close()
	}
}

func TestNobodyThere(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = l.Close()
	if _, err := reader(t, "http://"+l.Addr().String()).Pods(bounded(t, 2*patience)); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("got %v", err)
	}
}

// In a cluster: https, kubelet's token, which it rotates, and the cluster's own certificate.
func TestInCluster(t *testing.T) {
	var tokens []string
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		tokens = append(tokens, q.Header.Get("Authorization"))
		_, _ = io.WriteString(w, nodeObject("1", false, `"110"`))
	}))
	t.Cleanup(s.Close)
	host, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	t.Setenv("KUBERNETES_SERVICE_HOST", host)
	t.Setenv("KUBERNETES_SERVICE_PORT", port)
	account := t.TempDir()
	write := func(name, text string) {
		must.Do(t, os.WriteFile(filepath.Join(account, name), []byte(text), 0o600))
	}
	if _, err := New(Config{Node: "node-1", Account: account}); err == nil {
		t.Error("https without a certificate to trust")
	}
	write("ca.crt", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})))
	r := must.Get(New(Config{Node: "node-1", Account: account}))(t)
	t.Cleanup(r.Close)
	if _, err := r.Node(bounded(t, 2*patience)); err == nil || len(tokens) != 0 {
		t.Errorf("without a token: %v, %v", err, tokens)
	}
	for _, token := range []string{"one\n", "two"} {
		write("token", token)
		must.Get(r.Node(bounded(t, 2*patience)))(t)
	}
	if want := []string{"Bearer one", "Bearer two"}; !slices.Equal(tokens, want) {
		t.Errorf("tokens %q, want %q", tokens, want)
	}
	write("ca.crt", "nothing")
	if _, err := New(Config{Node: "node-1", Account: account}); err == nil || !strings.Contains(err.Error(), "no PEM certificate") {
		t.Errorf("got %v", err)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	for _, c := range []Config{{}, {Node: "n"}, {Node: "n", Endpoint: "ftp://x"}, {Node: "n", Endpoint: "http://"}, {Node: "n", Endpoint: "http://[::1"}} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v was accepted", c)
		}
	}
	if base, err := endpoint("ABC.gr7.eu-west-1.eks.amazonaws.com/"); err != nil || base != "https://ABC.gr7.eu-west-1.eks.amazonaws.com" {
		t.Errorf("got %q, %v", base, err)
	}
}

func nodeObject(version string, cordoned bool, pods string) string {
	return fmt.Sprintf(`{"kind":"Node","metadata":{"name":"node-1","resourceVersion":%q},"spec":{"unschedulable":%v},"status":{"capacity":{"cpu":"4","pods":%s},"images":[]}}`, version, cordoned, pods)
}

func TestNode(t *testing.T) {
	cases := []struct {
		body string
		want NodeFacts
		bad  string
	}{
		{nodeObject("1", false, `"110"`), NodeFacts{MaxPods: 110}, ""},
		{nodeObject("1", true, `29`), NodeFacts{Cordoned: true, MaxPods: 29}, ""},
		{nodeObject("1", false, `"1k"`), NodeFacts{MaxPods: 1000}, ""},
		{nodeObject("1", false, `null`), NodeFacts{}, ""},
		{`{"kind":"Node","metadata":{"name":"node-1"}}`, NodeFacts{}, ""},
		{nodeObject("1", false, `"-1"`), NodeFacts{}, "expected a number of pods"},
		{nodeObject("1", false, `"1e99"`), NodeFacts{}, "expected a number of pods"},
		{nodeObject("1", false, `{"a":1}`), NodeFacts{}, "expected a number of pods"},
		{strings.ReplaceAll(nodeObject("1", false, `"110"`), "node-1", "node-2"), NodeFacts{}, "expected the Node node-1"},
		{`{}`, NodeFacts{}, "expected the Node node-1"},
	}
	for _, c := range cases {
		got, err := reader(t, serve(t, text(200, c.body)).URL).Node(bounded(t, 2*patience))
		if got != c.want || (err == nil) != (c.bad == "") || err != nil && !strings.Contains(err.Error(), c.bad) {
			t.Errorf("%s: got %+v, %v; want %+v, %q", c.body, got, err, c.want, c.bad)
		}
	}
}

// No answer may make it panic, and none that is not whole may look like one.
func FuzzNode(f *testing.F) {
	f.Add(nodeObject("1", true, `"110"`))
	f.Add(`{"kind":"Node","metadata":{"name":"node-1"},"status":{"capacity":{"pods":"9k"}}}`)
	f.Fuzz(func(t *testing.T, body string) {
		var n node
		if json.Unmarshal([]byte(body), &n) != nil {
			return
		}
		if facts, err := n.facts(); err == nil && facts.MaxPods < 0 {
			t.Errorf("%q: %+v", body, facts)
		}
	})
}

// TestAccountOfItsPod: unless somebody says another one.
func TestAccountOfItsPod(t *testing.T) {
	for given, want := range map[string]string{"": ServiceAccount, "/other": "/other"} {
		r, err := New(Config{Node: "node-1", Endpoint: "http://api.example", Account: given})
		if err != nil || r.cfg.Account != want {
			t.Errorf("%q: %+v, %v", given, r, err)
		}
	}
}

// TestRequestWithoutQueryEndsWithItsPath: a request without one ends with its path.
func TestRequestWithoutQueryEndsWithItsPath(t *testing.T) {
	r := reader(t, "http://127.0.0.1:1")
	for want, query := range map[string]url.Values{"http://127.0.0.1:1/api?a=b": {"a": {"b"}}, "http://127.0.0.1:1/api": nil} {
		if q, err := r.request(t.Context(), http.MethodGet, "/api", query, nil); err != nil || q.URL.String() != want {
			t.Errorf("%v: expected %s, found %v, %v", query, want, q, err)
		}
	}
}

// TestTellMakesAnEventOfTheNode: it is what kubectl describe node finds, the same words are one object, which the API server may have already, and
// no text is too long for it.
func TestTellMakesAnEventOfTheNode(t *testing.T) {
	type event struct {
		Kind                                  string
		Metadata                              struct{ Name, Namespace string }
		InvolvedObject                        struct{ Kind, Name, UID string }
		Reason, Message, Type, FirstTimestamp string
	}
	var got []event
	status := http.StatusCreated
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var e event
		if err := json.NewDecoder(r.Body).Decode(&e); err != nil || r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/default/events" {
			t.Errorf("found %s %s, %v", r.Method, r.URL.Path, err)
		}
		got = append(got, e)
		w.WriteHeader(status)
	}))
	defer srv.Close()
	r := reader(t, srv.URL)
	for _, message := range []string{"a", "a", strings.Repeat("ü", mostMessage)} {
		must.Do(t, r.Tell(t.Context(), "NetworkImpaired", message))
		status = http.StatusConflict
	}
	if e := got[0]; e.Kind != "Event" || e.InvolvedObject.Kind != "Node" || e.InvolvedObject.Name != e.InvolvedObject.UID || e.Metadata.Namespace != "default" ||
		e.Reason != "NetworkImpaired" || e.Message != "a" || e.Type != "Warning" || e.FirstTimestamp == "" {
		t.Errorf("found %+v", e)
	}
	if got[0].Metadata.Name != got[1].Metadata.Name || got[1].Metadata.Name == got[2].Metadata.Name || len(got[2].Message) > mostMessage {
		t.Errorf("expected two objects, found %+v", got)
	}
	status = http.StatusForbidden
	if err := r.Tell(t.Context(), "NetworkImpaired", "b"); err == nil || !strings.Contains(err.Error(), "POST /api/v1/namespaces/default/events: HTTP 403") {
		t.Errorf("expected a refusal, found %v", err)
	}
}

// TestHasPolicies: one is enough, none is no error, and what is no list of them is.
func TestHasPolicies(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   bool
		err    string
	}{
		{http.StatusOK, `{"kind":"NetworkPolicyList","items":[]}`, false, ""},
		{http.StatusOK, `{"kind":"NetworkPolicyList","items":null}`, false, ""},
		{http.StatusOK, `{"kind":"NetworkPolicyList","items":[{"metadata":{"name":"deny"}}]}`, true, ""},
		{http.StatusOK, `{"kind":"PodList","items":[{}]}`, false, "PodList"},
		{http.StatusOK, `{"kind":`, false, "unexpected EOF"},
		{http.StatusForbidden, `{"kind":"Status","message":"no"}`, false, "HTTP 403"},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Method + " " + r.URL.String(); got != "GET "+policiesPath+"?limit=1" {
				t.Errorf("found %s", got)
			}
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.body)
		}))
		got, err := reader(t, srv.URL).HasPolicies(t.Context())
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("%s: found %t, %v", c.body, got, err)
		}
		srv.Close()
	}
}

// TestTimeoutOfAReader: the one that is configured, or else DefaultTimeout.
func TestTimeoutOfAReader(t *testing.T) {
	for configured, want := range map[time.Duration]time.Duration{0: DefaultTimeout, time.Minute: time.Minute} {
		r := readerFor(t, "http://localhost:1", configured)
		if got := r.http.Transport.(*http.Transport).ResponseHeaderTimeout; got != want || r.cfg.Timeout != want {
			t.Errorf("%v: answers are waited for for %v, and %v in all", configured, got, r.cfg.Timeout)
		}
	}
}
