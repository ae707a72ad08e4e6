package calls_test

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/cri"

	"github.com/enilab/enilab/e2e/calls"
	"github.com/enilab/enilab/internal/must"
)

// node plays the runtime's world for fakes/cri: it answers plugins, with a life's faults, and writes down what was called.
type node struct {
	t       *testing.T
	cri     *cri.Node
	now     time.Duration
	inode   uint64
	pending []answer
	faults  []fault
	at      map[cri.OpID]int // index in runs
	runs    []calls.Call
	running map[string]bool // by UID
	gone    map[string]bool
	boxes   int // sandboxes of pods that the runtime has not forgotten
}

type answer struct {
	at time.Duration
	in cri.Input
}

// fault happens to the next runs with a verb: they fail, or their answer is late.
type fault struct {
	verb  cri.Verb
	times int
	err   *cri.PluginError
	stall time.Duration
}

var later = &cri.PluginError{Code: 11, Msg: "try again later"}

func newNode(t *testing.T, seed uint64) *node {
	return &node{
		t: t, cri: cri.New(cri.Config{Runtime: cri.Containerd21}, seed),
		at: map[cri.OpID]int{}, running: map[string]bool{}, gone: map[string]bool{},
	}
}

func (n *node) step(in *cri.Input) {
	for _, a := range slices.Clone(n.cri.Step(n.now, in)) {
		n.do(a)
	}
}

func (n *node) later(d time.Duration, in cri.Input) {
	n.pending = append(n.pending, answer{n.now + d, in})
	slices.SortStableFunc(n.pending, func(a, b answer) int { return int(a.at - b.at) })
}

func (n *node) do(a cri.Action) {
	switch a.Kind {
	case cri.MakeNetns:
		n.inode++
		n.boxes++
		n.later(time.Millisecond, cri.Input{Kind: cri.NetnsMade, Sandbox: a.Sandbox, Inode: n.inode})
	case cri.RunPlugin:
		n.plugin(a)
	case cri.KillPlugin:
		n.pending = slices.DeleteFunc(n.pending, func(p answer) bool { return p.in.Op == a.Op })
	case cri.PodStarted:
		n.running[a.UID] = true
	case cri.PodStopped:
		n.running[a.UID] = false
	case cri.PodGone:
		n.gone[a.UID] = true
	case cri.SandboxGone:
		n.boxes--
	}
}

func (n *node) plugin(a cri.Action) {
	r := calls.Call{
		Verb: a.Verb.String(), Namespace: a.Namespace, Pod: a.Name, UID: a.UID, ContainerID: a.ContainerID, IfName: a.IfName,
		Began: time.Unix(0, int64(n.now)),
	}
	if a.Netns != 0 {
		r.Netns = calls.Mounted
	}
	n.at[a.Op] = len(n.runs)
	n.runs = append(n.runs, r)
	in, took := cri.Input{Kind: cri.PluginDone, Op: a.Op, Address: netip.AddrFrom4([4]byte{10, 244, 0, byte(a.Netns)})}, 20*time.Millisecond
	for i := range n.faults {
		if f := &n.faults[i]; f.verb == a.Verb && f.times > 0 {
			f.times--
			in.Err = f.err
			took += f.stall
			break
		}
	}
	n.later(took, in)
}

// next plays the next thing that is due; false when nothing is.
func (n *node) next() bool {
	at, ok := n.cri.Next()
	if len(n.pending) > 0 && (!ok || n.pending[0].at <= at) {
		p := n.pending[0]
		n.pending = n.pending[1:]
		n.now = max(n.now, p.at)
		if i, run := n.at[p.in.Op]; run && p.in.Kind == cri.PluginDone {
			n.runs[i].Ended = time.Unix(0, int64(n.now))
			if e := p.in.Err; e != nil {
				n.runs[i].Failed, n.runs[i].Code = true, e.Code
			}
		}
		n.step(&p.in)
		return true
	}
	if ok {
		n.now = max(n.now, at)
		n.step(nil)
	}
	return ok
}

