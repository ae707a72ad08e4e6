package cri

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func busyErr() *PluginError { return &PluginError{Code: 11, Msg: "try again later"} }

// up starts pod a and forgets the story.
func up(t *testing.T, cfg Config) *world {
	t.Helper()
	w := newWorld(t, cfg)
	w.bind("a", "web-0")
	w.until(time.Second)
	if !w.n.PodReady("a") {
		t.Fatal("pod a did not start")
	}
	w.story = nil
	return w
}

func TestFailedADDIsTriedAgainWithANewSandbox(t *testing.T) {
	for r := Containerd2; r <= Dockershim; r++ {
		t.Run(r.String(), func(t *testing.T) {
			w := newWorld(t, Config{Runtime: r})
			w.fail = []*PluginError{busyErr(), nil}
			w.bind("a", "web-0")
			w.until(9 * time.Second)
			want := `
				0s MakeNetns c1
				0s ADD c1 netns=1
				50ms DEL c1 netns=1
				100ms RemoveNetns 1`
			if r != Dockershim { // which keeps the dead pause container
				want += `
				100ms SandboxGone c1`
			}
			w.tell(want)
			w.until(20 * time.Second)
			if !w.n.PodReady("a") {
				t.Fatalf("not ready: %v", w.story)
			}
			list, _ := w.n.ListSandboxes()
			last := list[len(list)-1]
			if retried := last.Created; retried < 10*time.Second || retried > 15200*time.Millisecond {
				t.Errorf("tried again at %v, expected 10 to 15 s after the failure", retried)
			}
			if last.Attempt != 1 || last.UID != "a" || w.short(last.ID) != "c2" || len(last.ID) != 64 {
				t.Errorf("the second sandbox is %+v", last)
			}
		})
	}
}

// ADD failed and so did the DEL after it: each runtime's own answer to "who calls DEL now?".
func TestFailedADDWhoseDELFails(t *testing.T) {
	for _, c := range []struct {
		runtime Runtime
		dels    int // of the first sandbox, in five minutes
		lost    int
	}{
		{Containerd2, 1, 1},  // sandbox_run.go:240-256
		{Containerd21, 1, 1}, // recorded: add-and-del-fail
		{Containerd16, 1, 1},
		{Containerd17Guard, 1, 1}, // kept, but the guard skips DEL
		{CRIO134, 1, 1},
		{Dockershim, 2, 0},
	} {
		t.Run(c.runtime.String(), func(t *testing.T) {
			w := newWorld(t, Config{Runtime: c.runtime})
			w.fail = []*PluginError{busyErr(), busyErr()}
			w.bind("a", "web-0")
			w.until(5 * time.Minute)
			if got := len(w.dels("c1")); got != c.dels {
				t.Errorf("%d DELs of the first sandbox, expected %d", got, c.dels)
			}
			if got := w.n.Counts().Lost; got != c.lost {
				t.Errorf("%d sandboxes lost, expected %d", got, c.lost)
			}
			if !w.n.PodReady("a") {
				t.Errorf("the pod did not recover:\n%v", w.story)
			}
		})
	}
}

