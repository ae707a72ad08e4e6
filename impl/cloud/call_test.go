package cloud

import (
	"context"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

func addresses(texts ...string) []netip.Addr {
	var out []netip.Addr
	for _, t := range texts {
		out = append(out, netip.MustParseAddr(t))
	}
	return out
}

func consent(w http.ResponseWriter, form url.Values) {
	_, _ = io.WriteString(w, yes(form.Get("Action")))
}

// Every Call is one request with the parameters that amazon-vpc-cni-k8s sends.
func TestCallSendsOneRequest(t *testing.T) {
	s := start(t, consent)
	c := s.cloud(Config{Tags: map[string]string{"team": "net", tagOwner: "nobody"}})
	want := []url.Values{
		{"Action": {"CreateNetworkInterface"}, "ClientToken": {"t-1"}, "SubnetId": {"subnet-1"}, "Description": {"aws-K8S-i-1"},
			"SecondaryPrivateIpAddressCount": {"2"}, "SecurityGroupId.1": {"sg-1"}, "SecurityGroupId.2": {"sg-2"},
			"TagSpecification.1.ResourceType": {"network-interface"},
			"TagSpecification.1.Tag.1.Key":    {tagCluster}, "TagSpecification.1.Tag.1.Value": {"c1"},
			"TagSpecification.1.Tag.2.Key": {tagBy}, "TagSpecification.1.Tag.2.Value": {"amazon-vpc-cni"},
			"TagSpecification.1.Tag.3.Key": {tagCreated}, "TagSpecification.1.Tag.3.Value": {"2023-11-14T22:13:20Z"},
			"TagSpecification.1.Tag.4.Key": {tagOwner}, "TagSpecification.1.Tag.4.Value": {"i-1"},
			"TagSpecification.1.Tag.5.Key": {"team"}, "TagSpecification.1.Tag.5.Value": {"net"}},
		{"Action": {"AttachNetworkInterface"}, "NetworkInterfaceId": {"eni-1"}, "InstanceId": {"i-1"}, "DeviceIndex": {"3"}},
		{"Action": {"ModifyNetworkInterfaceAttribute"}, "NetworkInterfaceId": {"eni-1"}, "Attachment.AttachmentId": {"eni-attach-1"}, "Attachment.DeleteOnTermination": {"true"}},
		{"Action": {"DetachNetworkInterface"}, "AttachmentId": {"eni-attach-1"}},
		{"Action": {"DeleteNetworkInterface"}, "NetworkInterfaceId": {"eni-1"}},
		{"Action": {"AssignPrivateIpAddresses"}, "NetworkInterfaceId": {"eni-1"}, "SecondaryPrivateIpAddressCount": {"2"}},
		{"Action": {"UnassignPrivateIpAddresses"}, "NetworkInterfaceId": {"eni-1"}, "PrivateIpAddress.1": {"10.0.0.21"}, "PrivateIpAddress.2": {"10.0.0.22"}},
		{"Action": {"ModifyNetworkInterfaceAttribute"}, "NetworkInterfaceId": {"eni-1"}, "SecurityGroupId.1": {"sg-3"}},
	}
	results := []ipam.Result{
		{ENI: ipam.ENI{ID: "eni-9", MAC: mac1, Subnet: "subnet-1", Primary: netip.MustParseAddr("10.0.0.20"), Addresses: addresses("10.0.0.21", "10.0.0.22"),
			Status: "in-use", Owner: "i-1", Created: 1700000000}},
		{Attachment: "eni-attach-9"}, {}, {}, {}, {Addresses: addresses("10.0.0.31", "10.0.0.32")}, {}, {},
	}
	for i, q := range calls() {
		got := c.Call(bounded5(t), &q)
		if !reflect.DeepEqual(got, results[i]) {
			t.Errorf("%v: got %+v, want %+v", q.Action, got, results[i])
		}
		asked := s.requests()
		if len(asked) != i+1 {
			t.Fatalf("%v: %d requests, want %d", q.Action, len(asked), i+1)
		}
		form := asked[i]
		delete(form, "Version")
		if !maps.EqualFunc(form, want[i], slices.Equal[[]string]) {
			t.Errorf("%v: asked %v\nwant %v", q.Action, form, want[i])
		}
	}
	if n := s.together.Load(); n != 1 {
		t.Errorf("%d requests under way at once", n)
	}
	if !strings.Contains(s.signed[0], "Credential=AKID/") || !strings.Contains(s.signed[0], "/eu-west-1/ec2/aws4_request") {
		t.Errorf("signed with %q", s.signed[0])
	}
}

// A repetition is the same request, though the primary ENI's groups have changed: EC2 would refuse another with the same token. Which groups an
// ENI is made with its intent says.
func TestCreateRepeatsItself(t *testing.T) {
	s := start(t, hangUp)
	c := s.cloud(Config{Tags: map[string]string{"b": "2", "a": "1", "c": "3"}})
	q := calls()[0]
	if r := c.Call(bounded5(t), &q); r.Class != ipam.Lost {
		t.Fatalf("got %+v", r)
	}
	s.mu.Lock()
	s.leaves["meta-data/"+macs+mac0+"/security-group-ids"] = "sg-3"
	s.answer = consent
	s.mu.Unlock()
	m := must.Get(c.Metadata(bounded5(t)))(t)
	if r := c.Call(bounded5(t), &q); r.Class != ipam.OK {
		t.Fatalf("got %+v", r)
	}
	q.Token, q.Groups = "t-2", m.Groups
	c.Call(bounded5(t), &q)
	asked := s.requests()
	if len(asked) != 3 || !reflect.DeepEqual(asked[0], asked[1]) {
		t.Errorf("the repetition differs: %v", asked)
	}
	if g := asked[2].Get("SecurityGroupId.1"); g != "sg-3" {
		t.Errorf("a new token goes with group %q, want sg-3", g)
	}
	q.Groups = nil
	if r := c.Call(bounded5(t), &q); r.Class == ipam.OK || len(s.requests()) != 3 {
		t.Errorf("an ENI without groups would have the VPC's default one: %+v", r)
	}
}

// What EC2 says decides, by its code, else by the HTTP status; nothing is repeated.
func TestErrorsAreClassifiedByCodeThenStatus(t *testing.T) {
	cases := []struct {
		answer func(http.ResponseWriter, url.Values)
		class  ipam.Class
		code   string
	}{
		{refuse(503, "RequestLimitExceeded", "Request limit exceeded."), ipam.Throttled, "RequestLimitExceeded"},
		{refuse(400, "Throttling", "Rate exceeded"), ipam.Throttled, "Throttling"},
		{refuse(429, "Whatever", ""), ipam.Throttled, "Whatever"},
		{refuse(503, "Unavailable", "overloaded"), ipam.Unavailable, "Unavailable"},
		{refuse(500, "InternalError", "x"), ipam.Unavailable, "InternalError"},
		{refuse(400, "InvalidNetworkInterfaceID.NotFound", "x"), ipam.NotFound, "InvalidNetworkInterfaceID.NotFound"},
		{refuse(400, "InvalidAttachmentID.NotFound", "x"), ipam.NotFound, "InvalidAttachmentID.NotFound"},
		{refuse(400, "InsufficientFreeAddressesInSubnet", "x"), ipam.SubnetFull, "InsufficientFreeAddressesInSubnet"},
		{refuse(400, "InsufficientCidrBlocks", "x"), ipam.SubnetFull, "InsufficientCidrBlocks"},
		{refuse(400, "AttachmentLimitExceeded", "x"), ipam.Limit, "AttachmentLimitExceeded"},
		{refuse(400, "InvalidInterface.IpAddressLimitExceeded", "x"), ipam.Limit, "InvalidInterface.IpAddressLimitExceeded"},
		{refuse(400, "PrivateIpAddressLimitExceeded", "x"), ipam.Limit, "PrivateIpAddressLimitExceeded"},
		{refuse(400, "NetworkInterfaceLimitExceeded", "x"), ipam.Limit, "NetworkInterfaceLimitExceeded"},
		{refuse(400, "InvalidNetworkInterface.InUse", "x"), ipam.InUse, "InvalidNetworkInterface.InUse"},
		{refuse(400, "InvalidParameterValue", "Network interface 'eni-1' is currently in use."), ipam.InUse, "InvalidParameterValue"},
		{refuse(400, "InvalidParameterValue", "x"), ipam.Invalid, "InvalidParameterValue"},
		{refuse(403, "UnauthorizedOperation", "You are not authorized"), ipam.Denied, "UnauthorizedOperation"},
		{refuse(401, "AuthFailure", "x"), ipam.Denied, "AuthFailure"},
		{refuse(400, "RequestExpired", "x"), ipam.Denied, "RequestExpired"},
		{refuse(400, "IdempotentParameterMismatch", "x"), ipam.Invalid, "IdempotentParameterMismatch"},
		{refuse(400, "OperationNotPermitted", "x"), ipam.Invalid, "OperationNotPermitted"},
		{raw(503, ""), ipam.Throttled, "HTTP 503"},
		{raw(429, "slow"), ipam.Throttled, "HTTP 429"},
		{raw(502, "<html>bad gateway</html>"), ipam.Unavailable, "HTTP 502"},
		{raw(400, "<Response><Errors><Error><Code>Inval"), ipam.Unavailable, "HTTP 400"},
		{raw(403, "<html>no</html>"), ipam.Denied, "HTTP 403"},
		{raw(302, ""), ipam.Unavailable, "HTTP 302"},
	}
	for _, tc := range cases {
		s := start(t, tc.answer)
		c := s.cloud(Config{})
		for _, q := range calls() {
			before := len(s.requests())
			if got := c.Call(bounded5(t), &q); !reflect.DeepEqual(got, ipam.Result{Class: tc.class, Code: tc.code}) {
				t.Errorf("%v: got %+v, want %v %s", q.Action, got, tc.class, tc.code)
			}
			if n := len(s.requests()) - before; n != 1 {
				t.Errorf("%s: %d requests for one Call", tc.code, n)
			}
		}
	}
}

// saysNoMore leaves the caller waiting until it gives up.
func saysNoMore(w http.ResponseWriter) {
	if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
		_, _ = io.Copy(io.Discard, c)
		_ = c.Close()
	}
}

