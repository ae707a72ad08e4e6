package server

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/smithy-go"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/wait"
)

const (
	plenty = ec2.SubnetID("subnet-plenty") // 10.0.0.0/22
	tiny   = ec2.SubnetID("subnet-tiny")   // 10.0.4.0/28: 11 addresses
)

// backend is a Cloud in real time, and ahead of it by what a test has skipped.
type backend struct {
	mu      sync.Mutex
	cloud   *ec2.Cloud
	start   time.Time
	skipped time.Duration
	last    ec2.Request
	signer  Signer
	err     error
}

func (b *backend) now() time.Duration { return time.Since(b.start) + b.skipped }

// Do lets the request and its answer travel as long as the model says.
func (b *backend) Do(ctx context.Context, r *ec2.Request) (ec2.Response, error) {
	b.mu.Lock()
	b.signer, _ = SignerOf(ctx)
	r.Caller, _ = imds.InstanceOf(b.signer.AccessKey)
	b.last = *r
	there, back := b.cloud.Travel(r)
	err := b.err
	b.mu.Unlock()
	if err != nil {
		return ec2.Response{}, err
	}
	if err := wait.For(ctx, there); err != nil {
		return ec2.Response{}, err
	}
	b.mu.Lock()
	p := b.cloud.Serve(b.now(), r)
	b.mu.Unlock()
	return p, wait.For(ctx, back)
}

// world is a cloud with one instance behind a real HTTP server, and the SDK's client.
type world struct {
	*sdk.Client
	t    testing.TB
	b    *backend
	url  string
	inst ec2.InstanceID
}

func config() ec2.Config {
	z := ec2.Always(0)
	cfg := ec2.Config{
		Subnets: []ec2.SubnetConfig{
			{ID: plenty, CIDR: netip.MustParsePrefix("10.0.0.0/22")},
			{ID: tiny, CIDR: netip.MustParsePrefix("10.0.4.0/28")},
		},
		SecurityGroups: []ec2.SecurityGroup{{ID: "sg-1"}, {ID: "sg-2"}},
		Lag:            ec2.Lag{IMDSAttach: z, IMDSPartial: z, IMDSAddress: z, IMDSDetach: z, Describe: z, Mutation: z, Available: z, FreedAddress: z},
		Latency:        ec2.Latency{Attach: ec2.Always(time.Minute), Link: z, Detach: ec2.Always(time.Minute)},
	}
	for a := range cfg.Latency.Call {
		cfg.Latency.Call[a] = z
	}
	for a := range cfg.Throttle.Action {
		cfg.Throttle.Action[a] = ec2.Bucket{Capacity: 1 << 20, RefillPerSecond: 1 << 20}
		cfg.Throttle.Unfiltered[a] = ec2.Bucket{Capacity: 1 << 20, RefillPerSecond: 1 << 20}
	}
	return cfg
}

func newWorld(t testing.TB, change ...func(*ec2.Config)) *world {
	t.Helper()
	return newWorldOf(t, Options{}, change...)
}

func newWorldOf(t testing.TB, o Options, change ...func(*ec2.Config)) *world {
	t.Helper()
	cfg := config()
	for _, c := range change {
		c(&cfg)
	}
	b := &backend{cloud: ec2.New(cfg, 7), start: time.Now()}
	inst := must.Get(b.cloud.Launch(0, ec2.LaunchSpec{Type: "m5.large", Tags: map[string]string{"Name": "node-1"}}))(t)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = Server(New(o, b))
	srv.Start()
	t.Cleanup(srv.Close)
	w := &world{t: t, b: b, url: srv.URL, inst: inst}
	w.Client = w.client(imds.AccessKey(inst), srv.Client())
	return w
}

// client is the SDK's, without retries, signing with a key.
func (w *world) client(key string, h *http.Client) *sdk.Client {
	return client(w.url, key, "session", h)
}

func client(url, key, session string, h *http.Client) *sdk.Client {
	return sdk.New(sdk.Options{
		Region: "us-west-2", BaseEndpoint: aws.String(url), Retryer: aws.NopRetryer{}, HTTPClient: unhurried{h},
		Credentials: credentials.NewStaticCredentialsProvider(key, "secret", session),
	})
}

// unhurried sends a copy of the body, which the SDK cannot close too soon (see hastyLength).
type unhurried struct{ *http.Client }

func (u unhurried) Do(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	return u.Client.Do(r)
}

// skip makes time pass that nobody waits for.
func (w *world) skip(d time.Duration) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	w.b.skipped += d
	w.b.cloud.Advance(w.b.now())
}

// model gives the test the cloud, at the present instant.
func (w *world) model(f func(c *ec2.Cloud, now time.Duration)) {
	w.b.mu.Lock()
	defer w.b.mu.Unlock()
	f(w.b.cloud, w.b.now())
}

func (w *world) fault(f ec2.Fault) {
	w.model(func(c *ec2.Cloud, _ time.Duration) { c.Fault(f) })
}

func (w *world) ctx() context.Context { return w.t.Context() }

// create makes an interface by the SDK.
func (w *world) create(s ec2.SubnetID, secondaries int) string {
	w.t.Helper()
	out, err := w.CreateNetworkInterface(w.ctx(), &sdk.CreateNetworkInterfaceInput{SubnetId: aws.String(string(s)), SecondaryPrivateIpAddressCount: aws.Int32(int32(secondaries))})
	must.Do(w.t, err)
	return *out.NetworkInterface.NetworkInterfaceId
}

// attach attaches by the SDK, and waits until it is complete.
func (w *world) attach(id string, device int32) string {
	w.t.Helper()
	out, err := w.AttachNetworkInterface(w.ctx(), &sdk.AttachNetworkInterfaceInput{NetworkInterfaceId: &id, InstanceId: w.instance(), DeviceIndex: &device})
	must.Do(w.t, err)
	w.skip(2 * time.Minute)
	return *out.AttachmentId
}

func (w *world) instance() *string { return aws.String(string(w.inst)) }

// code is the error code that the SDK understood, and the HTTP status; "" when there was no error of the API.
func code(err error) (string, int) {
	var api smithy.APIError
	var transport *awshttp.ResponseError
	if !errors.As(err, &api) || !errors.As(err, &transport) {
		return "", 0
	}
	if transport.RequestID == "" {
		return "no request ID", 0
	}
	return api.ErrorCode(), transport.HTTPStatusCode()
}

// refused fails the test unless the error is that of the API, with that status.
func (w *world) refused(what string, err error, want string, status int) {
	w.t.Helper()
	if got, s := code(err); got != want || s != status {
		w.t.Errorf("%s: %v; expected %s with status %d", what, err, want, status)
	}
}