// until plays on to a condition.
func (n *node) until(what string, done func() bool) {
	n.t.Helper()
	for limit := n.now + 10*time.Minute; !done(); {
		if n.now > limit || !n.next() {
			n.t.Fatalf("waited from %v to %v for %s; calls so far:\n%s", limit-10*time.Minute, n.now, what, calls.Text(n.runs))
		}
	}
}

// wait lets time pass.
func (n *node) wait(d time.Duration) {
	for end := n.now + d; ; {
		at, ok := n.cri.Next()
		if ok && at <= end || len(n.pending) > 0 && n.pending[0].at <= end {
			n.next()
			continue
		}
		n.now = end
		return
	}
}

func (n *node) bind(uid, name string) {
	n.step(&cri.Input{Kind: cri.PodBound, UID: uid, Namespace: "default", Name: name})
}

func (n *node) awaitRunning(uid string) {
	n.until("pod "+uid+" to run", func() bool { return n.running[uid] })
}

func (n *node) delete(uid string) { n.step(&cri.Input{Kind: cri.PodDeleted, UID: uid}) }

func (n *node) remove(uid string) {
	n.delete(uid)
	n.until("pod "+uid+" to go", func() bool { return n.gone[uid] })
}

// called waits until a verb has begun a number of times.
func (n *node) called(verb string, times int) {
	n.until(fmt.Sprintf("%s number %d", verb, times), func() bool {
		found := 0
		for _, r := range n.runs {
			if r.Verb == verb {
				found++
			}
		}
		return found >= times
	})
}

// life is the same as Record does with a cluster.
func (n *node) life(faults ...fault) {
	n.faults = faults
	n.bind("a", "web-0")
	n.awaitRunning("a")
	n.wait(time.Second)
	n.remove("a")
}

// inADD and inDEL are restarts in the middle of a call that takes 20 s.
func (n *node) inADD(in cri.Input) {
	n.faults = []fault{{verb: cri.ADD, times: 1, stall: 20 * time.Second}}
	n.bind("a", "web-0")
	n.called("ADD", 1)
	n.wait(500 * time.Millisecond)
	n.step(&in)
	n.awaitRunning("a")
	n.wait(time.Second)
	n.remove("a")
}

func (n *node) inDEL(in cri.Input) {
	n.faults = []fault{{verb: cri.DEL, times: 1, stall: 20 * time.Second}}
	n.bind("a", "web-0")
	n.awaitRunning("a")
	n.wait(time.Second)
	n.delete("a")
	n.called("DEL", 1)
	n.wait(500 * time.Millisecond)
	n.step(&in)
	n.until("pod a to go", func() bool { return n.gone["a"] })
}

func (n *node) reboot(faults ...fault) {
	n.bind("a", "web-0")
	n.awaitRunning("a")
	n.wait(time.Second)
	n.faults = faults
	n.running["a"] = false
	n.step(&cri.Input{Kind: cri.Reboot})
	n.awaitRunning("a")
	n.wait(time.Second)
	n.remove("a")
}

// roll is what a StatefulSet's controller does: the last one first, and a new one when the old one has gone.
func (n *node) roll() {
	n.bind("a0", "web-0")
	n.awaitRunning("a0")
	n.bind("a1", "web-1")
	n.awaitRunning("a1")
	n.wait(time.Second)
	for _, p := range []struct{ old, fresh, name string }{{"a1", "b1", "web-1"}, {"a0", "b0", "web-0"}} {
		n.remove(p.old)
		n.bind(p.fresh, p.name)
		n.awaitRunning(p.fresh)
	}
	n.wait(time.Second)
	n.delete("b0")
	n.remove("b1")
	n.until("pod b0 to go", func() bool { return n.gone["b0"] })
}