// The deadline of RunPodSandbox: 4 minutes after it began the plugin is killed; CRI-O lets it go on.
func TestSandboxDeadline(t *testing.T) {
	w := newWorld(t, Config{})
	w.mute = true
	w.bind("a", "web-0")
	w.until(4*time.Minute + 9*time.Second)
	w.tell(`
		0s MakeNetns c1
		0s ADD c1 netns=1
		4m0s KillPlugin c1
		4m0s DEL c1 netns=1`)
	w.until(4*time.Minute + 16*time.Second)
	list, _ := w.n.ListSandboxes()
	if len(list) != 1 {
		t.Errorf("%d listed, expected the daemon's alone", len(list))
	}
	alive := 0
	for s := range w.n.Sandboxes() {
		if alive++; s.UID != "a" || s.Attempt != alive-1 {
			t.Errorf("sandbox %d is %+v", alive, s)
		}
	}
	if alive != 2 {
		t.Errorf("%d namespaces of the pod, expected the old one beside the new", alive)
	}
	w.until(5*time.Minute + time.Second)
	if line := "5m0s KillPlugin c1"; !slices.Contains(w.story, line) {
		t.Errorf("the clean-up's DEL was not killed after a minute: %v", w.story)
	}
	if run := w.runs[0]; run.Timeout != 4*time.Minute || w.runs[1].Timeout != time.Minute {
		t.Errorf("timeouts %v and %v", run.Timeout, w.runs[1].Timeout)
	}

	w = newWorld(t, Config{Runtime: CRIO134})
	w.mute = true
	w.bind("a", "web-0")
	w.until(8*time.Minute + 59*time.Second)
	if slices.Contains(w.story, "4m0s KillPlugin c1") || w.n.Counts().ADDs < 2 {
		t.Errorf("CRI-O: %v", w.story)
	}
	if limit := w.runs[0].Timeout; limit != 9*time.Minute {
		t.Errorf("CRI-O: ADD may take %v", limit)
	}
	w.until(9*time.Minute + time.Second)
	if !slices.Contains(w.story, "9m0s KillPlugin c1") {
		t.Errorf("CRI-O did not end ADD after 5 more minutes: %v", w.story)
	}
}

// CRI-O finishes an ADD whose caller has gone, and then takes the sandbox down itself.
func TestCRIOLateADD(t *testing.T) {
	w := newWorld(t, Config{Runtime: CRIO134})
	w.mute = true
	w.bind("a", "web-0")
	w.until(4*time.Minute + 30*time.Second)
	w.mute, w.story = false, nil
	w.reply(w.runs[1])
	w.reply(w.runs[0])
	w.until(4*time.Minute + 31*time.Second)
	if !w.n.PodReady("a") || !slices.Equal(w.dels("c1"), []uint64{1}) || len(w.dels("c2")) != 0 {
		t.Errorf("late ADD: %v", w.story)
	}
}

func TestDELIsRetriedUntilItSucceeds(t *testing.T) {
	w := up(t, Config{})
	w.fail = []*PluginError{busyErr(), busyErr(), nil, busyErr(), busyErr()}
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(4 * time.Minute)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1, 1, 1, 0, 0, 0, 0}) {
		t.Errorf("DELs with %v, expected three of the worker, two evictions that fail, then Stop and Remove", got)
	}
	w.settled()
}

// Before 1.22 kubelet lets the object go although Stop failed; evictSandboxes tries every minute.
func TestOldKubeletLeavesTheSandboxToEviction(t *testing.T) {
	w := up(t, Config{Runtime: Dockershim})
	w.fail = []*PluginError{busyErr(), busyErr(), busyErr()}
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(5 * time.Minute)
	w.tell(`
		3s PodStopped a
		3s DEL c1 netns=1
		3.05s RemoveNetns 1
		3.05s PodGone a
		1m0s DEL c1 netns=0
		2m0s DEL c1 netns=0
		3m0s DEL c1 netns=0
		3m0.05s SandboxGone c1`)
	w.settled()
}

func TestCRIONeverRetriesDEL(t *testing.T) {
	w := up(t, Config{Runtime: CRIO134})
	w.fail = []*PluginError{busyErr()}
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(2 * time.Minute)
	if got := w.dels("c1"); len(got) != 1 {
		t.Errorf("DELs with %v, expected one", got)
	}
	if len(w.gone) != 1 || !w.gone[0].Lost {
		t.Errorf("SandboxGone %+v, expected lost", w.gone)
	}
	w.settled()
}

