package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/dataplane/linux"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/kube"
)

const never = time.Duration(math.MaxInt64)

// daemon is one life, as its parts, each of which knows some of those before it. Everything without a comment to the
// contrary belongs to the loop's goroutine.
type daemon struct {
	life
	core
	agent    agent
	requests requests
	stores   stores
	kernel   kernelIO
	remotes  remotes
	intents  intents
	placing  placing
	news     news
	health   health
	server   server

	lock  *os.File       // the node is ours as long as it is open
	facts kube.NodeFacts // what the API server says of the node
	cut   bool           // the time to stop is over
}

func newDaemon(c Config) (*daemon, error) {
	if c.Clock == nil || c.Kernel == nil || c.Cloud == nil || c.RunDir == "" || c.LibDir == "" {
		return nil, errors.New("agent: Config needs Clock, Kernel, Cloud, RunDir and LibDir")
	}
	c.Socket = cmp.Or(c.Socket, filepath.Join(c.RunDir, "ipamd.sock"))
	c.Checkpoint = cmp.Or(c.Checkpoint, filepath.Join(c.RunDir, "ipam.json"))
	c.LogDir = cmp.Or(c.LogDir, c.RunDir)
	c.Version = cmp.Or(c.Version, ipam.Version)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	c.Parts.Policy = cmp.Or(c.Parts.Policy, ipam.Sound())
	c.Parts.PolicyName = cmp.Or(c.Parts.PolicyName, "sound")
	c.Settings.Runtime, c.Settings.API = c.Runtime != nil, c.Pods != nil
	if c.Parts.Cloud != nil {
		c.Cloud = c.Parts.Cloud(c.Cloud)
	}
	d := &daemon{life: life{c: c, log: c.Log, clock: c.Clock,
		in: make(chan func(), maxInbox), done: make(chan struct{}),
		recorder: &recorder{policy: c.Parts.PolicyName, stream: c.Record, log: c.Log}}}
	l, co := &d.life, &d.core
	d.core = core{life: l, perform: d.perform}
	d.agent = agent{co}
	d.requests = requests{core: co, agent: &d.agent, open: map[ipam.Req]*request{}}
	d.stores = stores{core: co}
	d.kernel = kernelIO{core: co, requests: &d.requests, lanes: map[ipam.Lane]*applyLane{},
		hint: make(chan struct{}, 1)}
	d.remotes = remotes{core: co, asked: map[ipam.ID]*remote{}}
	d.intents = intents{core: co, requests: &d.requests, agent: &d.agent, bad: map[string]bool{},
		doing: map[ipam.Attachment]bool{}, tries: map[ipam.Attachment]int{}}
	d.placing = placing{life: l}
	d.news = news{life: l, agent: &d.agent}
	d.health = health{core: co, agent: &d.agent, placing: &d.placing, news: &d.news}
	d.server = server{life: l, agent: &d.agent, requests: &d.requests, health: &d.health, take: d.take,
		slots: make(chan struct{}, maxPeers)}
	return d, nil
}

// run is a life from its first instant.
func (d *daemon) run(ctx context.Context) error {
	d.ctx, d.end = context.WithCancel(context.WithoutCancel(ctx)) // SIGTERM ends no effect
	defer func() {
		if d.gather() && d.lock != nil {
			d.lock.Close() // last: until then no other daemon has the node
		}
	}()
	defer d.crash()
	if !d.own(ctx) {
		return nil
	}
	if err := d.begin(); err != nil {
		return err
	}
	d.server.open()
	d.loop(ctx)
	d.log.Info("ipamd ends", "steps", d.steps)
	return nil
}

// loop takes what comes until the daemon has stopped.
func (d *daemon) loop(ctx context.Context) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	stop := ctx.Done()
	for {
		next := d.settle()
		if d.over() {
			return
		}
		timer.Reset(until(next, d.clock.Now()))
		d.idle(next)
		select {
		case f := <-d.in:
			f()
			for range min(len(d.in), maxBatch) {
				(<-d.in)()
			}
		case <-d.kernel.hint:
			d.kernel.hear()
		case <-timer.C:
		case <-d.clock.Moved():
		case <-stop:
			stop = nil
			d.stop()
		}
	}
}

// until is how long a timer runs.
func until(at, now time.Duration) time.Duration {
	if at == never {
		return time.Hour // a look at the clock that nothing asked for does no harm
	}
	return max(at-now, 0)
}

