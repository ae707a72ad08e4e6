package node_test

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns/node"
)

// TestContainerIsAPIDNamespace: a script that handles no SIGTERM is not ended by it, as the first process of a container is not; its end ends what it
// has started, also what has left its process group.
func TestContainerIsAPIDNamespace(t *testing.T) {
	n := start(t)
	script := "setsid sleep 1000 & echo $$ > /run/pid; sleep 1000; echo over"
	must.Get(n.StartProcess(node.Process{Argv: []string{"/bin/sh", "-c", script}, Container: true}))(t)
	until(t, "the script says its process ID", func() bool { data, err := n.ReadFile("/run/pid"); return err == nil && string(data) == "1\n" })
	until(t, "both of its programs run", func() bool { return strings.TrimSpace(sh(t, n, "pgrep -c -x sleep || true")) == "2" })
	must.Do(t, n.SignalDaemon(syscall.SIGTERM))
	if got := strings.TrimSpace(sh(t, n, "kill -0 $(pgrep -o sh) && pgrep -c -x sleep")); got != "2" { // kill(2) has delivered the signal when it returns
		t.Errorf("after SIGTERM: expected that the two programs of the container run, found %s", got)
	}
	must.Do(t, n.SignalDaemon(syscall.SIGKILL))
	if e := next(t, n); e.Kind != node.DaemonExited || e.Exit != "signal: killed" {
		t.Errorf("expected that the container was killed, found %+v", e)
	}
	until(t, "what it has started has ended", func() bool { return strings.TrimSpace(sh(t, n, "pgrep -c -x sleep || true")) == "0" })
}

// TestPausedProgramWaitsWhenItFails: who asks it in a loop is answered as before, and slower where it fails.
func TestPausedProgramWaitsWhenItFails(t *testing.T) {
	n := start(t)
	must.Do(t, n.WriteFile("/run/probe", []byte("#!/bin/sh\necho $1; exit $1\n")))
	const pause = 300 * time.Millisecond
	must.Do(t, n.Install([]node.Copy{{From: "/run/probe", To: "/app/probe", Mode: 0o755, Pause: pause}}))
	if got := sh(t, n, "/app/probe 0 && echo good"); got != "0\ngood\n" {
		t.Errorf("expected its answer, found %q", got)
	}
	began := time.Now()
	if got := sh(t, n, "/app/probe 3 || echo code $?"); got != "3\ncode 3\n" || time.Since(began) < pause {
		t.Errorf("expected its exit code after %v, found %q after %v", pause, got, time.Since(began))
	}
}

// TestContainerHasTheRootOfItsImage: a program of a container sees its image's files and trusts whom its image trusts and the run's authority, and
// reaches the node where that is mounted. What it writes beside that reaches neither the image nor the node, and is gone with it.
func TestContainerHasTheRootOfItsImage(t *testing.T) {
	image := t.TempDir()
	for _, dir := range []string{"etc/ssl/certs", "var/run", "app"} { // some images have a folder /var/run
		must.Do(t, os.MkdirAll(filepath.Join(image, dir), 0o755))
	}
	for _, name := range []string{"bin", "lib", "lib64"} {
		must.Do(t, os.Symlink("usr/"+name, filepath.Join(image, name)))
	}
	must.Do(t, os.WriteFile(filepath.Join(image, "app", "mine"), []byte("the image's\n"), 0o644))
	must.Do(t, os.WriteFile(filepath.Join(image, "etc/ssl/certs/ca-certificates.crt"), []byte("its authorities\n"), 0o644))
	n := start(t, func(s *node.Spec) { s.Files = map[string]string{"/opt/image": image} })
	must.Do(t, n.WriteFile("/app/probe", []byte("#!/bin/sh\nexit 0\n")))
	in := func(script string) string {
		t.Helper()
		p := node.Process{Argv: []string{"/bin/sh", "-c", script}, Root: &node.Root{Image: "/opt/image", Trust: "the run's authority\n",
			Mounts: []node.Mount{{Container: "/usr", Node: "/usr"}, {Container: "/host/etc/cni/net.d", Node: "/etc/cni/net.d"},
				{Container: "/host/made", Node: "/var/made"},
				{Container: "/host/lacking", Node: "/usr/lib/no-such-folder"}}}} // a computer without kernel modules
		out, code, err := n.Command(t.Context(), p)
		if err != nil || code != 0 {
			t.Fatalf("%s: exit code %d, %v: %s", script, code, err, out)
		}
		return string(out)
	}
	if got, want := in("cat /app/* /etc/ssl/certs/ca-certificates.crt"), "the image's\nits authorities\n\nthe run's authority\n"; got != want {
		t.Errorf("expected the image's files and those whom it trusts, %q, found %q", want, got)
	}
	in("echo a > /host/etc/cni/net.d/a && echo b > /var/run/b && echo c > /host/made/c && echo d > /app/d && test -e /proc/self/stat && echo > /dev/null")
	if got := sh(t, n, "cat /etc/cni/net.d/a /run/b /var/made/c; ls -d /app/d /opt/image/app/* 2>/dev/null || true"); got != "a\nb\nc\n/opt/image/app/mine\n" {
		t.Errorf("expected that the node has what was written to its folders, and nothing else, found %q", got)
	}
	in("! test -e /host/lacking")
	if got := in("ls /app; hostname"); got != "mine\nnode-1\n" {
		t.Errorf("expected the image as it was, on its node, found %q", got)
	}
}