// An answer that never came, or that is not whole, is Lost, and asked once.
func TestMissingAnswerIsLost(t *testing.T) {
	var giveUp func() // the caller's time is over: by a clock, a busy machine would not have been heard before
	cases := map[string]func(http.ResponseWriter, url.Values){
		"connection closed": hangUp,
		"silence":           func(w http.ResponseWriter, _ url.Values) { giveUp(); saysNoMore(w) },
		"reset": func(w http.ResponseWriter, _ url.Values) {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_ = c.(*net.TCPConn).SetLinger(0)
				_ = c.Close()
			}
		},
		"no HTTP": func(w http.ResponseWriter, _ url.Values) {
			if c, _, err := w.(http.Hijacker).Hijack(); err == nil {
				_, _ = io.WriteString(c, "nonsense\r\n\r\n")
				_ = c.Close()
			}
		},
		"short body": func(w http.ResponseWriter, f url.Values) { w.Header().Set("Content-Length", "9999"); consent(w, f) },
		"slow body": func(w http.ResponseWriter, _ url.Values) {
			_, _ = io.WriteString(w, "<")
			w.(http.Flusher).Flush()
			giveUp()
			saysNoMore(w)
		},
		"another page":   raw(200, "<html>log in to this network</html>"),
		"empty":          raw(200, ""),
		"another answer": say("DescribeVpcs", ""),
		"too large": func(w http.ResponseWriter, _ url.Values) {
			blank := strings.Repeat(" ", 1<<16)
			for range mostAnswer/len(blank) + 1 {
				if _, err := io.WriteString(w, blank); err != nil {
					return
				}
			}
		},
	}
	for name, answer := range cases {
		t.Run(name, func(t *testing.T) {
			s := start(t, answer)
			c := s.cloud(Config{})
			for i, q := range calls() {
				ctx, cancel := context.WithCancel(bounded5(t))
				defer cancel()
				giveUp = cancel
				got := c.Call(ctx, &q)
				if got.Class != ipam.Lost || got.Code == "" || got.ENI.ID != "" {
					t.Errorf("%v: got %+v, want Lost", q.Action, got)
				}
				if n := len(s.requests()); n != i+1 {
					t.Fatalf("%v: %d requests, want %d", q.Action, n, i+1)
				}
			}
		})
	}
}

