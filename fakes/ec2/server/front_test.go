package server

import (
	"context"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
)

const (
	credential    = "AKIDEXAMPLE/20260102/us-west-2/ec2/aws4_request"
	authorization = "AWS4-HMAC-SHA256 Credential=" + credential + ", SignedHeaders=content-type;host;x-amz-date, Signature=" +
		"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	form0 = "application/x-www-form-urlencoded; charset=utf-8"
)

// request is one that is signed, in form; a test spoils it.
func request(body string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(body))
	r.Header.Set("Authorization", authorization)
	r.Header.Set("X-Amz-Date", "20260102T030405Z")
	r.Header.Set("Content-Type", form0)
	return r
}

type answered struct {
	XMLName xml.Name
	Code    string `xml:"Errors>Error>Code"`
	Message string `xml:"Errors>Error>Message"`
	ID      string `xml:"RequestID"`
}

// send gives what the handler answers, and fails the test unless it is well-formed.
func send(t testing.TB, h http.Handler, r *http.Request) (answered, int) {
	t.Helper()
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	var a answered
	d := xml.NewDecoder(w.Body)
	if err := d.Decode(&a); err != nil {
		t.Fatalf("the answer is no XML: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		t.Fatalf("something follows the answer: %v", err)
	}
	if a.Code != "" && a.ID == "" || w.Header().Get("X-Amzn-Requestid") == "" {
		t.Fatal("no request ID")
	}
	return a, w.Code
}

// direct is a model without any time or transport.
type direct struct{ cloud *ec2.Cloud }

func (d direct) Do(_ context.Context, r *ec2.Request) (ec2.Response, error) {
	return d.cloud.Serve(0, r), nil
}

func newDirect(t testing.TB) (http.Handler, *ec2.Cloud) {
	t.Helper()
	c := ec2.New(config(), 7)
	must.Get(c.Launch(0, ec2.LaunchSpec{Type: "m5.large"}))(t)
	return Handler(direct{c}), c
}

const ok = "Action=DescribeSubnets&Version=2016-11-15"

// TestFrontRefusesBadRequests: what EC2's front refuses before it looks at what is asked for.
func TestFrontRefusesBadRequests(t *testing.T) {
	h, c := newDirect(t)
	set := func(key, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(key, value) }
	}
	rows := []struct {
		name   string
		spoil  func(*http.Request)
		code   string
		status int
	}{
		{"as it should be", func(*http.Request) {}, "", 200},
		{"no signature", func(r *http.Request) { r.Header.Del("Authorization") }, "MissingAuthenticationToken", 403},
		{"basic", set("Authorization", "Basic QTpC"), "IncompleteSignature", 400},
		{"version 2", set("Authorization", "AWS AKIDEXAMPLE:sig"), "IncompleteSignature", 400},
		{"no credential", set("Authorization", strings.Replace(authorization, "Credential", "Credentials", 1)), "IncompleteSignature", 400},
		{"no scope", set("Authorization", strings.Replace(authorization, credential, "AKIDEXAMPLE", 1)), "IncompleteSignature", 400},
		{"no signature in it", set("Authorization", strings.SplitAfter(authorization, "x-amz-date")[0]), "IncompleteSignature", 400},
		{"short signature", set("Authorization", authorization[:len(authorization)-1]), "IncompleteSignature", 400},
		{"twice", set("Authorization", authorization+", Signature=00"), "IncompleteSignature", 400},
		{"host not signed", set("Authorization", strings.Replace(authorization, "host;", "", 1)), "IncompleteSignature", 400},
		{"another service", set("Authorization", strings.Replace(authorization, "/ec2/", "/sts/", 1)), "SignatureDoesNotMatch", 403},
		{"another day", set("X-Amz-Date", "20260103T030405Z"), "SignatureDoesNotMatch", 403},
		{"no date", func(r *http.Request) { r.Header.Del("X-Amz-Date") }, "IncompleteSignature", 400},
		{"bad date", set("X-Amz-Date", "yesterday"), "IncompleteSignature", 400},
		{"JSON", set("Content-Type", "application/json"), "MalformedQueryString", 415},
		{"no media type", func(r *http.Request) { r.Header.Del("Content-Type") }, "MalformedQueryString", 415},
		{"compressed", set("Content-Encoding", "gzip"), "MalformedQueryString", 415},
		{"get with a body", func(r *http.Request) { r.Method = http.MethodGet }, "MalformedQueryString", 400},
		{"get", func(r *http.Request) {
			r.Method, r.Body, r.URL.RawQuery, r.ContentLength = http.MethodGet, http.NoBody, ok, 0
		}, "", 200},
		{"head", func(r *http.Request) { r.Method = http.MethodHead }, "InvalidRequest", 405},
		{"put", func(r *http.Request) { r.Method = http.MethodPut }, "InvalidRequest", 405},
		{"nonsense", func(r *http.Request) { r.Method = "BREW" }, "InvalidRequest", 405},
		{"a path", func(r *http.Request) { r.URL.Path = "/../etc/passwd" }, "MalformedQueryString", 404},
		{"a query", func(r *http.Request) { r.URL.RawQuery = ok }, "MalformedQueryString", 404},
		{"huge", func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader(strings.Repeat("a", maxBody+1))) }, "RequestEntityTooLarge", 413},
	}
	for _, r := range rows {
		req := request(ok)
		r.spoil(req)
		if a, status := send(t, h, req); a.Code != r.code || status != r.status {
			t.Errorf("%s: found %s (%s) with status %d, expected %s with %d", r.name, a.Code, a.Message, status, r.code, r.status)
		}
	}
	if n := c.Calls(ec2.DescribeSubnets).Total; n != 2 {
		t.Errorf("the model was asked %d times, expected 2: what the front refuses never gets there", n)
	}
}

