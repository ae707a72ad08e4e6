package cri

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

// may says which faults a walk uses beside slow, failing and silent plugins.
type may struct{ restart, hide, chain bool }

// walker is a world that answers late, wrongly or not at all.
type walker struct {
	t       *testing.T
	n       *Node
	r       rng
	now     time.Duration
	pending []answer
	inode   uint64
	serial  int
	pods    []string
	boxes   []string // every container ID that had an ADD
	adds    map[string]int
	dels    map[string]int
	lost    map[string]bool
	calm    bool
	may     may
	log     []string
}

func (w *walker) roll(n uint64) bool { return w.r.next()%n == 0 }

func (w *walker) later(d time.Duration, in Input) {
	w.pending = append(w.pending, answer{w.now + d, in})
}

func (w *walker) do(a Action) {
	w.log = append(w.log, fmt.Sprint(w.now, a.Kind, a.Verb, a.ContainerID, a.UID, a.Inode, a.Netns, a.Op))
	switch a.Kind {
	case MakeNetns:
		w.inode++
		w.later(w.r.between(0, 20*time.Millisecond), Input{Kind: NetnsMade, Sandbox: a.Sandbox, Inode: w.inode})
	case RunPlugin:
		if len(a.ContainerID) != 64 || a.IfName != "eth0" || a.Network != "aws-cni" || a.Name == "" || a.Op == 0 {
			w.t.Fatalf("plugin run lacks something: %+v", a)
		}
		switch a.Verb {
		case ADD:
			if a.Netns == 0 {
				w.t.Fatalf("ADD without a namespace: %+v", a)
			}
			w.adds[a.ContainerID]++
			w.boxes = append(w.boxes, a.ContainerID)
		case DEL:
			w.dels[a.ContainerID]++
		}
		in := Input{Kind: PluginDone, Op: a.Op, Address: netip.AddrFrom4([4]byte{10, 0, 0, 1})}
		if !w.calm && w.roll(6) {
			in.Err = &PluginError{Code: 11, Msg: []string{"try again", "x not found", "no such file or directory"}[w.r.next()%3]}
		}
		if w.calm || !w.roll(40) {
			w.later(w.r.between(0, 300*time.Millisecond), in)
		}
	case SandboxGone:
		if a.Lost {
			w.lost[a.ContainerID] = true
		}
	}
}

func (w *walker) step(in *Input) {
	for _, a := range w.n.Step(w.now, in) {
		w.do(a)
	}
}

// turn plays the next thing that is due, no later than limit.
func (w *walker) turn(limit time.Duration) bool {
	best := -1
	for i, p := range w.pending {
		if best < 0 || p.at < w.pending[best].at {
			best = i
		}
	}
	next, ok := w.n.Next()
	if best >= 0 && (!ok || w.pending[best].at <= next) && w.pending[best].at <= limit {
		p := w.pending[best]
		w.pending = slices.Delete(w.pending, best, best+1)
		w.now = max(w.now, p.at)
		w.step(&p.in)
		return true
	}
	if !ok || next > limit {
		w.now = max(w.now, limit)
		return false
	}
	w.now = max(w.now, next)
	w.step(nil)
	return true
}

// mischief gives one random input or fault.
func (w *walker) mischief() {
	some := func(list []string) string {
		if len(list) == 0 {
			return "nobody"
		}
		back := min(uint64(len(list)), 20)
		return list[uint64(len(list))-1-w.r.next()%back]
	}
	switch k := w.r.next() % 100; {
	case k < 40:
		w.serial++
		uid := fmt.Sprint("u", w.serial)
		w.pods = append(w.pods, uid)
		w.step(&Input{Kind: PodBound, UID: uid, Namespace: "default", Name: fmt.Sprint("web-", w.serial%7), HostNetwork: w.roll(15)})
	case k < 66:
		w.step(&Input{Kind: PodDeleted, UID: some(w.pods), Grace: w.r.between(0, 40*time.Second)})
	case k < 74:
		w.step(&Input{Kind: PodForceRemoved, UID: some(w.pods)})
	case k < 77:
		w.n.Hang(w.now, some(w.pods))
	case k < 80:
		w.n.Unhang(w.now, some(w.pods))
	case k < 81 && w.may.hide:
		w.n.Hide(w.now, some(w.pods))
	case k < 84:
		w.n.ReplayDEL(w.now, some(w.boxes), w.r.between(0, time.Minute))
	case k >= 84 && k < 89 && !w.may.restart:
	case k < 86:
		w.n.CrashAt(CrashPoint(w.r.next() % 7))
	case k < 87:
		w.step(&Input{Kind: RestartRuntime, Graceful: w.roll(2)})
	case k < 88:
		w.step(&Input{Kind: RestartKubelet})
	case k == 88 && w.roll(4):
		w.step(&Input{Kind: Reboot})
	case k < 91 && w.may.chain:
		w.n.FailDELs(int(w.r.next()%4), w.r.between(0, 10*time.Second))
	case k < 93:
		w.n.BusyNetns(1)
	case k < 94:
		w.n.SetDaemonSandbox(w.now, "kube-system", "aws-node", "d")
	case k < 97: // news about nothing
		w.step(&Input{Kind: InputKind(w.r.next() % uint64(Reboot)), UID: "", Sandbox: SandboxID(w.r.next()), Op: OpID(w.r.next()), Inode: 9})
	}
}

