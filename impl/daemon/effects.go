package daemon

import (
	"context"
	"slices"
	"time"

	"github.com/enilab/enilab/impl/cloud"
	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
)

// perform starts one effect. It waits for nothing.
func (d *daemon) perform(e ipam.Effect) {
	switch e := e.(type) {
	case *ipam.Save:
		l := &d.saves[e.Store]
		l.queue = append(l.queue, e)
	case *ipam.Apply:
		d.apply(e)
	case *ipam.Look:
		d.look(e)
	case *ipam.Call:
		d.call(e)
	case *ipam.Reply:
		d.reply(e)
	case *ipam.Note:
		d.note(e)
	}
}

// saveLane is one store's FIFO.
type saveLane struct {
	store Store
	queue []*ipam.Save
	busy  bool
}

// startSaves writes what has been gathered, all of a store's at once, and one write per store at a time.
func (d *daemon) startSaves() {
	for i := range d.saves {
		l := &d.saves[i]
		if l.busy || len(l.queue) == 0 {
			continue
		}
		batch := l.queue
		l.queue, l.busy = nil, true
		d.local++
		d.go_(func() {
			out := ipam.Saved{Store: ipam.Store(i), Seq: batch[len(batch)-1].Seq}
			if err := l.store.Commit(batch); err != nil {
				out.Err = err.Error()
			}
			d.post(func() {
				d.local--
				l.busy = false
				d.step(out)
			})
		})
	}
}

func (d *daemon) nothingToSave() bool {
	return !slices.ContainsFunc(d.saves[:], func(l saveLane) bool { return l.busy || len(l.queue) > 0 })
}

// applyLane holds the plans that wait for the one that runs. It is there as long as one does.
type applyLane struct{ queue []job }

// job is a plan with the pod's namespace, if it needs one.
type job struct {
	*ipam.Apply
	pod *namespace
}

func (d *daemon) apply(a *ipam.Apply) {
	if d.c.Parts.Plan != nil {
		b := *a
		b.Plan = d.c.Parts.Plan(a.Lane, a.Plan)
		a = &b
	}
	j := job{a, d.namespaceOf(a)}
	if l, busy := d.applies[a.Lane]; busy {
		l.queue = append(l.queue, j)
		return
	}
	d.applies[a.Lane] = &applyLane{}
	d.runJob(j)
}

func (d *daemon) runJob(j job) {
	d.local++
	d.go_(func() {
		var pod *linux.Pod
		if j.pod != nil {
			pod = j.pod.pod
		}
		done, err := d.c.Kernel.Apply(j.Plan, pod)
		d.post(func() {
			d.local--
			j.pod.drop()
			// The lane goes on before the Node hears of this plan: what it then wants of the lane comes after what it wanted before.
			if l := d.applies[j.Lane]; len(l.queue) > 0 {
				next := l.queue[0]
				l.queue = l.queue[1:]
				d.runJob(next)
			} else {
				delete(d.applies, j.Lane)
			}
			d.step(ipam.Applied{ID: j.ID, Done: done, Err: err})
		})
	})
}

// remote is an effect that asks a server, which may never answer.
type remote struct {
	cancel context.CancelFunc
	until  time.Duration // its bound; never once that was reached
}

// ask runs f on a goroutine, bounded, and steps the Node with what it returns.
func (d *daemon) ask(id ipam.ID, bound time.Duration, f func(context.Context) ipam.Input) {
	ctx, cancel := context.WithCancel(d.ctx)
	d.remotes[id] = &remote{cancel, d.clock.Now() + bound}
	d.go_(func() {
		in := f(ctx)
		cancel()
		d.post(func() {
			delete(d.remotes, id)
			if _, call := in.(ipam.Called); call {
				d.calls--
			}
			d.step(in)
		})
	})
}

func (d *daemon) call(c *ipam.Call) {
	q := *c
	q.Addresses, q.Groups = slices.Clone(c.Addresses), slices.Clone(c.Groups)
	d.calls++
	d.ask(q.ID, callBound, func(ctx context.Context) ipam.Input {
		return ipam.Called{ID: q.ID, Result: d.cloud.Call(ctx, &q)}
	})
}

// bounds of Looks that ask a server.
var bounds = map[ipam.What]time.Duration{ipam.LookRuntime: runtimeBound, ipam.LookIMDS: imdsBound, ipam.LookENI: ec2Bound,
	ipam.LookLeaked: ec2Bound, ipam.LookPods: podsBound, ipam.LookAttached: ec2Bound,
	ipam.LookSubnets: ec2Bound, ipam.LookConfig: podsBound}

func (d *daemon) look(l *ipam.Look) {
	q := ipam.Look{ID: l.ID, What: l.What, ENIs: slices.Clone(l.ENIs)}
	if q.What == ipam.LookKernel {
		d.observe(q.ID)
		return
	}
	d.ask(q.ID, bounds[q.What], func(ctx context.Context) ipam.Input {
		in := ipam.Seen{ID: q.ID, What: q.What}
		if err := d.inquire(ctx, &q, &in); err != nil {
			in.Err, in.Denied = err.Error(), cloud.Denied(err)
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
func (d *daemon) inquire(ctx context.Context, l *ipam.Look, in *ipam.Seen) (err error) {
	switch l.What {
	case ipam.LookRuntime:
		if in.Sandboxes, err = d.c.Runtime.Sandboxes(ctx); err == nil {
			d.nameSelf(in.Sandboxes)
		}
	case ipam.LookIMDS:
		in.IMDS, err = d.cloud.Metadata(ctx)
		d.exclude(in.IMDS)
	case ipam.LookENI:
		in.ENIs, err = d.cloud.ENIs(ctx, l.ENIs)
	case ipam.LookLeaked:
		in.ENIs, err = d.cloud.Leaked(ctx)
	case ipam.LookAttached:
		in.ENIs, err = d.cloud.Attached(ctx)
	case ipam.LookSubnets:
		in.Subnets, err = d.cloud.Subnets(ctx)
	case ipam.LookPods:
		in.Pods, err = d.c.Pods.Pods(ctx)
	case ipam.LookConfig:
		var c ipam.ENIConfig
		c, err = d.c.Pods.ENIConfig(ctx, &d.c.Settings)
		in.Config = &c
	}
	return err
}

// nameSelf gives the daemon's own sandbox the ID that Start.Daemon has.
func (d *daemon) nameSelf(list []ipam.Sandbox) {
	if d.c.Sandbox != "" || d.c.Self.Name == "" {
		return
	}
	for i := range list {
		b := &list[i]
		if b.Ready && b.Pod.Name == d.c.Self.Name && b.Pod.Namespace == d.c.Self.Namespace {
			b.ID = Self
			return
		}
	}
}

// exclude adds what SNAT leaves alone to the VPC's own CIDRs, which is all that the core uses them for.
func (d *daemon) exclude(m *ipam.IMDS) {
	if m == nil {
		return
	}
	m.Instance.VPC = slices.Clone(m.Instance.VPC)
	for _, p := range d.c.ExcludeSNAT {
		if !slices.Contains(m.Instance.VPC, p) {
			m.Instance.VPC = append(m.Instance.VPC, p)
		}
	}
}

// observe reads the kernel, which is on this machine and answers.
func (d *daemon) observe(id ipam.ID) {
	d.local++
	d.go_(func() {
		var o dataplane.Observation
		o, err := d.c.Kernel.Observe()
		in := ipam.Seen{ID: id, What: ipam.LookKernel, Complete: err == nil && o.Complete, Kernel: &o}
		if err != nil {
			in.Err = err.Error()
		} else if !o.Complete {
			in.Err = "the dump was interrupted"
		}
		d.post(func() {
			d.local--
			d.step(in)
		})
	})
}

// watchKernel hears what others do to the kernel. A watch that breaks is a reason to look, and is begun again.
func (d *daemon) watchKernel() {
	d.go_(func() {
		err := d.c.Kernel.Watch(d.ctx, d.tell)
		if d.ctx.Err() != nil {
			return
		}
		d.post(func() {
			d.log.Warn("the kernel's events are lost; the kernel is read, and watched again", "err", err)
			d.hear()
			d.after(d.clock.Now()+watchRetry, d.watchKernel)
		})
	})
}

// tell is called by any goroutine, as often as it likes.
func (d *daemon) tell() {
	select {
	case d.hint <- struct{}{}:
	default: // a notice is pending already
	}
}