var modelLives = map[string]func(*node){
	"pod":       func(n *node) { n.life() },
	"add-fails": func(n *node) { n.life(fault{verb: cri.ADD, times: 3, err: later}) },
	"add-and-del-fail": func(n *node) {
		n.life(fault{verb: cri.ADD, times: 1, err: later}, fault{verb: cri.DEL, times: 1, err: later})
	},
	"del-fails":     func(n *node) { n.life(fault{verb: cri.DEL, times: 2, err: later}) },
	"image-missing": func(n *node) { n.life() }, // of which the plugin hears nothing
	"delete-in-add": func(n *node) {
		n.faults = []fault{{verb: cri.ADD, times: 1, stall: time.Minute}}
		n.bind("a", "web-0")
		n.called("ADD", 1)
		n.remove("a")
	},
	"force-delete": func(n *node) {
		n.bind("a", "web-0")
		n.awaitRunning("a")
		n.step(&cri.Input{Kind: cri.PodForceRemoved, UID: "a"})
		n.bind("b", "web-0")
		n.awaitRunning("b")
		n.called("DEL", 1)
		n.remove("b")
	},
	"statefulset-roll":       (*node).roll,
	"runtime-restart-in-add": func(n *node) { n.inADD(cri.Input{Kind: cri.RestartRuntime, Graceful: true}) },
	"runtime-crash-in-add":   func(n *node) { n.inADD(cri.Input{Kind: cri.RestartRuntime}) },
	"kubelet-restart-in-add": func(n *node) { n.inADD(cri.Input{Kind: cri.RestartKubelet}) },
	"runtime-restart-in-del": func(n *node) { n.inDEL(cri.Input{Kind: cri.RestartRuntime, Graceful: true}) },
	"runtime-crash-in-del":   func(n *node) { n.inDEL(cri.Input{Kind: cri.RestartRuntime}) },
	"kubelet-restart-in-del": func(n *node) { n.inDEL(cri.Input{Kind: cri.RestartKubelet}) },
	"node-restart":           func(n *node) { n.reboot() },
	"node-restart-add-fails": func(n *node) { n.reboot(fault{verb: cri.ADD, times: 2, err: later}) },
	"add-deadline":           func(n *node) { n.life(fault{verb: cri.ADD, times: 1, stall: 10 * time.Minute}) },
}

// recordings are those of testdata, by the name of their life. There are several of a life in which chance decides.
func recordings(t *testing.T) map[string][][]calls.Call {
	t.Helper()
	files := must.Get(filepath.Glob("testdata/*.jsonl"))(t)
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(len(a)-len(b), strings.Compare(a, b)) })
	found := map[string][][]calls.Call{}
	for _, f := range files {
		raw := must.Get(os.ReadFile(f))(t)
		runs, err := calls.Read(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		life, _, _ := strings.Cut(filepath.Base(f), ".")
		found[life] = append(found[life], runs)
	}
	return found
}

// TestModelCallsAsRecorded holds fakes/cri to what kubelet 1.34.2 and containerd 2.1.5 did: whatever chance decides in the model was
// recorded, and what was recorded can happen in the model.
func TestModelCallsAsRecorded(t *testing.T) {
	found := recordings(t)
	for life, play := range modelLives {
		t.Run(life, func(t *testing.T) {
			var want []string
			for _, runs := range found[life] {
				want = append(want, calls.Text(calls.Bare(runs)))
			}
			if len(want) == 0 {
				t.Fatalf("nobody has recorded it: go run ./e2e/calls/record -lives '^%s$'", life)
			}
			seen := make([]bool, len(want))
			for seed := range uint64(50) {
				n := newNode(t, seed)
				play(n)
				n.until("the runtime to forget every sandbox", func() bool { return n.boxes == 0 })
				n.wait(time.Minute)
				i := slices.Index(want, calls.Text(n.runs))
				if i < 0 {
					t.Fatalf("seed %d: fakes/cri (+) does not call what was recorded (-):\n%s", seed, calls.Compare(want[0], calls.Text(n.runs)))
				}
				seen[i] = true
			}
			for i, s := range seen {
				if !s {
					t.Errorf("fakes/cri never does what was also recorded:\n%s", want[i])
				}
			}
		})
	}
}

// TestEveryLifeIsRecorded: lives, recordings and lives of the model are the same.
func TestEveryLifeIsRecorded(t *testing.T) {
	found := recordings(t)
	for life := range found {
		if modelLives[life] == nil {
			t.Errorf("%s was recorded, and the model does not live it", life)
		}
	}
	for _, l := range calls.Lives() {
		if len(found[l.Name]) == 0 || modelLives[l.Name] == nil {
			t.Errorf("life %s: recorded %d times, in the model: %v", l.Name, len(found[l.Name]), modelLives[l.Name] != nil)
		}
	}
	if len(modelLives) != len(calls.Lives()) {
		t.Errorf("the model has %d lives, and there are %d", len(modelLives), len(calls.Lives()))
	}
}

