package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
)

const never = time.Duration(math.MaxInt64)

// daemon is one life. Everything without a comment to the contrary belongs to the loop's goroutine.
type daemon struct {
	c     Config
	log   *slog.Logger
	clock *clock.Clock
	cloud Cloud

	in   chan func()   // what the loop shall do next; closures run on its goroutine
	hint chan struct{} // another program changed the kernel
	done chan struct{} // closed when the loop has ended
	ctx  context.Context
	end  context.CancelFunc // ends every effect's context

	running sync.WaitGroup // every goroutine of this life

	node     *ipam.Node // nil: the settings cannot be
	recorder *recorder
	steps    uint64
	pause    time.Duration // no tick before
	alarms   []alarm

	saves    [2]saveLane
	applies  map[ipam.Lane]*applyLane
	remotes  map[ipam.ID]*remote
	calls    int // of the remotes, those that change something
	local    int // effects under way on this machine, answers included
	hinted   bool
	lastHint time.Duration

	lastReq  ipam.Req
	open     map[ipam.Req]*request
	callers  int // requests of plugins without an answer
	intents  intents
	slots    chan struct{} // one per caller that is served; any goroutine
	lock     *os.File      // the node is ours as long as it is open
	listener *ipc.Listener
	older    net.Listener // for older plugins of another CNI; nil: there is none
	silent   silent       // any goroutine
	closed   bool         // it is

	began    time.Duration
	before   bool // an earlier daemon has served since the machine started
	served   bool
	placing  placing     // of the conflist
	wasReady atomic.Bool // served or before, for any goroutine
	stopping bool
	cut      bool // the time to stop is over
	facts    facts
	view     ipam.View
	reasons  string        // as they were said last
	sayAgain time.Duration // not before
	news     news
	unsaid   bool   // they have changed since
	looked   uint64 // step after which they were looked at
}

// alarm is something to do at an instant.
type alarm struct {
	at time.Duration
	do func()
}

func newDaemon(c Config) (*daemon, error) {
	if c.Clock == nil || c.Kernel == nil || c.Cloud == nil || c.RunDir == "" || c.LibDir == "" {
		return nil, errors.New("agent: Config needs Clock, Kernel, Cloud, RunDir and LibDir")
	}
	if c.Socket == "" {
		c.Socket = filepath.Join(c.RunDir, "ipamd.sock")
	}
	if c.Checkpoint == "" {
		c.Checkpoint = filepath.Join(c.RunDir, "ipam.json")
	}
	if c.LogDir == "" {
		c.LogDir = c.RunDir
	}
	if c.Version == 0 {
		c.Version = ipam.Version
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Parts.Policy == nil {
		c.Parts.Policy = ipam.Sound()
	}
	if c.Parts.PolicyName == "" {
		c.Parts.PolicyName = "sound"
	}
	c.Settings.Runtime, c.Settings.API = c.Runtime != nil, c.Pods != nil
	d := &daemon{c: c, log: c.Log, clock: c.Clock, cloud: c.Cloud,
		in: make(chan func(), maxInbox), hint: make(chan struct{}, 1), done: make(chan struct{}), slots: make(chan struct{}, maxPeers),
		recorder: &recorder{policy: c.Parts.PolicyName, stream: c.Record, log: c.Log}, applies: map[ipam.Lane]*applyLane{},
		remotes: map[ipam.ID]*remote{}, open: map[ipam.Req]*request{}}
	d.news.d = d
	if c.Parts.Cloud != nil {
		d.cloud = c.Parts.Cloud(c.Cloud)
	}
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
	l := d.listener
	d.go_(func() { d.accept(l) })
	d.hearOlder()
	d.watchSocket()
	d.loop(ctx)
	d.closeListeners()
	d.log.Info("ipamd ends", "steps", d.steps)
	return nil
}

// gather ends what this life has started, and waits a little for it: nothing may use the kernel after it was closed.
// It is false when something still hangs: that may yet write a record, so the node stays locked until the process is
// gone.
func (d *daemon) gather() bool {
	close(d.done)
	d.end()
	ended := make(chan struct{})
	go func() {
		d.running.Wait()
		close(ended)
	}()
	t := time.NewTimer(gatherBound)
	defer t.Stop()
	select {
	case <-ended:
		return true
	case <-t.C:
		return false
	}
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
		case <-d.hint:
			d.hear()
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
		if !d.alarm(now) && !d.bound(now) && !d.tick(now) {
			break
		}
	}
	d.startSaves()
	d.sayWhy()
	d.news.health(d.clock.Now())
	return d.next()
}

// alarm does the first of the things that are due.
func (d *daemon) alarm(now time.Duration) bool {
	for i, a := range d.alarms {
		if a.at <= now {
			d.alarms = slices.Delete(d.alarms, i, i+1)
			a.do()
			return true
		}
	}
	return false
}

