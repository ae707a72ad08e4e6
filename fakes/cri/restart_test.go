package cri

import (
	"slices"
	"testing"
	"time"
)

// Incident 30: ADD is done, the runtime dies before it saved the result. Does DEL ever come?
func TestRuntimeRestartDuringADD(t *testing.T) {
	for _, c := range []struct {
		runtime Runtime
		dels    []uint64
		lost    int
	}{
		{Containerd2, []uint64{1, 0, 0}, 0},
		{Containerd21, nil, 1}, // recorded: runtime-crash-in-add
		{Containerd17Guard, nil, 1},
		{Containerd16, nil, 1},
		{CRIO134, nil, 1},
		{Dockershim, []uint64{1}, 0}, // kubelet is what dies
	} {
		for _, point := range []CrashPoint{NoCrash, ADDUnsaved} {
			t.Run(c.runtime.String(), func(t *testing.T) {
				w := newWorld(t, Config{Runtime: c.runtime})
				w.bind("a", "web-0")
				first, _ := w.n.SandboxOf("a")
				if point == NoCrash {
					w.until(20 * time.Millisecond)
					kind := RestartRuntime
					if c.runtime == Dockershim {
						kind = RestartKubelet
					}
					w.input(Input{Kind: kind})
				} else {
					w.n.CrashAt(point)
				}
				w.until(w.now + time.Second)
				for b := range w.n.Sandboxes() {
					if will := len(c.dels) > 0; b.ID == first && b.OwesDEL != will {
						t.Errorf("a DEL is owed: %v, expected %v, as the runtime calls %d", b.OwesDEL, will, len(c.dels))
					}
				}
				w.until(5 * time.Minute)
				if got := w.dels("c1"); !slices.Equal(got, c.dels) {
					t.Errorf("DELs with %v, expected %v\n%v", got, c.dels, w.story)
				}
				if got := w.n.Counts().Lost; got != c.lost {
					t.Errorf("lost %d, expected %d", got, c.lost)
				}
				if !w.n.PodReady("a") || w.n.Counts().ADDs != 2 {
					t.Errorf("the pod did not recover: %v", w.story)
				}
			})
		}
	}
}

// Every crash point of every runtime ends in a ready pod, and later in nothing.
func TestCrashPointsRecover(t *testing.T) {
	for r := Containerd2; r <= Dockershim; r++ {
		for p := BeforeADD; p <= BeforeForget; p++ {
			w := newWorld(t, Config{Runtime: r})
			w.n.CrashAt(p)
			w.bind("a", "web-0")
			w.until(3 * time.Minute)
			if !w.n.PodReady("a") {
				t.Errorf("%v at %d: not ready: %v", r, p, w.story)
			}
			w.input(Input{Kind: PodDeleted, UID: "a"})
			w.until(8 * time.Minute)
			c := w.n.Counts()
			left := 0
			for s := range w.n.Sandboxes() {
				if !s.Hidden {
					left++
				}
			}
			if c.Pods != 0 || left != 0 || c.Ops != 0 {
				t.Errorf("%v at %d: %+v, %d left: %v", r, p, c, left, w.story)
			}
		}
	}
}

func TestBeforePauseKeepsTheResult(t *testing.T) {
	w := newWorld(t, Config{Runtime: Containerd17Guard})
	w.n.CrashAt(BeforePause)
	w.bind("a", "web-0")
	w.until(2 * time.Minute)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1, 0, 0}) {
		t.Errorf("DELs with %v: the result was saved, so the guard lets DEL through", got)
	}
	w = newWorld(t, Config{Runtime: CRIO134}) // the attachment is in libcni's cache
	w.n.CrashAt(BeforePause)
	w.bind("a", "web-0")
	w.until(2 * time.Minute)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1}) || w.n.Counts().Lost != 0 {
		t.Errorf("CRI-O: DELs with %v", got)
	}
}

func TestRuntimeRestartKeepsPodsRunning(t *testing.T) {
	w := up(t, Config{})
	w.input(Input{Kind: RestartRuntime})
	if _, complete := w.n.ListSandboxes(); complete {
		t.Errorf("a runtime that is down answered a complete list")
	}
	w.until(w.now + 5*time.Second)
	list, complete := w.n.ListSandboxes()
	if !complete || len(list) != 2 || !list[1].Ready || !w.n.PodReady("a") {
		t.Errorf("%v %+v", complete, list)
	}
	w.tell(``)
}

