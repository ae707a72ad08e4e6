package server

import (
	"bufio"
	"bytes"
	"context"
	"crypto"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds"
	"github.com/enilab/enilab/internal/must"
)

// TestVersions: a token is latest's, reads may be any build's.
func TestVersions(t *testing.T) {
	w := newWorld(t)
	h := with(TokenHeader, w.token(60))
	for _, r := range []struct {
		method, path string
		header       http.Header
		status       int
		allow        string
	}{
		{"PUT", "/2021-03-23/api/token", with(ttlHeader, "60"), 403, ""},
		{"PUT", "/1.0/api/token", with(ttlHeader, "60"), 403, ""},
		{"PUT", "/1.5/api/token", with(ttlHeader, "60"), 405, "GET, HEAD"},
		{"PUT", "/latest/api/token/", with(ttlHeader, "60"), 405, "GET, HEAD"},
		{"PUT", "/latest/api%2Ftoken", with(ttlHeader, "60"), 405, ""},
		{"GET", "/latest/api/token", h, 405, "PUT"},
		{"GET", "/latest/api/", h, 404, ""},
		{"GET", "/2021-03-23/meta-data/mac", h, 200, ""},
		{"GET", "/", h, 200, ""},
		{"GET", "/", with(), 401, ""},
		{"OPTIONS", "/latest/meta-data/mac", h, 405, "GET, HEAD"},
		{"GET", "/latest/meta-data/mac?x=y", h, 200, ""},
	} {
		status, _, got := w.do(r.method, r.path, r.header)
		if status != r.status || r.allow != "" && got.Get("Allow") != r.allow {
			t.Errorf("%s %s: status %d, Allow %q; expected %d, %q", r.method, r.path, status, got.Get("Allow"), r.status, r.allow)
		}
	}
}

// TestAnswersHaveHeaders: what the service says beside the text.
func TestAnswersHaveHeaders(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Extras = func() imds.Extras { return imds.Extras{UserData: "\x1f\x8b"} } })
	h := with(TokenHeader, w.token(60))
	for path, want := range map[string]string{macPath: "text/plain", "/latest/": "text/plain", "/latest/dynamic/instance-identity/document": "text/plain",
		"/latest/user-data": "application/octet-stream", "/latest/none": "text/html"} {
		if _, _, got := w.do("GET", path, h); got.Get("Content-Type") != want || got.Get("Server") != "EC2ws" {
			t.Errorf("%s: %v, expected %s of EC2ws", path, got, want)
		}
	}
}

// TestCloseEndsTheConnection: a connection is for one answer where it is said to be.
func TestCloseEndsTheConnection(t *testing.T) {
	for _, closes := range []bool{false, true} {
		w := newWorld(t, func(c *Config) { c.V1, c.Close = true, closes })
		c := w.dial()
		r := bufio.NewReader(c)
		for i := range 2 {
			_, _ = io.WriteString(c, "GET "+macPath+" HTTP/1.1\r\nHost: imds\r\n\r\n")
			p, err := http.ReadResponse(r, nil)
			if err == nil {
				_, err = io.Copy(io.Discard, p.Body)
				_ = p.Body.Close()
			}
			if want := i == 0 || !closes; err == nil != want {
				t.Errorf("closes: %v: answer %d: %v; expected one: %v", closes, i, err, want)
			}
		}
	}
}

// TestNoticesAndTagsAppear: notices come while the service runs, and tags when they are allowed.
func TestNoticesAndTagsAppear(t *testing.T) {
	var extras imds.Extras
	w := newWorld(t, func(c *Config) { c.Extras = func() imds.Extras { return extras } })
	h := with(TokenHeader, w.token(60))
	const path = "/latest/meta-data/spot/instance-action"
	if status, _, _ := w.do("GET", path, h); status != 404 {
		t.Errorf("no notice: status %d", status)
	}
	extras.Interruption = &imds.Interruption{Action: "stop", At: time.Unix(0, 0)}
	if status, body, _ := w.do("GET", path, h); status != 200 || body != `{"action":"stop","time":"1970-01-01T00:00:00Z"}` {
		t.Errorf("a notice: status %d, %s", status, body)
	}
	for _, allowed := range []bool{false, true} {
		w := newWorld(t, func(c *Config) {
			c.Options.Tags = allowed
			view := c.View
			c.View = func(ctx context.Context) (ec2.IMDS, bool) {
				v, ok := view(ctx)
				v.Instance.Tags = []ec2.Tag{{Key: "Name", Value: "node-0"}}
				return v, ok
			}
		})
		status, body, _ := w.do("GET", "/latest/meta-data/tags/instance/Name", with(TokenHeader, w.token(60)))
		if status == 200 != allowed || allowed && body != "node-0" {
			t.Errorf("tags allowed: %v: status %d, %q", allowed, status, body)
		}
	}
}