// go-cni takes some error texts for success.
func TestSwallowedErrors(t *testing.T) {
	for _, c := range []struct {
		runtime Runtime
		msg     string
		dels    int // before the pod is gone
	}{
		{Containerd2, "route not found", 1},
		{Containerd2, "open /var/run/netns/x: no such file or directory", 2}, // the path is not empty
		{Containerd2, "no free address", 2},
		{Dockershim, "route not found", 1}, // not swallowed, but an old kubelet goes on
	} {
		w := up(t, Config{Runtime: c.runtime})
		w.fail = []*PluginError{{Code: 999, Msg: c.msg}}
		w.input(Input{Kind: PodDeleted, UID: "a"})
		w.until(30 * time.Second)
		if got := len(w.dels("c1")); got != c.dels {
			t.Errorf("%v, %q: %d DELs, expected %d", c.runtime, c.msg, got, c.dels)
		}
	}
	w := up(t, Config{}) // the empty path
	w.fail = []*PluginError{nil, {Msg: "no such file or directory"}, {Msg: "no such file or directory"}}
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(2 * time.Minute)
	w.settled()
	if len(w.gone) != 1 || w.gone[0].Lost {
		t.Errorf("gone: %+v", w.gone)
	}
}

// Incident 5's mechanism: a plugin that the chain reaches before ours fails, so ours is not run.
func TestChainFailsBeforeOurs(t *testing.T) {
	w := up(t, Config{})
	w.n.FailDELs(2, 5*time.Second)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(2 * time.Minute)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1, 0, 0}) {
		t.Errorf("DELs that reached ours: %v", got)
	}
	if c := w.n.Counts(); c.FailedDELs != 2 {
		t.Errorf("%d failed DELs, expected 2", c.FailedDELs)
	}
	w.settled()
}

func TestBusyNetns(t *testing.T) {
	w := up(t, Config{})
	w.n.BusyNetns(1)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(2 * time.Minute)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1, 0, 0, 0}) {
		t.Errorf("DELs with %v, expected the second one with an empty CNI_NETNS", got)
	}
	w.settled()
}

func TestDeletedDuringADD(t *testing.T) {
	w := newWorld(t, Config{})
	w.bind("a", "web-0")
	w.until(20 * time.Millisecond)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(50 * time.Second)
	w.tell(`
		0s MakeNetns c1
		0s ADD c1 netns=1
		150ms PodStarted a c1 10.0.10.1
		2.15s PodStopped a
		2.15s DEL c1 netns=1
		2.2s RemoveNetns 1
		2.2s PodGone a`)
	w.until(2 * time.Minute)
	w.settled()

	w = newWorld(t, Config{}) // and when that ADD fails, nothing comes after it
	w.fail = []*PluginError{busyErr()}
	w.bind("a", "web-0")
	w.until(20 * time.Millisecond)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(2 * time.Minute)
	w.tell(`
		0s MakeNetns c1
		0s ADD c1 netns=1
		50ms DEL c1 netns=1
		100ms RemoveNetns 1
		100ms SandboxGone c1
		100ms PodGone a`)
	w.settled()

	for _, c := range []struct {
		runtime Runtime
		dels    []uint64
	}{{Containerd2, []uint64{1, 0, 0}}, {CRIO134, []uint64{1}}, {Dockershim, []uint64{1}}} { // while pause starts
		w = newWorld(t, Config{Runtime: c.runtime})
		w.bind("a", "web-0")
		w.until(120 * time.Millisecond)
		w.input(Input{Kind: PodDeleted, UID: "a"})
		w.until(2 * time.Minute)
		if got := w.dels("c1"); !slices.Equal(got, c.dels) {
			t.Errorf("%v: DELs with %v", c.runtime, got)
		}
		w.settled()
	}
}

// A deletion while the worker stops the old sandbox of a pod that is still wanted: the sync goes on to the new sandbox. If a Stop fails
// the deletion has its turn at once.
func TestDeletedDuringStop(t *testing.T) {
	w := up(t, Config{})
	w.input(Input{Kind: Reboot})
	w.until(31*time.Second + 20*time.Millisecond)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(50 * time.Second)
	w.tell(`
		1s PodStopped a
		31s DEL c1 netns=0
		31.05s MakeNetns c2
		31.05s ADD c2 netns=2
		31.2s PodStarted a c2 10.0.10.2
		33.2s PodStopped a
		33.2s DEL c2 netns=2
		33.25s RemoveNetns 2
		33.25s DEL c1 netns=0
		33.3s PodGone a`)

	w = up(t, Config{})
	w.input(Input{Kind: Reboot})
	w.fail = []*PluginError{busyErr()}
	w.until(31*time.Second + 20*time.Millisecond)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(50 * time.Second)
	w.tell(`
		1s PodStopped a
		31s DEL c1 netns=0
		31.05s DEL c1 netns=0
		31.1s PodGone a`)
}

