package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/enilab/enilab/internal/percentiles"
	"github.com/enilab/enilab/internal/wait"
)

// samples say how often everything is done.
type samples struct {
	starts     int // of the daemon
	pods       int // that are present while the rest is measured
	execs      int
	sequential int // ADDs and DELs, one after the other
	rounds     int // of parallel ADDs at once, and DELs
	parallel   int
	pairs      int // ADDs with their DELs, in all, before memory is read again
	flows      int // of others, beside which DELs are measured again
	crowd      int // pods on a large instance, beside which ADD and DEL are measured again
	burst      int // pods at once on a small instance; 0: none
}

var (
	full = samples{starts: 15, pods: 110, execs: 200, sequential: 250, rounds: 25, parallel: 10, pairs: 1000, flows: 200_000, crowd: 725, burst: 50}
	few  = samples{starts: 2, pods: 12, execs: 5, sequential: 5, rounds: 1, parallel: 10, pairs: 20, flows: 2000, crowd: 60}
)

// pause between plugins that are measured one by one. The kernel frees the memory of a deleted link some 20 ms later, on the same CPUs.
const pause = 30 * time.Millisecond

// bench is one whole measurement.
type bench struct {
	m      *machine
	s      samples
	r      *report
	serial int
	pairs  int   // that were done
	here   []run // the ADDs of the pods that are present
	failed []string
}

// phase is a part of what is measured on one node.
type phase struct {
	name string
	run  func(context.Context) error
}

// measure fills the report. What was measured before an error is in it.
func measure(ctx context.Context, b *binaries, s samples, r *report, printLog bool) error {
	x := &bench{s: s, r: r}
	err := x.on(ctx, b, "m5.4xlarge", 234, printLog, phase{"starts", x.startEmpty}, phase{"pods", x.fill}, phase{"starts beside pods", x.startFull},
		phase{"exec", x.exec}, phase{"ADD and DEL one by one", x.oneByOne}, phase{"ADD and DEL at once", x.atOnce},
		phase{"ADDs and DELs for its memory", x.churn}, phase{"ADD and DEL beside flows", x.besideFlows})
	if err == nil {
		x.s.pods, x.s.starts, x.here = s.crowd, s.starts/3+1, nil
		err = x.on(ctx, b, "m5.24xlarge", 737, printLog, phase{"a large node", x.start}, phase{"its pods", x.fill},
			phase{"starts beside them", x.startFull}, phase{"ADD and DEL beside them", x.oneByOne})
	}
	if err == nil && s.burst > 0 {
		err = x.burst(ctx, b)
	}
	r.failed = x.failed
	return err
}

// on measures phases on a node of that instance type whose EC2 takes no time.
func (x *bench) on(ctx context.Context, b *binaries, kind string, maxPods int, printLog bool, phases ...phase) (err error) {
	if x.m, err = newMachine(b, kind, maxPods, false, map[string]string{"IP_COOLDOWN_PERIOD": "0"}); err != nil {
		return err
	}
	defer func() {
		if err != nil || printLog {
			x.r.tail += x.m.log()
		}
		x.m.close()
	}()
	for _, p := range phases {
		x.r.progress(p.name)
		if err := p.run(ctx); err != nil {
			return fmt.Errorf("%s: %w", p.name, err)
		}
	}
	return nil
}

func (x *bench) startEmpty(ctx context.Context) error {
	if err := x.restart(ctx, "no records", "300", x.m.forget); err != nil {
		return err
	}
	return x.memory("  its memory then, without a pod")
}

// restart kills the daemon and starts it, again and again. between is what is done while it is down, but not before the first start.
func (x *bench) restart(ctx context.Context, what, upstream string, between func() error) error {
	var answers, serves percentiles.Times
	for range x.s.starts {
		if x.m.running {
			if err := errors.Join(x.m.stop(), between()); err != nil {
				return err
			}
		}
		t, err := x.m.start(ctx)
		if err != nil {
			return err
		}
		answers, serves = append(answers, t.answers), append(serves, t.serves)
	}
	x.r.add(row{what: "ipamd start to the first DEL, " + what, asked: "reported", ours: answers})
	x.r.add(row{what: "ipamd start to serving, " + what, asked: "p50 100 ms", ours: serves, upstream: upstream})
	return nil
}

func (x *bench) start(ctx context.Context) error {
	_, err := x.m.start(ctx)
	return err
}

