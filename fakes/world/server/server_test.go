package server_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/credentials/ec2rolecreds"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	fakeimds "github.com/enilab/enilab/fakes/imds"
	"github.com/enilab/enilab/fakes/world"
	"github.com/enilab/enilab/fakes/world/server"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/worlds"
)

// start runs an example, or a text.
func start(t testing.TB, text string) (*server.Server, server.Endpoints) {
	t.Helper()
	if !strings.Contains(text, "\n") {
		data := must.Get(fs.ReadFile(worlds.Files, text))(t)
		text = string(data)
	}
	w := must.Get(world.Parse("test.yaml", []byte(text)))(t)
	s, err := server.Start(server.Options{World: w, EC2: "127.0.0.1:0", IMDS: "127.0.0.1:0", Admin: "127.0.0.1:0"})
	must.Do(t, err)
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, s.Endpoints()
}

// client is the SDK's, as somebody with a key.
func client(e *server.Endpoints, region, access, secret string) *sdk.Client {
	return sdk.New(sdk.Options{Region: region, BaseEndpoint: &e.EC2, Retryer: aws.NopRetryer{},
		Credentials: credentials.NewStaticCredentialsProvider(access, secret, "")})
}

// TestExamples: every example is served, and everybody finds their own.
func TestExamples(t *testing.T) {
	names, err := fs.Glob(worlds.Files, "*.yaml")
	if err != nil || len(names) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			_, e := start(t, name)
			for _, a := range e.Accounts {
				for _, region := range a.Regions {
					p, err := client(&e, region, a.Access, a.Secret).DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{})
					if err != nil || len(p.Subnets) == 0 {
						t.Fatalf("%s in %s: %v", a.ID, region, err)
					}
					for _, s := range p.Subnets {
						if zone := *s.AvailabilityZone; !strings.HasPrefix(zone, region) {
							t.Errorf("%s in %s: found the subnet %s of %s", a.ID, region, *s.SubnetId, zone)
						}
					}
				}
			}
			if len(e.Metadata) > 0 { // one is like the others
				m := e.Metadata[0]
				in := imds.New(imds.Options{Endpoint: m.URL})
				p := must.Get(in.GetMetadata(t.Context(), &imds.GetMetadataInput{Path: "instance-id"}))(t)
				if b, _ := io.ReadAll(p.Content); string(b) != string(m.Instance) {
					t.Errorf("the metadata of %s says %q, expected %s", m.Name, b, m.Instance)
				}
			}
		})
	}
}

// TestRoleCredentialsNameTheAccount: the credentials that metadata gives are good for the instance's own account, and
// say who calls.
func TestRoleCredentialsNameTheAccount(t *testing.T) {
	_, e := start(t, worlds.Default)
	c := sdk.New(sdk.Options{Region: "us-west-2", BaseEndpoint: &e.EC2,
		Credentials: ec2rolecreds.New(func(o *ec2rolecreds.Options) { o.Client = imds.New(imds.Options{Endpoint: e.Metadata[0].URL}) })})
	p, err := c.DescribeInstances(t.Context(), &sdk.DescribeInstancesInput{InstanceIds: []string{string(e.Metadata[0].Instance)}})
	if err != nil || len(p.Reservations) != 1 {
		t.Fatalf("found %v, %v", p, err)
	}
}

// TestStrangers: who signs for a region that is not there, or with a key that nobody has, is refused.
func TestStrangers(t *testing.T) {
	_, e := start(t, worlds.Default)
	for _, c := range []struct{ region, access, want string }{
		{"us-west-2", "AKIASOMEBODYELSE", ""}, // the default account's, unless signatures are verified
		{"eu-west-1", e.Accounts[0].Access, "SignatureDoesNotMatch"},
		{"us-west-2", fakeimds.AccessKey("i-0123456789abcdef0"), "AuthFailure"},
	} {
		_, err := client(&e, c.region, c.access, "secret").DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{})
		var api smithy.APIError
		code := ""
		if err != nil {
			code = "no API error: " + err.Error()
		}
		if errors.As(err, &api) {
			code = api.ErrorCode()
		}
		if code != c.want {
			t.Errorf("%s in %s: found %q, expected %q", c.access, c.region, code, c.want)
		}
	}
}