// Recorded: del-fails. What the killing has changed is seen within a second; after that kubelet is in its back-off.
func TestFirstRetryOfDELIsPrompt(t *testing.T) {
	w := newWorld(t, Config{Runtime: Containerd21})
	w.bind("a", "web-0")
	w.until(1300 * time.Millisecond)
	w.story = nil
	w.fail = []*PluginError{busyErr(), busyErr()}
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(5 * time.Second)
	w.tell(`
		3.3s PodStopped a
		3.3s DEL c1 netns=1
		4s DEL c1 netns=1`)
	w.until(14 * time.Second)
	w.tell(``)
	w.until(19050 * time.Millisecond)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1, 1, 1}) {
		t.Errorf("DELs with %v, expected the third 10 to 15 s after the second", got)
	}

	w = newWorld(t, Config{Runtime: Containerd21}) // seen while the DEL is under way: again as soon as it has failed
	w.bind("a", "web-0")
	w.until(1300 * time.Millisecond)
	w.story, w.mute = nil, true
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(8 * time.Second)
	w.mute, w.fail = false, []*PluginError{busyErr()}
	w.reply(w.runs[1])
	w.until(9 * time.Second)
	w.tell(`
		3.3s PodStopped a
		3.3s DEL c1 netns=1
		8.05s DEL c1 netns=1
		8.1s RemoveNetns 1
		8.1s PodGone a`)
}

// Recorded: node-restart-add-fails. Each try to start a pod again stops what is left of it once more, and so does its end.
func TestEverySyncStopsEverySandbox(t *testing.T) {
	w := up(t, Config{Runtime: Containerd21})
	w.input(Input{Kind: Reboot})
	w.fail = []*PluginError{nil, busyErr(), nil, nil, busyErr()}
	w.until(time.Minute + 20*time.Second)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(time.Minute + 25*time.Second)
	var calls []string
	for _, a := range w.runs[1:] {
		calls = append(calls, fmt.Sprint(a.Verb, " ", w.short(a.ContainerID), " ", a.Netns))
	}
	if want := strings.Fields("DEL_c1_0 ADD_c2_2 DEL_c2_2 DEL_c1_0 ADD_c3_3 DEL_c3_3 DEL_c1_0 ADD_c4_4 DEL_c4_4 DEL_c1_0"); strings.ReplaceAll(strings.Join(calls, ","), " ", "_") != strings.Join(want, ",") {
		t.Errorf("called %v, expected %v", calls, want)
	}
	w.until(4 * time.Minute)
	w.settled()
}

// A Stop that fails does not keep the pod's other sandboxes from being stopped.
func TestOneFailedStopOfTwo(t *testing.T) {
	w := up(t, Config{})
	w.input(Input{Kind: Reboot})
	w.until(40 * time.Second)
	w.story, w.fail = nil, []*PluginError{busyErr(), busyErr()}
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(45 * time.Second)
	w.tell(`
		42s PodStopped a
		42s DEL c2 netns=2
		42.05s DEL c1 netns=0
		43s DEL c2 netns=2
		43.05s RemoveNetns 2
		43.05s DEL c1 netns=0
		43.1s PodGone a`)
}

// Recorded: force-delete. What is left of the grace period is kubelet's minimum.
func TestForcedGrace(t *testing.T) {
	w := up(t, Config{})
	w.n.cfg.ContainerEndMin, w.n.cfg.ContainerEndMax = time.Hour, time.Hour
	w.input(Input{Kind: PodForceRemoved, UID: "a"})
	w.until(4 * time.Second)
	w.tell(`
		3s PodStopped a
		3s DEL c1 netns=1
		3.05s RemoveNetns 1
		3.05s PodGone a`)
}