func TestRuntimeRestartDuringStop(t *testing.T) {
	w := up(t, Config{})
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(3020 * time.Millisecond)
	w.input(Input{Kind: RestartRuntime})
	w.until(3 * time.Minute)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1, 1, 0, 0}) {
		t.Errorf("DELs with %v, expected the first to be repeated", got)
	}
	w.settled()
}

// Recorded: runtime-restart-in-del, runtime-restart-in-add. A containerd that is told to stop kills the plugins whose callers it cuts off;
// a DEL of its own clean-up may outlive it. One that dies kills nothing.
func TestGracefulRestart(t *testing.T) {
	w := up(t, Config{Runtime: Containerd21})
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(3020 * time.Millisecond)
	w.input(Input{Kind: RestartRuntime, Graceful: true})
	w.until(10 * time.Second)
	w.tell(`
		3s PodStopped a
		3s DEL c1 netns=1
		3.02s KillPlugin c1
		6s DEL c1 netns=1
		6.05s RemoveNetns 1
		6.05s PodGone a`)

	heard := map[int]int{} // DELs of the first sandbox
	for seed := range uint64(20) {
		w = newWorld(t, Config{Runtime: Containerd21})
		w.n.rng = rng(seed)
		w.bind("a", "web-0")
		w.until(20 * time.Millisecond)
		w.input(Input{Kind: RestartRuntime, Graceful: true})
		w.until(40 * time.Millisecond)
		killed := slices.Contains(w.story, "20ms KillPlugin c1")
		w.until(5 * time.Minute)
		n := len(w.dels("c1"))
		heard[n]++
		if lost := w.n.Counts().Lost; !killed || lost != 1-n || !w.n.PodReady("a") {
			t.Errorf("killed %v, %d DELs, %d lost: %v", killed, n, lost, w.story)
		}
	}
	if heard[0] == 0 || heard[1] == 0 || len(heard) != 2 {
		t.Errorf("DELs of the clean-up: %v, expected none and one", heard)
	}

	w = newWorld(t, Config{Runtime: Containerd21}) // a clean-up that had begun goes on
	w.fail = []*PluginError{busyErr()}
	w.bind("a", "web-0")
	w.until(70 * time.Millisecond)
	w.input(Input{Kind: RestartRuntime, Graceful: true})
	w.until(80 * time.Millisecond)
	w.tell(`
		0s MakeNetns c1
		0s ADD c1 netns=1
		50ms DEL c1 netns=1`)

	w = newWorld(t, Config{Runtime: CRIO134})
	w.bind("a", "web-0")
	w.until(20 * time.Millisecond)
	w.input(Input{Kind: RestartRuntime, Graceful: true})
	if slices.Contains(w.story, "20ms KillPlugin c1") {
		t.Errorf("CRI-O's ADD has a context of its own: %v", w.story)
	}
}

// A worker that is woken while the runtime is down waits for the first relist that succeeds.
func TestWorkerWaitsForTheRuntime(t *testing.T) {
	w := newWorld(t, Config{})
	w.input(Input{Kind: RestartRuntime})
	w.bind("a", "web-0")
	w.until(5 * time.Second)
	w.tell(`
		3s MakeNetns c1
		3s ADD c1 netns=1
		3.15s PodStarted a c1 10.0.10.1`)
}

func TestKubeletRestart(t *testing.T) {
	w := up(t, Config{})
	w.input(Input{Kind: RestartKubelet})
	w.bind("b", "web-1")
	w.until(3 * time.Second)
	w.tell(``)
	w.until(5 * time.Second)
	w.tell(`
		4s MakeNetns c2
		4s ADD c2 netns=2
		4.15s PodStarted b c2 10.0.10.2`)

	w.input(Input{Kind: PodForceRemoved, UID: "a"}) // killing survives the restart: HandlePodCleanups
	w.input(Input{Kind: RestartKubelet})
	w.input(Input{Kind: PodDeleted, UID: "b"})
	w.until(3 * time.Minute)
	if len(w.dels("c1")) != 3 || len(w.dels("c2")) != 3 {
		t.Errorf("%v", w.story)
	}
	w.settled()
}