// admin speaks to the admin endpoint.
func admin(t testing.TB, e *server.Endpoints, method, path, body string) (int, string) {
	t.Helper()
	r := must.Get(http.NewRequestWithContext(t.Context(), method, e.Admin+path, strings.NewReader(body)))(t)
	p := must.Get(http.DefaultClient.Do(r))(t)
	defer p.Body.Close()
	b := must.Get(io.ReadAll(p.Body))(t)
	return p.StatusCode, string(b)
}

// state is what GET /state says, as far as the tests look at it.
type state struct {
	Regions []struct {
		Instances []struct{ ID, Name, State string }
		ENIs      []struct {
			ID, Status, Instance string
			Addresses            []string
		}
		Subnets []struct {
			ID   string
			Free int
		}
	}
}

func stateOf(t testing.TB, e *server.Endpoints) (s state) {
	t.Helper()
	if _, text := admin(t, e, "GET", "/state", ""); json.Unmarshal([]byte(text), &s) != nil || len(s.Regions) == 0 {
		t.Fatalf("GET /state: found %s", text)
	}
	return s
}

// TestFragment: third parties take an address here and there, and leave the others.
func TestFragment(t *testing.T) {
	_, e := start(t, worlds.Default)
	before := stateOf(t, &e).Regions[0].Subnets
	admin(t, &e, "POST", "/subnets/"+string(before[0].ID)+"/fragment?leave=0", "")
	if after := stateOf(t, &e).Regions[0].Subnets[0].Free; after >= before[0].Free || after == 0 {
		t.Errorf("%d addresses are free, %d before: expected fewer, and some", after, before[0].Free)
	}
}

// TestAdmin: what the door is asked for happens, and what it cannot do it says.
func TestAdmin(t *testing.T) {
	_, e := start(t, worlds.Default)
	further := ""
	for _, i := range stateOf(t, &e).Regions[0].ENIs {
		if len(i.Addresses) == 10 {
			further = i.ID
		}
	}
	for _, c := range []struct {
		method, path string
		status       int
		says         string
	}{
		{"GET", "/", 200, "/state"},
		{"GET", "/state?region=eu-west-1", 404, `there is no account "" with a region "eu-west-1"`},
		{"GET", "/ledger", 200, `"calls"`},
		{"POST", "/clock?skip=x", 400, "expected a duration"},
		{"POST", "/clock?skip=-1s", 400, "expected a duration"},
		{"POST", "/instances/node-9/reboot", 404, "there is no instance node-9"},
		{"POST", "/instances/node-1/reboot", 200, "done"},
		{"POST", "/subnets/b/drain?leave=7", 200, "done"},
		{"POST", "/subnets/b/drain?leave=x", 400, "expected how many"},
		{"POST", "/subnets/x/drain?leave=0", 404, "there is no subnet x"},
		{"POST", "/subnets/b/fragment?leave=0", 200, "done"},
		{"POST", "/subnets/x/fragment?leave=0", 404, "there is no subnet x"},
		{"POST", "/enis/" + further + "/detach", 200, "done"},
		{"POST", "/enis/eni-0/detach", 404, "there is no interface eni-0"},
		{"POST", "/addresses/10.0.0.1/unassign", 404, "there is no interface with 10.0.0.1"},
		{"POST", "/addresses/x/unassign", 400, "expected an address"},
		{"POST", "/instances/node-2/terminate", 200, "done"},
		{"POST", "/clock?skip=1m", 200, "now"},
		{"DELETE", "/state", 405, ""},
		{"GET", "/nowhere", 404, ""},
	} {
		if status, text := admin(t, &e, c.method, c.path, ""); status != c.status || !strings.Contains(text, c.says) {
			t.Errorf("%s %s: found %d %q, expected %d %q", c.method, c.path, status, text, c.status, c.says)
		}
	}
	s := stateOf(t, &e).Regions[0]
	if s.Instances[1].State != "terminated" || s.Subnets[1].Free != 8 {
		t.Errorf("found %+v and %+v, expected node-2 terminated and 8 free addresses in b", s.Instances, s.Subnets)
	}
	for _, i := range s.ENIs {
		if i.ID == further && i.Status != "available" {
			t.Errorf("%s was detached and is %s", i.ID, i.Status)
		}
	}
}