// Incident 4: seed 003. DEL of 94feeebc… fails for as long as it is tried; the StatefulSet's new pod of the
// same name is added at 20:21:27, and at 20:22:24, 57 s later, the next try arrives with an empty CNI_NETNS.
func TestTwoIncarnations(t *testing.T) {
	const old, fresh = "94feeebc95fbcf081f75bdc9bad7a97e74903e847a80b51bf89a6fadafc3ae21", "291716a39be97105e9169863bf847e714b3e7aed9a9add7a330e79f8a089b97b"
	w := newWorld(t, Config{Runtime: Dockershim})
	w.n.gcPhase = 24 * time.Second // evictSandboxes at :24
	etcd := func(uid string) Input {
		return Input{Kind: PodBound, UID: uid, Namespace: "lijiaob", Name: "etcd1-0"}
	}
	w.input(etcd("old"))
	w.n.sandboxes[w.n.last].cid = old
	w.until(16*time.Second + 18*time.Minute) // 20:18:16 on the seed's clock less two hours
	w.n.FailDELs(5, 0)
	w.input(Input{Kind: PodDeleted, UID: "old"})
	w.until(21*time.Minute + 27*time.Second)
	w.input(etcd("new"))
	w.n.sandboxes[w.n.last].cid = fresh
	added := w.now
	w.until(22*time.Minute + 25*time.Second)
	var dels []Action
	for _, a := range w.runs {
		if a.Verb == DEL {
			dels = append(dels, a)
		}
	}
	if len(dels) != 1 {
		t.Fatalf("%d DELs reached the plugin, expected 1: %v", len(dels), w.story)
	}
	d := dels[0]
	if d.ContainerID != old || d.Name != "etcd1-0" || d.Namespace != "lijiaob" || d.Netns != 0 || d.UID != "" {
		t.Errorf("DEL %+v", d)
	}
	if !w.n.PodReady("new") {
		t.Errorf("the new pod is not ready")
	}
	if at := w.story[len(w.story)-2]; at != "22m24s DEL "+w.short(old)+" netns=0" {
		t.Errorf("the story ends %v; the stale DEL belongs 57 s after the ADD at %v", w.story[len(w.story)-2:], added)
	}
}

// The same pod name, killed in the background: two sandboxes of one name are alive at once.
func TestForceDeleteRunsInParallel(t *testing.T) {
	w := up(t, Config{})
	w.input(Input{Kind: PodForceRemoved, UID: "a"})
	w.bind("b", "web-0")
	w.until(2 * time.Second)
	n := 0
	for s := range w.n.Sandboxes() {
		if s.Name == "web-0" && s.Running && s.Netns != 0 {
			n++
		}
	}
	if n != 2 {
		t.Errorf("%d running sandboxes of web-0, expected 2", n)
	}
	w.until(2 * time.Minute)
	w.tell(`
		1s MakeNetns c2
		1s ADD c2 netns=2
		1.15s PodStarted b c2 10.0.10.2
		3s PodStopped a
		3s DEL c1 netns=1
		3.05s RemoveNetns 1
		3.05s PodGone a
		1m0s DEL c1 netns=0
		1m0.05s DEL c1 netns=0
		1m0.1s SandboxGone c1`)
}

// Incident 3: a D-state process. Stop fails at the container, so DEL never comes, also after a force delete;
// five minutes later, when Terway looks, the sandbox is alive and holds its address.
func TestTerway(t *testing.T) {
	w := up(t, Config{Runtime: Containerd16})
	w.n.Hang(w.now, "a")
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(10 * time.Minute)
	w.tell(`1s HoldNetns 1`)
	w.input(Input{Kind: PodForceRemoved, UID: "a"})
	w.bind("b", "web-0")
	w.until(15 * time.Minute)
	if len(w.dels("c1")) != 0 {
		t.Errorf("DEL was called: %v", w.story)
	}
	var held []Truth
	for s := range w.n.Sandboxes() {
		if s.Held {
			held = append(held, s)
		}
	}
	if len(held) != 1 || held[0].UID != "a" || held[0].Netns != 1 || !held[0].Running || held[0].Address.String() != "10.0.10.1" {
		t.Errorf("held: %+v", held)
	}
	list, _ := w.n.ListSandboxes()
	if len(list) != 3 {
		t.Errorf("the runtime lists %d, expected it to know both pods", len(list))
	}
	w.story = nil
	w.n.Unhang(w.now, "a")
	w.until(15*time.Minute + 500*time.Millisecond)
	w.tell(`
		15m0s ReleaseNetns 1
		15m0s PodStopped a
		15m0s DEL c1 netns=1
		15m0.05s RemoveNetns 1
		15m0.05s PodGone a`)
}

