package server

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"

	"github.com/enilab/enilab/internal/must"
)

// day is when the tests' requests are signed.
var day = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// signed is a request that the SDK's own signer has signed with the key's secret, "secret".
func signed(t testing.TB, key, method, url, body string) *http.Request {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body)))(t)
	r.Header.Set("Content-Type", form0)
	sum := sha256.Sum256([]byte(body))
	c := aws.Credentials{AccessKeyID: key, SecretAccessKey: "secret", SessionToken: "session"}
	must.Do(t, v4.NewSigner().SignHTTP(t.Context(), c, r, hex.EncodeToString(sum[:]), "ec2", "us-west-2", day))
	return r
}

// dump is a request as it goes over the wire.
func dump(t testing.TB, r *http.Request) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, r.Write(&b))
	return b.Bytes()
}

// TestVerified: a signature of the SDK's own signer is right, and any change to what it signs makes it wrong.
func TestVerified(t *testing.T) {
	b := &canned{}
	at := day
	h := New(Options{
		Keys: func(key string) (string, bool) {
			return map[string]string{"AKID": "secret", "OTHER": "secrets"}[key], key != "STRANGER"
		}, Clock: func() time.Time { return at },
	}, b)
	get := func(r *http.Request) *http.Request {
		c := aws.Credentials{AccessKeyID: "AKID", SecretAccessKey: "secret"}
		sum := sha256.Sum256(nil)
		q := r.URL.Query()
		q.Set("X-Amz-Expires", "60")
		r.URL.RawQuery = q.Encode()
		r.Header.Del("Content-Type")
		url, _, err := v4.NewSigner().PresignHTTP(t.Context(), c, r, hex.EncodeToString(sum[:]), "ec2", "us-west-2", day)
		must.Do(t, err)
		return must.Get(http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody))(t)
	}
	post := func(key string) *http.Request { return signed(t, key, http.MethodPost, "http://ec2/", ok) }
	url := func() *http.Request {
		return get(signed(t, "AKID", http.MethodGet, "http://ec2/?"+ok+"&Filter.1.Name=tag%3Aa%20b&Filter.1.Value.1=*", ""))
	}
	same := func(*http.Request) {}
	set := func(k, v string) func(*http.Request) { return func(r *http.Request) { r.Header.Set(k, v) } }
	rows := []struct {
		name  string
		r     *http.Request
		age   time.Duration
		spoil func(*http.Request)
		code  string
	}{
		{"right", post("AKID"), 0, same, ""},
		{"spaces in a header", post("AKID"), 0, set("Content-Type", "  "+strings.ReplaceAll(form0, " ", "   ")), ""},
		{"old, but not too old", post("AKID"), signatureLife, same, ""},
		{"too old", post("AKID"), signatureLife + time.Second, same, "RequestExpired"},
		{"of a time to come", post("AKID"), -signatureLife - time.Second, same, "RequestExpired"},
		{"no such key", post("STRANGER"), 0, same, "AuthFailure"},
		{"another secret", post("OTHER"), 0, same, "AuthFailure"},
		{"another header", post("AKID"), 0, set("X-Amz-Security-Token", "stolen"), "AuthFailure"},
		{"another host", post("AKID"), 0, func(r *http.Request) { r.Host = "elsewhere" }, "AuthFailure"},
		{"another date", post("AKID"), 0, set("X-Amz-Date", "20260102T030406Z"), "AuthFailure"},
		{"another body", post("AKID"), 0, func(r *http.Request) { r.Body = body(ok + "&") }, "AuthFailure"},
		{"presigned", url(), 0, same, ""},
		{"presigned, expired", url(), 61 * time.Second, same, "RequestExpired"},
		{"presigned, changed", url(), 0, func(r *http.Request) { r.URL.RawQuery += "&MaxResults=5" }, "AuthFailure"},
		{"presigned, no expiry", url(), 0, func(r *http.Request) { r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "X-Amz-Expires=60", "", 1) }, "IncompleteSignature"},
		{"presigned, twice", url(), 0, func(r *http.Request) { r.URL.RawQuery += "&X-Amz-Expires=60" }, "MalformedQueryString"},
		{"presigned, another algorithm", url(), 0, func(r *http.Request) { r.URL.RawQuery = strings.Replace(r.URL.RawQuery, "HMAC-SHA256", "NONE", 1) }, "IncompleteSignature"},
	}
	for _, r := range rows {
		r.spoil(r.r)
		b.signer, at = Signer{}, day.Add(r.age)
		if a, _ := send(t, h, r.r); a.Code != r.code {
			t.Errorf("%s: found %s (%s), expected %s", r.name, a.Code, a.Message, r.code)
		}
		if want := r.code == ""; b.signer.Verified != want || want && (b.signer.AccessKey != "AKID" || b.signer.Service != "ec2" || b.signer.Region != "us-west-2") {
			t.Errorf("%s: signer %+v, expected verified: %v", r.name, b.signer, want)
		}
	}
}

// TestVerifiedSDK: the SDK's client is verified over HTTP, and the tools' headers with it.
func TestVerifiedSDK(t *testing.T) {
	b := &canned{}
	keys := func(key string) (string, bool) { return "secret", key == "AKID" }
	c := over(t, New(Options{Keys: keys, Clock: time.Now}, b))
	if _, err := c.DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{}); err != nil || !b.signer.Verified {
		t.Errorf("%v, signer %+v", err, b.signer)
	}
	c = over(t, New(Options{Keys: keys, Clock: func() time.Time { return day }}, b))
	_, err := c.DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{})
	if got, _ := code(err); got != "RequestExpired" {
		t.Errorf("years too early: %v", err)
	}
}

func body(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }
