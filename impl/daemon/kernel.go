package daemon

import (
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
)

// kernelIO is the node's kernel: the plans that run in it, one at a time in each lane, what it shows, and the events
// by which it says that others have changed it.
type kernelIO struct {
	*core
	requests *requests // whose namespaces plans work in
	lanes    map[ipam.Lane]*applyLane
	hint     chan struct{} // another program changed the kernel
	hinted   bool
	lastHint time.Duration
	lookTook time.Duration // the last look, until the core had it
}

// applyLane holds the plans that wait for the one that runs. It is there as long as one does.
type applyLane struct{ queue []job }

// job is a plan with the pod's namespace, if it needs one.
type job struct {
	*ipam.Apply
	pod *namespace
}

func (k *kernelIO) apply(a *ipam.Apply) {
	if k.c.Parts.Plan != nil {
		b := *a
		b.Plan = k.c.Parts.Plan(a.Lane, a.Plan)
		a = &b
	}
	j := job{a, k.requests.namespaceOf(a)}
	if l, busy := k.lanes[a.Lane]; busy {
		l.queue = append(l.queue, j)
		return
	}
	k.lanes[a.Lane] = &applyLane{}
	k.run(j)
}

func (k *kernelIO) run(j job) {
	k.work(func() func() {
		var pod *linux.Pod
		if j.pod != nil {
			pod = j.pod.pod
		}
		done, err := k.c.Kernel.Apply(j.Plan, pod)
		return func() {
			j.pod.drop()
			// The lane goes on before the Node hears of this plan: what it then wants of the lane comes after what it wanted before.
			if l := k.lanes[j.Lane]; len(l.queue) > 0 {
				next := l.queue[0]
				l.queue = l.queue[1:]
				k.run(next)
			} else {
				delete(k.lanes, j.Lane)
			}
			k.step(ipam.Applied{ID: j.ID, Done: done, Err: err})
		}
	})
}

// observe reads the kernel, which is on this machine and answers.
func (k *kernelIO) observe(id ipam.ID) {
	began := k.clock.Now()
	k.work(func() func() {
		o, err := k.c.Kernel.Observe()
		in := kernelSeen(id, &o, err)
		return func() {
			k.step(in)
			k.lookTook = k.clock.Now() - began
		}
	})
}

// kernelSeen is an observation as the Node hears of it: whole, or with what is wrong with it.
func kernelSeen(id ipam.ID, o *dataplane.Observation, err error) ipam.Seen {
	in := ipam.Seen{ID: id, What: ipam.LookKernel, Kernel: o}
	switch {
	case err != nil:
		in.Err = err.Error()
	case !o.Complete:
		in.Err = "the dump was interrupted"
	default:
		in.Complete = true
	}
	return in
}

// watchEvents hears what others do to the kernel. A watch that breaks is a reason to look, and is begun again.
func (k *kernelIO) watchEvents() {
	k.watch(watchRetry, func() error { return k.c.Kernel.Watch(k.ctx, k.tell) }, func(err error) {
		k.log.Warn("the kernel's events are lost; the kernel is read, and watched again", "err", err)
		k.hear()
	})
}

// tell is called by any goroutine, as often as it likes.
func (k *kernelIO) tell() {
	select {
	case k.hint <- struct{}{}:
	default: // a notice is pending already
	}
}

// hear is a kernel event: a hint to look, no more than one in a while. The while is longer where a look takes long, as
// beside 725 pods: a storm of events does not keep the daemon looking.
func (k *kernelIO) hear() {
	if k.hinted || k.node == nil {
		return
	}
	k.hinted = true
	pause := min(max(hintPause, hintShare*k.lookTook), hintPauseMost)
	k.after(max(k.lastHint+pause, k.clock.Now()), func() {
		k.hinted, k.lastHint = false, k.clock.Now()
		k.step(ipam.Seen{What: ipam.LookKernel})
	})
}