// CRI-O and dockershim call DEL although a process still runs in the namespace.
func TestHangElsewhere(t *testing.T) {
	for _, r := range []Runtime{CRIO134, Dockershim} {
		w := up(t, Config{Runtime: r})
		w.n.Hang(w.now, "a")
		w.input(Input{Kind: PodDeleted, UID: "a", Grace: 10 * time.Second})
		w.until(10 * time.Minute)
		if got := w.dels("c1"); !slices.Equal(got, []uint64{1}) {
			t.Errorf("%v: DELs with %v, expected one", r, got)
		}
		removed := slices.ContainsFunc(w.story, func(l string) bool { return strings.HasSuffix(l, "RemoveNetns 1") })
		if removed != (r == Dockershim) { // whose pause holds the namespace; CRI-O kills the containers first
			t.Errorf("%v: RemoveNetns while a process hangs: %v", r, w.story)
		}
		live := false
		for s := range w.n.Sandboxes() {
			live = live || s.Held && s.Netns == 1 && s.Running && !s.OwesDEL
		}
		if !live || w.n.Counts().Pods != 1 {
			t.Errorf("%v: the process should hold the namespace, and the pod should not be gone: %v", r, w.story)
		}
		w.n.Unhang(w.now, "a")
		w.until(15 * time.Minute)
		w.settled()
	}
}

// What a process in D state still has of its network after DEL was run is owed to nobody, whether or not the runtime heard of DEL's end.
func TestHungAfterItsDEL(t *testing.T) {
	for _, r := range []Runtime{CRIO134, Dockershim} {
		w := up(t, Config{Runtime: r})
		w.n.Hang(w.now, "a")
		w.mute = true
		w.input(Input{Kind: PodDeleted, UID: "a", Grace: 10 * time.Second})
		for _, before := range []bool{true, false} {
			found := false
			for s := range w.n.Sandboxes() {
				if s.Held && s.Running {
					found = true
					if s.Address.IsValid() != before {
						t.Errorf("%v at %v: a hung process has the address %v; DEL was run: %v", r, w.now, s.Address, !before)
					}
				}
			}
			if ran := len(w.dels("c1")) > 0; !found || ran == before {
				t.Errorf("%v at %v: a hung process: %v, DEL was run: %v", r, w.now, found, ran)
			}
			w.until(w.now + 4*time.Minute)
		}
	}
}

// A process that a Stop has killed, and whose namespace the runtime has let go, dies as soon as it can, also where the runtime has forgotten its sandbox
// and nobody stops it once more.
func TestHungProcessThatWasKilledDies(t *testing.T) {
	w := up(t, Config{Runtime: CRIO134})
	w.n.Hang(w.now, "a")
	w.n.FailDELs(3, 0) // CRI-O takes the network for stopped all the same
	w.input(Input{Kind: PodDeleted, UID: "a", Grace: 10 * time.Second})
	w.until(10 * time.Minute)
	if len(w.dels("c1")) != 0 || !slices.ContainsFunc(w.story, func(l string) bool { return strings.HasSuffix(l, "RemoveNetns 1") }) {
		t.Fatalf("expected that its namespace was let go without a DEL of ours: %v", w.story)
	}
	if !w.n.Hide(w.now, "a") {
		t.Fatal("its sandbox is not listed")
	}
	w.n.Unhang(w.now, "a")
	w.until(15 * time.Minute)
	for s := range w.n.Sandboxes() {
		if s.UID == "a" && s.Running {
			t.Errorf("it runs on in a namespace that is gone: %+v", s)
		}
	}
}

