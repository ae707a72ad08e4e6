package cloud

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

// service is EC2, STS and metadata as a test wants them: three HTTP servers that speak the real protocols.
type service struct {
	t        *testing.T
	ec2, md  *httptest.Server
	mu       sync.Mutex
	leaves   map[string]string // of metadata, below /latest/
	answer   func(w http.ResponseWriter, form url.Values)
	asked    []url.Values // of EC2
	signed   []string     // Authorization headers of EC2
	read     []string     // paths of metadata
	tokens   int          // handed out
	tooOld   bool         // the token is refused once
	broken   string       // the path that metadata has an error for
	running  atomic.Int32
	together atomic.Int32 // most requests under way at once, of both servers
}

// clearEnvironment takes away what would decide for the test.
func clearEnvironment(t testing.TB) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || strings.HasSuffix(strings.ToUpper(name), "_PROXY") {
			t.Setenv(name, "")
		}
	}
}

// start makes the services, with metadata of one instance whose EC2 answers what answer says.
func start(t *testing.T, answer func(w http.ResponseWriter, form url.Values)) *service {
	t.Helper()
	clearEnvironment(t)
	s := &service{t: t, leaves: instance(), answer: answer}
	s.ec2 = httptest.NewServer(s.counted(s.serveEC2))
	s.md = httptest.NewServer(s.counted(s.serveMetadata))
	t.Cleanup(func() {
		for _, h := range []*httptest.Server{s.ec2, s.md} {
			h.CloseClientConnections()
			h.Close()
		}
	})
	t.Setenv("AWS_ENDPOINT_URL_EC2", s.ec2.URL)
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", s.md.URL)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKID")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	return s
}

func (s *service) counted(h http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		n := s.running.Add(1)
		defer s.running.Add(-1)
		if n > s.together.Load() {
			s.together.Store(n)
		}
		h(w, q)
	})
}

func (s *service) serveEC2(w http.ResponseWriter, q *http.Request) {
	if q.Method != http.MethodPost || q.ParseForm() != nil {
		s.t.Errorf("EC2 was asked %s %s", q.Method, q.URL)
	}
	s.mu.Lock()
	s.asked = append(s.asked, q.PostForm)
	s.signed = append(s.signed, q.Header.Get("Authorization"))
	answer := s.answer
	s.mu.Unlock()
	answer(w, q.PostForm)
}

const tokenText = "TOKEN"

func (s *service) serveMetadata(w http.ResponseWriter, q *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimPrefix(q.URL.Path, "/latest/")
	if path == "api/token" && q.Method == http.MethodPut {
		s.tokens++
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", q.Header.Get("X-Aws-Ec2-Metadata-Token-Ttl-Seconds"))
		_, _ = io.WriteString(w, fmt.Sprint(tokenText, s.tokens))
		return
	}
	s.read = append(s.read, path)
	if q.Header.Get("X-Aws-Ec2-Metadata-Token") != fmt.Sprint(tokenText, s.tokens) || s.tooOld {
		s.tooOld = false
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	if path == s.broken {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	text, ok := s.leaves[path]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = io.WriteString(w, text)
}

// requests are what EC2 was asked so far.
func (s *service) requests() []url.Values {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked)
}

func (s *service) cloud(c Config) *Cloud {
	s.t.Helper()
	c.Region = cmp.Or(c.Region, "eu-west-1")
	c.Timeout = cmp.Or(c.Timeout, 5*time.Second)
	o := must.Get(New(s.t.Context(), c))(s.t)
	s.t.Cleanup(o.Close)
	return o
}

const (
	mac0 = "0a:00:00:00:00:01"
	mac1 = "0a:00:00:00:00:02"
)

// instance is the metadata of an m5.large with one further ENI.
func instance() map[string]string {
	const md = "meta-data/"
	m := map[string]string{
		"dynamic/instance-identity/document": `{"region":"eu-central-1","instanceId":"i-1"}`,
		md + "instance-id":                   "i-1", md + "instance-type": "m5.large", md + "placement/availability-zone": "eu-central-1a",
		md + "mac": mac0, md + "local-ipv4": "10.0.0.10",
		md + "network/interfaces/macs/": mac1 + "/\n" + mac0 + "/",
	}
	for mac, leaves := range map[string]map[string]string{
		mac0: {"interface-id": "eni-0", "device-number": "0", "local-ipv4s": "10.0.0.10\n10.0.0.11", "security-group-ids": "sg-1\nsg-2",
			"vpc-ipv4-cidr-blocks": "10.0.0.0/16\n100.64.0.0/16"},
		mac1: {"interface-id": "eni-1", "device-number": "1", "local-ipv4s": "10.0.0.20"},
	} {
		for leaf, text := range leaves {
			m[md+macs+mac+"/"+leaf] = text
		}
		m[md+macs+mac+"/subnet-id"], m[md+macs+mac+"/subnet-ipv4-cidr-block"] = "subnet-1", "10.0.0.0/24"
	}
	return m
}

// say is EC2's answer to an action.
func say(action, body string) func(http.ResponseWriter, url.Values) {
	return func(w http.ResponseWriter, _ url.Values) { _, _ = io.WriteString(w, answerOf(action, body)) }
}

func answerOf(action, body string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>
<` + action + `Response xmlns="http://ec2.amazonaws.com/doc/2016-11-15/"><requestId>r-1</requestId>` + body + `</` + action + `Response>`
}

// refuse is EC2's refusal.
func refuse(status int, code, message string) func(http.ResponseWriter, url.Values) {
	return func(w http.ResponseWriter, _ url.Values) {
		w.WriteHeader(status)
		_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<Response><Errors><Error><Code>%s</Code><Message>%s</Message></Error></Errors><RequestID>r-1</RequestID></Response>`, code, message)
	}
}

