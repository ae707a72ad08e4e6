package conform

import (
	"context"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	ec2server "github.com/enilab/enilab/fakes/ec2/server"
	"github.com/enilab/enilab/fakes/imds"
	imdsserver "github.com/enilab/enilab/fakes/imds/server"
	"github.com/enilab/enilab/internal/must"
)

// world is our own cloud behind HTTP. Its time passes only while a row waits, so that nothing here takes long, and nothing depends on how
// fast the machine is.
type world struct {
	mu    sync.Mutex
	cloud *ec2.Cloud
	at    time.Duration
	inst  ec2.InstanceID
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

const (
	accessKey = "AKIAIOSFODNN7EXAMPLE"
	secret    = "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
)

func (w *world) now() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.at
}

func (w *world) wall() time.Time { return epoch.Add(w.now()) }

func (w *world) sleep(ctx context.Context, d time.Duration) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at += d
	w.cloud.Advance(w.at)
	return ctx.Err()
}

// Do serves a request at once: no time passes on the way.
func (w *world) Do(_ context.Context, r *ec2.Request) (ec2.Response, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, _ = w.cloud.Travel(r)
	return w.cloud.Serve(w.at, r), nil
}

// config has everything that a row looks for: nothing is skipped.
func config() ec2.Config {
	p := netip.MustParsePrefix
	return ec2.Config{
		VPCs: []ec2.VPC{
			{ID: "vpc-0a", CIDRs: []netip.Prefix{p("10.0.0.0/16"), p("10.1.0.0/16")}, IPv6: []netip.Prefix{p("2001:db8:1:100::/56")}},
			{ID: "vpc-0b"},
		},
		Subnets: []ec2.SubnetConfig{
			{ID: "subnet-00000000000000001", VPC: "vpc-0a", CIDR: p("10.0.0.0/21")},
			{ID: "subnet-00000000000000002", VPC: "vpc-0a", CIDR: p("10.0.8.0/28")},
			{ID: "subnet-00000000000000003", VPC: "vpc-0a", CIDR: p("10.1.0.0/24"), IPv6: p("2001:db8:1:101::/64")},
			{ID: "subnet-00000000000000004", VPC: "vpc-0a", CIDR: p("10.1.1.0/24"), Zone: "us-west-2b",
				Reservations: []netip.Prefix{p("10.1.1.32/28")}, PrefixReservations: []netip.Prefix{p("10.1.1.64/27")}},
			{ID: "subnet-00000000000000005", VPC: "vpc-0b", CIDR: p("10.0.0.0/24")},
		},
		SecurityGroups: []ec2.SecurityGroup{
			{ID: "sg-0a1", VPC: "vpc-0a", Name: "default"}, {ID: "sg-0a2", VPC: "vpc-0a", Name: "nodes"}, {ID: "sg-0a3", VPC: "vpc-0a", Name: "pods"},
			{ID: "sg-0a4", VPC: "vpc-0a", Name: "four"}, {ID: "sg-0a5", VPC: "vpc-0a", Name: "five"}, {ID: "sg-0a6", VPC: "vpc-0a", Name: "six"},
		},
	}
}

func newWorld(t testing.TB, change func(*ec2.Config)) *world {
	t.Helper()
	cfg := config()
	change(&cfg)
	w := &world{cloud: ec2.New(cfg, 5)}
	for _, kind := range []string{"m5.large", "p4d.24xlarge"} {
		w.inst = must.Get(w.cloud.Launch(0, ec2.LaunchSpec{Type: kind, Tags: map[string]string{"Name": kind}}))(t)
	}
	return w
}

// ec2 serves the API, with signatures verified, and says how to ask it.
func (w *world) ec2(t testing.TB) Config {
	t.Helper()
	keys := func(key string) (string, bool) { return secret, key == accessKey }
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = ec2server.Server(ec2server.New(ec2server.Options{Epoch: epoch, Keys: keys, Clock: w.wall}, w))
	srv.Start()
	t.Cleanup(srv.Close)
	return Config{
		Endpoint: srv.URL, AccessKey: accessKey, Secret: secret, Marks: Costly | Slow | Keys,
		Now: w.wall, Sleep: w.sleep, HTTP: srv.Client(),
	}
}

// imds serves the metadata of the first instance, which has interfaces with prefixes and IPv6 addresses.
func (w *world) imds(t testing.TB) Config {
	t.Helper()
	inst := w.cloud.AllENIs()[0].Instance
	for k, r := range []ec2.Request{
		{Subnet: "subnet-00000000000000001", PrefixCount: 2, SecondaryCount: 0},
		{Subnet: "subnet-00000000000000003", IPv6Count: 2},
	} {
		r.Action = ec2.CreateNetworkInterface
		p := w.cloud.Serve(w.at, &r)
		w.at += time.Minute
		p = w.cloud.Serve(w.at, &ec2.Request{Action: ec2.AttachNetworkInterface, ENI: p.ENI.ID, Instance: inst, DeviceIndex: k + 1})
		if p.Code != "" {
			t.Fatalf("interface %d: %s: %s", k+1, p.Code, p.Message)
		}
	}
	w.at += 10 * time.Minute
	w.cloud.Advance(w.at)
	view := func(context.Context) (ec2.IMDS, bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.cloud.IMDS(w.at, inst)
	}
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = imdsserver.Server(imdsserver.Handler(imdsserver.Config{
		View: view, Now: w.now, Wall: w.wall, Role: "node", Extras: func() imds.Extras { return imds.Extras{} }, Signer: signer(),
	}))
	srv.Start()
	t.Cleanup(srv.Close)
	return Config{Endpoint: srv.URL, Now: w.wall, Sleep: w.sleep, HTTP: srv.Client()}
}

// signer is made once: its key takes a while.
var signer = sync.OnceValue(imdsserver.NewSigner)

// prompt is a cloud without lag and without throttling.
func prompt(cfg *ec2.Config) {
	z := ec2.Always(0)
	cfg.Lag = ec2.Lag{IMDSAttach: z, IMDSPartial: z, IMDSAddress: z, IMDSDetach: z, Describe: z, Mutation: z, FreedAddress: z}
	for a := range cfg.Throttle.Action {
		cfg.Throttle.Action[a] = ec2.Bucket{Capacity: 1 << 20, RefillPerSecond: 1 << 20}
		cfg.Throttle.Unfiltered[a] = cfg.Throttle.Action[a]
	}
}

// published is a cloud as the documents describe it.
func published(*ec2.Config) {}

// judge asks the rows, and fails for each that differs, leaves something behind, or is skipped.
func judge(t *testing.T, rows []Row, r *Report, err error) {
	t.Helper()
	must.Do(t, err)
	if len(r.Results) != len(rows) {
		t.Errorf("rows asked: expected %d, found %d", len(rows), len(r.Results))
	}
	for _, x := range r.Results {
		if x.Outcome != Same {
			t.Errorf("%s: %s: %s", x.Row.Name, x.Outcome, x.Found)
		}
		if len(x.Left) > 0 {
			t.Errorf("%s left behind %s", x.Row.Name, strings.Join(x.Left, "; "))
		}
	}
}

// named are the rows with these names; nil: all of them.
func named(rows []Row, names []string) []Row {
	return slices.DeleteFunc(rows, func(r Row) bool { return len(names) > 0 && !slices.Contains(names, r.Name) })
}
