package ec2

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// world is a small account with names for what tests speak of. Nothing in it lags or takes time
// unless a test says so.
type world struct {
	*Cloud
	t   *testing.T
	now time.Duration
}

const (
	plenty = SubnetID("subnet-plenty") // 10.0.0.0/24 and 2001:db8:0:100::/64 in zone a
	tiny   = SubnetID("subnet-tiny")   // 10.0.1.0/28 in zone a: 11 addresses, no IPv6
	far    = SubnetID("subnet-far")    // 10.0.2.0/24 and 2001:db8:0:102::/64 in zone b
)

func testConfig() Config {
	return Config{
		Zone: "us-west-2a",
		VPCs: []VPC{{CIDRs: []netip.Prefix{cidr("10.0.0.0/16")}, IPv6: []netip.Prefix{cidr("2001:db8:0:100::/56")}}},
		Subnets: []SubnetConfig{
			{ID: plenty, CIDR: cidr("10.0.0.0/24"), IPv6: cidr("2001:db8:0:100::/64")},
			{ID: tiny, CIDR: cidr("10.0.1.0/28")},
			{ID: far, CIDR: cidr("10.0.2.0/24"), IPv6: cidr("2001:db8:0:102::/64"), Zone: "us-west-2b"},
		},
		SecurityGroups: []SecurityGroup{{ID: "sg-1"}, {ID: "sg-2"}, {ID: "sg-3"}, {ID: "sg-4"}, {ID: "sg-5"}, {ID: "sg-6"}},
	}
}

// exact removes what is random about times.
func exact(cfg Config) Config {
	z := Always(0)
	cfg.Lag = Lag{IMDSAttach: z, IMDSPartial: z, IMDSAddress: z, IMDSDetach: z, Describe: z, Mutation: z, Available: z, FreedAddress: z}
	cfg.Latency = Latency{Attach: Always(2 * time.Second), Link: z, Detach: Always(5 * time.Second), Launch: Always(8 * time.Second),
		Terminate: Always(20 * time.Second), Reboot: Always(5 * time.Second)}
	return cfg
}

func newWorld(t *testing.T) *world {
	t.Helper()
	return &world{Cloud: New(exact(testConfig()), 7), t: t}
}

// launched is a world with an m5.large.
func launched(t *testing.T) (*world, InstanceID) {
	t.Helper()
	w := newWorld(t)
	return w, w.launch("m5.large", plenty)
}

// do serves a request now and fails the test if it is refused.
func (w *world) do(r Request) Response {
	w.t.Helper()
	p := w.Serve(w.now, &r)
	if p.Code != "" {
		w.t.Fatalf("%v at %v: %s: %s", r.Action, w.now, p.Code, p.Message)
	}
	return p
}

// refused serves a request now and fails the test if its code is another.
func (w *world) refused(r Request, code string) {
	w.t.Helper()
	if p := w.Serve(w.now, &r); p.Code != code {
		w.t.Fatalf("%v at %v: code %q (%s), want %q", r.Action, w.now, p.Code, p.Message, code)
	}
}

func (w *world) wait(d time.Duration) {
	w.now += d
	w.Advance(w.now)
}

func (w *world) launch(kind string, s SubnetID) InstanceID {
	w.t.Helper()
	return must.Get(w.Launch(w.now, LaunchSpec{Type: kind, Subnet: s}))(w.t)
}

func (w *world) create(s SubnetID, secondaries int) ENIID {
	w.t.Helper()
	return w.do(Request{Action: CreateNetworkInterface, Subnet: s, SecondaryCount: secondaries}).ENI.ID
}

func (w *world) attach(e ENIID, i InstanceID, device int) string {
	w.t.Helper()
	return w.do(Request{Action: AttachNetworkInterface, ENI: e, Instance: i, DeviceIndex: device}).Attachment
}

// attached is an in-use interface.
func (w *world) attachedENI(i InstanceID, device, secondaries int) (ENIID, string) {
	w.t.Helper()
	e := w.create(plenty, secondaries)
	a := w.attach(e, i, device)
	w.wait(10 * time.Second)
	return e, a
}

func (w *world) eni(id ENIID) ENI {
	w.t.Helper()
	e, ok := w.ENI(id)
	if !ok {
		w.t.Fatalf("%s does not exist", id)
	}
	return e
}

// dump is everything a Cloud holds but the buffer that Events returned last, for comparison. There is no
// pointer in it below the first level but the config's, and fmt sorts maps.
func dump(c *Cloud) string {
	d := *c
	d.drained, d.cfg = nil, nil
	return fmt.Sprintf("%+v %+v", d, *c.cfg)
}

func ip(s string) netip.Addr { return netip.MustParseAddr(s) }

func cidr(s string) netip.Prefix { return netip.MustParsePrefix(s) }
