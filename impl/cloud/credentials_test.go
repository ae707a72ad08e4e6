package cloud

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// roleKeys are credentials as metadata and the pod identity agent hand them out.
func roleKeys(key string, life time.Duration) string {
	return fmt.Sprintf(`{"Code":"Success","Type":"AWS-HMAC","AccessKeyId":%q,"SecretAccessKey":"s","Token":"session","Expiration":%q}`, key, time.Now().Add(life).UTC().Format(time.RFC3339))
}

// signedBy carries out a Call and says with which key it was signed.
func signedBy(t *testing.T, s *service) (string, ipam.Result) {
	t.Helper()
	q := calls()[4]
	r := s.cloud(Config{}).Call(bounded5(t), &q)
	if len(s.signed) == 0 {
		return "", r
	}
	_, rest, _ := strings.Cut(s.signed[len(s.signed)-1], "Credential=")
	key, _, _ := strings.Cut(rest, "/")
	return key, r
}

func unsetKeys(t *testing.T) {
	t.Setenv("AWS_ACCESS_KEY_ID", "")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "")
}

// tokenFile is a file with a token, for an environment that has no keys.
func tokenFile(t *testing.T, token string) (path string) {
	t.Helper()
	unsetKeys(t)
	path = filepath.Join(t.TempDir(), "token")
	must.Do(t, os.WriteFile(path, []byte(token), 0o600))
	return path
}

func TestRoleOfInstance(t *testing.T) {
	const folder = "meta-data/iam/security-credentials/"
	for _, tooOld := range []bool{false, true} { // the token
		s := start(t, consent)
		unsetKeys(t)
		s.leaves[folder], s.leaves[folder+"node-role"] = "node-role", roleKeys("ROLE", time.Hour)
		s.tooOld = tooOld
		if key, r := signedBy(t, s); key != "ROLE" || r.Class != ipam.OK {
			t.Errorf("signed by %q, %+v", key, r)
		}
		if n := s.together.Load(); n != 1 {
			t.Errorf("%d requests under way at once", n)
		}
		// Only what was refused for its token is asked for again.
		if n := count(s.read, folder+"node-role"); n != 1 {
			t.Errorf("token too old: %v: the role's keys were read %d times: %q", tooOld, n, s.read)
		}
	}
}

// No role, or nobody who could say: the request is not sent, and the result says where credentials were looked for.
func TestNoCredentials(t *testing.T) {
	s := start(t, consent)
	unsetKeys(t)
	for _, q := range calls() {
		got := s.cloud(Config{}).Call(bounded5(t), &q)
		if got.Class != ipam.Denied || !strings.HasPrefix(got.Code, "no credentials from the instance's role") {
			t.Errorf("%v: got %+v", q.Action, got)
		}
	}
	if _, err := s.cloud(Config{}).Attached(bounded5(t)); err == nil || !strings.Contains(err.Error(), "no credentials") {
		t.Errorf("got %v", err)
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests were sent", n)
	}
}

func TestPodIdentity(t *testing.T) {
	s := start(t, consent)
	token := tokenFile(t, "pod-token\n")
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "pod-token" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, roleKeys("POD", time.Hour))
	}))
	t.Cleanup(agent.Close)
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.URL+"/v1/credentials")
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token)
	if key, r := signedBy(t, s); key != "POD" || r.Class != ipam.OK {
		t.Errorf("signed by %q, %+v", key, r)
	}
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", token+"x")
	if _, r := signedBy(t, s); r.Class != ipam.Denied || !strings.Contains(r.Code, "no credentials from "+agent.URL) {
		t.Errorf("without a token: %+v", r)
	}
}