// TestThrottle: each instance has its bucket, and token requests draw from it too.
func TestThrottle(t *testing.T) {
	small := func(c *Config) { c.Throttle = ec2.Bucket{Capacity: 3, RefillPerSecond: 2} }
	w, other := newWorld(t, small), newWorld(t, small)
	h := with(TokenHeader, w.token(maxTTL))
	for _, r := range []struct {
		at     time.Duration
		status int
	}{
		{0, 200}, {0, 200}, {0, 429}, {499 * time.Millisecond, 429}, {500 * time.Millisecond, 200}, {500 * time.Millisecond, 429},
		{400 * time.Millisecond, 429}, // a clock that goes back
		{time.Minute, 200}, {time.Minute, 200}, {time.Minute, 200}, {time.Minute, 429},
	} {
		w.now.Store(int64(r.at))
		status, body, _ := w.do("GET", macPath, h)
		if status != r.status || status == 429 && !strings.Contains(body, "429 - Too Many Requests") {
			t.Errorf("at %v: status %d, %q; expected %d", r.at, status, body, r.status)
		}
	}
	if status, _, _ := w.do("PUT", tokenPath, with(ttlHeader, "60")); status != 429 {
		t.Errorf("a token: status %d, expected 429", status)
	}
	other.token(60)
	if b := (bucket{}); !b.take(ec2.Bucket{Capacity: 1 << 62, RefillPerSecond: 1 << 62}, 1) || b.take(ec2.Bucket{RefillPerSecond: -1}, 2) {
		t.Error("numbers that the arithmetic does not hold")
	}
}

// TestInsideIgnoresTheHopLimit: what listens in the instance's namespace is beyond a hop for everybody who is not
// there.
func TestInsideIgnoresTheHopLimit(t *testing.T) {
	for _, r := range []struct {
		name    string
		from    string // the caller's address
		options Options
		method  string
		reached bool
	}{
		{"the instance itself, from the service's address", "169.254.169.254", Options{Inside: true}, "PUT", true},
		{"from its primary address", "10.0.0.4", Options{Inside: true}, "PUT", true},
		{"from loopback", "127.0.0.1", Options{Inside: true}, "PUT", true},
		{"as IPv6 writes it", "::ffff:10.0.0.4", Options{Inside: true}, "PUT", true},
		{"a container", "10.0.0.9", Options{Inside: true}, "PUT", false},
		{"a container, and two hops", "10.0.0.9", Options{Inside: true, HopLimit: 2}, "PUT", true},
		{"a container's read", "10.0.0.9", Options{Inside: true, V1: true}, "GET", true},
		{"a service outside", "10.0.0.9", Options{}, "PUT", true},
		{"a negative limit is 1", "10.0.0.9", Options{Inside: true, HopLimit: -1}, "PUT", false},
	} {
		h := newHandler(Config{Options: r.options, Now: func() time.Duration { return 0 }, View: func(context.Context) (ec2.IMDS, bool) {
			return ec2.IMDS{Instance: ec2.Instance{ID: "i-1", PrimaryAddress: netip.MustParseAddr("10.0.0.4")}}, true
		}})
		ctx, cancel := context.WithCancel(context.WithValue(t.Context(), http.LocalAddrContextKey, &net.TCPAddr{IP: net.ParseIP("169.254.169.254"), Port: 80}))
		cancel() // the caller gives up
		q := httptest.NewRequestWithContext(ctx, r.method, "http://imds"+tokenPath, nil)
		if r.method == "GET" {
			q.URL.Path = "/latest/meta-data/local-ipv4"
		}
		q.Header, q.RemoteAddr = with(ttlHeader, "60"), net.JoinHostPort(r.from, "4711")
		w, reached := httptest.NewRecorder(), true
		func() {
			defer func() { reached = recover() == nil }()
			h.ServeHTTP(w, q)
		}()
		if reached != r.reached || reached && w.Code != 200 {
			t.Errorf("%s: reached %v, status %d; expected %v", r.name, reached, w.Code, r.reached)
		}
	}
}

// TestSignatures: the user guide's ways to verify an identity document work with our certificate.
func TestSignatures(t *testing.T) {
	signer := NewSigner()
	w := newWorld(t, func(c *Config) { c.Signer = signer })
	h := with(TokenHeader, w.token(60))
	const folder = "/latest/dynamic/instance-identity/"
	if _, list, _ := w.do("GET", folder, h); list != "document\npkcs7\nrsa2048\nsignature" {
		t.Errorf("listed: %q", list)
	}
	_, document, _ := w.do("GET", folder+"document", h)
	_, signature, _ := w.do("GET", folder+"signature", h)
	block, _ := pem.Decode(signer.Certificate())
	cert := must.Get(x509.ParseCertificate(block.Bytes))(t)
	raw, err := base64.StdEncoding.DecodeString(signature)
	sum := sha256.Sum256([]byte(document))
	if err := errors.Join(err, rsa.VerifyPKCS1v15(cert.PublicKey.(*rsa.PublicKey), crypto.SHA256, sum[:], raw)); err != nil {
		t.Errorf("signature: %v", err)
	}
	openssl, err := exec.LookPath("openssl")
	if err != nil {
		t.Skip("needs openssl, for PKCS #7")
	}
	file := filepath.Join(t.TempDir(), "certificate")
	must.Do(t, os.WriteFile(file, signer.Certificate(), 0o600))
	for _, kind := range []string{"pkcs7", "rsa2048"} {
		_, message, _ := w.do("GET", folder+kind, h)
		c := exec.CommandContext(t.Context(), openssl, "smime", "-verify", "-inform", "PEM", "-certfile", file, "-noverify")
		c.Stdin = strings.NewReader("-----BEGIN PKCS7-----\n" + message + "\n-----END PKCS7-----\n")
		var said bytes.Buffer
		c.Stderr = &said
		if out, err := c.Output(); err != nil || strings.ReplaceAll(string(out), "\r\n", "\n") != document {
			t.Errorf("%s: %v: %s\n%s", kind, err, &said, out)
		}
	}
}