func (w *walker) check() {
	c := w.n.Counts()
	ready := 0
	for i := range w.n.pods {
		if w.n.pods[i].ready {
			ready++
		}
	}
	if ready != c.Ready || c.Ops < 0 || c.Sandboxes < 1 {
		w.t.Fatalf("at %v: %d ready, counts %+v", w.now, ready, c)
	}
	for i, t := range w.n.timers {
		if *w.n.place(t.key) != int32(i) {
			w.t.Fatalf("timer %d of owner %d does not know its place", i, t.key)
		}
	}
	list, complete := w.n.ListSandboxes()
	daemon := !complete
	for i, s := range list {
		daemon = daemon || s.Ready && s.Namespace == "kube-system"
		if i > 0 && list[i-1].Created > s.Created {
			w.t.Fatalf("the list is not in order of creation")
		}
	}
	if !daemon {
		w.t.Fatalf("a complete list lacks the daemon's own sandbox")
	}
}

func newWalker(t *testing.T, cfg Config, seed uint64, may may) *walker {
	return &walker{
		t: t, n: New(cfg, seed), r: rng(seed), may: may,
		adds: map[string]int{}, dels: map[string]int{}, lost: map[string]bool{},
	}
}

func walk(t *testing.T, rt Runtime, seed uint64, steps int, may may) *walker {
	w := newWalker(t, Config{Runtime: rt}, seed, may)
	for i := range steps {
		if w.roll(5) {
			w.mischief()
		} else {
			w.turn(w.now + w.r.between(0, 5*time.Second))
		}
		if i%64 == 0 {
			w.check()
		}
	}
	w.calm = true
	w.n.CrashAt(NoCrash)
	w.n.FailDELs(0, 0)
	w.n.BusyNetns(0)
	for _, uid := range w.pods {
		w.n.Unhang(w.now, uid)
		w.step(&Input{Kind: PodDeleted, UID: uid})
	}
	for end := w.now + time.Hour; w.turn(end); {
	}
	return w
}

// never counts the sandboxes that had an ADD and no DEL, and checks that each is accounted for.
func (w *walker) never() int {
	w.t.Helper()
	hidden := map[string]bool{}
	for s := range w.n.Sandboxes() {
		if !s.Hidden {
			w.t.Errorf("left over: %+v", s)
		}
		if s.OwesDEL {
			w.t.Errorf("a DEL is owed that nobody has called in an hour: %+v", s)
		}
		hidden[s.ID] = true
	}
	n := 0
	for cid := range w.adds {
		if w.dels[cid] > 0 {
			continue
		}
		n++
		if !w.lost[cid] && !hidden[cid] {
			w.t.Errorf("sandbox %s had an ADD, no DEL, and nobody said so", cid)
		}
	}
	if c := w.n.Counts(); c.Pods != 0 || c.Ops != 0 {
		w.t.Errorf("not settled: %+v", c)
	}
	if len(w.adds) < 300 {
		w.t.Errorf("only %d sandboxes: the walk does not walk", len(w.adds))
	}
	return n
}

// Every ADD has its DEL, whatever the plugins answer, as long as nothing restarts; with containerd 2
// also then. The others are known to lose some.
func TestRandomWalk(t *testing.T) {
	all := may{restart: true, hide: true, chain: true}
	for _, c := range []struct {
		runtime Runtime
		may     may
		loses   bool
	}{
		{Containerd2, may{}, false},
		{Containerd2, may{restart: true}, false},
		{Containerd2, all, true},
		{Containerd21, may{}, false},
		{Containerd21, may{restart: true}, true},
		{Containerd17Guard, may{}, false},
		{Containerd17Guard, all, true},
		{Containerd16, may{}, false},
		{Containerd16, all, true},
		{CRIO134, may{}, false},
		{CRIO134, all, true},
		{Dockershim, may{}, false},
		{Dockershim, all, true},
	} {
		t.Run(fmt.Sprintf("%v %+v", c.runtime, c.may), func(t *testing.T) {
			never := walk(t, c.runtime, 42+uint64(c.runtime), 10_000, c.may).never()
			if c.loses != (never > 0) {
				t.Errorf("%d sandboxes had an ADD and never a DEL, expected some: %v", never, c.loses)
			}
		})
	}
}

func TestDeterminism(t *testing.T) {
	all := may{restart: true, hide: true, chain: true}
	for rt := Containerd2; rt <= Dockershim; rt++ {
		a, b := walk(t, rt, 5, 3000, all), walk(t, rt, 5, 3000, all)
		if !slices.Equal(a.log, b.log) {
			t.Errorf("%v: the same seed told two stories", rt)
		}
		if c := walk(t, rt, 6, 3000, all); slices.Equal(a.log, c.log) {
			t.Errorf("%v: two seeds told the same story", rt)
		}
	}
}

