package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	worldserver "github.com/enilab/enilab/fakes/world/server"
	"github.com/enilab/enilab/internal/must"
)

// lonely is a world file that is right.
const lonely = `accounts: [{regions: [{name: us-west-2, vpcs: [{name: m, cidrs: [10.0.0.0/16], subnets: [{name: a, cidr: 10.0.0.0/24}]}], instances: [{name: n, type: m5.large}]}]}]
`

// TestServeRefuses: a mistake ends with code 2 and its line, what this machine lacks with 3; nothing is served.
func TestServeRefuses(t *testing.T) {
	taken := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer taken.Close()
	in(t, map[string]string{"w.yaml": lonely, "type.yaml": strings.Replace(lonely, "m5.large", "m5.lrage", 1), "empty.yaml": "", "two.yaml": lonely + "sede: 1\nsped: 1\n"})
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"serve", 2, []string{"serve needs to know what: enilab serve all (there are ec2, imds, all)"}},
		{"serve al", 2, []string{`serve cannot serve "al" (did you mean "all"?)`}},
		{"serve ec2 imds", 2, []string{`serve takes one word, found "ec2 imds"`}},
		{"serve all --config type.yaml", 2, []string{`type.yaml:1:`, `there is no instance type "m5.lrage" in the table (did you mean m5.large?)`, "nothing was served: 1 mistake"}},
		{"serve all --config two.yaml", 2, []string{`two.yaml:2:1: the world has no key "sede" (did you mean seed?)`, "two.yaml:3:1", "nothing was served: 2 mistakes"}},
		{"serve all --config empty.yaml", 2, []string{"empty.yaml: the file is empty"}},
		{"serve all --config -", 2, []string{"-: the file is empty"}},
		{"serve all --config v.yaml", 2, []string{"v.yaml: there is no such file (did you mean w.yaml?)"}},
		{"serve all --config .", 2, []string{".: it is a folder, not a world file"}},
		{"serve ec2 --imds-listen 127.0.0.1:0", 2, []string{"serve ec2 has no metadata"}},
		{"serve imds --imds-listen 127.0.0.1:0", 2, []string{"leave --imds-listen out"}},
		{"serve all --host http://enilab.test", 2, []string{`--host "http://enilab.test": expected a name without scheme and port`}},
		{"serve all --host enilab.test:80", 2, []string{`--host "enilab.test:80"`}},
		{"serve all --lisen x", 2, []string{"did you mean --listen?"}},
		{"serve ec2 --config w.yaml --admin= --listen " + taken.Addr().String(), 3, []string{"listen for EC2 on " + taken.Addr().String(), "address already in use"}},
		{"serve imds --config w.yaml --admin= --listen here", 2, []string{`listen for metadata on "here": expected an address and a port`}},
		{"serve imds --config w.yaml --admin= --listen 127.0.0.1:0 --netns /nowhere", 3, []string{"listen for the metadata of n on 169.254.169.254:80 inside /nowhere"}},
	} {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		if code != c.code || out != "" {
			t.Errorf("enilab %s: exit %d, want %d\n%s", c.args, code, c.code, out)
		}
		for _, s := range c.says {
			if !strings.Contains(errs, s) {
				t.Errorf("enilab %s: expected %q in\n%s", c.args, s, errs)
			}
		}
	}
}

// TestServe: it says where it listens, in one line when asked to, serves, and ends with its context.
func TestServe(t *testing.T) {
	in(t, map[string]string{"w.yaml": lonely})
	ctx, stop := context.WithCancel(t.Context())
	r, w := io.Pipe()
	var errs bytes.Buffer
	l := &cli{in: strings.NewReader(""), out: w, err: &errs, ctx: ctx, interrupted: func() bool { return false }}
	code := make(chan int)
	go func() {
		code <- l.run(strings.Fields("serve all --json --config w.yaml --listen 127.0.0.1:0 --imds-listen 127.0.0.1:0 --admin 127.0.0.1:0"))
		w.Close()
	}()
	line, err := bufio.NewReader(r).ReadBytes('\n')
	if err != nil {
		t.Fatalf("%v: %s", err, errs.String())
	}
	var e worldserver.Endpoints
	must.Do(t, json.Unmarshal(line, &e))
	if len(e.Metadata) != 1 || e.Metadata[0].Name != "n" || len(e.Accounts) != 1 {
		t.Errorf("found %s", line)
	}
	for _, url := range []string{e.EC2, e.Admin, e.Metadata[0].URL} {
		p, err := http.Get(url)
		if err != nil {
			t.Errorf("nobody answers at %s: %v", url, err)
			continue
		}
		p.Body.Close()
	}
	stop()
	if c := <-code; c != 0 {
		t.Errorf("exit %d: %s", c, errs.String())
	}
	if _, err := http.Get(e.EC2); err == nil {
		t.Error("it has ended and still answers")
	}
}
