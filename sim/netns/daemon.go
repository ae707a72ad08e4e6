package netns

import (
	"bufio"
	"context"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/actions"
	"github.com/enilab/enilab/sim/netns/node"
)

// spec is what the node's helper is told.
func (w *World) spec(n *instance) node.Spec {
	argv := []string{w.parts.Ipamd}
	if w.mutant != nil {
		argv = append(slices.Clone(w.parts.Play), w.mutant.Name)
	}
	files := map[string]string{ipamdPath: w.parts.Ipamd}
	maps.Copy(files, w.parts.Files)
	return node.Spec{Name: n.Name(), Self: w.parts.Self, Daemon: argv, Plugin: w.parts.Plugin, Capabilities: w.parts.Capabilities,
		Conflist: n.conflist(), Files: files, Slowness: slowness()}
}

// ipamdPath is where a node has the daemon's binary for its init step.
const ipamdPath = "/opt/enilab/ipamd"

// conflist is the network configuration for a plugin of the node's version.
func (n *instance) conflist() []byte {
	return conflist.Make(conflist.Options{VethPrefix: n.Settings.VethPrefix, MTU: n.Settings.MTU, LocalProtocol: n.Plugin})
}

// environment is the daemon's: the cluster's name, the node's settings by their upstream names, and where it finds everybody.
func (n *instance) environment(cluster string) map[string]string {
	env := actions.Environment(&n.Settings)
	maps.Copy(env, map[string]string{
		"CLUSTER_NAME":          cluster,
		"MY_NODE_NAME":          n.Name(),
		"MY_POD_NAME":           n.self,
		"MY_POD_NAMESPACE":      "kube-system",
		"AWS_REGION":            "us-west-2",
		"AWS_ENDPOINT_URL_EC2":  "http://" + ec2Addr,
		"CLUSTER_ENDPOINT":      "http://" + kubeAddr,
		"ENILAB_RUNTIME_SOCKET": criSocket,
		"HOST_CNI_BIN_PATH":     "none", // the plugin is mounted, and the conflist says the version that it plays
		"HOST_CNI_CONFDIR_PATH": "none",
	})
	return env
}

// startDaemon begins a life: a sandbox for its pod, the init step, then the daemon itself.
func (w *World) startDaemon(n *instance) {
	if n.Down {
		w.KeptDown(&n.Node)
	}
	if n.Gone || n.Down || n.life != nil || n.starting || n.dying {
		return
	}
	_, n.self = w.NewDaemon(&n.Node)
	n.Starts++
	n.starting = true
	env := n.environment(w.Cluster.Name)
	go func() {
		ctx, cancel := context.WithTimeout(w.ctx, slowed(initLimit))
		defer cancel()
		out, code, err := n.box.Exec(ctx, initArgs(env))
		w.post(func() {
			if err == nil && code == signalled && !n.dying { // by somebody's hand: kubelet starts it again, as any container
				w.byHand = true
				w.tell(n, "somebody killed ipamd init")
				n.exited, n.read = true, true
				w.died(n)
				return
			}
			if (err != nil || code != 0) && !n.Gone && !n.dying {
				w.fail(fmt.Errorf("%s: ipamd init: exit code %d, %v: %s", n.Name(), code, err, out))
				return
			}
			n.mirror.init(n)
			w.spawn(n, env)
		})
	}()
}

const (
	// initLimit is how long the init step may take: a hundred times what it takes.
	initLimit = time.Minute
	// signalled is the exit code of a process that a signal ended.
	signalled = -1
)

func initArgs(env map[string]string) []string {
	argv := []string{"env"}
	for k, v := range env {
		argv = append(argv, k+"="+v)
	}
	return append(argv, ipamdPath, "init")
}

func (w *World) spawn(n *instance, env map[string]string) {
	if n.Gone {
		return
	}
	if n.dying { // it was killed before there was a process
		n.exited, n.read = true, true
		w.died(n)
		return
	}
	n.reported, n.exited, n.read, n.held = false, false, false, 0
	args := []string{"--clock", "unix:" + clockSocket, "--record-version", strconv.Itoa(n.Version), "--booted", n.booted.String()}
	if !w.parts.WithoutBooks {
		args = append(args, "--record", "unix:"+recordSocket)
	}
	no, err := n.box.StartDaemon(args, env)
	if err != nil {
		w.fail(err)
		return
	}
	n.lifeNo, n.process = no, true
	w.log("%s: ipamd is started, life %d", n.Name(), no)
}

// takeClock is a daemon that asks for the time.
func (w *World) takeClock(n *instance, conn net.Conn) {
	var seat *clock.Seat
	w.ask(func() {
		s, err := clock.NewSeat(conn, w.clock.offset)
		if err != nil {
			return
		}
		if n.seat != nil {
			_ = n.seat.Close()
		}
		n.seat, seat = s, s
	})
	if seat != nil {
		go w.followClock(n, seat)
	}
}

// followClock takes a daemon's reports to their end.
func (w *World) followClock(n *instance, seat *clock.Seat) {
	for {
		r, err := seat.Read()
		if err != nil {
			return
		}
		w.post(func() {
			if n.seat == seat { // else it is the word of a daemon that has died since
				n.report, n.reported = r, true
				w.waits(n)
			}
		})
	}
}

// fence is what the laboratory itself writes to the socket of recordings once a daemon has ended: connections are taken in their order,
// so when it arrives all that the dead one had to tell has been read, also what still waited to be accepted.
const fence = "fence\n"

