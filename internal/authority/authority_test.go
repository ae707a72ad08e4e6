package authority

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// source is a random source that begins anew.
func source() *rand.ChaCha8 { return rand.NewChaCha8([32]byte{1}) }

func TestSame(t *testing.T) {
	a, err1 := New(source())
	b, err2 := New(source())
	if err1 != nil || err2 != nil || !bytes.Equal(a.PEM(), b.PEM()) {
		t.Fatalf("two authorities of one source: %v, %v\n%s%s", err1, err2, a.PEM(), b.PEM())
	}
	x, err1 := a.Leaf("a", "10.0.0.1")
	y, err2 := b.Leaf("a", "10.0.0.1")
	if err1 != nil || err2 != nil || !bytes.Equal(x.Certificate[0], y.Certificate[0]) {
		t.Errorf("two certificates of one source differ: %v, %v", err1, err2)
	}
	c, err := New(nil)
	if err != nil || bytes.Equal(a.PEM(), c.PEM()) {
		t.Errorf("%v, or two runs have one key", err)
	}
}

// TestTrusted: a client that trusts the authority reaches each name, and no other; one that does not reaches none.
func TestTrusted(t *testing.T) {
	a := must.Get(New(nil))(t)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	srv.TLS = must.Get(a.TLS("ec2.us-west-2.amazonaws.com", "127.0.0.1"))(t)
	srv.Config.ErrorLog = nil
	srv.StartTLS()
	defer srv.Close()
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(a.PEM()) {
		t.Fatal("the authority's certificate is none")
	}
	ask := func(name string, roots *x509.CertPool) error {
		c, err := tls.Dial("tcp", strings.TrimPrefix(srv.URL, "https://"), &tls.Config{ServerName: name, RootCAs: roots})
		if err != nil {
			return err
		}
		return c.Close()
	}
	for name, good := range map[string]bool{"ec2.us-west-2.amazonaws.com": true, "127.0.0.1": true, "sts.us-west-2.amazonaws.com": false} {
		if err := ask(name, pool); (err == nil) != good {
			t.Errorf("%s: %v, expected good = %v", name, err, good)
		}
	}
	if err := ask("127.0.0.1", x509.NewCertPool()); err == nil {
		t.Error("a client that trusts nobody was served")
	}
	for _, at := range []time.Time{time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC), time.Date(2035, 6, 1, 0, 0, 0, 0, time.UTC)} {
		if _, err := a.cert.Verify(x509.VerifyOptions{Roots: pool, CurrentTime: at}); err != nil {
			t.Errorf("at %v: %v", at, err)
		}
	}
	if _, err := a.Leaf(); err == nil {
		t.Error("a certificate for nobody was made")
	}
}