// TestACallEndsByItself: HTTP_TIMEOUT ends a call that nobody answers.
func TestACallEndsByItself(t *testing.T) {
	s := start(t, func(w http.ResponseWriter, _ url.Values) { saysNoMore(w) })
	c := s.cloud(Config{Timeout: 250 * time.Millisecond})
	ctx := bounded5(t)
	got := c.Call(ctx, &calls()[0]) // a busy machine has perhaps not sent it by then
	if ctx.Err() != nil || got.Class != ipam.Lost && got.Class != ipam.Unavailable {
		t.Errorf("got %+v (%v), want Lost before the caller's own deadline", got, ctx.Err())
	}
}

// Wherever an answer is cut off, it is Lost: half a list of addresses is not what was assigned.
func TestTruncatedAnswerIsLost(t *testing.T) {
	var cut atomic.Int32
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		whole := yes(form.Get("Action"))
		_, _ = io.WriteString(w, whole[:min(int(cut.Load()), len(whole)-1)])
	})
	c := s.cloud(Config{})
	for _, q := range calls() {
		for n := int32(0); n < 1200; n += 7 {
			cut.Store(n)
			got := c.Call(bounded5(t), &q)
			if got.Class != ipam.Lost || !strings.HasPrefix(got.Code, "the answer is not a whole ") {
				t.Fatalf("%v cut off after %d bytes: %+v", q.Action, n, got)
			}
		}
	}
}