// TestOrigin: a web page cannot knock.
func TestOrigin(t *testing.T) {
	_, e := start(t, worlds.Default)
	r, _ := http.NewRequestWithContext(t.Context(), "POST", e.Admin+"/instances/node-1/terminate", nil)
	r.Header.Set("Origin", "https://example.com")
	p := must.Get(http.DefaultClient.Do(r))(t)
	p.Body.Close()
	if p.StatusCode != 403 {
		t.Errorf("found %d, expected 403", p.StatusCode)
	}
}

// TestHosts: the admin endpoint answers under an address, localhost and the names that it was given. A web page whose name was given the address
// of this machine sends that name, and reads nothing.
func TestHosts(t *testing.T) {
	w := must.Get(world.Parse("test.yaml", []byte(small)))(t)
	s := must.Get(server.Start(server.Options{World: w, Admin: "127.0.0.1:0", Hosts: []string{"enilab.test"}}))(t)
	defer s.Close()
	url := s.Endpoints().Admin
	for host, want := range map[string]int{"": 200, "127.0.0.1": 200, "127.0.0.1:1": 200, "[::1]": 200, "[::1]:4567": 200, "10.0.0.7:80": 200, "localhost:4567": 200,
		"LocalHost": 200, "enilab.test": 200, "enilab.test:4567": 200, "Enilab.Test": 200, "evil.example": 421, "evil.example:4567": 421, "localhost.evil.example": 421,
		"127.0.0.1.evil.example": 421, "enilab.test.evil.example:4567": 421, "evil.example:4567:127.0.0.1": 421} {
		r, _ := http.NewRequestWithContext(t.Context(), "GET", url+"/state", nil)
		r.Host = host // "": that of the URL
		p := must.Get(http.DefaultClient.Do(r))(t)
		body, _ := io.ReadAll(p.Body)
		p.Body.Close()
		if p.StatusCode != want || want != 200 && strings.Contains(string(body), "us-west-2") {
			t.Errorf("Host: %q: found %d %.80s, expected %d", host, p.StatusCode, body, want)
		}
	}
}

// small has one subnet.
const small = "accounts: [{regions: [{name: us-west-2, vpcs: [{name: m, cidrs: [10.0.0.0/16], subnets: [{name: a, cidr: 10.0.0.0/24}]}]}]}]\n"

// slow is a world in which a call takes an hour, and how one ends that was just begun.
func slow(t *testing.T) (*server.Server, <-chan error) {
	t.Helper()
	s, e := start(t, "latency: {call: 1h}\n"+small)
	end := make(chan error)
	go func() {
		_, err := client(&e, "us-west-2", "x", "y").DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{})
		end <- err
	}()
	return s, end
}

// TestSkip: who waits for a slow call is woken when the time is skipped.
func TestSkip(t *testing.T) {
	s, end := slow(t)
	for {
		s.Skip(30 * time.Minute)
		select {
		case err := <-end:
			must.Do(t, err)
			return
		default:
		}
	}
}

// TestClose: a caller that waits for nothing does not keep the world from ending.
func TestClose(t *testing.T) {
	s, end := slow(t)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if err := <-end; err == nil {
		t.Error("a call that takes an hour was answered")
	}
}
