package cri

import (
	"testing"
	"time"
)

func TestLifeOfAPod(t *testing.T) {
	start := `
		0s MakeNetns c1
		0s ADD c1 netns=1
		150ms PodStarted a c1 10.0.10.1`
	const threeDELs = `
		12s PodStopped a
		12s DEL c1 netns=1
		12.05s RemoveNetns 1
		12.05s PodGone a
		1m0s DEL c1 netns=0
		1m0.05s DEL c1 netns=0
		1m0.1s SandboxGone c1`
	for _, c := range []struct {
		runtime Runtime
		start   string
		end     string
		steps   int // start and end
	}{
		{Containerd2, start, threeDELs, 10},
		{Containerd21, start, threeDELs, 10},
		{Containerd17Guard, start, threeDELs, 10},
		{Containerd16, start, threeDELs, 10},
		{CRIO134, `
			0s MakeNetns c1
			0s ADD c1 netns=1
			50ms CHECK c1 netns=1
			200ms PodStarted a c1 10.0.10.1`, `
			12s PodStopped a
			12s DEL c1 netns=1
			12.05s RemoveNetns 1
			12.05s PodGone a
			1m0s SandboxGone c1`, 9},
		{Dockershim, start, `
			12s PodStopped a
			12s DEL c1 netns=1
			12.05s RemoveNetns 1
			12.05s PodGone a
			1m0s SandboxGone c1`, 8},
	} {
		t.Run(c.runtime.String(), func(t *testing.T) {
			w := newWorld(t, Config{Runtime: c.runtime})
			w.bind("a", "web-0")
			w.until(10 * time.Second)
			w.tell(c.start)
			if !w.n.PodReady("a") || w.n.Ready() != 1 {
				t.Errorf("the pod is not ready")
			}
			w.input(Input{Kind: PodDeleted, UID: "a"})
			w.until(90 * time.Second)
			w.tell(c.end)
			w.settled()
			if w.steps != c.steps {
				t.Errorf("%d steps, expected %d", w.steps, c.steps)
			}
		})
	}
}

func TestHostNetworkPodNeedsNoPlugin(t *testing.T) {
	w := newWorld(t, Config{})
	w.input(Input{Kind: PodBound, UID: "kp", Namespace: "kube-system", Name: "kube-proxy", HostNetwork: true})
	w.until(time.Second)
	w.tell(`100ms PodStarted kp c1`)
	w.input(Input{Kind: PodDeleted, UID: "kp"})
	w.until(2 * time.Minute)
	w.tell(`
		3s PodStopped kp
		3s PodGone kp
		1m0s SandboxGone c1`)
	w.settled()
}

func TestListHoldsASandboxOnlyAfterADDAndPause(t *testing.T) {
	for _, c := range []struct {
		runtime Runtime
		at      time.Duration
		listed  int // beside the daemon's own
	}{
		{Containerd2, 20 * time.Millisecond, 0},
		{Containerd2, 60 * time.Millisecond, 0},
		{Containerd2, 150 * time.Millisecond, 1},
		{CRIO134, 160 * time.Millisecond, 0},
		{CRIO134, 200 * time.Millisecond, 1},
		{Dockershim, 20 * time.Millisecond, 1},
	} {
		w := newWorld(t, Config{Runtime: c.runtime})
		w.bind("a", "web-0")
		w.until(c.at)
		list, complete := w.n.ListSandboxes()
		if !complete || len(list) != 1+c.listed || list[0].Name != "aws-node" || !list[0].Ready {
			t.Errorf("%v at %v: %+v, expected %d beside aws-node", c.runtime, c.at, list, c.listed)
		}
	}
}

func TestDeletionGraceBoundsTheContainersEnd(t *testing.T) {
	w := newWorld(t, Config{})
	w.bind("a", "web-0")
	w.until(time.Second)
	w.story = nil
	w.input(Input{Kind: PodDeleted, UID: "a", Grace: time.Second})
	w.until(2 * time.Second)
	w.tell(`
		2s PodStopped a
		2s DEL c1 netns=1`)
}

func TestDaemonSandboxRolls(t *testing.T) {
	w := newWorld(t, Config{})
	before, _ := w.n.ListSandboxes()
	old := before[0].ID
	fresh := w.n.SetDaemonSandbox(time.Second, "kube-system", "aws-node-x2", "uid-2")
	list, _ := w.n.ListSandboxes()
	if len(list) != 2 || list[0].ID != old || list[0].Ready || list[1].ID != fresh || !list[1].Ready || fresh == old {
		t.Fatalf("after the roll: %+v", list)
	}
	w.until(2 * time.Minute)
	if list, _ = w.n.ListSandboxes(); len(list) != 1 || list[0].ID != fresh {
		t.Errorf("after a minute: %+v", list)
	}
}
