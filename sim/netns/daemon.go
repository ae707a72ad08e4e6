package netns

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/verb"
)

// nodeDaemon is the daemon of one node, from one life to the next: in which phase it is, and what is heard of it.
type nodeDaemon struct {
	n       *instance
	phase   phase
	lifeNo  int         // of its last process
	life    *life       // the daemon that runs; nil: nothing has been heard of it
	unasked *node.Event // how its process ended although the laboratory did not end it; nil: it did not
	enders  []int       // actions that its end ends

	self  string        // its pod, as the API server names it
	pause time.Duration // from its end to the next one's start

	seat   *clock.Seat   // at the laboratory's clock
	report *clock.Report // the last one there; nil: it has not said that it waits
	held   int           // requests of it that the models hold back

	expected    time.Duration // when it was first started that is not known to serve yet; 0: none is waited for
	stopWaiting context.CancelFunc
	served      time.Duration
	startError  string // why the last start came to nothing
	failures    int    // how often in a row it ended by itself
	debut       debut
	tokenless   tokenless
}

// life is one daemon, as its recording shows it.
type life struct {
	*judge.Life
	no    int
	ended bool // it has no more to tell
}

// to is the next phase; one that cannot come now breaks the laboratory.
func (d *nodeDaemon) to(next phase) {
	if err := d.phase.to(next); err != nil {
		d.n.w.fail(fmt.Errorf("%s: %w", d.n.Name(), err))
	}
}

// Runs says whether there is a daemon that is heard of and is not being ended.
func (d *nodeDaemon) Runs() bool { return d.phase == serving }

// Lives says whether a daemon runs or is about to.
func (d *nodeDaemon) Lives() bool {
	return d.phase == starting || d.phase == started || d.phase == serving
}

// dying says whether it is being ended, or has ended by itself.
func (d *nodeDaemon) dying() bool { return d.phase != absent && !d.Lives() }

// process says whether it has one.
func (d *nodeDaemon) process() bool {
	return !d.n.unmanned() && (d.phase == started || d.phase == serving || d.phase == ending)
}

// heard begins a life. One that is being ended has one too: what it had to say is read to its end.
func (d *nodeDaemon) heard(l *life) {
	d.life = l
	if !d.dying() && d.phase != serving {
		d.to(serving)
	}
}

// start begins a life: a sandbox for its pod, and then what its keeper does.
func (d *nodeDaemon) start() {
	n, w := d.n, d.n.w
	if n.Down {
		w.KeptDown(&n.Node)
	}
	if n.Gone || n.Down || d.phase != absent {
		return
	}
	_, d.self = w.NewDaemon(&n.Node)
	n.Starts++
	d.to(starting)
	w.keeper.begin(n)
}

// spawned is its process.
func (d *nodeDaemon) spawned(no int) {
	d.lifeNo = no
	d.to(started)
	d.n.w.log("%s: %s is started, life %d", d.n.Name(), d.n.program(), no)
}

// end is that its life is to end, or its start. What is waited for of it is not waited for any more.
func (d *nodeDaemon) end() {
	d.expected = 0
	if d.phase == starting {
		d.to(aborted)
	} else {
		d.to(ending)
	}
}

// kill is SIGKILL.
func (d *nodeDaemon) kill() {
	n, w := d.n, d.n.w
	if !d.Lives() {
		return
	}
	d.end()
	if d.life != nil && !n.rebooting { // a reboot removes the records: it does not matter how far they were written
		w.witness.Torn(d.life.Life)
	}
	n.tell(n.program() + " is killed")
	if n.unmanned() && d.phase == ending {
		d.died()
	} else if err := n.box.SignalDaemon(syscall.SIGKILL); err != nil && d.life != nil { // before, there may be no process
		w.fail(err)
	}
}

// Restart is SIGTERM: the daemon answers what waits, and ends.
func (d *nodeDaemon) Restart() {
	if !d.Runs() {
		return
	}
	d.end()
	d.n.tell(d.n.program() + " is told to end")
	d.n.w.fail(d.n.w.keeper.stop(d.n))
}

// Kill strikes when the process has ended.
func (d *nodeDaemon) Kill(id int, _ string) verb.Strike {
	d.enders = append(d.enders, id)
	d.kill()
	return verb.Wait("the daemon's process did not end")
}

func (d *nodeDaemon) Start() { d.n.w.at(d.n.w.now(), d.start) }

// exit is the end of its process.
func (d *nodeDaemon) exit(e *node.Event) {
	n := d.n
	n.w.log("%s: %s ended: %s", n.Name(), n.program(), e.Exit)
	if !d.dying() { // died says who wanted that, once its recording has been read
		d.unasked = e
	}
	d.to(exited)
	n.w.keeper.ended(n)
}

// died: the process is gone and its recording has been read, so nothing more is heard of it.
func (d *nodeDaemon) died() {
	n, w := d.n, d.n.w
	if n.Gone {
		return
	}
	for _, id := range d.enders {
		w.Met(id, "the daemon dies")
	}
	d.enders = nil
	if d.unasked != nil {
		d.explainEnd(d.unasked)
		d.unasked = nil
	}
	if d.life != nil {
		w.witness.Died(n.No)
		if !w.parts.WithoutBooks {
			n.mirror.crashed(d.life.Plans())
			n.explain()
		}
	}
	n.was = nil
	d.to(absent)
	d.life, d.report, d.held = nil, nil, 0
	n.Changed = true
	d.leave()
	if n.rebooting {
		n.rebooted()
		return
	}
	if !n.Down {
		w.after(w.keeper.pause(n), d.start)
	}
}