// TestMalformedBodiesAreRefused: malformed and incomplete requests.
func TestMalformedBodiesAreRefused(t *testing.T) {
	h, c := newDirect(t)
	const (
		v   = "&Version=2016-11-15"
		run = "Action=RunInstances&InstanceType=m5.large&MinCount=1" + v
	)
	rows := []struct {
		body   string
		code   string
		status int
	}{
		{ok, "", 200},
		{"&&" + ok + "&", "", 200},
		{"", "MissingAction", 400},
		{"Version=2016-11-15", "MissingAction", 400},
		{"Action=DescribeSubnets", "MissingParameter", 400},
		{"Action=DescribeSubnets&Version=2010-01-01", "NoSuchVersion", 400},
		{"Action=HibernateUniverse" + v, "InvalidAction", 400},
		{"Action=describesubnets" + v, "InvalidAction", 400},
		{"Action=AnyAction" + v, "InvalidAction", 400},
		{"Action=CreateVpc%0ADescribeVpcs" + v, "InvalidAction", 400},
		{"Action=CreateVpc" + v, "UnsupportedOperation", 400},
		{"Action=createvpc" + v, "InvalidAction", 400},
		{"Action=%3Cscript%3E%26" + v, "InvalidAction", 400},
		{"Action=%zz" + v, "MalformedQueryString", 404},
		{"Action=DescribeSubnets;x=y" + v, "MalformedQueryString", 404},
		{"=x&" + ok, "MalformedQueryString", 404},
		{ok + "&Action=DescribeSubnets", "MalformedQueryString", 404},
		{"Action=Describe%00Subnets" + v, "InvalidCharacter", 400},
		{"Action=Describe%ffSubnets" + v, "InvalidCharacter", 400},
		{`{"Action":"DescribeSubnets"}`, "MissingAction", 400},
		{ok + strings.Repeat("&A", 3), "MalformedQueryString", 404},
		{ok + "&Colour=red", "UnknownParameter", 400},
		{ok + "&SubnetId=subnet-1", "UnknownParameter", 400},
		{ok + "&SubnetId.0=subnet-1", "UnknownParameter", 400},
		{ok + "&SubnetId.01=subnet-1", "UnknownParameter", 400},
		{ok + "&SubnetId.1001=subnet-1", "UnknownParameter", 400},
		{ok + "&SubnetId.99999999999999999999=subnet-1", "UnknownParameter", 400},
		{ok + "&SubnetId.1=", "MissingParameter", 400},
		{ok + "&SubnetId.7=" + string(tiny), "", 200},
		{ok + "&Filter.1.Value.1=x", "MissingParameter", 400},
		{ok + "&Filter.1.Name=vpc-id&Filter.1.Value.1=x&Filter.1.Values=y", "UnknownParameter", 400},
		{ok + "&MaxResults=many", "InvalidParameterValue", 400},
		{ok + "&DryRun=maybe", "InvalidParameterValue", 400},
		{"Action=CreateNetworkInterface" + v, "MissingParameter", 400},
		{"Action=CreateNetworkInterface&SubnetId=subnet-plenty&SecondaryPrivateIpAddressCount=-1" + v, "InvalidParameterValue", 400},
		{"Action=CreateNetworkInterface&SubnetId=subnet-plenty&PrivateIpAddress=10.0.0" + v, "InvalidParameterValue", 400},
		{"Action=CreateNetworkInterface&SubnetId=subnet-plenty&PrivateIpAddress=::1" + v, "InvalidParameterValue", 400},
		{"Action=CreateNetworkInterface&SubnetId=subnet-plenty&InterfaceType=efa" + v, "UnsupportedOperation", 400},
		{"Action=CreateNetworkInterface&SubnetId=subnet-plenty&TagSpecification.1.ResourceType=instance" + v, "InvalidParameterValue", 400},
		{"Action=CreateNetworkInterface&SubnetId=subnet-plenty&TagSpecification.1.Tag.1.Key=a" + v, "MissingParameter", 400},
		{"Action=CreateNetworkInterface&SubnetId=subnet-plenty&TagSpecification.1.ResourceType=network-interface&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.2.Key=a" + v, "InvalidParameterValue", 400},
		{"Action=CreateNetworkInterface&SubnetId=subnet-plenty&ClientToken=" + strings.Repeat("x", 65) + v, "InvalidParameterValue", 400},
		{"Action=AttachNetworkInterface" + v, "MissingParameter", 400},
		{"Action=AttachNetworkInterface&NetworkInterfaceId=" + absent + "&InstanceId=i-00000000000000000" + v, "MissingParameter", 400},
		{"Action=AttachNetworkInterface&NetworkInterfaceId=" + absent + "&InstanceId=x&DeviceIndex=1" + v, "InvalidInstanceID.Malformed", 400},
		{"Action=AttachNetworkInterface&NetworkInterfaceId=" + absent + "&InstanceId=i-00000000000000000&DeviceIndex=1&NetworkCardIndex=-1" + v, "InvalidParameterValue", 400},
		{"Action=ModifyNetworkInterfaceAttribute&NetworkInterfaceId=" + absent + "&Attachment.AttachmentId=a" + v, "MissingParameter", 400},
		{"Action=ModifyNetworkInterfaceAttribute&NetworkInterfaceId=" + absent + "&SourceDestCheck.Value=maybe" + v, "InvalidParameterValue", 400},
		{"Action=ModifyNetworkInterfaceAttribute&NetworkInterfaceId=" + absent + "&SourceDestCheck.Value=false&Description.Value=x" + v, "InvalidParameterCombination", 400},
		{"Action=ModifyNetworkInterfaceAttribute&NetworkInterfaceId=" + absent + "&EnablePrimaryIpv6=true" + v, "UnsupportedOperation", 400},
		{"Action=ModifyNetworkInterfaceAttribute&NetworkInterfaceId=" + absent + v, "InvalidNetworkInterfaceID.NotFound", 400},
		{"Action=DetachNetworkInterface" + v, "MissingParameter", 400},
		{"Action=AssignPrivateIpAddresses" + v, "MissingParameter", 400},
		{"Action=AssignPrivateIpAddresses&NetworkInterfaceId=" + absent + "&SecondaryPrivateIpAddressCount=0" + v, "InvalidParameterValue", 400},
		{"Action=AssignPrivateIpAddresses&NetworkInterfaceId=" + absent + "&AllowReassignment=1" + v, "InvalidParameterValue", 400},
		{"Action=AssignPrivateIpAddresses&NetworkInterfaceId=" + absent + "&Ipv4Prefix.1=10.0.0.8/28" + v, "InvalidParameterValue", 400},
		{"Action=AssignPrivateIpAddresses&NetworkInterfaceId=" + absent + "&Ipv4Prefix.1=fd00::/80" + v, "InvalidParameterValue", 400},
		{"Action=AssignIpv6Addresses&NetworkInterfaceId=" + absent + "&Ipv6Addresses.1=10.0.0.1" + v, "InvalidParameterValue", 400},
		{"Action=AssignIpv6Addresses&NetworkInterfaceId=" + absent + "&Ipv6Addresses.1=::ffff:10.0.0.1" + v, "InvalidParameterValue", 400},
		{"Action=AssignIpv6Addresses&NetworkInterfaceId=" + absent + "&Ipv6Addresses.1=fe80::1%25eth0" + v, "InvalidParameterValue", 400},
		{"Action=AssignIpv6Addresses&NetworkInterfaceId=" + absent + "&Ipv6Prefix.1=10.0.0.0/28" + v, "InvalidParameterValue", 400},
		{"Action=AssignIpv6Addresses&NetworkInterfaceId=" + absent + "&DryRun=true" + v, "UnknownParameter", 400},
		{"Action=UnassignIpv6Addresses&NetworkInterfaceId=" + absent + "&Ipv6Addresses.1=" + v, "MissingParameter", 400},
		{"Action=TerminateInstances" + v, "MissingParameter", 400},
		{"Action=TerminateInstances&InstanceId.1=x" + v, "InvalidInstanceID.Malformed", 400},
		{"Action=TerminateInstances&InstanceId.1=i-00000000&Force=true" + v, "UnsupportedOperation", 400},
		{"Action=RebootInstances" + v, "MissingParameter", 400},
		{"Action=DescribeSecurityGroups&GroupName.1=default" + v, "UnsupportedOperation", 400},
		{"Action=DescribeTags&Filter.1.Name=tag-key&Filter.1.Value.1=x" + v, "InvalidParameterValue", 400},
		{"Action=DescribeTags&ResourceId.1=" + absent + v, "UnknownParameter", 400},
		{"Action=DescribeTags&MaxResults=4" + v, "InvalidParameterValue", 400},
		{"Action=DescribeAvailabilityZones&MaxResults=5" + v, "UnknownParameter", 400},
		{"Action=DescribeAvailabilityZones&AllAvailabilityZones=1" + v, "InvalidParameterValue", 400},
		{"Action=DescribeAvailabilityZones&ZoneName.1=" + v, "MissingParameter", 400},
		{"Action=DescribeAvailabilityZones&Filter.1.Name=group-long-name&Filter.1.Value.1=x" + v, "InvalidParameterValue", 400},
		{"Action=DescribeRegions&RegionName.1=mars-1" + v, "InvalidParameterValue", 400},
		{"Action=DescribeRegions&NextToken=x" + v, "UnknownParameter", 400},
		{"Action=DescribeInstanceStatus&InstanceId.1=x" + v, "InvalidInstanceID.Malformed", 400},
		{"Action=DescribeInstanceStatus&InstanceId.1=i-00000000&MaxResults=5" + v, "InvalidParameterCombination", 400},
		{"Action=DescribeInstanceStatus&Filter.1.Name=event.code&Filter.1.Value.1=x" + v, "InvalidParameterValue", 400},
		{"Action=GetSubnetCidrReservations" + v, "MissingParameter", 400},
		{"Action=GetSubnetCidrReservations&SubnetId=subnet-none" + v, "InvalidSubnetID.NotFound", 400},
		{"Action=GetSubnetCidrReservations&SubnetId=subnet-tiny&MaxResults=4" + v, "InvalidParameterValue", 400},
		{"Action=DescribeNetworkInterfaceAttribute&NetworkInterfaceId=" + absent + v, "MissingParameter", 400},
		{"Action=DescribeNetworkInterfaceAttribute&Attribute=colour&NetworkInterfaceId=" + absent + v, "InvalidParameterValue", 400},
		{"Action=DescribeNetworkInterfaceAttribute&Attribute=groupSet&NetworkInterfaceId=x" + v, "InvalidNetworkInterfaceId.Malformed", 400},
		{"Action=DescribeNetworkInterfaceAttribute&Attribute=groupSet&NetworkInterfaceId=" + absent + v, "InvalidNetworkInterfaceID.NotFound", 400},
		{"Action=DescribeVpcAttribute&Attribute=enableDnsSupport" + v, "MissingParameter", 400},
		{"Action=DescribeVpcAttribute&Attribute=colour&VpcId=vpc-00000000" + v, "InvalidParameterValue", 400},
		{"Action=DescribeVpcAttribute&Attribute=enableDnsSupport&VpcId=vpc-00000000" + v, "InvalidVpcID.NotFound", 400},
		{"Action=DescribeAccountAttributes&AttributeName.1=colour" + v, "InvalidParameterValue", 400},
		{"Action=DescribeAccountAttributes&Filter.1.Name=colour" + v, "UnknownParameter", 400},
		{"Action=DescribeAddresses&PublicIp.1=192.0.2.1" + v, "InvalidAddress.NotFound", 400},
		{"Action=DescribeAddresses&PublicIp.1=x" + v, "InvalidParameterValue", 400},
		{"Action=DescribeAddresses&AllocationId.1=eipalloc-00000000" + v, "InvalidAllocationID.NotFound", 400},
		{"Action=DescribeAddresses&Filter.1.Name=domain&Filter.1.Value.1=vpc" + v, "InvalidParameterValue", 400},
		{"Action=DescribeRouteTables&MaxResults=101" + v, "InvalidParameterValue", 400},
		{"Action=DescribeRouteTables&RouteTableId.1=rtb-00000000" + v, "InvalidRouteTableID.NotFound", 400},
		{"Action=DescribeRouteTables&RouteTableId.1=x" + v, "InvalidRouteTableId.Malformed", 400},
		{"Action=DescribeRouteTables&Filter.1.Name=route.nat-gateway-id&Filter.1.Value.1=x" + v, "InvalidParameterValue", 400},
		{"Action=DeleteSubnet" + v, "MissingParameter", 400},
		{"Action=DeleteSubnet&SubnetId=subnet-none" + v, "InvalidSubnetID.NotFound", 400},
		{"Action=DescribeVpcs&Filter.1.Name=dhcp-options-id&Filter.1.Value.1=x" + v, "InvalidParameterValue", 400},
		{"Action=RunInstances&InstanceType=m5.large&MinCount=1&MaxCount=1" + v, "MissingParameter", 400},
		{run + "&ImageId=x", "InvalidAMIID.Malformed", 400},
		{run + "&ImageId=ami-00000000&MaxCount=0", "InvalidParameterValue", 400},
		{run + "&ImageId=ami-00000000&MaxCount=1&UserData=eA==", "UnsupportedOperation", 400},
		{run + "&ImageId=ami-00000000&MaxCount=1&EbsOptimized=true", "UnsupportedOperation", 400},
		{run + "&ImageId=ami-00000000&MaxCount=1&SubnetId=subnet-plenty&NetworkInterface.1.DeviceIndex=0", "InvalidParameterCombination", 400},
		{run + "&ImageId=ami-00000000&MaxCount=1&NetworkInterface.1.DeviceIndex=1", "UnsupportedOperation", 400},
		{run + "&ImageId=ami-00000000&MaxCount=1&NetworkInterface.1.DeviceIndex=0&NetworkInterface.2.DeviceIndex=1", "UnsupportedOperation", 400},
		{run + "&ImageId=ami-00000000&MaxCount=1&TagSpecification.1.ResourceType=volume", "UnsupportedOperation", 400},
		{run + "&ImageId=ami-00000000&MaxCount=1&TagSpecification.1.ResourceType=subnet", "InvalidParameterValue", 400},
		{"Action=UnassignPrivateIpAddresses&NetworkInterfaceId=" + absent + "&DryRun=true" + v, "UnknownParameter", 400},
		{"Action=CreateTags&ResourceId.1=vol-00000000000000000&Tag.1.Key=a" + v, "InvalidID", 400},
		{"Action=DeleteTags&ResourceId.1=eni-1&Tag.1.Key=a" + v, "InvalidNetworkInterfaceId.Malformed", 400},
		{"Action=CreateTags&ResourceId.1=" + absent + "&Tag.1.Value=a" + v, "MissingParameter", 400},
		{"Action=DescribeInstances&InstanceId.1=i-00000000000000000&InstanceId.2=i-00000000000000001" + v, "InvalidInstanceID.NotFound", 400},
	}
	before := c.Calls(ec2.CreateNetworkInterface).Total
	for _, r := range rows {
		if a, status := send(t, h, request(r.body)); a.Code != r.code || status != r.status {
			t.Errorf("%s: found %s (%s) with status %d, expected %s with %d", r.body, a.Code, a.Message, status, r.code, r.status)
		}
	}
	if n := c.Calls(ec2.CreateNetworkInterface).Total - before; n != 0 {
		t.Errorf("%d malformed creations reached the model", n)
	}
	if n := c.Calls(ec2.AnyAction).Total; n != 7 {
		t.Errorf("the model counts %d calls of no action that it has, expected 7", n)
	}
}