func TestKubeletRestartDuringADDAndDEL(t *testing.T) {
	w := newWorld(t, Config{})
	w.bind("a", "web-0")
	w.until(20 * time.Millisecond)
	w.input(Input{Kind: RestartKubelet})
	w.until(10 * time.Second)
	w.tell(`
		0s MakeNetns c1
		0s ADD c1 netns=1
		20ms KillPlugin c1
		20ms DEL c1 netns=1
		70ms RemoveNetns 1
		70ms SandboxGone c1
		3.02s MakeNetns c2
		3.02s ADD c2 netns=2
		3.17s PodStarted a c2 10.0.10.2`)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(12020 * time.Millisecond)
	w.input(Input{Kind: RestartKubelet})
	w.until(16 * time.Second)
	w.tell(`
		12s PodStopped a
		12s DEL c2 netns=2
		12.02s KillPlugin c2
		15.02s DEL c2 netns=2
		15.07s RemoveNetns 2
		15.07s PodGone a`)
}

// Incident 23 (kubernetes #59741): dockershim's first DEL failed after pause had gone; kubelet restarts.
func TestDockershimForgetsAtKubeletRestart(t *testing.T) {
	w := up(t, Config{Runtime: Dockershim})
	w.fail = []*PluginError{busyErr()}
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(10 * time.Second)
	w.input(Input{Kind: RestartKubelet})
	w.until(3 * time.Minute)
	if len(w.gone) != 1 || !w.gone[0].Lost || len(w.dels("c1")) != 1 {
		t.Errorf("%v", w.story)
	}
	w.settled()
}

// A container in D state is one that Docker lists, so kubelet finds the sandbox again, and calls DEL when it can be stopped.
func TestDockershimKeepsAHungSandbox(t *testing.T) {
	w := up(t, Config{Runtime: Dockershim})
	w.n.Hang(w.now, "a")
	w.fail = []*PluginError{busyErr()}
	w.input(Input{Kind: PodDeleted, UID: "a", Grace: time.Second})
	w.until(130 * time.Second)
	w.input(Input{Kind: RestartKubelet})
	w.until(4 * time.Minute)
	held := 0
	for s := range w.n.Sandboxes() {
		if s.Held && s.Netns == 1 {
			held++
		}
	}
	if held != 1 || len(w.gone) != 0 {
		t.Errorf("%d sandboxes with a hung process, expected 1; %d forgotten, expected none: %v", held, len(w.gone), w.story)
	}
	w.n.Unhang(w.now, "a")
	w.until(15 * time.Minute)
	if got := w.dels("c1"); len(got) < 2 || w.n.Counts().Lost != 0 {
		t.Errorf("DELs with %v, %d lost: expected the one that failed to be repeated", got, w.n.Counts().Lost)
	}
	w.settled()
}

// Incidents 20 and 21: namespaces are gone, libcni's cache is not.
func TestReboot(t *testing.T) {
	w := up(t, Config{})
	before, _ := w.n.ListSandboxes()
	daemon := before[0].ID
	w.input(Input{Kind: Reboot})
	if w.n.Ready() != 0 {
		t.Errorf("a pod is ready after the power went")
	}
	w.until(35 * time.Second)
	w.tell(`
		1s PodStopped a
		31s DEL c1 netns=0
		31.05s MakeNetns c2
		31.05s ADD c2 netns=2
		31.2s PodStarted a c2 10.0.10.2`)
	list, _ := w.n.ListSandboxes()
	if len(list) != 4 || list[2].Name != "aws-node" || !list[2].Ready || list[2].ID == daemon || list[0].Ready {
		t.Errorf("%+v", list)
	}
	w.until(2 * time.Minute)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{0, 0, 0}) {
		t.Errorf("DELs with %v", got)
	}

	w = up(t, Config{SkipClosedDEL: true}) // containerd/cri #948
	w.input(Input{Kind: Reboot})
	w.until(2 * time.Minute)
	if len(w.dels("c1")) != 0 || w.n.Counts().Lost != 1 || !w.n.PodReady("a") {
		t.Errorf("%v", w.story)
	}
}