func TestHangBeforeStart(t *testing.T) {
	w := newWorld(t, Config{})
	w.bind("a", "web-0")
	w.n.Hang(w.now, "a")
	w.n.Hang(w.now, "nobody")
	w.until(time.Second)
	w.tell(`
		0s MakeNetns c1
		0s ADD c1 netns=1
		150ms PodStarted a c1 10.0.10.1
		150ms HoldNetns 1`)
}

func TestReplayDEL(t *testing.T) {
	w := up(t, Config{})
	cid, _ := w.n.SandboxOf("a")
	if w.n.ReplayDEL(w.now, "beef", 0) {
		t.Errorf("a DEL of an unknown sandbox was accepted")
	}
	if !w.n.ReplayDEL(w.now, cid, time.Second) {
		t.Fatal("refused")
	}
	w.until(3 * time.Second)
	w.tell(``) // READY: no runtime would
	w.input(Input{Kind: PodForceRemoved, UID: "a"})
	w.until(2 * time.Minute)
	w.story, w.runs = nil, nil
	if !w.n.ReplayDEL(w.now, cid, 57*time.Second) || !w.n.ReplayDEL(w.now, cid, 20*time.Second) {
		t.Fatal("the forgotten sandbox is not remembered")
	}
	w.until(4 * time.Minute)
	w.tell(`
		2m20s DEL c1 netns=0
		2m57s DEL c1 netns=0`)
	if w.runs[0].Name != "web-0" || w.runs[0].UID != "a" || w.runs[0].ContainerID != cid {
		t.Errorf("%+v", w.runs[0])
	}
	w.settled()
}

// The result is saved, the clean-up's DEL fails: the sandbox is kept and DEL comes again (CRI-O: never).
func TestCutDuringPauseStartWhoseDELFails(t *testing.T) {
	for _, c := range []struct {
		runtime Runtime
		dels    []uint64
		lost    int
	}{
		{Containerd2, []uint64{1, 1, 0, 0}, 0},
		{Containerd21, []uint64{1, 1, 0, 0}, 0},
		{Containerd17Guard, []uint64{1, 1, 0, 0}, 0},
		{Containerd16, []uint64{1, 1, 0, 0}, 0},
		{CRIO134, []uint64{1}, 1},
	} {
		w := newWorld(t, Config{Runtime: c.runtime})
		w.fail = []*PluginError{nil, busyErr()}
		if c.runtime == CRIO134 { // CHECK comes between
			w.fail = []*PluginError{nil, nil, busyErr()}
		}
		w.bind("a", "web-0")
		w.until(120 * time.Millisecond)
		w.input(Input{Kind: RestartKubelet})
		w.until(3 * time.Minute)
		if got := w.dels("c1"); !slices.Equal(got, c.dels) || w.n.Counts().Lost != c.lost || !w.n.PodReady("a") {
			t.Errorf("%v: DELs with %v, lost %d", c.runtime, got, w.n.Counts().Lost)
		}
	}
}

// Two sandboxes of one pod, both owing a DEL: the pod is gone only after both.
func TestPodGoneWaitsForEverySandbox(t *testing.T) {
	w := newWorld(t, Config{})
	w.fail = []*PluginError{nil, busyErr()}
	w.bind("a", "web-0")
	w.until(120 * time.Millisecond)
	w.input(Input{Kind: RestartKubelet}) // cuts RunPodSandbox off; its DEL fails
	w.n.FailDELs(1, 10*time.Millisecond) // and so does the Stop that follows: one back-off more
	w.until(10 * time.Second)
	if w.n.PodReady("a") {
		t.Fatal("a new sandbox before the old one was stopped")
	}
	w.until(20 * time.Second)
	if !w.n.PodReady("a") {
		t.Fatalf("not ready: %v", w.story)
	}
	w.story = nil
	// As if the older one had been found dead again; it is still listed until evictSandboxes' minute.
	older := w.n.sandboxes[w.n.pods[0].newest].older
	w.n.sandboxes[older].state, w.n.sandboxes[older].wasStopped = dead, false
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.until(22*time.Second + 40*time.Millisecond)
	last := w.runs[len(w.runs)-1]
	w.pending[len(w.pending)-1].at += time.Second // the second DEL takes longer
	w.until(23 * time.Second)
	if slices.Contains(w.story, "22.05s PodGone a") || w.n.Counts().Pods != 1 {
		t.Errorf("gone before %s's DEL ended: %v", w.short(last.ContainerID), w.story)
	}
	w.until(24 * time.Second)
	if w.n.Counts().Pods != 0 {
		t.Errorf("not gone: %v", w.story)
	}
}