// TestBackendMayTakeLong: a caller waits for the Backend longer than a request may take to arrive; and is let go when
// it hangs up.
func TestBackendMayTakeLong(t *testing.T) {
	entered, leave, left := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	h := Handler(backendFunc(func(ctx context.Context) (ec2.Response, error) {
		close(entered)
		select {
		case <-leave:
			return ec2.Response{HTTP: 200}, nil
		case <-ctx.Done():
			left <- ctx.Err()
			return ec2.Response{}, ctx.Err()
		}
	}))
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = Server(h)
	srv.Config.ReadTimeout = readIn
	srv.Start()
	t.Cleanup(srv.Close)
	do := func(ctx context.Context) (*http.Response, error) {
		r := request(ok)
		out := must.Get(http.NewRequestWithContext(ctx, http.MethodPost, srv.URL, strings.NewReader(ok)))(t)
		out.Header = r.Header
		return srv.Client().Do(out)
	}
	go func() {
		<-entered
		time.AfterFunc(3*readIn, func() { close(leave) })
	}()
	p, err := do(t.Context())
	if err != nil || p.StatusCode != http.StatusOK {
		t.Fatalf("a slow answer: %v, %+v", err, p)
	}
	_ = p.Body.Close()

	entered, leave = make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-entered
		cancel()
	}()
	if _, err := do(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("hanging up: %v", err)
	}
	select {
	case <-left:
	case <-time.After(20 * time.Second):
		t.Fatal("20 s after the caller hung up the Backend's context has not ended")
	}
}

