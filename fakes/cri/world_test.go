package cri

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// answer is an input that the test's world has yet to give.
type answer struct {
	at time.Duration
	in Input
}

// world does what a node says, takes 50 ms for each plugin run, and writes down the story.
type world struct {
	t       *testing.T
	n       *Node
	now     time.Duration
	inode   uint64
	pending []answer
	story   []string
	names   map[string]string // container ID to c1, c2, …
	fail    []*PluginError    // what the next plugin runs answer; nil is success
	mute    bool              // plugins never answer
	steps   int
	runs    []Action
	gone    []Action
}

func newWorld(t *testing.T, cfg Config) *world {
	cfg.PauseStartMin, cfg.PauseStartMax = 100*time.Millisecond, 100*time.Millisecond
	cfg.ContainerEndMin, cfg.ContainerEndMax = 2*time.Second, 2*time.Second
	w := &world{t: t, n: New(cfg, 7), names: map[string]string{}}
	w.n.gcPhase = 0 // minutes are round
	return w
}

func (w *world) short(cid string) string {
	if _, ok := w.names[cid]; !ok {
		w.names[cid] = fmt.Sprintf("c%d", len(w.names)+1)
	}
	return w.names[cid]
}

func (w *world) step(in *Input) {
	w.t.Helper()
	w.steps++
	for _, a := range w.n.Step(w.now, in) {
		w.do(a)
	}
}

func (w *world) later(d time.Duration, in Input) {
	at := w.now + d
	i := len(w.pending)
	for i > 0 && w.pending[i-1].at > at {
		i--
	}
	w.pending = slices.Insert(w.pending, i, answer{at, in})
}

func (w *world) do(a Action) {
	line := a.Kind.String()
	switch a.Kind {
	case MakeNetns:
		line += " " + w.short(a.ContainerID)
		w.inode++
		w.later(0, Input{Kind: NetnsMade, Sandbox: a.Sandbox, Inode: w.inode})
	case RunPlugin:
		line = fmt.Sprintf("%v %s netns=%d", a.Verb, w.short(a.ContainerID), a.Netns)
		w.runs = append(w.runs, a)
		w.reply(a)
	case KillPlugin:
		line += " " + w.short(a.ContainerID)
	case RemoveNetns, HoldNetns, ReleaseNetns:
		line += fmt.Sprintf(" %d", a.Inode)
	case PodStarted:
		line += " " + a.UID + " " + w.short(a.ContainerID)
		if a.Address.IsValid() {
			line += " " + a.Address.String()
		}
	case SandboxGone:
		line += " " + w.short(a.ContainerID)
		if a.Lost {
			line += " lost"
		}
		w.gone = append(w.gone, a)
	default:
		line += " " + a.UID
	}
	w.story = append(w.story, fmt.Sprintf("%v %s", w.now.Round(time.Millisecond), line))
}

func (w *world) reply(a Action) {
	if w.mute {
		return
	}
	var err *PluginError
	if len(w.fail) > 0 {
		err, w.fail = w.fail[0], w.fail[1:]
	}
	in := Input{Kind: PluginDone, Op: a.Op, Err: err}
	if a.Verb == ADD && err == nil {
		in.Address = netip.AddrFrom4([4]byte{10, 0, 10, byte(a.Netns)})
	}
	w.later(50*time.Millisecond, in)
}

// until plays all that happens up to and including the instant.
func (w *world) until(at time.Duration) {
	w.t.Helper()
	for turns := 0; ; turns++ {
		if turns > 1_000_000 {
			w.t.Fatalf("time stands still at %v", w.now)
		}
		next, ok := w.n.Next()
		if len(w.pending) > 0 && (!ok || w.pending[0].at <= next) {
			p := w.pending[0]
			if p.at > at {
				break
			}
			w.pending = w.pending[1:]
			w.now = p.at
			w.step(&p.in)
			continue
		}
		if !ok || next > at {
			break
		}
		w.now = max(w.now, next)
		w.step(nil)
	}
	w.now = at
}

func (w *world) input(in Input) { w.t.Helper(); w.until(w.now); w.step(&in) }

func (w *world) bind(uid, name string) {
	w.t.Helper()
	w.input(Input{Kind: PodBound, UID: uid, Namespace: "default", Name: name})
}

// tell compares the story since the last tell.
func (w *world) tell(want string) {
	w.t.Helper()
	var lines []string
	for l := range strings.Lines(want) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	if !slices.Equal(w.story, lines) {
		w.t.Errorf("the story differs\n--- got\n%s\n--- want\n%s", strings.Join(w.story, "\n"), strings.Join(lines, "\n"))
	}
	w.story = nil
}

// dels are the CNI_NETNS of the DELs of one sandbox.
func (w *world) dels(name string) (netns []uint64) {
	for _, a := range w.runs {
		if a.Verb == DEL && w.short(a.ContainerID) == name {
			netns = append(netns, a.Netns)
		}
	}
	return netns
}

// settled checks that nothing is left.
func (w *world) settled() {
	w.t.Helper()
	if c := w.n.Counts(); c.Pods != 0 || c.Sandboxes != 1 || c.Ops != 0 || c.Ready != 0 {
		w.t.Errorf("not settled: %+v, expected the daemon's sandbox alone", c)
	}
	for s := range w.n.Sandboxes() {
		w.t.Errorf("left over: %+v", s)
	}
	if at, ok := w.n.Next(); ok && at > w.now+w.n.cfg.GCPeriod {
		w.t.Errorf("still waits for %v", at)
	}
}
