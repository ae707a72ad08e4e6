package cloud

import (
	"bytes"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// TestNoLeafIsTakenForAbsent: whichever leaf metadata has an error for, there is an error that names it and no view.
// A leaf that cannot be read is not one that is not there.
func TestNoLeafIsTakenForAbsent(t *testing.T) {
	const md = "meta-data/"
	paths := []string{md + macs + mac1 + "/network-card", md + macs + mac1 + "/ipv4-prefix"}
	for path := range instance() {
		if strings.HasPrefix(path, md) && !strings.HasPrefix(path, md+macs+mac1+"/security") {
			paths = append(paths, path)
		}
	}
	s := start(t, noEC2(t))
	for _, path := range paths {
		s.broken = path
		got, err := s.cloud(Config{}).Metadata(bounded5(t))
		if err == nil || got != nil || !strings.Contains(err.Error(), strings.TrimPrefix(path, md)+": HTTP 500") {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
	s.broken = md + "instance-id"
	c, q := s.cloud(Config{}), calls()[1]
	if _, err := c.Attached(bounded5(t)); err == nil {
		t.Error("whose interfaces they are is unknown, and they are listed")
	}
	if _, err := c.Subnets(bounded5(t)); err == nil {
		t.Error("which zone it is is unknown, and its subnets are listed")
	}
	if got := c.Call(bounded5(t), &q); got.Class == ipam.OK {
		t.Errorf("attached to what is unknown: %+v", got)
	}
}

// TestSubnetsAreWhole: pages without an end, or that name themselves, and a VPC that metadata does not say are
// errors; EC2 is asked no more.
func TestSubnetsAreWhole(t *testing.T) {
	pages := 0
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		pages++
		say(describeSubnets, fmt.Sprintf("<subnetSet/><nextToken>%d</nextToken>", pages))(w, form)
	})
	c := s.cloud(Config{})
	if got, err := c.Subnets(bounded5(t)); err == nil || got != nil || pages != 0 {
		t.Errorf("of no VPC: %+v, %v after %d pages", got, err, pages)
	}
	s.leaves["meta-data/"+macs+mac0+"/vpc-id"] = "vpc-1"
	if got, err := c.Subnets(bounded5(t)); err == nil || got != nil || pages != mostPages {
		t.Errorf("without an end: %+v, %v after %d pages", got, err, pages)
	}
	s.answer = say(describeSubnets, "<subnetSet/><nextToken>n</nextToken>")
	if got, err := c.Subnets(bounded5(t)); err == nil || got != nil || !strings.Contains(err.Error(), "names itself") {
		t.Errorf("a page that is its own next one: %+v, %v", got, err)
	}
	const bad = "<item><subnetId>subnet-1</subnetId><cidrBlock>10.0.0</cidrBlock></item>"
	s.answer = say(describeSubnets, "<subnetSet>"+bad+"</subnetSet>")
	must.Get(c.Metadata(bounded5(t)))(t)
	known := netip.MustParsePrefix("10.0.0.0/24")
	if got, err := c.Subnets(bounded5(t)); err != nil || len(got) != 1 || got[0].CIDR != known {
		t.Errorf("a CIDR that is none, of a subnet whose CIDR metadata has said: %+v, %v", got, err)
	}
}

// TestInterfaceAsEC2Describes: all that the core is told of one, and the primary address where only the interface
// names it.
func TestInterfaceAsEC2Describes(t *testing.T) {
	whole := eniXML("eni-1", "", tagXML(tagNoManage, "true")+tagXML(tagOwner, "i-2")) +
		"<interfaceType>trunk</interfaceType>" +
		"<groupSet><item><groupId>sg-1</groupId></item><item><groupId>sg-2</groupId></item></groupSet>"
	s := start(t, nil)
	c := s.cloud(Config{})
	want := ipam.ENI{ID: "eni-1", MAC: mac1, Subnet: "subnet-1", Primary: netip.MustParseAddr("10.0.0.20"),
		Addresses: addresses("10.0.0.21", "10.0.0.22"), Status: "in-use",
		Groups: []string{"sg-1", "sg-2"}, Kind: "trunk", NoManage: "true", Owner: "i-2"}
	none := want
	none.Primary, none.Addresses = netip.Addr{}, addresses("10.0.0.20", "10.0.0.21", "10.0.0.22")
	unmarked := strings.Replace(whole, "<primary>true</primary>", "", 1)
	const named = "<privateIpAddress>10.0.0.20</privateIpAddress>" // of the interface, before its list
	unnamed, marked := strings.Replace(unmarked, named, "", 1), strings.Replace(whole, named, "", 1)
	for xml, want := range map[string]ipam.ENI{whole: want, unmarked: want, unnamed: none, marked: want} {
		s.answer = say(describeENIs, items(xml))
		if got, err := c.ENIs(bounded5(t), []string{"eni-1"}); err != nil || !reflect.DeepEqual(got, []ipam.ENI{want}) {
			t.Errorf("got %+v, %v\nwant %+v", got, err, want)
		}
	}
	for _, bad := range []string{strings.Replace(unmarked, ">10.0.0.20<", ">10.0.0<", 1),
		strings.Replace(whole, "<status>in-use</status>", "", 1)} {
		s.answer = say(describeENIs, items(bad))
		if got, err := c.ENIs(bounded5(t), []string{"eni-1"}); err == nil {
			t.Errorf("%s is read as %+v", bad, got)
		}
	}
}

// TestNoClusterNoTag: an ENI of a cluster without a name has neither its tag nor upstream's beside it.
func TestNoClusterNoTag(t *testing.T) {
	s := start(t, consent)
	q := calls()[0]
	q.Cluster = ""
	s.cloud(Config{}).Call(bounded5(t), &q)
	form := s.requests()[0]
	var keys []string
	for i := 1; form.Has(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", i)); i++ {
		keys = append(keys, form.Get(fmt.Sprintf("TagSpecification.1.Tag.%d.Key", i)))
	}
	if !slices.Equal(keys, []string{tagCreated, tagOwner}) {
		t.Errorf("tagged %q", keys)
	}
}

// TestOrderOfInterfaces: by device index, those whose index is not known yet last, by their MAC: the same whatever
// the order of the list.
func TestOrderOfInterfaces(t *testing.T) {
	want := []ipam.ENI{{MAC: "c", Device: 0}, {MAC: "b", Device: 1}, {MAC: "d", Device: 1}, {MAC: "a", Partial: true},
		{MAC: "e", Partial: true}}
	for turn := range 5 {
		got := append(slices.Clone(want[turn:]), want[:turn]...)
		for range 2 {
			if slices.SortFunc(got, byDevice); !reflect.DeepEqual(got, want) {
				t.Errorf("got %+v", got)
			}
			slices.Reverse(got)
		}
	}
}

// TestEveryRequestIsLogged, with its class, and with EC2's own words where it refuses.
func TestEveryRequestIsLogged(t *testing.T) {
	var out bytes.Buffer
	s := start(t, consent)
	c := s.cloud(Config{Log: slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug}))})
	q := calls()[4]
	c.Call(bounded5(t), &q)
	s.answer = refuse(400, "InvalidParameterValue", "what EC2 says")
	c.Call(bounded5(t), &q)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 ||
		!strings.Contains(lines[0], "class="+ipam.OK.String()) || strings.Contains(lines[0], "error=") ||
		!strings.Contains(lines[1], "class="+ipam.Invalid.String()) || !strings.Contains(lines[1], "what EC2 says") {
		t.Errorf("the log is %q", lines)
	}
}