// ADD's result was never saved, so Stop only logs DEL's error; eviction calls DEL again.
func TestStopIgnoresDELErrorWithoutAResult(t *testing.T) {
	w := newWorld(t, Config{})
	w.n.CrashAt(ADDUnsaved)
	w.fail = []*PluginError{nil, busyErr()}
	w.bind("a", "web-0")
	w.until(16 * time.Second)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1}) || !w.n.PodReady("a") {
		t.Errorf("DELs with %v: %v", got, w.story)
	}
	w.until(2 * time.Minute)
	if got := w.dels("c1"); !slices.Equal(got, []uint64{1, 0, 0}) || w.n.Counts().Lost != 0 {
		t.Errorf("DELs with %v, lost %d", got, w.n.Counts().Lost)
	}
}

// evictSandboxes takes one sandbox after the other, and a pass that hangs is not overtaken.
func TestEvictionIsSequential(t *testing.T) {
	w := newWorld(t, Config{})
	w.bind("a", "web-0")
	w.bind("b", "web-1")
	w.until(10 * time.Second)
	w.input(Input{Kind: PodDeleted, UID: "a"})
	w.input(Input{Kind: PodDeleted, UID: "b"})
	w.until(30 * time.Second)
	w.mute, w.story = true, nil
	w.until(2*time.Minute + 59*time.Second)
	w.tell(`1m0s DEL c1 netns=0`)
	w.mute = false
	w.until(5 * time.Minute)
	w.tell(`
		3m0s KillPlugin c1
		3m0s DEL c2 netns=0
		3m0.05s DEL c2 netns=0
		3m0.1s SandboxGone c2
		4m0s DEL c1 netns=0
		4m0.05s DEL c1 netns=0
		4m0.1s SandboxGone c1`)
	w.settled()
}

// What a clone shares with its original is never written again.
func TestCloneDuringEviction(t *testing.T) {
	w := newWorld(t, Config{})
	for _, uid := range []string{"a", "b", "c"} {
		w.bind(uid, "web-"+uid)
	}
	w.until(10 * time.Second)
	for _, uid := range []string{"a", "b", "c"} {
		w.input(Input{Kind: PodDeleted, UID: uid})
	}
	w.until(time.Minute + 20*time.Millisecond) // the first of three is being evicted
	fork := *w
	fork.n = w.n.Clone()
	fork.pending = slices.Clone(w.pending)
	w.until(2 * time.Minute)
	w.settled()
	fork.until(2 * time.Minute)
	fork.settled()
	one, other := w.n.Clone(), w.n.Clone()
	one.bury(&sandbox{cid: "one"})
	other.bury(&sandbox{cid: "other"})
	if !one.ReplayDEL(0, "one", 0) || one.ReplayDEL(0, "other", 0) || !other.ReplayDEL(0, "other", 0) {
		t.Errorf("clones share their memory of sandboxes")
	}
}

// A pod that is to hang as soon as it runs does not, once the faults have ended.
func TestEndHangsBeforeThePodRuns(t *testing.T) {
	w := newWorld(t, Config{})
	w.bind("a", "web-0")
	w.n.Hang(w.now, "a")
	w.n.EndHangs(w.now)
	w.until(time.Second)
	w.tell(`
		0s MakeNetns c1
		0s ADD c1 netns=1
		150ms PodStarted a c1 10.0.10.1`)
}
