package main

import (
	"context"
	"errors"
	"net/netip"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/wait"
	"github.com/enilab/enilab/sim/vpc"
)

// account is the model of EC2 in real time, with one instance, and the VPC's cables and routes that follow from it.
type account struct {
	mu      sync.Mutex
	model   *ec2.Cloud
	began   time.Time
	network *vpc.Network
	inst    ec2.InstanceID
	plug    func(mac string) error // a link appears on the instance
	due     *time.Timer            // when the model does something by itself
	broken  error
}

var (
	vpcCIDR = netip.MustParsePrefix("10.0.0.0/16")
	subnet  = netip.MustParsePrefix("10.0.0.0/20")
)

// newAccount has one instance. Without latency, everything in EC2 takes no time and shows at once.
func newAccount(kind string, latency bool, f *vpc.Network) (*account, error) {
	c := ec2.Config{VPCs: []ec2.VPC{{CIDRs: []netip.Prefix{vpcCIDR}}}, Subnets: []ec2.SubnetConfig{{CIDR: subnet}}}
	if !latency {
		now := ec2.Always(0)
		for i := range c.Latency.Call {
			c.Latency.Call[i] = now
		}
		c.Latency.Attach, c.Latency.Link, c.Latency.Detach = now, now, now
		c.Lag = ec2.Lag{IMDSAttach: now, IMDSPartial: now, IMDSAddress: now, IMDSDetach: now, Describe: now, Mutation: now, FreedAddress: now}
	}
	a := &account{model: ec2.New(c, 1), began: time.Now(), network: f}
	var err error
	a.inst, err = a.model.Launch(0, ec2.LaunchSpec{Type: kind})
	return a, err
}

func (a *account) now() time.Duration { return time.Since(a.began) }

// do uses the model, and then lets happen what follows from that.
func (a *account) do(f func(now time.Duration)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	f(a.now())
	a.follow()
}

func (a *account) follow() {
	for _, e := range a.model.Events() {
		if err := a.happened(&e); err != nil && a.broken == nil {
			a.broken = err
		}
	}
	at, ok := a.model.Next()
	if !ok {
		return
	}
	if a.due != nil {
		a.due.Stop()
	}
	a.due = time.AfterFunc(at-a.now(), func() { a.do(a.model.Advance) })
}

func (a *account) happened(e *ec2.Event) error {
	switch e.Kind {
	case ec2.ENICreated, ec2.ENIAttached:
		v, _ := a.model.ENI(e.ENI)
		var errs []error
		for _, addr := range append([]netip.Addr{v.Primary}, v.Secondaries...) {
			errs = append(errs, a.network.Assign(v.MAC, addr))
		}
		return errors.Join(errs...)
	case ec2.AddressAssigned:
		return a.network.Assign(a.model.MAC(e.ENI), e.Address)
	case ec2.AddressUnassigned:
		return a.network.Unassign(e.Address)
	case ec2.LinkPlugged:
		return a.plug(e.MAC)
	case ec2.LinkUnplugged:
		return a.network.Unplug(e.MAC)
	}
	return nil
}

// Do makes a request travel: it is ec2server.Backend.
func (a *account) Do(ctx context.Context, r *ec2.Request) (resp ec2.Response, err error) {
	r.Caller = a.inst
	var there, back time.Duration
	a.do(func(time.Duration) { there, back = a.model.Travel(r) })
	if err := wait.For(ctx, there); err != nil {
		return resp, err
	}
	a.do(func(now time.Duration) { resp = a.model.Serve(now, r) })
	if resp.Lost {
		return resp, errors.New("the answer is lost")
	}
	return resp, wait.For(ctx, back)
}

func (a *account) metadata(context.Context) (view ec2.IMDS, ok bool) {
	a.do(func(now time.Duration) {
		view, ok = a.model.IMDS(now, a.inst)
		view.ENIs = append([]ec2.IMDSENI(nil), view.ENIs...)
	})
	return view, ok
}

// err is what went wrong in the laboratory itself.
func (a *account) err() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.broken
}
