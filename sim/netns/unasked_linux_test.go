package netns_test

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
)

// unasked is a cluster whose daemon somebody ends although no line says so.
const unasked = `# Somebody kills ipamd by hand.
cluster nodes=1 type=m5.large subnet=10.0.40.0/24 runtime=containerd
start   pods web 4 on node-1
always  "nothing is leaked"
always  "every live pod is reachable"
at 1m   kube roll web 2
at 3m   expect node-1 pods.ready == 4
finally converges within 2m
`

// signalDaemons signals the daemons of a laboratory's nodes, as enilab netns exec NODE -- pkill does, and says how many there were.
func signalDaemons(t *testing.T, w *netns.World, sig syscall.Signal) (found int) {
	t.Helper()
	dirs := must.Get(filepath.Glob(w.Handle(1).Box().Root() + "/proc/[0-9]*"))(t)
	for _, dir := range dirs {
		if line, _ := os.ReadFile(dir + "/cmdline"); !strings.HasPrefix(string(line), "/app/") {
			continue
		}
		kill := "kill -" + strconv.Itoa(int(sig)) + " " + filepath.Base(dir)
		out, code, err := w.Handle(1).Box().Exec(t.Context(), []string{"sh", "-c", kill})
		must.Do(t, err)
		if code != 0 {
			t.Fatalf("kill: %s", out)
		}
		found++
	}
	return found
}

// A daemon that is killed by hand is chaos to be judged: kubelet starts it again, and everything that has to hold is held against it.
func TestDaemonIsKilledByHand(t *testing.T) {
	for name, c := range map[string]struct {
		sig  syscall.Signal
		says string
	}{
		"SIGKILL": {syscall.SIGKILL, "somebody ended ipamd: signal: killed"},
		"SIGTERM": {syscall.SIGTERM, "somebody ended ipamd: exit status 0"},
	} {
		t.Run(name, func(t *testing.T) {
			w, r := begin(t, unasked)
			r.To(90*time.Second, nil)
			if signalDaemons(t, w, c.sig) != 1 {
				t.Fatal("there is no daemon to kill")
			}
			v := r.Finish(nil)
			if !v.Held() {
				t.Errorf("it does not hold: %+v", v)
			}
			if story := w.Timeline(); !strings.Contains(story, c.says) || strings.Count(story, "ipamd starts") != 1 {
				t.Errorf("expected that it tells %q and one start:\n%s", c.says, story)
			}
			if got := w.Crashes(); len(got) > 0 {
				t.Errorf("it counts as a crash: %v", got)
			}
		})
	}
}

// A daemon that ends by itself is never held, whatever else holds: its timeline says how it ended, and what it said.
func TestDaemonEndsByItself(t *testing.T) {
	p := parts(t)
	real := p.Ipamd
	p.Ipamd = filepath.Join(t.TempDir(), "ipamd")
	// It lives until somebody says on its node that it shall not; ipamd is beside it there, for its init step.
	script := "#!/bin/sh\n[ \"$1\" = init ] && exec /opt/real/ipamd \"$@\"\n" +
		"if [ -e /var/lib/aws-node/panic ]; then rm /var/lib/aws-node/panic; echo 'panic: index out of range'; echo; echo 'goroutine 1 [running]:'; exit 2; fi\n" +
		"exec /opt/real/ipamd \"$@\"\n"
	must.Do(t, os.WriteFile(p.Ipamd, []byte(script), 0o755))
	p.Files = map[string]string{"/opt/real/ipamd": real}
	text := strings.Replace(unasked, "at 1m   kube roll web 2", "at 1m node-1 restart", 1)
	c := must.Get(runner.Load(netns.Place(p), "unasked.scn", []byte(text)))(t)
	r, sw, err := c.Variants[0].Open(runner.DefaultSeed, nil)
	must.Do(t, err)
	w := sw.(*netns.World)
	defer w.Close()
	r.To(30*time.Second, nil)
	must.Do(t, w.Handle(1).Box().WriteFile("/var/lib/aws-node/panic", nil))
	v := r.Finish(nil)
	must.Do(t, w.Err())
	if len(v.Violations) > 0 {
		t.Errorf("kubelet starts it again, and then it works: %v", v.Violations)
	}
	if got := w.Crashes(); len(got) != 1 || !strings.Contains(got[0].Text, "exit status 2") || !strings.Contains(got[0].Text, "panic: index out of range") {
		t.Errorf("expected one crash with its exit status and its last words, found %v\n%s", got, w.Timeline())
	}
	if !slices.ContainsFunc(strings.Split(w.Timeline(), "\n"), func(l string) bool { return strings.Contains(l, "ipamd ended by itself: exit status 2") }) {
		t.Errorf("the timeline does not tell it:\n%s", w.Timeline())
	}
}

// A laboratory that is kept up goes on: a daemon that is killed there is started again, and what breaks is found.
func TestDaemonIsKilledWhileKept(t *testing.T) {
	if testing.Short() {
		t.Skip("a laboratory that is kept up: leave -short out")
	}
	p := parts(t)
	c := must.Get(runner.Load(netns.Place(p), "unasked.scn", []byte(unasked)))(t)
	killed := 0
	r := c.Run(runner.Options{Seed: runner.DefaultSeed, Timeline: true, Linger: func(sw runner.World) {
		w := sw.(*netns.World)
		killed = signalDaemons(t, w, syscall.SIGKILL)
		end := time.Now().Add(30 * time.Second)
		w.Stay(func() bool { return w.Handle(1).Lives() > 1 && w.Unready() == "" || time.Now().After(end) })
		if w.Handle(1).Lives() < 2 {
			t.Error("kubelet does not start it again")
		}
	}})
	if killed != 1 || r.Status != runner.Held {
		t.Errorf("%d daemons were killed:\n%s", killed, r.Report())
	}
	if !strings.Contains(r.Runs[0].Timeline, "somebody ended ipamd: signal: killed") {
		t.Errorf("the timeline does not tell it:\n%s", r.Runs[0].Timeline)
	}
}
