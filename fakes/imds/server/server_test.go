package server

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	sdk "github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds"
	"github.com/enilab/enilab/internal/must"
)

// world is one instance's metadata on a real HTTP server.
type world struct {
	t      testing.TB
	srv    *httptest.Server
	inst   ec2.InstanceID
	now    atomic.Int64
	silent atomic.Bool
	asked  atomic.Int64
}

func newWorld(t testing.TB, change ...func(*Config)) *world {
	t.Helper()
	cloud := ec2.New(ec2.Config{}, 5)
	inst := must.Get(cloud.Launch(0, ec2.LaunchSpec{Type: "m5.large", SecondaryAddresses: 2}))(t)
	view, _ := cloud.IMDS(0, inst)
	w := &world{t: t, inst: inst}
	c := Config{
		View: func(context.Context) (ec2.IMDS, bool) {
			w.asked.Add(1)
			return view, !w.silent.Load()
		},
		Now:  func() time.Duration { return time.Duration(w.now.Load()) },
		Role: "node",
	}
	for _, f := range change {
		f(&c)
	}
	w.srv = httptest.NewUnstartedServer(nil)
	w.srv.Config = Server(Handler(c))
	w.srv.Start()
	t.Cleanup(w.srv.Close)
	return w
}

// client is the SDK's, without retries.
func (w *world) client() *sdk.Client {
	return sdk.New(sdk.Options{Endpoint: w.srv.URL, Retryer: aws.NopRetryer{}, EnableFallback: aws.FalseTernary, HTTPClient: w.srv.Client()})
}

func (w *world) get(c *sdk.Client, path string) (string, error) {
	out, err := c.GetMetadata(w.t.Context(), &sdk.GetMetadataInput{Path: path})
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(out.Content)
	if err := errors.Join(err, out.Content.Close()); err != nil {
		return "", err
	}
	return string(b), nil
}

// TestSDKReadsTheModel: the client that daemons use reads what the model says.
func TestSDKReadsTheModel(t *testing.T) {
	w := newWorld(t)
	c := w.client()
	if id, err := w.get(c, "instance-id"); err != nil || id != string(w.inst) {
		t.Errorf("instance-id: %q, %v", id, err)
	}
	mac := must.Get(w.get(c, "mac"))(t)
	if macs, err := w.get(c, "network/interfaces/macs/"); err != nil || macs != mac+"/" {
		t.Errorf("macs: %q, %v", macs, err)
	}
	if list, err := w.get(c, "network/interfaces/macs/"+mac+"/local-ipv4s"); err != nil || strings.Count(list, "\n") != 2 {
		t.Errorf("local-ipv4s: %q, %v", list, err)
	}
	_, err := w.get(c, "network/interfaces/macs/"+mac+"/network-card")
	if re := (*smithyhttp.ResponseError)(nil); !errors.As(err, &re) || re.HTTPStatusCode() != http.StatusNotFound {
		t.Errorf("network-card: %v, expected a 404", err)
	}
	if r, err := c.GetRegion(t.Context(), &sdk.GetRegionInput{}); err != nil || r.Region != "us-west-2" {
		t.Errorf("region: %+v, %v", r, err)
	}
	d, err := c.GetInstanceIdentityDocument(t.Context(), &sdk.GetInstanceIdentityDocumentInput{})
	if err != nil || d.InstanceID != string(w.inst) || d.AccountID != ec2.Account || d.AvailabilityZone != "us-west-2a" {
		t.Errorf("document: %+v, %v", d, err)
	}
}

// TestCredentials: the SDK's own provider takes the role's credentials.
func TestCredentials(t *testing.T) {
	w := newWorld(t)
	got := must.Get(ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = w.client() }).Retrieve(t.Context()))(t)
	if id, ok := imds.InstanceOf(got.AccessKeyID); !ok || id != w.inst || !got.CanExpire || got.Expires.Before(time.Now().Add(time.Minute)) {
		t.Errorf("found %+v", got)
	}
}

