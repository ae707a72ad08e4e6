package systems

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// TestExample: docs/systems.md quotes its example as it is; that one builds, is found, and its daemon hands out what it should.
func TestExample(t *testing.T) {
	onLinux(t)
	text := must.Get(os.ReadFile(filepath.Join("..", "docs", "systems.md")))(t)
	file := must.Get(filepath.Abs(filepath.Join("..", "docs", "systems", "handout.yaml")))(t)
	description := must.Get(os.ReadFile(file))(t)
	if !strings.Contains(string(text), "```yaml\n"+string(description)+"```") {
		t.Errorf("docs/systems.md does not quote %s as it is", file)
	}
	if testing.Short() {
		t.Skip("builds a daemon and a plugin")
	}
	o := place(t)
	build := exec.Command("go", "build", "-o", o.Folder+"/", "./docs/systems/addressd", "./docs/systems/ask", "github.com/containernetworking/plugins/plugins/main/ptp")
	build.Dir, build.Env = "..", append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := find(t, file+"@1.0.0="+o.Folder, o)
	if !slices.Equal(s.Plugins, []string{"ptp"}) || len(s.Notes) > 0 {
		t.Errorf("plugins %v, notes %v", s.Plugins, s.Notes)
	}

	socket, held := filepath.Join(o.Folder, "s"), filepath.Join(o.Folder, "held.json")
	words := filled()
	words["POD_RANGE"] = "10.0.0.32/30"
	argv := must.Get(s.Argv(s.Daemon.Argv, words, nil))(t)
	if want := []string{"/app/addressd", "10.0.0.32/30", "/run/handout.sock", "/var/lib/handout.json"}; !slices.Equal(argv, want) {
		t.Fatalf("argv: expected %v, found %v", want, argv)
	}
	client := &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", socket)
	}}}
	do := func(method, who string) string {
		t.Helper()
		r := must.Get(http.NewRequest(method, "http://addressd/"+who, nil))(t)
		answer := must.Get(client.Do(r))(t)
		defer answer.Body.Close()
		body := must.Get(io.ReadAll(answer.Body))(t)
		return strings.TrimSpace(string(body))
	}
	life := func(lines ...[3]string) {
		t.Helper()
		c := exec.Command(filepath.Join(s.Folder, "addressd"), argv[1], socket, held)
		c.Stderr = os.Stderr
		must.Do(t, c.Start())
		defer func() {
			_ = c.Process.Signal(syscall.SIGTERM)
			_ = c.Wait()
		}()
		serves(t, socket)
		for _, l := range lines {
			if got := do(l[0], l[1]); got != l[2] {
				t.Errorf("%s %s: expected %q, found %q", l[0], l[1], l[2], got)
			}
		}
	}
	life([3]string{"POST", "a:eth0", "10.0.0.34/30"}, [3]string{"POST", "a:eth0", "10.0.0.34/30"}, [3]string{"POST", "b:eth0", "10.0.0.35/30"},
		[3]string{"POST", "c:eth0", "no address of 10.0.0.32/30 is free"}, [3]string{"DELETE", "a:eth0", ""}, [3]string{"DELETE", "a:eth0", ""})
	life([3]string{"POST", "c:eth0", "10.0.0.34/30"}, [3]string{"POST", "b:eth0", "10.0.0.35/30"})
}

// serves waits for a socket that takes connections.
func serves(t *testing.T, socket string) {
	t.Helper()
	for deadline := time.Now().Add(30 * time.Second); ; {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("nobody serves at %s", socket)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