func raw(status int, body string) func(http.ResponseWriter, url.Values) {
	return func(w http.ResponseWriter, _ url.Values) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// hangUp closes the connection without an answer.
func hangUp(w http.ResponseWriter, _ url.Values) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_ = c.Close()
	}
}

// eniXML is an interface as EC2 describes it.
func eniXML(id, attachment, tags string) string {
	return `<networkInterfaceId>` + id + `</networkInterfaceId><subnetId>subnet-1</subnetId><status>in-use</status><macAddress>` + mac1 + `</macAddress>
<privateIpAddress>10.0.0.20</privateIpAddress><privateIpAddressesSet>
<item><privateIpAddress>10.0.0.20</privateIpAddress><primary>true</primary></item>
<item><privateIpAddress>10.0.0.21</privateIpAddress><primary>false</primary></item>
<item><privateIpAddress>10.0.0.22</privateIpAddress><primary>false</primary></item></privateIpAddressesSet>` + attachment + `<tagSet>` + tags + `</tagSet>`
}

func tagXML(key, value string) string {
	return `<item><key>` + key + `</key><value>` + value + `</value></item>`
}

func bounded5(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// calls are one of each.
func calls() []ipam.Call {
	return []ipam.Call{
		{Action: ipam.CreateENI, Token: "t-1", Subnet: "subnet-1", Count: 2, Owner: "i-1", Cluster: "c1", Created: 1700000000,
			Groups: []string{"sg-1", "sg-2"}},
		{Action: ipam.AttachENI, ENI: "eni-1", Device: 3},
		{Action: ipam.ModifyENI, ENI: "eni-1", Attachment: "eni-attach-1"},
		{Action: ipam.DetachENI, ENI: "eni-1", Attachment: "eni-attach-1"},
		{Action: ipam.DeleteENI, ENI: "eni-1"},
		{Action: ipam.AssignIPs, ENI: "eni-1", Count: 2},
		{Action: ipam.UnassignIPs, ENI: "eni-1", Addresses: addresses("10.0.0.21", "10.0.0.22")},
		{Action: ipam.GroupENI, ENI: "eni-1", Groups: []string{"sg-3"}},
	}
}

// yes is EC2's consent to any of them.
func yes(action string) string {
	switch action {
	case "CreateNetworkInterface":
		return answerOf(action, `<networkInterface>`+eniXML("eni-9", "", tagXML(tagOwner, "i-1")+tagXML(tagCreated, "2023-11-14T22:13:20Z"))+`</networkInterface>`)
	case "AttachNetworkInterface":
		return answerOf(action, `<attachmentId>eni-attach-9</attachmentId>`)
	case "AssignPrivateIpAddresses":
		return answerOf(action, `<networkInterfaceId>eni-1</networkInterfaceId><assignedPrivateIpAddressesSet><item><privateIpAddress>10.0.0.31</privateIpAddress></item>
<item><privateIpAddress>10.0.0.32</privateIpAddress></item></assignedPrivateIpAddressesSet><return>true</return>`)
	}
	return answerOf(action, `<return>true</return>`)
}