// TestWhatWasNotSent: an error of dialling is the last word, though a connection had been there before; any other one
// after a connection leaves open what EC2 has heard.
func TestWhatWasNotSent(t *testing.T) {
	dial := &url.Error{Op: "Post", URL: "x", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}}
	for name, c := range map[string]struct {
		connected bool
		err       error
		want      ipam.Class
	}{
		"never connected":          {false, io.EOF, ipam.Unavailable},
		"a dead one, then no dial": {true, dial, ipam.Unavailable},
		"written and cut off":      {true, &net.OpError{Op: "read", Err: errors.New("reset")}, ipam.Lost},
		"connected":                {true, io.EOF, ipam.Lost},
	} {
		x := &exchange{err: c.err}
		x.connected.Store(c.connected)
		if class, code := classify(errors.New("the SDK's"), x); class != c.want || strings.Contains(code, "the SDK's") {
			t.Errorf("%s: %v, %q; expected %v", name, class, code, c.want)
		}
	}
}

// closable is a body that knows whether it was closed.
type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error {
	c.closed = true
	return nil
}

// TestAnswersHaveABound: as much as it allows is read, and one byte more is an error. Either way the connection is free again.
func TestAnswersHaveABound(t *testing.T) {
	for n, ok := range map[int]bool{0: true, 8: true, 9: false} {
		from := &closable{Reader: strings.NewReader(strings.Repeat("x", n))}
		body, err := readAnswer(&http.Response{Body: from}, 8)
		if (err == nil) != ok || ok && len(body) != n || !from.closed {
			t.Errorf("%d bytes of 8: %d, %v, closed is %v", n, len(body), err, from.closed)
		}
	}
}

