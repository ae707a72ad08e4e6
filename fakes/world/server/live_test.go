package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/ec2/imds"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"github.com/enilab/enilab/fakes/world"
	"github.com/enilab/enilab/fakes/world/server"
	"github.com/enilab/enilab/internal/must"
)

// TestFaults: faults come in by name, hit the named one only, are shown, and end; one mistake adds none.
func TestFaults(t *testing.T) {
	_, e := start(t, programWorld(t))
	for _, c := range []struct {
		method, path, body string
		status             int
		says               string
	}{
		{"GET", "/faults/kinds", "", 200, "Fail [action=ACTION]"},
		{"POST", "/faults", "", 400, "there is no fault in the body"},
		{"POST", "/faults", "Fail times=1\nFial times=1", 400, `there is no kind "Fial"`},
		{"POST", "/faults", "Fail node=node-9", 400, `there is no instance "node-9"`},
		{"GET", "/faults", "", 200, ""},
		{"POST", "/faults", "# comment\n\nFail action=CreateTags node=node-2 code=InternalError times=3\nDeleteInUse for=5m\n", 200, `"added": 2`},
		{"GET", "/faults", "", 200, "Fail action=CreateTags node=" + string(e.Metadata[1].Instance) + " code=InternalError times=3\n"},
		{"GET", "/state", "", 200, "DeleteInUse until="},
		{"POST", "/faults?draw=7", "", 200, `"fault"`},
		{"POST", "/faults?draw=x", "", 400, "expected a whole number"},
		{"DELETE", "/faults", "", 200, "done"},
		{"GET", "/faults", "", 200, ""},
		{"POST", "/knobs", "lag: {describe: 5s}\n", 200, "done"},
		{"POST", "/knobs", "leg: none\n", 400, `body:1:1: the knobs has no key "leg" (did you mean lag?)`},
	} {
		status, text := admin(t, &e, c.method, c.path, c.body)
		if status != c.status || !strings.Contains(text, c.says) || c.path == "/faults" && c.method == "GET" && c.says == "" && text != "" {
			t.Errorf("%s %s %s: found %d %q, expected %d %q", c.method, c.path, c.body, status, text, c.status, c.says)
		}
	}
	if _, text := admin(t, &e, "POST", "/faults", "Down action=DescribeVpcs"); !strings.Contains(text, "1") {
		t.Fatal(text)
	}
	a := e.Accounts[0]
	if _, err := client(&e, "us-west-2", a.Access, a.Secret).DescribeVpcs(t.Context(), &sdk.DescribeVpcsInput{}); err == nil || !strings.Contains(err.Error(), "Unavailable") {
		t.Errorf("the endpoint is down, and answers %v", err)
	}
}

// read is what an instance's metadata says at a path.
func read(t testing.TB, url, path string) string {
	t.Helper()
	p, err := imds.New(imds.Options{Endpoint: url, Retryer: aws.NopRetryer{}}).GetMetadata(t.Context(), &imds.GetMetadataInput{Path: path})
	if err != nil {
		return err.Error()
	}
	return string(must.Get(io.ReadAll(p.Content))(t))
}

// TestNotices: a spot instance is told that it will end.
func TestNotices(t *testing.T) {
	_, e := start(t, programWorld(t))
	url := e.Metadata[0].URL
	if text := read(t, url, "spot/instance-action"); !strings.Contains(text, "404") {
		t.Errorf("before any notice: found %q", text)
	}
	for _, q := range []string{"spot=maybe", "spot=stop&in=x", "spto=stop"} {
		if status, text := admin(t, &e, "POST", "/instances/node-1/notice?"+q, ""); status != 400 {
			t.Errorf("%s: found %d %s", q, status, text)
		}
	}
	if status, text := admin(t, &e, "POST", "/instances/node-1/notice?spot=stop&in=2m&lifecycle=Terminated", ""); status != 200 {
		t.Fatal(text)
	}
	if text := read(t, url, "spot/instance-action"); !strings.Contains(text, `"stop"`) {
		t.Errorf("found %q", text)
	}
	if text := read(t, url, "autoscaling/target-lifecycle-state"); text != "Terminated" {
		t.Errorf("found %q", text)
	}
}

// TestLaunched: an instance that is launched gets metadata when it runs, also when nobody asks meanwhile, and loses it when it ends.
func TestLaunched(t *testing.T) {
	text := strings.Replace(programWorld(t), "latency: none", "latency: {call: 0s, launch: 50ms, terminate: 50ms}", 1)
	w, err := world.Parse("test.yaml", []byte(strings.Replace(text, "        vpcs:", "        launched: {role: worker}\n        vpcs:", 1)))
	must.Do(t, err)
	said := make(chan string, 10)
	s, err := server.Start(server.Options{World: w, EC2: "127.0.0.1:0", IMDS: "127.0.0.1:0", Say: func(text string) { said <- text }})
	must.Do(t, err)
	defer s.Close()
	e := s.Endpoints()
	a := e.Accounts[0]
	c := client(&e, "us-west-2", a.Access, a.Secret)
	subnets := must.Get(c.DescribeSubnets(t.Context(), &sdk.DescribeSubnetsInput{}))(t)
	p := must.Get(c.RunInstances(t.Context(), &sdk.RunInstancesInput{ImageId: aws.String("ami-0abcdef1234567890"), InstanceType: types.InstanceTypeM5Large,
		MinCount: aws.Int32(1), MaxCount: aws.Int32(1), SubnetId: subnets.Subnets[0].SubnetId}))(t)
	id := *p.Instances[0].InstanceId
	words := strings.Fields(<-said)
	if len(words) != 3 || words[2] != id {
		t.Fatalf("found %q, expected where %s has its metadata", words, id)
	}
	url := words[1]
	if text := read(t, url, "instance-id"); text != id {
		t.Errorf("found %q, expected %s", text, id)
	}
	if text := read(t, url, "iam/security-credentials/"); text != "worker" {
		t.Errorf("its role: found %q, expected worker", text)
	}
	must.Get(c.TerminateInstances(t.Context(), &sdk.TerminateInstancesInput{InstanceIds: []string{id}}))(t)
	for {
		p, err := http.Get(url)
		if err != nil {
			break // nobody listens any more
		}
		p.Body.Close()
	}
}
