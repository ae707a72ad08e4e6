package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds/server"
)

// The metadata of one instance of the model: version 2 needs a token.
func Example() {
	cloud := ec2.New(ec2.Config{}, 1)
	instance, err := cloud.Launch(0, ec2.LaunchSpec{Type: "m5.large"})
	if err != nil {
		fmt.Println(err)
		return
	}
	start := time.Now()
	now := func() time.Duration { return time.Since(start) }
	view, _ := cloud.IMDS(0, instance) // one that changes the cloud asks it for each request, under a lock
	srv := httptest.NewServer(server.Handler(server.Config{
		View: func(context.Context) (ec2.IMDS, bool) { return view, true },
		Now:  now,
	}))
	defer srv.Close()

	ask := func(method, path, header, value string) (int, string) {
		r, _ := http.NewRequest(method, srv.URL+path, nil)
		r.Header.Set(header, value)
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		body, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, string(body)
	}
	status, _ := ask("GET", "/latest/meta-data/instance-type", "Accept", "text/plain")
	fmt.Println("without a token:", status)
	_, token := ask("PUT", "/latest/api/token", "X-aws-ec2-metadata-token-ttl-seconds", "60")
	status, body := ask("GET", "/latest/meta-data/instance-type", "X-aws-ec2-metadata-token", token)
	fmt.Println("with one:", status, body)
	// Output:
	// without a token: 401
	// with one: 200 m5.large
}