type backendFunc func(ctx context.Context) (ec2.Response, error)

func (f backendFunc) Do(ctx context.Context, _ *ec2.Request) (ec2.Response, error) { return f(ctx) }

func TestGlob(t *testing.T) {
	rows := []struct {
		pattern, text string
		want          bool
	}{
		{"", "", true}, {"", "a", false}, {"*", "", true}, {"*", "abc", true}, {"a*c", "abbc", true}, {"a*c", "abbd", false},
		{"?", "", false}, {"?", "a", true}, {"a?c", "abc", true}, {`\*`, "*", true}, {`\*`, "a", false}, {`\?`, "?", true},
		{`a\`, `a\`, true}, {"**a**", "bab", true}, {"*ab*ab", "abab", true}, {"*ab*abc", "abab", false}, {"abc", "ab", false}, {"ab", "abc", false},
	}
	for _, r := range rows {
		if got := glob(r.pattern, r.text); got != r.want {
			t.Errorf("%q matches %q: found %v", r.pattern, r.text, got)
		}
	}
	if glob(strings.Repeat("*a", 500)+"b", strings.Repeat("a", 5000)) {
		t.Error("a long pattern matches what it should not")
	}
}

// FuzzQuery: no body makes the server panic, or answer anything but XML.
func FuzzQuery(f *testing.F) {
	for _, body := range []string{
		ok, "", "Action", "Action=CreateTags&ResourceId.1=" + absent + "&Tag.1.Key=%F0%9F%98%80&Version=2016-11-15",
		"Action=CreateNetworkInterface&Version=2016-11-15&SubnetId=subnet-plenty&PrivateIpAddresses.1.PrivateIpAddress=10.0.0.9&PrivateIpAddresses.1.Primary=true&TagSpecification.1.ResourceType=network-interface&TagSpecification.1.Tag.1.Key=a&TagSpecification.1.Tag.1.Value=%3C&ClientToken=x&SecondaryPrivateIpAddressCount=3",
		"Action=DescribeNetworkInterfaces&Version=2016-11-15&Filter.1.Name=tag%3Aa&Filter.1.Value.1=%5C%2A%3F*&MaxResults=5&NextToken=NS94",
		"Action=AttachNetworkInterface&Version=2016-11-15&NetworkInterfaceId=eni-00000000000000000&InstanceId=i-00000000000000000&DeviceIndex=1&NetworkCardIndex=0",
		"Action=ModifyNetworkInterfaceAttribute&Version=2016-11-15&NetworkInterfaceId=eni-00000000000000000&Description.Value=x",
		"Action=AssignPrivateIpAddresses&Version=2016-11-15&NetworkInterfaceId=eni-00000000000000000&Ipv4Prefix.1=10.0.0.16%2F28&Ipv4PrefixCount=2&AllowReassignment=true",
		"Action=AssignIpv6Addresses&Version=2016-11-15&NetworkInterfaceId=eni-00000000000000000&Ipv6Addresses.1=2001:db8::1&Ipv6Prefix.1=2001:db8:1:2:3::%2F80",
		"Action=DeleteTags&Version=2016-11-15&ResourceId.1=vpc-1&ResourceId.2=sg-1&Tag.1.Key=a&Tag.2.Key=b&Tag.2.Value=",
		"Action=RunInstances&Version=2016-11-15&ImageId=ami-00000000&InstanceType=m5.large&MinCount=1&MaxCount=2&SubnetId=subnet-plenty&TagSpecification.1.ResourceType=instance&TagSpecification.1.Tag.1.Key=a&ClientToken=x",
		"Action=TerminateInstances&Version=2016-11-15&InstanceId.1=i-00000000000000000",
		"Action=DescribeInstances&Version=2016-11-15&Filter.1.Name=network-interface.attachment.status&Filter.1.Value.1=attached",
		"Action=DescribeVpcs&Version=2016-11-15&Filter.1.Name=cidr&Filter.1.Value.1=10.*",
		"Action=DescribeSecurityGroups&Version=2016-11-15&GroupId.1=sg-1&DryRun=true",
		"Action=DescribeInstanceTypes&Version=2016-11-15&InstanceType.1=m5.large&Filter.1.Name=hypervisor&Filter.1.Value.1=nitro",
	} {
		f.Add(body)
	}
	h, _ := newDirect(f)
	f.Fuzz(func(t *testing.T, body string) {
		if len(body) > maxBody {
			t.Skip()
		}
		send(t, h, request(body))
	})
}
