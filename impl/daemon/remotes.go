package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/cloud"
	"github.com/enilab/enilab/impl/ipam"
)

// remotes are the questions to servers (EC2, metadata, runtime, API server) that are under way. Each has a bound.
type remotes struct {
	*core
	asked map[ipam.ID]*remote
	calls int // of them, those that change something
}

// remote is an effect that asks a server, which may never answer.
type remote struct {
	cancel context.CancelFunc
	until  time.Duration // its bound; never once that was reached
}

// ask runs f on a goroutine, bounded, and steps the Node with what it returns.
func (rm *remotes) ask(id ipam.ID, bound time.Duration, f func(context.Context) ipam.Input) {
	ctx, cancel := context.WithCancel(rm.ctx)
	rm.asked[id] = &remote{cancel, rm.clock.Now() + bound}
	rm.go_(func() {
		in := f(ctx)
		cancel()
		rm.post(func() {
			delete(rm.asked, id)
			if _, call := in.(ipam.Called); call {
				rm.calls--
			}
			rm.step(in)
		})
	})
}

func (rm *remotes) call(c *ipam.Call) {
	q := *c
	q.Addresses, q.Groups = slices.Clone(c.Addresses), slices.Clone(c.Groups)
	rm.calls++
	rm.ask(q.ID, callBound, func(ctx context.Context) ipam.Input {
		return ipam.Called{ID: q.ID, Result: rm.c.Cloud.Call(ctx, &q)}
	})
}

// bounds of Looks that ask a server.
var bounds = map[ipam.What]time.Duration{ipam.LookRuntime: runtimeBound, ipam.LookIMDS: imdsBound, ipam.LookENI: ec2Bound,
	ipam.LookLeaked: ec2Bound, ipam.LookPods: podsBound, ipam.LookAttached: ec2Bound,
	ipam.LookSubnets: ec2Bound, ipam.LookConfig: podsBound}

func (rm *remotes) look(l *ipam.Look) {
	q := ipam.Look{ID: l.ID, What: l.What, ENIs: slices.Clone(l.ENIs)}
	rm.ask(q.ID, bounds[q.What], func(ctx context.Context) ipam.Input {
		in := ipam.Seen{ID: q.ID, What: q.What}
		if err := rm.inquire(ctx, &q, &in); err != nil {
			in.Err = err.Error()
			in.Denied, in.Refused = cloud.Denied(err)
			if ctx.Err() != nil {
				in.Err += " (given up after " + bounds[q.What].String() + ")"
			}
			return in
		}
		in.Complete = true
		return in
	})
}

// inquire asks the source of a Look.
func (rm *remotes) inquire(ctx context.Context, l *ipam.Look, in *ipam.Seen) (err error) {
	switch l.What {
	case ipam.LookRuntime:
		in.Sandboxes, err = rm.c.Runtime.Sandboxes(ctx)
		rm.nameSelf(in.Sandboxes)
	case ipam.LookIMDS:
		in.IMDS, err = rm.c.Cloud.Metadata(ctx)
		rm.exclude(in.IMDS)
	case ipam.LookENI:
		in.ENIs, err = rm.c.Cloud.ENIs(ctx, l.ENIs)
	case ipam.LookLeaked:
		in.ENIs, err = rm.c.Cloud.Leaked(ctx)
	case ipam.LookAttached:
		in.ENIs, err = rm.c.Cloud.Attached(ctx)
	case ipam.LookSubnets:
		in.Subnets, err = rm.c.Cloud.Subnets(ctx)
	case ipam.LookPods:
		in.Pods, err = rm.c.Pods.Pods(ctx)
	case ipam.LookConfig:
		var c ipam.ENIConfig
		c, err = rm.c.Pods.ENIConfig(ctx, &rm.c.Settings)
		in.Config = &c
	}
	return err
}

// nameSelf gives the daemon's own sandbox the ID that Start.Daemon has.
func (rm *remotes) nameSelf(list []ipam.Sandbox) {
	if rm.c.Sandbox != "" || rm.c.Self.Name == "" {
		return
	}
	for i := range list {
		b := &list[i]
		if b.Ready && b.Pod.Name == rm.c.Self.Name && b.Pod.Namespace == rm.c.Self.Namespace {
			b.ID = Self
			return
		}
	}
}

// exclude adds what SNAT leaves alone to the VPC's own CIDRs, which is all that the core uses them for.
func (rm *remotes) exclude(m *ipam.IMDS) {
	if m == nil {
		return
	}
	m.Instance.VPC = slices.Clone(m.Instance.VPC)
	for _, p := range rm.c.ExcludeSNAT {
		if !slices.Contains(m.Instance.VPC, p) {
			m.Instance.VPC = append(m.Instance.VPC, p)
		}
	}
}

// bound ends the context of a remote effect whose time is up.
func (rm *remotes) bound(now time.Duration) bool {
	for _, r := range rm.asked {
		if r.until <= now {
			r.until = never
			r.cancel()
			return true
		}
	}
	return false
}