// A clone and its original go on alike, and what happens to one does not happen to the other.
func TestCloneIndependence(t *testing.T) {
	w := newWalker(t, Config{}, 1, may{restart: true, hide: true, chain: true})
	fork := func() *walker {
		c := *w
		c.n, c.log = w.n.Clone(), nil
		c.pending, c.pods, c.boxes = slices.Clone(w.pending), slices.Clone(w.pods), slices.Clone(w.boxes)
		c.adds, c.dels, c.lost = map[string]int{}, map[string]int{}, map[string]bool{}
		return &c
	}
	play := func(w *walker, seed rng, steps int) string {
		w.r = seed
		for range steps {
			if w.roll(3) {
				w.mischief()
			} else {
				w.turn(w.now + 5*time.Second)
			}
		}
		return strings.Join(w.log, "\n")
	}
	for i := range 200 {
		a, b, c := fork(), fork(), fork()
		first := play(a, rng(i), 100)
		play(b, rng(i+1000), 100) // must disturb neither
		if second := play(c, rng(i), 100); first != second {
			t.Fatalf("fork %d: a clone was disturbed", i)
		}
		play(w, rng(i+2000), 20)
		w.log = nil
	}
}

func BenchmarkPodLife(b *testing.B) {
	n := New(Config{}, 1)
	steps := 0
	inode := uint64(0)
	var now time.Duration
	var todo []Input
	step := func(in *Input) {
		steps++
		for _, a := range n.Step(now, in) {
			switch a.Kind {
			case MakeNetns:
				inode++
				todo = append(todo, Input{Kind: NetnsMade, Sandbox: a.Sandbox, Inode: inode})
			case RunPlugin:
				todo = append(todo, Input{Kind: PluginDone, Op: a.Op})
			case PodStarted:
				todo = append(todo, Input{Kind: PodDeleted, UID: a.UID})
			}
		}
	}
	uids := make([]string, 46)
	for i := range uids {
		uids[i] = fmt.Sprint("pod-", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, uid := range uids {
			step(&Input{Kind: PodBound, UID: uid, Namespace: "default", Name: uid})
		}
		for {
			if len(todo) > 0 {
				in := todo[len(todo)-1]
				todo = todo[:len(todo)-1]
				step(&in)
				continue
			}
			at, ok := n.Next()
			if !ok {
				break
			}
			now = at
			step(nil)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(steps), "ns/step")
	b.ReportMetric(float64(steps)/float64(b.N)/46, "steps/pod")
}

func full(pods int) *Node {
	n := New(Config{}, 1)
	for i := range pods {
		uid := fmt.Sprint("pod-", i)
		for _, a := range n.Step(0, &Input{Kind: PodBound, UID: uid, Namespace: "default", Name: uid}) {
			if a.Kind == MakeNetns {
				op := n.Step(0, &Input{Kind: NetnsMade, Sandbox: a.Sandbox, Inode: uint64(i + 1)})[0].Op
				n.Step(0, &Input{Kind: PluginDone, Op: op})
			}
		}
	}
	n.Step(time.Second, nil)
	return n
}

func BenchmarkClone(b *testing.B) {
	n := full(46)
	b.ReportAllocs()
	for b.Loop() {
		n.Clone()
	}
}

func BenchmarkListSandboxes(b *testing.B) {
	n := full(46)
	b.ReportAllocs()
	for b.Loop() {
		n.ListSandboxes()
	}
}

func BenchmarkSandboxes(b *testing.B) {
	n := full(46)
	b.ReportAllocs()
	for b.Loop() {
		for s := range n.Sandboxes() {
			_ = s.Netns
		}
	}
}

// Configurations that no case above has: no panic, and time goes on.
func TestRandomWalkOfOddConfigurations(t *testing.T) {
	for i, cfg := range []Config{
		{Runtime: Containerd2, OldKubelet: true},
		{Runtime: Containerd16, SkipClosedDEL: true},
		{Runtime: CRIO134, OldKubelet: true},
		{Runtime: Containerd2, SandboxTimeout: 100 * time.Millisecond, StopTimeout: 100 * time.Millisecond, CleanupTimeout: 50 * time.Millisecond},
		{Runtime: CRIO134, SandboxTimeout: 100 * time.Millisecond, StopTimeout: 100 * time.Millisecond},
		{
			Runtime: Dockershim, SandboxTimeout: -1, StopTimeout: -1, CleanupTimeout: -1, RetryBackoff: -1, GCPeriod: -1, RelistPeriod: -1,
			PauseStartMin: -1, PauseStartMax: -1, ContainerEndMin: -1, ContainerEndMax: -1, KubeletRestart: -1, RuntimeRestart: -1, BootTime: -1,
		},
	} {
		w := newWalker(t, cfg, uint64(i), may{restart: true, hide: true, chain: true})
		for range 3000 {
			if w.roll(5) {
				w.mischief()
			} else {
				w.turn(w.now + w.r.between(0, 5*time.Second))
			}
			w.check()
		}
	}
}