// TestGolden: the golden texts are those of the recordings.
func TestGolden(t *testing.T) {
	for life, all := range recordings(t) {
		goldens := calls.Goldens(life)
		if len(goldens) != len(all) {
			t.Errorf("%s: %d golden files for %d recordings", life, len(goldens), len(all))
			continue
		}
		for i, runs := range all {
			if d := calls.Compare(goldens[i], calls.Text(runs)); d != "" {
				t.Errorf("%s: recording %d (+) is not told as in its golden file (-):\n%s", life, i+1, d)
			}
			if d := calls.Differs(life, calls.Text(runs)); d != "" {
				t.Errorf("%s: recording %d is none of its golden texts:\n%s", life, i+1, d)
			}
		}
	}
	if d := calls.Differs("pod", calls.Goldens("add-fails")[0]); !strings.Contains(d, "+     ADD eth0 netns 1.1.0: error 11") {
		t.Errorf("another life's text differs by %q", d)
	}
	if d := calls.Differs("nobody's", ""); !strings.Contains(d, "never recorded") {
		t.Errorf("an unknown life: %q", d)
	}
}

// TestDistances holds the model's times to the recorded ones.
func TestDistances(t *testing.T) {
	found := recordings(t)
	c := cri.New(cri.Config{Runtime: cri.Containerd21}, 1).Config()
	const slack = 3 * time.Second // of a machine with something else to do
	for _, d := range []struct {
		life, says string
		from, to   int // calls of the life
		lo, hi     time.Duration
	}{
		{"add-fails", "an ADD after the DEL of one that failed", 1, 2, c.RetryBackoff, c.RetryBackoff * 3 / 2},
		{"add-fails", "and the next", 3, 4, c.RetryBackoff, c.RetryBackoff * 3 / 2},
		{"add-and-del-fail", "an ADD after one that failed with its DEL", 1, 2, c.RetryBackoff, c.RetryBackoff * 3 / 2},
		{"add-deadline", "the DEL after kubelet's deadline", 0, 1, c.SandboxTimeout, c.SandboxTimeout},
		{"add-deadline", "an ADD after the deadline's DEL", 1, 2, c.RetryBackoff, c.RetryBackoff * 3 / 2},
		{"del-fails", "a DEL after the first that failed", 1, 2, 0, c.RelistPeriod},
		{"del-fails", "a DEL after the second that failed", 2, 3, c.RetryBackoff, c.RetryBackoff * 3 / 2},
		{"pod", "the first DEL of evictSandboxes", 1, 2, 0, c.GCPeriod},
		{"pod", "the DEL of RemovePodSandbox", 2, 3, 0, 0},
		{"kubelet-restart-in-del", "evictSandboxes after kubelet's restart", 1, 3, c.GCPeriod - slack, c.GCPeriod + c.KubeletRestart},
		{"force-delete", "the DEL after a force delete", 1, 2, 2*time.Second - slack/2, 2*time.Second + c.RelistPeriod},
	} {
		runs := calls.Of(found[d.life][0], "life-"+d.life)
		if got := runs[d.to].Began.Sub(runs[d.from].Began); got < d.lo-slack/10 || got > d.hi+slack {
			t.Errorf("%s: %s: after %v, and the model has %v to %v", d.life, d.says, got, d.lo, d.hi)
		}
	}
}

// TestStatusIsPolled: kubelet asks for the runtime's status every 5 s, and the runtime its plugins.
func TestStatusIsPolled(t *testing.T) {
	for life, all := range recordings(t) {
		got := calls.Polls(all[0])
		if !strings.HasPrefix(got, "STATUS 1.1.0: ") || !strings.Contains(got, " about 5") || strings.Count(got, "\n") != 1 {
			t.Errorf("%s: %q, expected STATUS about every 5 s and nothing else", life, got)
		}
	}
}