func TestRebootDuringEverything(t *testing.T) {
	for r := Containerd2; r <= Dockershim; r++ {
		w := newWorld(t, Config{Runtime: r})
		w.bind("a", "web-0")
		w.bind("d", "web-3")
		w.until(time.Second)
		w.n.Hang(w.now, "d")
		w.input(Input{Kind: PodDeleted, UID: "a"})
		w.input(Input{Kind: PodForceRemoved, UID: "d"})
		w.until(3 * time.Second)
		w.bind("b", "web-1")
		w.until(3010 * time.Millisecond)
		w.input(Input{Kind: Reboot})
		w.until(5 * time.Minute)
		if !w.n.PodReady("b") || w.n.Counts().Pods != 1 {
			t.Errorf("%v: %+v %v", r, w.n.Counts(), w.story)
		}
		w.input(Input{Kind: PodDeleted, UID: "b"})
		w.until(10 * time.Minute)
		w.settled()
	}
}

// A sandbox that did not load: the runtime does not list it, its processes live, kubelet makes another.
func TestHiddenSandbox(t *testing.T) {
	w := up(t, Config{})
	cid, _ := w.n.SandboxOf("a")
	w.input(Input{Kind: RestartRuntime})
	if !w.n.Hide(w.now, cid) || w.n.Hide(w.now, "nobody") {
		t.Fatal("Hide")
	}
	w.until(20 * time.Second)
	list, _ := w.n.ListSandboxes()
	if len(list) != 2 || list[1].ID == cid || !list[1].Ready {
		t.Errorf("%+v", list)
	}
	hidden := 0
	for s := range w.n.Sandboxes() {
		if s.Hidden && s.Running && s.Netns == 1 && !s.OwesDEL {
			hidden++
		}
	}
	if hidden != 1 {
		t.Errorf("%d hidden sandboxes run, expected 1: %v", hidden, w.story)
	}
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(5 * time.Minute)
	if len(w.dels("c1")) != 0 || len(w.dels("c2")) != 3 || w.n.Counts().Pods != 0 {
		t.Errorf("%v", w.story)
	}
	w.input(Input{Kind: Reboot})
	w.until(7 * time.Minute)
	w.settled()
	if w.n.Counts().Lost != 1 {
		t.Errorf("lost %d", w.n.Counts().Lost)
	}
}

// The runtime dies between its own steps: what DEL looks like afterwards.
func TestCrashPointsOfContainerd(t *testing.T) {
	for _, c := range []struct {
		at    CrashPoint
		dels  []uint64      // of the first sandbox
		first time.Duration // the earliest instant of the first of them
	}{
		// The sandbox that was not finished is seen as soon as the runtime works again, and stopped again with the pod at 42 s.
		{BeforeADD, []uint64{1, 0, 0, 0}, 2 * time.Second}, // DEL without an ADD
		{ADDUnsaved, []uint64{1, 0, 0, 0}, 2 * time.Second},
		{BeforePause, []uint64{1, 0, 0, 0}, 2 * time.Second},
		{BeforeDEL, []uint64{1, 0, 0}, 44 * time.Second}, // not at 42 s
		{BeforeUnmount, []uint64{1, 1, 0, 0}, 42 * time.Second},
		{BeforeForget, []uint64{1, 0, 0, 0, 0}, 42 * time.Second},
	} {
		w := newWorld(t, Config{})
		w.n.CrashAt(c.at)
		w.bind("a", "web-0")
		first := time.Duration(0)
		for _, stop := range []time.Duration{40 * time.Second, 4 * time.Minute} {
			for w.now < stop {
				w.until(w.now + 50*time.Millisecond)
				if first == 0 && len(w.dels("c1")) > 0 {
					first = w.now
				}
			}
			w.input(Input{Kind: PodDeleted, UID: "a"})
		}
		if got := w.dels("c1"); !slices.Equal(got, c.dels) || first < c.first || first > c.first+1200*time.Millisecond {
			t.Errorf("crash point %d: DELs with %v, the first at %v; expected %v, from %v: %v", c.at, got, first, c.dels, c.first, w.story)
		}
		w.settled()
	}
}

func TestKubeletRestartDuringEviction(t *testing.T) {
	w := up(t, Config{})
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(time.Minute + 20*time.Millisecond)
	w.story = nil
	w.input(Input{Kind: RestartKubelet})
	w.until(3 * time.Minute)
	w.tell(`
		1m0.02s KillPlugin c1
		2m3.02s DEL c1 netns=0
		2m3.07s DEL c1 netns=0
		2m3.12s SandboxGone c1`) // the minutes begin anew with kubelet
	w.settled()
}