// do sends a request as it is.
func (w *world) do(method, path string, header http.Header) (int, string, http.Header) {
	w.t.Helper()
	r := must.Get(http.NewRequestWithContext(w.t.Context(), method, w.srv.URL, nil))(w.t)
	r.URL.Opaque = "//" + r.URL.Host + path // as written: nothing cleans it
	r.Header = header
	p := must.Get(w.srv.Client().Do(r))(w.t)
	b, err := io.ReadAll(p.Body)
	must.Do(w.t, errors.Join(err, p.Body.Close()))
	return p.StatusCode, string(b), p.Header
}

func with(pairs ...string) http.Header {
	h := http.Header{}
	for i := 0; i < len(pairs); i += 2 {
		h.Add(pairs[i], pairs[i+1])
	}
	return h
}

func (w *world) token(seconds int) string {
	w.t.Helper()
	status, token, h := w.do(http.MethodPut, tokenPath, with(ttlHeader, strconv.Itoa(seconds)))
	if status != http.StatusOK || h.Get(ttlHeader) != strconv.Itoa(seconds) {
		w.t.Fatalf("a token for %d s: status %d, %q", seconds, status, h.Get(ttlHeader))
	}
	return token
}

const macPath = "/latest/meta-data/mac"

func TestRules(t *testing.T) {
	w := newWorld(t)
	good := w.token(60)
	other := newWorld(t).token(60)
	spoilt := []byte(good)
	spoilt[20] ^= 1
	rows := []struct {
		name, method, path string
		header             http.Header
		status             int
	}{
		{"a read", "GET", macPath, with(TokenHeader, good), 200},
		{"a head", "HEAD", macPath, with(TokenHeader, good), 200},
		{"no token", "GET", macPath, with(), 401},
		{"an empty token", "GET", macPath, with(TokenHeader, ""), 401},
		{"a made up token", "GET", macPath, with(TokenHeader, "AQAEAJ"), 401},
		{"a spoilt token", "GET", macPath, with(TokenHeader, string(spoilt)), 401},
		{"a short token", "GET", macPath, with(TokenHeader, good[:8]), 401},
		{"two tokens", "GET", macPath, with(TokenHeader, good, TokenHeader, good), 401},
		{"another service's token", "GET", macPath, with(TokenHeader, other), 401},
		{"401 before 404", "GET", "/latest/none", with(), 401},
		{"nothing there", "GET", "/latest/none", with(TokenHeader, good), 404},
		{"dots", "GET", "/latest/meta-data/../meta-data/mac", with(TokenHeader, good), 404},
		{"escaped dots", "GET", "/latest/meta-data/%2e%2e/meta-data/mac", with(TokenHeader, good), 404},
		{"escaped", "GET", "/latest/meta-data/%6dac", with(TokenHeader, good), 404},
		{"an escaped slash", "GET", "/latest/meta-data%2Fmac", with(TokenHeader, good), 404},
		{"two slashes", "GET", "//latest/meta-data/mac", with(TokenHeader, good), 404},
		{"a post", "POST", macPath, with(TokenHeader, good), 405},
		{"a put elsewhere", "PUT", macPath, with(ttlHeader, "60"), 405},
		{"a token by get", "GET", tokenPath, with(ttlHeader, "60"), 405},
		{"a token by post", "POST", tokenPath, with(ttlHeader, "60"), 405},
		{"another method", "BREW", macPath, with(TokenHeader, good), 405},
		{"a token", "PUT", tokenPath, with(ttlHeader, "1"), 200},
		{"a long token", "PUT", tokenPath, with(ttlHeader, "21600"), 200},
		{"too long", "PUT", tokenPath, with(ttlHeader, "21601"), 400},
		{"too short", "PUT", tokenPath, with(ttlHeader, "0"), 400},
		{"negative", "PUT", tokenPath, with(ttlHeader, "-1"), 400},
		{"no number", "PUT", tokenPath, with(ttlHeader, "long"), 400},
		{"no TTL", "PUT", tokenPath, with(), 400},
		{"two TTLs", "PUT", tokenPath, with(ttlHeader, "60", ttlHeader, "60"), 400},
		{"a proxy's token", "PUT", tokenPath, with(ttlHeader, "60", "X-Forwarded-For", "10.0.0.1"), 403},
		{"a proxy's read", "GET", macPath, with(TokenHeader, good, "X-Forwarded-For", ""), 403},
	}
	for _, r := range rows {
		status, body, h := w.do(r.method, r.path, r.header)
		if status != r.status {
			t.Errorf("%s: status %d, expected %d", r.name, status, r.status)
		}
		if status != 200 && r.method != "HEAD" && !strings.Contains(body, strconv.Itoa(status)) {
			t.Errorf("%s: no page for status %d: %q", r.name, status, body)
		}
		if status == 200 && h.Get(ttlHeader) == "" {
			t.Errorf("%s: no %s in the answer", r.name, ttlHeader)
		}
	}
}