// TestDefaultTimeout: a request ends although nothing was configured.
func TestDefaultTimeout(t *testing.T) {
	clearEnvironment(t)
	for configured, want := range map[time.Duration]time.Duration{0: DefaultTimeout, time.Minute: time.Minute} {
		c := must.Get(New(t.Context(), Config{Timeout: configured}))(t)
		t.Cleanup(c.Close)
		if c.direct.Timeout != want || c.outer.Timeout != want {
			t.Errorf("%v: requests end after %v and %v", configured, c.direct.Timeout, c.outer.Timeout)
		}
	}
}

// TestHostOfEC2: AWS_USE_DUALSTACK_ENDPOINT and AWS_USE_FIPS_ENDPOINT lead to other names than the region's plain
// one.
func TestHostOfEC2(t *testing.T) {
	for variable, want := range map[string]string{"": "ec2.eu-west-1.amazonaws.com",
		"AWS_USE_DUALSTACK_ENDPOINT": "ec2.eu-west-1.api.aws",
		"AWS_USE_FIPS_ENDPOINT":      "ec2-fips.eu-west-1.amazonaws.com"} {
		clearEnvironment(t)
		t.Setenv("AWS_ACCESS_KEY_ID", "x")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "y")
		if variable != "" {
			t.Setenv(variable, "TRUE")
		}
		c := must.Get(New(t.Context(), Config{Region: "eu-west-1"}))(t)
		host := ""
		c.outer.Transport = asked(func(q *http.Request) { host = q.URL.Host })
		if q := calls()[4]; c.Call(bounded5(t), &q).Class == ipam.OK || host != want {
			t.Errorf("%s: asked %q, expected %s", variable, host, want)
		}
	}
}

// asked is a network that hears requests and answers none.
type asked func(*http.Request)

func (a asked) RoundTrip(q *http.Request) (*http.Response, error) { a(q); return nil, io.EOF }

// TestMetadataBySix: AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE says by which of its two addresses metadata is asked.
func TestMetadataBySix(t *testing.T) {
	for mode, want := range map[string]string{"": "169.254.169.254", "IPv6": "[fd00:ec2::254]"} {
		clearEnvironment(t)
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE", mode)
		c := must.Get(New(t.Context(), Config{Region: "eu-west-1"}))(t)
		host := ""
		c.direct.Transport = asked(func(q *http.Request) { host = q.URL.Host })
		if _, err := c.Metadata(bounded5(t)); err == nil || host != want {
			t.Errorf("mode %q: asked %s, %v; expected %s", mode, host, err, want)
		}
	}
}