// A success without what it is about is Lost too.
func TestEmptySuccess(t *testing.T) {
	bad := map[ipam.Action][]string{
		ipam.CreateENI: {"", "<networkInterface/>", "<networkInterface>" + eniXML("", "", "") + "</networkInterface>",
			"<networkInterface><networkInterfaceId>eni-1</networkInterfaceId><status>pending</status></networkInterface>",
			"<networkInterface>" + strings.Replace(eniXML("eni-1", "", ""), "10.0.0.21", "10.0.0.x", 1) + "</networkInterface>"},
		ipam.AttachENI: {"", "<attachmentId/>"},
		ipam.AssignIPs: {"", "<assignedPrivateIpAddressesSet><item><privateIpAddress>x</privateIpAddress></item></assignedPrivateIpAddressesSet>",
			"<assignedPrivateIpAddressesSet><item/></assignedPrivateIpAddressesSet>"},
	}
	var body string
	s := start(t, func(w http.ResponseWriter, form url.Values) {
		_, _ = io.WriteString(w, answerOf(form.Get("Action"), body))
	})
	c := s.cloud(Config{})
	for _, q := range calls() {
		for _, body = range bad[q.Action] {
			if got := c.Call(bounded5(t), &q); got.Class != ipam.Lost {
				t.Errorf("%v, %q: got %+v, want Lost", q.Action, body, got)
			}
		}
	}
}

// Nothing was sent: EC2 has not heard of it.
func TestFailedConnectionIsNotSent(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	_ = l.Close()
	s := start(t, consent)
	for name, endpoint := range map[string]string{"refused": "http://" + l.Addr().String(), "no TLS there": strings.Replace(s.ec2.URL, "http:", "https:", 1)} {
		t.Setenv("AWS_ENDPOINT_URL_EC2", endpoint)
		c := s.cloud(Config{})
		for _, q := range calls() {
			if got := c.Call(bounded5(t), &q); got.Class != ipam.Unavailable || !strings.HasPrefix(got.Code, "not sent: ") {
				t.Errorf("%s: got %+v, want Unavailable", name, got)
			}
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests came through", n)
	}
}

func TestConfigTimeout(t *testing.T) {
	clearEnvironment(t)
	if _, err := New(t.Context(), Config{Timeout: -1}); err == nil {
		t.Error("a negative timeout was accepted")
	}
	for set, want := range map[time.Duration]time.Duration{0: DefaultTimeout, 1: 1} {
		if c := must.Get(New(t.Context(), Config{Timeout: set}))(t); c.cfg.Timeout != want || c.outer.Timeout != want {
			t.Errorf("timeout %v: %v, and %v of a request, expected %v", set, c.cfg.Timeout, c.outer.Timeout, want)
		}
	}
}

// What the core would never ask is refused without a request.
func TestNonsense(t *testing.T) {
	s := start(t, consent)
	c := s.cloud(Config{})
	for _, q := range []ipam.Call{{}, {Action: 99}, {Action: ipam.CreateENI, Subnet: "subnet-1"}} {
		if got := c.Call(bounded5(t), &q); got.Class == ipam.OK || got.Class == ipam.Lost {
			t.Errorf("%+v: got %+v", q, got)
		}
	}
	if n := len(s.requests()); n != 0 {
		t.Errorf("%d requests", n)
	}
}