// keep counts a request of this life as held back until release.
func (d *nodeDaemon) keep() (release func()) {
	life := d.lifeNo
	d.held++
	return func() {
		if d.lifeNo == life {
			d.held--
			d.n.stirs()
		}
	}
}

// leave gives up its seat at the clock.
func (d *nodeDaemon) leave() {
	if d.seat != nil {
		_ = d.seat.Close()
		d.seat = nil
	}
}

// lost: the machine is terminated, and its daemon with it.
func (d *nodeDaemon) lost() {
	d.phase = absent
	if d.life != nil {
		d.n.w.witness.Died(d.n.No)
		d.n.w.witness.Torn(d.life.Life)
		d.life = nil
	}
}

// steps are those of the daemon that runs.
func (d *nodeDaemon) steps() uint64 {
	if d.life == nil {
		return 0
	}
	return d.life.Steps()
}

// witness is the daemon that runs; nil is none.
func (d *nodeDaemon) witness() *judge.Life {
	if d.life == nil {
		return nil
	}
	return d.life.Life
}

// explainEnd says of a daemon that this laboratory did not end whether a user did (enilab netns exec node-1 -- pkill
// ipamd), which is chaos like any other, or whether it ended by itself, which no daemon may.
func (d *nodeDaemon) explainEnd(e *node.Event) {
	n, w := d.n, d.n.w
	byHand := strings.HasPrefix(e.Exit, "signal: ") || e.Code == 0 && d.witness() != nil && d.life.Stopped()
	if n.system != nil { // it has no recording, and a program that is wrong may end by a signal of its own
		byHand = e.Exit == "signal: killed" || e.Exit == "signal: terminated"
	}
	if d.life != nil {
		w.witness.Torn(d.life.Life)
	}
	if byHand {
		w.byHand = true
		n.tell("somebody ended " + n.program() + ": " + e.Exit)
		return
	}
	said := d.lastSaid()
	d.failures++
	text := fmt.Sprintf("%s ended by itself: %s; it said %q", n.program(), e.Exit, said)
	switch {
	case w.Epoch() == 0 && n.system != nil: // it has its bound to serve, and is started again until then
		w.log("%s: %s", n.Name(), text)
		return
	case w.Epoch() == 0:
		w.fail(fmt.Errorf("%s: ipamd ended by itself: %s; %s", n.Name(), e.Exit, d.lastWords()))
		return
	}
	n.tell(text)
	w.findings.crashed(w.Now(), n.Name()+"'s "+text)
}

// lastSaid is what the daemon's last words come to.
func (d *nodeDaemon) lastSaid() string { return d.tokenless.and(firstOf(d.lastWords())) }

// lastWords is the end of what the daemon printed.
func (d *nodeDaemon) lastWords() string {
	n := d.n
	out, err := n.box.ReadFile(node.Output)
	if err != nil {
		return err.Error()
	}
	if older, err := n.box.ReadFile(node.OlderOutput); err == nil && len(out) < lastBytes {
		out = append(older, out...)
	}
	if n.system != nil && n.system.Daemon != nil && n.system.Daemon.Log != "" {
		if log, err := n.box.ReadFile(n.system.Daemon.Log); err == nil {
			out = append(out, log...)
		}
	}
	return string(out[max(0, len(out)-lastBytes):])
}

// firstOf is the line of a process's last words that says why it ended: a panic's message, or else the last line.
func firstOf(words string) string {
	lines := strings.Split(strings.TrimSpace(words), "\n")
	for _, l := range slices.Backward(lines) {
		if strings.HasPrefix(l, "panic: ") || strings.HasPrefix(l, "fatal error: ") {
			return l
		}
	}
	return lines[len(lines)-1]
}

// lastBytes are enough for a panic and its stack.
const lastBytes = 16 << 10

// unserved is a daemon that has not served within its bound (I16). Before t=0 nothing more is waited for.
func (n *instance) unserved(within time.Duration, said string) {
	w := n.w
	n.tell(n.program() + " does not serve: " + said)
	w.Auditor.Unserved(w.now(), int(n.No), within, said)
	w.doomed = w.doomed || !w.begun
}

// debut is what came of a node's ADDs before its first pod started.
type debut struct {
	made   bool // a pod has started
	failed int
	since  time.Duration // the first failure, in the world's time
	said   string        // the plugin's last answer
}

// A system of which no ADD has succeeded for debutBound since the first one failed starts no pod: what it waits for, such as an interface that EC2
// attaches, takes a quarter of that. A bound of its own, for the warm-up's is made for clusters that are large.
const (
	debutBound  = 2 * time.Minute
	debutFailed = 3
)

func (d *debut) added(now time.Duration, e *node.Event) {
	switch {
	case e.Code == 0:
		d.made = true
	case !d.made:
		if d.failed++; d.failed == 1 {
			d.since = now
		}
		d.said = e.Text
	}
}

// hopeless says whether no pod starts.
func (d *debut) hopeless(now time.Duration) bool {
	return !d.made && d.failed >= debutFailed && now-d.since >= slowed(debutBound)
}