// fill adds the pods that stay.
func (x *bench) fill(ctx context.Context) error {
	var batches []batch
	for range x.s.pods {
		add, err := x.pod(ours, "pod-"+strconv.Itoa(len(x.here)))
		if err != nil {
			return err
		}
		x.here = append(x.here, add)
		batches = append(batches, batch{Runs: []run{add}})
	}
	if _, err := x.drive(ctx, batches, 0); err != nil {
		return err
	}
	return x.memory(fmt.Sprintf("ipamd's memory with %d pods", len(x.here)))
}

func (x *bench) startFull(ctx context.Context) error {
	if err := x.restart(ctx, fmt.Sprintf("%d pods", len(x.here)), "", func() error { return nil }); err != nil {
		return err
	}
	return x.memory(fmt.Sprintf("  its memory then, with %d pods", len(x.here)))
}

// exec is VERSION: all that a process costs before it does anything.
func (x *bench) exec(ctx context.Context) error {
	var batches []batch
	for range x.s.execs {
		for _, p := range []string{ours, other} {
			batches = append(batches, batch{What: p, Runs: []run{{Plugin: p, Verb: "VERSION"}}})
		}
	}
	by, err := x.drive(ctx, batches, time.Millisecond)
	x.r.add(row{what: "exec of the plugin alone (VERSION)", asked: "p50 3 ms", ours: by[ours], ptp: by[other], upstream: "13"})
	return err
}

// again is a DEL whose pod is gone: what of a DEL is neither the disk's nor the kernel's time.
const again = "DEL again "

// oneByOne is ADD, DEL and DEL, both plugins in turn.
func (x *bench) oneByOne(ctx context.Context) error {
	var batches []batch
	for i := range x.s.sequential {
		for _, p := range []string{ours, other} {
			add, err := x.pod(p, "churn-"+strconv.Itoa(i%10))
			if err != nil {
				return err
			}
			batches = append(batches, batch{"ADD " + p, []run{add}}, batch{"DEL " + p, []run{add.undo()}}, batch{again + p, []run{add.undo()}})
		}
	}
	by, err := x.drive(ctx, batches, pause)
	beside := fmt.Sprintf("beside %d pods", len(x.here))
	x.r.add(row{what: "ADD, one by one, " + beside, asked: x.asks("p50 5, p99 15 ms", "1.3 times beside 110"), ours: by["ADD "+ours], ptp: by["ADD "+other], upstream: "20 / 63"})
	x.r.add(row{what: "DEL, one by one, " + beside, asked: x.asks("p50 3 ms", "reported"), ours: by["DEL "+ours], ptp: by["DEL "+other], upstream: "7.5 / 139"})
	x.r.add(row{what: "  the same again, " + beside + ": nothing to write or to remove", ours: by[again+ours], ptp: by[again+other]})
	return err
}

// atOnce is rounds of parallel ADDs, then of their DELs, both plugins in turn.
func (x *bench) atOnce(ctx context.Context) error {
	var batches []batch
	for range x.s.rounds {
		for _, p := range []string{ours, other} {
			add, del := batch{What: "ADD " + p}, batch{What: "DEL " + p}
			for i := range x.s.parallel {
				a, err := x.pod(p, "churn-"+strconv.Itoa(i))
				if err != nil {
					return err
				}
				add.Runs, del.Runs = append(add.Runs, a), append(del.Runs, a.undo())
			}
			batches = append(batches, add, del)
		}
	}
	by, err := x.drive(ctx, batches, 2*pause)
	at := fmt.Sprintf(", %d at once", x.s.parallel)
	x.r.add(row{what: "ADD" + at, asked: "p50 30 ms", ours: by["ADD "+ours], ptp: by["ADD "+other], upstream: "234 / 537"})
	x.r.add(row{what: "DEL" + at, asked: "reported", ours: by["DEL "+ours], ptp: by["DEL "+other], upstream: "49"})
	return err
}

// churn fills up to the number of ADDs and DELs after which memory is read.
func (x *bench) churn(ctx context.Context) error {
	if _, err := x.addDel(ctx, x.s.pairs-x.pairs, 0); err != nil {
		return err
	}
	return x.memory(fmt.Sprintf("ipamd's memory after %d ADDs and DELs", x.pairs))
}

// addDel is so many ADDs and DELs of ours, in turn.
func (x *bench) addDel(ctx context.Context, pairs int, pause time.Duration) (map[string]percentiles.Times, error) {
	var batches []batch
	for i := range pairs {
		add, err := x.pod(ours, "churn-"+strconv.Itoa(i%10))
		if err != nil {
			return nil, err
		}
		batches = append(batches, batch{"ADD", []run{add}}, batch{"DEL", []run{add.undo()}})
	}
	return x.drive(ctx, batches, pause)
}