// settle does what is due and starts what was gathered. It returns when something will be due.
func (d *daemon) settle() time.Duration {
	for range maxBatch { // what is done may make more due
		now := d.clock.Now()
		if !d.alarm(now) && !d.remotes.bound(now) && !d.tick(now) {
			break
		}
	}
	d.stores.start()
	d.health.sayWhy()
	d.news.health(d.clock.Now(), d.health.reasons)
	return d.next()
}

// next is the earliest instant at which something will be due.
func (d *daemon) next() time.Duration {
	at := max(d.core.next(), d.pause)
	for _, r := range d.remotes.asked {
		at = min(at, r.until)
	}
	if d.health.unsaid {
		at = min(at, d.health.sayAgain)
	}
	for _, a := range d.alarms {
		at = min(at, a.at)
	}
	return at
}

// idle tells the clock that nothing here moves before next, when that is so.
func (d *daemon) idle(next time.Duration) {
	if d.local > 0 || len(d.in) > 0 || len(d.kernel.hint) > 0 || next <= d.clock.Now() {
		return
	}
	if next == never {
		next = -1
	}
	d.clock.Idle(clock.State{Next: next, Remote: len(d.remotes.asked), Requests: d.requests.callers, Steps: d.steps})
}

// stop is SIGTERM: nothing new is taken, what is under way ends.
func (d *daemon) stop() {
	d.stopping = true
	d.server.close()
	d.log.Info("ipamd stops", "requests", d.requests.callers, "effects", d.local+len(d.remotes.asked))
	if d.node != nil {
		d.step(ipam.Stop{})
	}
	d.after(d.clock.Now()+StopBound, func() {
		d.log.Warn("ipamd stops although not all has ended", "requests", d.requests.callers, "local", d.local, "calls", d.remotes.calls)
		d.requests.dismiss()
		d.after(d.clock.Now()+retryFirst, func() { d.cut = true }) // for the answers to leave
	})
}

// over says whether a stopping daemon has nothing left to wait for.
func (d *daemon) over() bool {
	return d.cut || d.stopping && d.local == 0 && d.remotes.calls == 0 && d.requests.callers == 0 && len(d.in) == 0 && d.stores.idle()
}

// perform starts what a step wants. It waits for nothing.
func (d *daemon) perform(effs []ipam.Effect) {
	for _, e := range effs {
		switch e := e.(type) {
		case *ipam.Save:
			l := &d.stores.lanes[e.Store]
			l.queue = append(l.queue, e)
		case *ipam.Apply:
			d.kernel.apply(e)
		case *ipam.Look:
			if e.What == ipam.LookKernel {
				d.kernel.observe(e.ID)
			} else {
				d.remotes.look(e)
			}
		case *ipam.Call:
			d.remotes.call(e)
		case *ipam.Reply:
			d.requests.reply(e)
		case *ipam.Note:
			d.note(e)
		}
	}
	d.health.noticeServing()
}

// take begins a request. pod is its own now.
func (d *daemon) take(c *caller, pod *linux.Pod) {
	d.requests.callers++
	c.at = d.clock.Now()
	r := &request{caller: c}
	if pod != nil {
		r.pod = &namespace{pod, 1}
	}
	att := c.q.Attachment()
	switch c.q.Verb {
	case ipc.Status:
		ready, why := d.health.ready()
		d.requests.respond(c, &ipc.Response{Ready: ready, Serving: d.health.serving(), Reasons: why})
	case ipc.View:
		d.requests.respond(c, d.inspect())
	case ipc.Record:
		d.record(c)
	case ipc.Add, ipc.Del, ipc.Check, ipc.GC:
		if att.Network == "" || c.q.Verb != ipc.GC && (att.ContainerID == "" || att.IfName == "") {
			d.requests.respond(c, refusal(codeEnvironment, "cni "+c.q.Verb+": network, container ID and interface name are needed, found "+att.String()))
		} else if d.stopping {
			d.requests.respond(c, refusal(ipam.CodeTryAgain, "cni "+c.q.Verb+" "+att.String()+": ipamd is stopping, try again"))
		} else if d.node == nil {
			d.requests.respond(c, d.requests.misconfigured(c.q))
		} else {
			d.requests.enter(r)
			return
		}
	default:
		d.requests.respond(c, refusal(ipam.CodeVersion, fmt.Sprintf("ipamd does not know the request %q; it speaks version %d", c.q.Verb, d.c.Version)))
	}
	r.pod.drop()
}