// fenceRecording lets recordEnded follow when a dead daemon's recording has been read to its end.
func (w *World) fenceRecording(n *instance) {
	conn, err := net.Dial("unix", n.box.Root()+recordSocket)
	if err == nil {
		_, err = conn.Write([]byte(fence))
		conn.Close()
	}
	if err != nil {
		w.post(func() { w.fail(fmt.Errorf("%s: end its recording: %w", n.Name(), err)) })
	}
}

// takeRecording follows a daemon's flight recorder to its end.
func (w *World) takeRecording(n *instance, conn net.Conn) {
	defer conn.Close()
	var no int
	w.ask(func() { no = n.lifeNo }) // of the daemon that connects: what it tells late is no word of the next one
	r := bufio.NewReaderSize(conn, 1<<16)
	for first := true; ; first = false {
		line, err := r.ReadBytes('\n')
		if err != nil {
			w.post(func() { n.hangsUp(no) })
			return
		}
		text := line[:len(line)-1]
		switch {
		case first && string(line) == fence:
			w.post(func() { w.recordEnded(n) })
		case first:
			w.post(func() { w.recordedHeader(n, no, text) })
		default:
			w.post(func() { w.recorded(n, no, text) })
		}
	}
}

// hangsUp: a life has no more to tell.
func (n *instance) hangsUp(no int) {
	if n.life != nil && n.life.no == no {
		n.life.ended = true
	}
}

func (w *World) recordEnded(n *instance) {
	n.read = true
	w.died(n)
}

// kill is SIGKILL.
func (w *World) kill(n *instance) {
	if n.life == nil && !n.starting || n.dying {
		return
	}
	n.dying = true
	if n.life != nil && !n.rebooting { // a reboot takes the records along: nobody asks how far they were written
		w.witness.Torn(n.life.Life)
	}
	w.tell(n, "ipamd is killed")
	if err := n.box.SignalDaemon(syscall.SIGKILL); err != nil && n.life != nil && !n.exited { // while it starts there may be no process yet: spawn sees that it dies
		w.fail(err)
	}
}

// term is SIGTERM: the daemon answers what waits, and ends.
func (w *World) term(n *instance) {
	if n.life == nil || n.dying {
		return
	}
	n.dying = true
	w.tell(n, "ipamd is told to end")
	w.fail(n.box.SignalDaemon(syscall.SIGTERM))
}

func (w *World) daemonExited(n *instance, e *node.Event) {
	w.log("%s: ipamd ended: %s", n.Name(), e.Exit)
	n.exited, n.process = true, false
	go w.fenceRecording(n)
	if !n.dying { // died says who wanted that, once its recording has been read
		n.dying, n.unasked = true, e
	}
}

// explainEnd says of a daemon that this laboratory did not end whether somebody else did (enilab netns exec node-1 -- pkill ipamd), which is
// chaos like any other, or whether it ended by itself, which no daemon may.
func (w *World) explainEnd(n *instance, e *node.Event) {
	byHand := strings.HasPrefix(e.Exit, "signal: ") || e.Code == 0 && n.witness() != nil && n.life.Stopped()
	if n.life != nil {
		w.witness.Torn(n.life.Life)
	}
	if byHand {
		w.byHand = true
		w.tell(n, "somebody ended ipamd: "+e.Exit)
		return
	}
	words := n.lastWords()
	if w.Epoch() == 0 {
		w.fail(fmt.Errorf("%s: ipamd ended by itself: %s; %s", n.Name(), e.Exit, words))
		return
	}
	text := fmt.Sprintf("ipamd ended by itself: %s; it said %q", e.Exit, firstOf(words))
	w.tell(n, text)
	if len(w.crashes) < maxCrashes {
		w.crashes = append(w.crashes, sim.Failure{At: w.Now(), Text: n.Name() + "'s " + text})
	}
}

// maxCrashes bounds what is told of a daemon that ends again and again: the first ones say it all.
const maxCrashes = 10

// Crashes are the daemons that ended by themselves since t=0.
func (w *World) Crashes() []sim.Failure { return w.crashes }

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

// lastWords is the end of what the daemon printed.
func (n *instance) lastWords() string {
	out, err := n.box.ReadFile(node.Output)
	if err != nil {
		return err.Error()
	}
	return string(out[max(0, len(out)-lastBytes):])
}

// died: the process is gone and its recording has been read, so nothing more is heard of it.
func (w *World) died(n *instance) {
	if !n.exited || !n.read || n.Gone {
		return
	}
	for _, id := range n.enders {
		w.Met(id, "the daemon dies")
	}
	n.enders = nil
	if n.unasked != nil {
		w.explainEnd(n, n.unasked)
		n.unasked = nil
	}
	if n.life != nil {
		w.witness.Died(n.No)
		if !w.parts.WithoutBooks {
			n.mirror.crashed(n.life)
			w.explain(n)
		}
	}
	n.life, n.starting, n.dying, n.exited, n.read, n.reported, n.held = nil, false, false, false, false, false, 0
	n.Dirty = true
	if n.seat != nil {
		_ = n.seat.Close()
		n.seat = nil
	}
	if n.rebooting {
		w.rebooted(n)
		return
	}
	if !n.Down {
		w.after(n.pause, func() { w.startDaemon(n) })
	}
}