// after does something at an instant.
func (d *daemon) after(at time.Duration, do func()) { d.alarms = append(d.alarms, alarm{at, do}) }

// bound ends the context of a remote effect whose time is up.
func (d *daemon) bound(now time.Duration) bool {
	for _, r := range d.remotes {
		if r.until <= now {
			r.until = never
			r.cancel()
			return true
		}
	}
	return false
}

// tick steps the Node when it wanted that.
func (d *daemon) tick(now time.Duration) bool {
	if d.node == nil || now < d.pause {
		return false
	}
	at, ok := d.node.Next()
	if !ok || at > now {
		return false
	}
	d.step(nil)
	if at, ok := d.node.Next(); ok && at <= now {
		d.pause = now + tickPause
	}
	return true
}

// next is the earliest instant at which something will be due.
func (d *daemon) next() time.Duration {
	at := never
	if d.node != nil {
		if n, ok := d.node.Next(); ok {
			at = max(n, d.pause)
		}
	}
	for _, a := range d.alarms {
		at = min(at, a.at)
	}
	for _, r := range d.remotes {
		at = min(at, r.until)
	}
	if d.unsaid {
		at = min(at, d.sayAgain)
	}
	return at
}

// idle tells the clock that nothing here moves before next, when that is so.
func (d *daemon) idle(next time.Duration) {
	if d.local > 0 || len(d.in) > 0 || len(d.hint) > 0 || next <= d.clock.Now() {
		return
	}
	if next == never {
		next = -1
	}
	d.clock.Idle(clock.State{Next: next, Remote: len(d.remotes), Requests: d.callers, Steps: d.steps})
}

// step steps the Node with an input, records that, and starts what it wants.
func (d *daemon) step(in ipam.Input) {
	if d.c.Parts.Input != nil && in != nil {
		in = d.c.Parts.Input(in)
	}
	d.recorder.turn(d.node)
	now := d.clock.Now()
	effs := d.survive(now, in)
	d.steps++
	d.recorder.line(now, in, effs)
	if d.c.Parts.Effects != nil {
		effs = d.c.Parts.Effects(effs)
	}
	for _, e := range effs {
		d.perform(e)
	}
	d.noticeServing()
}

// survive steps the Node. An input that makes it panic is recorded nevertheless: it is the one that matters.
func (d *daemon) survive(now time.Duration, in ipam.Input) []ipam.Effect {
	survived := false
	defer func() {
		if !survived {
			d.recorder.fatal(now, in)
		}
	}()
	effs := d.node.Step(now, in)
	survived = true
	return effs
}

// post gives the loop something to do. It waits while the inbox is full, and forgets it when the daemon has ended.
func (d *daemon) post(f func()) {
	select {
	case d.in <- f:
	case <-d.done:
	}
}

// go_ runs f on a goroutine whose panic leaves the flight recorder behind.
func (d *daemon) go_(f func()) {
	d.running.Go(func() {
		defer d.crash()
		f()
	})
}

// crash is deferred where a panic would end the daemon. The panic goes on with the recording's place in its text: what waits in the log may
// never be written.
func (d *daemon) crash() {
	if r := recover(); r != nil {
		where, err := d.recorder.panicked(d.c.LogDir)
		if err != nil {
			where = "none: " + err.Error()
		}
		d.log.Error("ipamd panics: a bug; please report it with the recording", "panic", fmt.Sprint(r), "recording", where)
		panic(fmt.Sprintf("%v; a bug; please report it with the recording: %s", r, where))
	}
}

// hear is a kernel event: a hint to look, no more than one in a while.
func (d *daemon) hear() {
	if d.hinted || d.node == nil {
		return
	}
	d.hinted = true
	d.after(max(d.lastHint+hintPause, d.clock.Now()), func() {
		d.hinted, d.lastHint = false, d.clock.Now()
		d.step(ipam.Seen{What: ipam.LookKernel})
	})
}

// stop is SIGTERM: nothing new is taken, what is under way ends.
func (d *daemon) stop() {
	d.stopping = true
	d.closeListeners()
	d.log.Info("ipamd stops", "requests", d.callers, "effects", d.local+len(d.remotes))
	if d.node != nil {
		d.step(ipam.Stop{})
	}
	d.after(d.clock.Now()+StopBound, func() {
		d.log.Warn("ipamd stops although not all has ended", "requests", d.callers, "local", d.local, "calls", d.calls)
		d.dismiss()
		d.after(d.clock.Now()+retryFirst, func() { d.cut = true }) // for the answers to leave
	})
}

// over says whether a stopping daemon has nothing left to wait for.
func (d *daemon) over() bool {
	return d.cut || d.stopping && d.local == 0 && d.calls == 0 && d.callers == 0 && len(d.in) == 0 && d.nothingToSave()
}