func TestWebIdentity(t *testing.T) {
	s := start(t, consent)
	token := tokenFile(t, "jwt")
	status, life := http.StatusOK, time.Hour
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.FormValue("Action") != "AssumeRoleWithWebIdentity" || q.FormValue("WebIdentityToken") != "jwt" || q.FormValue("RoleArn") != "arn:aws:iam::1:role/r" {
			t.Errorf("STS was asked %v", q.Form)
		}
		w.WriteHeader(status)
		if status != http.StatusOK {
			_, _ = io.WriteString(w, `<ErrorResponse><Error><Code>AccessDenied</Code><Message>not you</Message></Error></ErrorResponse>`)
			return
		}
		_, _ = fmt.Fprintf(w, `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult><Credentials>
<AccessKeyId>WEB</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>`, time.Now().Add(life).UTC().Format(time.RFC3339))
	}))
	t.Cleanup(sts.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
	if key, r := signedBy(t, s); key != "WEB" || r.Class != ipam.OK {
		t.Errorf("signed by %q, %+v", key, r)
	}
	status = http.StatusForbidden
	if _, r := signedBy(t, s); r.Class != ipam.Denied || !strings.Contains(r.Code, "AccessDenied") {
		t.Errorf("refused by STS: %+v", r)
	}
	// Keys whose time is over stand for none, and the result says why there are no others.
	life = -time.Minute
	c, q := s.cloud(Config{}), calls()[4]
	for _, status = range []int{http.StatusOK, http.StatusForbidden} {
		r := c.Call(bounded5(t), &q)
		if refused := r.Class == ipam.Denied && strings.Contains(r.Code, "AccessDenied"); refused != (status == http.StatusForbidden) {
			t.Errorf("with expired keys, STS says %d: %+v", status, r)
		}
	}
}

func TestEnvironment(t *testing.T) {
	cases := []struct {
		set  map[string]string
		want string // of the error; empty: none
	}{
		{nil, ""},
		{map[string]string{"AWS_ACCESS_KEY_ID": "x"}, "without the other"},
		{map[string]string{"AWS_WEB_IDENTITY_TOKEN_FILE": "/x"}, "without AWS_ROLE_ARN"},
		{map[string]string{"AWS_ENDPOINT_URL": "x", "AWS_SECRET_ACCESS_KEY": "y"}, "without the other"},
		{map[string]string{"AWS_ENDPOINT_URL": "x"}, `EC2 endpoint is "x"`},
		{map[string]string{"AWS_EC2_METADATA_SERVICE_ENDPOINT": "169.254.169.254"}, "expected a URL"},
		{map[string]string{"AWS_CA_BUNDLE": "/nonexistent"}, "AWS_CA_BUNDLE"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.23/v1/credentials"}, ""},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://[fd00:ec2::23]/v1/credentials"}, ""},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "https://example.com/"}, ""},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://example.com/"}, "without https only"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": "/v2"}, "expected a URL"},
		{map[string]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x"}, ""},
	}
	for _, tc := range cases {
		clearEnvironment(t)
		for k, v := range tc.set {
			t.Setenv(k, v)
		}
		_, err := New(t.Context(), Config{})
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%v: %v, want %q", tc.set, err, tc.want)
		}
	}
}

// The more specific variable wins; amazon-vpc-cni-k8s's own stands between the SDK's two.
func TestEndpoints(t *testing.T) {
	cases := []struct {
		set      map[string]string
		ec2, sts string
	}{
		{map[string]string{"AWS_ENDPOINT_URL": "http://all"}, "http://all", "http://all"},
		{map[string]string{"AWS_ENDPOINT_URL": "http://all", "AWS_EC2_ENDPOINT": "http://vpc-cni"}, "http://vpc-cni", "http://all"},
		{map[string]string{"AWS_EC2_ENDPOINT": "http://vpc-cni", "AWS_ENDPOINT_URL_EC2": "http://ec2", "AWS_ENDPOINT_URL_STS": "http://sts"}, "http://ec2", "http://sts"},
		{map[string]string{"AWS_ENDPOINT_URL": "http://all", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, "", ""},
	}
	for _, tc := range cases {
		clearEnvironment(t)
		for k, v := range tc.set {
			t.Setenv(k, v)
		}
		e, err := readEnvironment()
		if err != nil || e.ec2 != tc.ec2 || e.sts != tc.sts {
			t.Errorf("%v: EC2 %q, STS %q, %v", tc.set, e.ec2, e.sts, err)
		}
	}
}

// A region alone leads to its endpoint over TLS; nothing here reaches it.
func TestRegionalEndpoint(t *testing.T) {
	clearEnvironment(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "x")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Method != http.MethodConnect || q.Host != "ec2.eu-west-1.amazonaws.com:443" {
			t.Errorf("the proxy was asked %s %s", q.Method, q.Host)
		}
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(proxy.Close)
	c := must.Get(New(t.Context(), Config{Region: "eu-west-1"}))(t)
	t.Cleanup(c.Close)
	c.outer.Transport.(*http.Transport).Proxy = func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }
	q := calls()[4]
	if got := c.Call(bounded5(t), &q); got.Class != ipam.Unavailable {
		t.Errorf("got %+v", got)
	}
}