// TestBundleIsTrusted: AWS_CA_BUNDLE is what EC2's certificate, and that of an agent behind TLS, is judged by.
func TestBundleIsTrusted(t *testing.T) {
	s := start(t, nil)
	ec2 := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		_ = q.ParseForm()
		consent(w, q.PostForm)
	}))
	t.Cleanup(ec2.Close)
	ec2.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Setenv("AWS_ENDPOINT_URL_EC2", ec2.URL)
	q := calls()[4]
	if got := s.cloud(Config{}).Call(bounded5(t), &q); got.Class != ipam.Unavailable {
		t.Errorf("by a certificate of nobody's: %+v", got)
	}
	bundle := filepath.Join(t.TempDir(), "bundle")
	t.Setenv("AWS_CA_BUNDLE", bundle)
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: ec2.Certificate().Raw})
	for _, text := range [][]byte{nil, certificate} {
		must.Do(t, os.WriteFile(bundle, text, 0o600))
		c, err := New(t.Context(), Config{Region: "eu-west-1"})
		if (err == nil) != (text != nil) {
			t.Fatalf("%d bytes: %v", len(text), err)
		}
		if err == nil {
			t.Cleanup(c.Close)
			if got := c.Call(bounded5(t), &q); got.Class != ipam.OK {
				t.Errorf("by a certificate of the bundle: %+v", got)
			}
		}
	}
	agent := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if q.Header.Get("Authorization") != "shown" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, roleKeys("AGENT", time.Hour))
	}))
	t.Cleanup(agent.Close)
	unsetKeys(t)
	t.Setenv("AWS_ENDPOINT_URL_EC2", s.ec2.URL)
	s.answer = consent
	t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", agent.URL)
	t.Setenv("AWS_CONTAINER_AUTHORIZATION_TOKEN", "shown")
	if key, got := signedBy(t, s); key != "AGENT" { // the servers of httptest have one certificate
		t.Errorf("signed by %q, %+v", key, got)
	}
}

// TestContainerEndpoint: where credentials may be asked for in clear text, and which variable goes before.
func TestContainerEndpoint(t *testing.T) {
	for _, c := range []struct{ full, relative, want string }{
		{"", "", ""},
		{"", "/v2/x", "http://169.254.170.2/v2/x"},
		{"http://169.254.170.23/v1", "/v2/x", "http://169.254.170.23/v1"},
		{"http://localhost:51679/v1", "", "http://localhost:51679/v1"},
		{"http://127.0.0.7/v1", "", "http://127.0.0.7/v1"},
		{"http://[::1]/v1", "", "http://[::1]/v1"},
	} {
		if got, err := containerEndpoint(c.full, c.relative); err != nil || got != c.want {
			t.Errorf("%q, %q: %q, %v", c.full, c.relative, got, err)
		}
	}
	for _, full := range []string{"ftp://localhost/v1", "ftp://127.0.0.1/v1", "ftp://169.254.170.23/v1",
		"http://169.254.170.24/v1", "http:///v1", "http://%zz"} {
		if got, err := containerEndpoint(full, ""); err == nil {
			t.Errorf("%q may be asked for credentials: %q", full, got)
		}
	}
	clearEnvironment(t)
	for _, endpoint := range []string{"ftp://ec2", "http://", "http://%zz", "ec2:443"} {
		t.Setenv("AWS_ENDPOINT_URL_EC2", endpoint)
		if _, err := New(t.Context(), Config{}); err == nil {
			t.Errorf("%q is an endpoint", endpoint)
		}
	}
}

// TestSessionNameOfARole: the configured one, else one that says whose it is.
func TestSessionNameOfARole(t *testing.T) {
	s := start(t, consent)
	token := tokenFile(t, "jwt")
	name := ""
	sts := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		name = q.FormValue("RoleSessionName")
		w.WriteHeader(http.StatusForbidden)
	}))
	t.Cleanup(sts.Close)
	t.Setenv("AWS_ENDPOINT_URL_STS", sts.URL)
	t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", token)
	t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/r")
	if signedBy(t, s); !strings.HasPrefix(name, "aws-node-") {
		t.Errorf("the session is %q", name)
	}
	t.Setenv("AWS_ROLE_SESSION_NAME", "mine")
	if signedBy(t, s); name != "mine" {
		t.Errorf("the session is %q, expected the configured one", name)
	}
}

// TestTheVeryID is found in EC2's words, and none that begins like it or is a part of it.
func TestTheVeryID(t *testing.T) {
	const text = "The networkInterface ID 'eni-109az' does not exist"
	for id, want := range map[string]bool{"eni-109az": true, "eni-1": false, "eni-10": false, "eni-109a": false, "109az": false,
		"eni-109azx": false} {
		if mentions(text, id) != want {
			t.Errorf("%s: %v", id, !want)
		}
	}
}