// TestTokensExpireByTheLaboratorysClock: tokens age by the clock of the laboratory.
func TestTokensExpireByTheLaboratorysClock(t *testing.T) {
	w := newWorld(t)
	h := with(TokenHeader, w.token(60))
	for _, r := range []struct {
		at     time.Duration
		status int
		left   string
	}{{0, 200, "60"}, {59 * time.Second, 200, "1"}, {time.Minute, 401, ""}, {time.Hour, 401, ""}} {
		w.now.Store(int64(r.at))
		if status, _, got := w.do("GET", macPath, h); status != r.status || got.Get(ttlHeader) != r.left {
			t.Errorf("at %v: status %d, %q left; expected %d, %q", r.at, status, got.Get(ttlHeader), r.status, r.left)
		}
	}
}

// TestSDKRefreshesARefusedToken: the SDK asks for another token when its own is refused.
func TestSDKRefreshesARefusedToken(t *testing.T) {
	w := newWorld(t)
	c := sdk.New(sdk.Options{Endpoint: w.srv.URL, HTTPClient: w.srv.Client(), EnableFallback: aws.FalseTernary}) // with its retries
	must.Get(w.get(c, "mac"))(t)
	w.now.Store(int64(24 * time.Hour))
	if _, err := w.get(c, "mac"); err != nil {
		t.Errorf("after a day: %v", err)
	}
}

func TestV1(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.V1 = true })
	if status, _, _ := w.do("GET", macPath, with()); status != 200 {
		t.Errorf("version 1: status %d", status)
	}
	if status, _, _ := w.do("GET", macPath, with(TokenHeader, "made up")); status != 401 {
		t.Errorf("a bad token where none is needed: status %d, expected 401", status)
	}
	if status, _, _ := w.do("GET", macPath, with("X-Forwarded-For", "10.0.0.1")); status != 403 {
		t.Errorf("a proxy: status %d, expected 403", status)
	}
}

func TestDisabled(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Disabled = true })
	for method, path := range map[string]string{"GET": macPath, "PUT": tokenPath} {
		if status, _, _ := w.do(method, path, with(ttlHeader, "60")); status != 403 {
			t.Errorf("%s: status %d, expected 403", method, status)
		}
	}
}

// TestSilentServiceAnswersNothing: a silent service says nothing, to token requests too, until the caller gives up.
func TestSilentServiceAnswersNothing(t *testing.T) {
	w := newWorld(t)
	w.silent.Store(true)
	for method, path := range map[string]string{"GET": macPath, "PUT": tokenPath} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		r := must.Get(http.NewRequestWithContext(ctx, method, w.srv.URL+path, nil))(t)
		r.Header = with(ttlHeader, "60")
		before := w.asked.Load()
		go func() { // the caller gives up once it is heard
			for w.asked.Load() == before && ctx.Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		if p, err := w.srv.Client().Do(r); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v, %+v; expected nothing", method, err, p)
		}
		if w.asked.Load() == before {
			t.Errorf("%s: the model was not asked", method)
		}
		cancel()
	}
}

// BenchmarkRead is one read and back over HTTP, with a token.
func BenchmarkRead(b *testing.B) {
	w := newWorld(b)
	h := with(TokenHeader, w.token(maxTTL))
	for b.Loop() {
		if status, _, _ := w.do("GET", macPath, h); status != 200 {
			b.Fatal(status)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
}