// besideFlows is ADD and DEL on a node whose conntrack is full of flows that are not its pods': what is forgotten of a pod is looked for among them.
func (x *bench) besideFlows(ctx context.Context) error {
	made, err := x.m.enterFlows(x.s.flows)
	if err != nil {
		return err
	}
	by, err := x.addDel(ctx, max(1, x.s.sequential/5), pause) // fewer: a build that looks among them before it answers takes seconds
	beside := fmt.Sprintf("beside %d flows of others", made)
	x.r.add(row{what: "ADD, one by one, " + beside, ours: by["ADD"]})
	x.r.add(row{what: "DEL, one by one, " + beside, asked: "1.3 times without", ours: by["DEL"]})
	return err
}

// burst is pods at once on an instance whose pool has to grow for them, at EC2's published speed.
func (x *bench) burst(ctx context.Context, b *binaries) (err error) {
	x.r.progress("burst")
	if x.m, err = newMachine(b, "c5.xlarge", 58, true, nil); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			x.r.tail = x.m.log()
		}
		x.m.close()
	}()
	if _, err = x.m.start(ctx); err != nil {
		return err
	}
	if err = x.warm(ctx); err != nil {
		return err
	}
	x.here = nil
	pods := batch{What: "burst"}
	for i := range x.s.burst {
		add, err := x.pod(ours, "burst-"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		pods.Runs = append(pods.Runs, add)
	}
	x.m.list(pods.Runs)
	all, err := x.m.drive(ctx, []batch{pods}, 0)
	if err != nil {
		return err
	}
	by, failed, example := split(all)
	x.r.add(row{what: fmt.Sprintf("%d pods at once, c5.xlarge, EC2's delays", x.s.burst), asked: "none fails", ours: by["burst"], failed: failed["burst"], counted: true,
		upstream: "21 of 50 fail"})
	if example != "" {
		x.failed = append(x.failed, example)
	}
	return x.m.err()
}

// warm waits until the pool is as it is on a node that has been up for a while: EC2 has given it addresses, and for some time no more.
func (x *bench) warm(ctx context.Context) error {
	const calmEnough = 5
	for calm, before := 0, 0; calm < calmEnough; calm++ {
		n := 0
		x.m.do(func(time.Duration) {
			for _, id := range x.m.model.AttachedENIs(x.m.inst) {
				e, _ := x.m.model.ENI(id)
				n += len(e.Secondaries)
			}
		})
		if n != before || n == 0 {
			before, calm = n, 0
		}
		if err := wait.For(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

func (x *bench) memory(what string) error {
	rss, anon, err := x.m.memory()
	x.r.add(row{what: what, asked: x.asks("25 MB", "reported"), memory: [2]int{rss, anon}, upstream: "58 MB"})
	return err
}

// asks is what a figure has to be on a node of the usual size, or beside more pods than that has.
func (x *bench) asks(usual, crowded string) string {
	if len(x.here) > full.pods {
		return crowded
	}
	return usual
}

// drive runs plugins in the node, whose runtime knows the sandboxes, and sorts their times. Failures are counted, and are in no time.
func (x *bench) drive(ctx context.Context, batches []batch, pause time.Duration) (map[string]percentiles.Times, error) {
	pods := append([]run(nil), x.here...)
	for _, b := range batches {
		for _, r := range b.Runs {
			if r.Plugin != ours || b.What == again+ours {
				continue
			}
			switch r.Verb {
			case "ADD":
				pods = append(pods, r)
			case "DEL":
				x.pairs++
			}
		}
	}
	x.m.list(pods)
	all, err := x.m.drive(ctx, batches, pause)
	x.m.list(x.here)
	if err != nil {
		return nil, err
	}
	by, failed, example := split(all)
	for what, n := range failed {
		x.failed = append(x.failed, fmt.Sprintf("%d of %d %s failed; the first one: %s", n, n+len(by[what]), what, example))
	}
	return by, nil
}

// pod is an ADD for a new pod in a namespace.
func (x *bench) pod(plugin, netns string) (run, error) {
	x.serial++
	path, err := x.m.netns(netns)
	name := "web-" + strconv.Itoa(x.serial)
	return run{Plugin: plugin, Verb: "ADD", ID: containerID(name), Netns: path, Name: name}, err
}

func (r run) undo() run { r.Verb = "DEL"; return r }

// containerID is an identifier as containerd makes them.
func containerID(name string) string {
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])
}
