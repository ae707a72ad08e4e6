package node_test

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/sim/netns/node"
)

// TestContainerIsAPIDNamespace: a script that handles no SIGTERM is not ended by it, as the first process of a container is not; its end ends what it
// has started, also what has left its process group.
func TestContainerIsAPIDNamespace(t *testing.T) {
	n := start(t)
	script := "setsid sleep 1000 & echo $$ > /run/pid; sleep 1000; echo over"
	if _, err := n.StartProcess(node.Process{Argv: []string{"/bin/sh", "-c", script}, Container: true}); err != nil {
		t.Fatal(err)
	}
	until(t, "the script says its process ID", func() bool { data, err := n.ReadFile("/run/pid"); return err == nil && string(data) == "1\n" })
	check(t, n.SignalDaemon(syscall.SIGTERM))
	if got := strings.TrimSpace(sh(t, n, "kill -0 $(pgrep -o sh) && pgrep -c -x sleep")); got != "2" { // kill(2) has delivered the signal when it returns
		t.Errorf("after SIGTERM: expected that the two programs of the container run, found %s", got)
	}
	check(t, n.SignalDaemon(syscall.SIGKILL))
	if e := next(t, n); e.Kind != node.DaemonExited || e.Exit != "signal: killed" {
		t.Errorf("expected that the container was killed, found %+v", e)
	}
	until(t, "what it has started has ended", func() bool { return strings.TrimSpace(sh(t, n, "pgrep -c -x sleep || true")) == "0" })
}

// TestPausedProgramWaitsWhenItFails: who asks it in a loop is answered as before, and slower where it fails.
func TestPausedProgramWaitsWhenItFails(t *testing.T) {
	n := start(t)
	check(t, n.WriteFile("/run/probe", []byte("#!/bin/sh\necho $1; exit $1\n")))
	const pause = 300 * time.Millisecond
	check(t, n.Install([]node.Copy{{From: "/run/probe", To: "/app/probe", Mode: 0o755, Pause: pause}}))
	if got := sh(t, n, "/app/probe 0 && echo good"); got != "0\ngood\n" {
		t.Errorf("expected its answer, found %q", got)
	}
	began := time.Now()
	if got := sh(t, n, "/app/probe 3 || echo code $?"); got != "3\ncode 3\n" || time.Since(began) < pause {
		t.Errorf("expected its exit code after %v, found %q after %v", pause, got, time.Since(began))
	}
}
