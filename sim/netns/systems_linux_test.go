package netns_test

import (
	"archive/tar"
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/systems"
)

// strangeSocket is where a strange daemon serves.
const strangeSocket = "/run/strange.sock"

// strange is a daemon that is not as daemons should be, or a plugin.
func strange(how string) error {
	switch how {
	case "dies":
		return fmt.Errorf("no region is known")
	case "forks away":
		away := &os.ProcAttr{Files: []*os.File{nil, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Setsid: true}}
		_, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, away)
		fmt.Println("gone to the background")
		return err
	case "waits":
		fmt.Println("waiting for nobody")
		<-time.After(time.Hour) // a select without cases ends a program without cgo
	case "another version":
		fmt.Println(`{"cniVersion": "9.9.9", "ips": []}`)
		return nil
	}
	_ = os.Remove(strangeSocket) // an earlier one's
	l, err := net.Listen("unix", strangeSocket)
	if err != nil {
		return err
	}
	if how == "ignores SIGTERM" {
		signal.Ignore(syscall.SIGTERM)
	}
	if how == "fills its log" {
		go func() {
			line := strings.Repeat("x", 1023)
			for {
				fmt.Println(line)
			}
		}()
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		_ = c.Close()
	}
}

// strangeSystem has that daemon; "" is none.
func strangeSystem(t *testing.T, how, plugin string) *systems.System {
	t.Helper()
	self := must.Get(os.Executable())(t)
	folder := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\nexec /app/strange strange '%s'\n", plugin)
	must.Do(t, os.WriteFile(filepath.Join(folder, "plugin"), []byte(script), 0o755))
	data := must.Get(os.ReadFile(self))(t)
	must.Do(t, os.WriteFile(filepath.Join(folder, "strange"), data, 0o755))
	s := &systems.System{Name: "strange", Version: "1.0.0", Folder: folder, Plugins: []string{"strange"},
		Files:    []systems.File{{From: "strange", To: "/app/strange"}, {From: "plugin", To: "/opt/cni/bin/strange"}},
		Conflist: systems.Text{Name: "10-strange.conflist", Words: `{"cniVersion": "0.4.0", "name": "strange", "plugins": [{"type": "strange"}]}`},
		Runtime:  systems.Runtime{API: "none"}, Kubernetes: systems.Kubernetes{By: "none"}}
	if how != "" {
		within := 5 * time.Second
		if slices.Contains([]string{"dies", "waits", "forks away"}, how) { // as many times longer as the machine is slow
			within = time.Second
		}
		s.Daemon = &systems.Daemon{Argv: []string{"/app/strange", "strange", how}, Serves: systems.Serves{Unix: strangeSocket, Within: within},
			Stop: systems.Stop{Signal: "TERM", Grace: time.Second}}
	}
	if how == "gives up once before it" { // as an init container does while metadata is silent
		script := "test -e /run/tried && exit; touch /run/tried; echo metadata is silent; exit 1"
		s.Daemon.Init = []systems.Command{{Argv: []string{"/bin/sh", "-c", script}}}
	}
	return s
}

// A system that is wrong ends its run in time, with the right verdict and its last lines, and nothing of it is left.
func TestStrangeSystems(t *testing.T) {
	needTime(t)
	const serves = "cluster nodes=1\nalways \"a daemon that runs serves\"\n"
	for _, c := range []struct {
		how, plugin, lines string
		status             runner.Status
		says               string
	}{
		{"dies", "", serves, runner.Violated, "s of its start; its last lines: no region is known"},
		{"waits", "", serves, runner.Violated, "waiting for nobody"},
		{"forks away", "", serves, runner.Violated, "gone to the background"},
		{"fills its log", "", serves + "at 1s expect node-1 daemon.starts == 0\n", runner.Held, "1 expectation judged"},
		{"ignores SIGTERM", "", serves + "at 1s node-1 restart\nat 8s expect node-1 daemon.starts == 1\n", runner.Held, "1 expectation judged"},
		{"gives up once before it", "", serves + "at 9s expect node-1 daemon.starts == 0\n", runner.Held, "1 expectation judged"},
		{"serves", "another version", serves + "at 0s kube create web 1\nat 0s within 3s expect node-1 pods.ready == 1\n", runner.Violated, "expected within 3s: node-1 pods.ready == 1"},
		{"", "", "cluster nodes=1\nat 1s node-1 kill\n", runner.Skipped, "strange 1.0.0 has no daemon"},
	} {
		t.Run(c.how+c.plugin, func(t *testing.T) {
			p := parts(t)
			p.System = strangeSystem(t, c.how, c.plugin)
			file := must.Get(runner.Load(netns.Place(p), "strange.scn", []byte("# A stranger.\n"+c.lines)))(t)
			began := time.Now()
			r := file.Run(runner.Options{Seed: runner.DefaultSeed})
			if text := r.Report(); r.Status != c.status || !strings.Contains(text, c.says) {
				t.Errorf("expected %v and %q, found %s", c.status, c.says, text)
			}
			if took := time.Since(began); took > 2*time.Minute {
				t.Errorf("it took %v", took)
			}
		})
	}
}

// An upgrade exchanges daemon and plugin of real binaries, and the way back does; each starts anew and serves. A word that means no system is told with
// its place, before anything starts.
func TestUpgradeToSystem(t *testing.T) {
	needTime(t)
	p := parts(t)
	p.System = strangeSystem(t, "serves", "another version")
	next := strangeSystem(t, "ignores SIGTERM", "another version")
	next.Version = "2.0.0"
	p.Find = func(name string) (*systems.System, error) {
		switch name {
		case "strange@2":
			return next, nil
		case "strange@1":
			return p.System, nil
		}
		return nil, fmt.Errorf("there is no system %q", name)
	}
	const text = `# There and back.
cluster nodes=1
always  "a daemon that runs serves"
at 1s   node-1 upgrade to=strange@2
at 1s   within 30s expect node-1 daemon.starts == 1
at 31s  node-1 upgrade to=strange@1 part=daemon
at 31s  within 30s expect node-1 daemon.starts == 2
`
	place := netns.Place(p)
	if _, err := runner.Load(place, "bad.scn", []byte(strings.Replace(text, "strange@2", "stranger@2", 1))); err == nil || !strings.Contains(err.Error(), "bad.scn:4:") {
		t.Errorf("expected the line of the unknown system, found %v", err)
	}
	file := must.Get(runner.Load(place, "upgrade.scn", []byte(text)))(t)
	r := file.Run(runner.Options{Seed: runner.DefaultSeed})
	if r.Status != runner.Held {
		t.Errorf("expected held, found %s", r.Report())
	}
}

// Ours is a system like any other: upgraded to one that has the same paths of its container, and back, all serve.
func TestUpgradeFromOurs(t *testing.T) {
	needTime(t)
	p := parts(t)
	next := strangeSystem(t, "serves", "another version")
	next.Mounts = []systems.Mount{{Container: "/host/var/log/aws-routed-eni", Node: "/var/log/aws-routed-eni"}}
	p.Find = func(name string) (*systems.System, error) {
		if name == "strange@1" {
			return next, nil
		}
		return systems.Find(t.Context(), "enilab@1.0.0="+filepath.Dir(p.Ipamd), systems.Options{})
	}
	const text = `# There and back.
cluster nodes=1
always  "a daemon that runs serves"
at 1s   within 10s expect node-1 daemon.starts == 0
at 11s  node-1 upgrade to=strange@1
at 11s  within 30s expect node-1 daemon.starts == 1
at 41s  node-1 upgrade to=enilab@1
at 41s  within 30s expect node-1 daemon.starts == 2
`
	file := must.Get(runner.Load(netns.Place(p), "ours.scn", []byte(text)))(t)
	if r := file.Run(runner.Options{Seed: runner.DefaultSeed}); r.Status != runner.Held {
		t.Errorf("expected held, found %s", r.Report())
	}
}

// comesAndGoes has pods on addresses of the prefixes that a node's first ENI has from its launch.
const comesAndGoes = `# Pods come, are reached, and go.
cluster nodes=2 type=m5.large subnet=10.0.40.0/24 runtime=containerd
always  "every live pod is reachable"
always  "no address is in two live namespaces"
always  "nothing is leaked"
at 0s   kube create web 20
at 0s   within 20s expect kube pods.ready == 20
at 21s  expect kube pairs.tried >= 20
at 21s  expect kube pairs.unreachable == 0
at 22s  kube scale web 0
at 42s  expect kube pods.ready == 0
finally converges within 5s
`

// handsOut plays that with a system.
func handsOut(t *testing.T, s *systems.System) {
	t.Helper()
	p := parts(t)
	p.System = s
	file := must.Get(runner.Load(netns.Place(p), "comes-and-goes.scn", []byte(comesAndGoes)))(t)
	if r := file.Run(runner.Options{Seed: runner.DefaultSeed}); r.Status != runner.Held {
		t.Errorf("expected held, found %s", r.Report())
	}
}

// The example of docs/systems.md is built as it says there, and plays: pods have addresses that its daemon hands out.
func TestHandout(t *testing.T) {
	needTime(t)
	s, err := systems.Find(t.Context(), filepath.Join("..", "..", "docs", "systems", "handout.yaml")+"@1.0.0="+builtHandout(t), systems.Options{})
	must.Do(t, err)
	handsOut(t, s)
}

func builtHandout(t *testing.T) (folder string) {
	t.Helper()
	folder = t.TempDir()
	build := exec.Command("go", "build", "-o", folder+"/", "./docs/systems/addressd", "./docs/systems/ask", "github.com/containernetworking/plugins/plugins/main/ptp")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return folder
}

// The same out of an image that has nothing but its files: its daemon runs in the image's root, where no program of the computer is, its book is on a
// mount of the node, and its plugins are installed on the node.
func TestHandoutOutOfAnImage(t *testing.T) {
	needTime(t)
	folder := builtHandout(t)
	var layer bytes.Buffer
	w := tar.NewWriter(&layer)
	for _, name := range []string{"addressd", "ask", "ptp"} {
		data := must.Get(os.ReadFile(filepath.Join(folder, name)))(t)
		must.Do(t, w.WriteHeader(&tar.Header{Name: "usr/lib/handout/" + name, Typeflag: tar.TypeReg, Mode: 0o755, Size: int64(len(data))}))
		must.Get(w.Write(data))(t)
	}
	must.Do(t, w.Close())
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(layer.Bytes())), nil })
	must.Do(t, err)
	image, err := mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: runtime.GOARCH, RootFS: v1.RootFS{Type: "layers"}})
	must.Do(t, err)
	image = must.Get(mutate.AppendLayers(image, l))(t)
	must.Do(t, tarball.WriteToFile(filepath.Join(folder, "handout.tar"), name.MustParseReference("handout:v1.0.0"), image))
	text := must.Get(os.ReadFile(filepath.Join("..", "..", "docs", "systems", "handout.yaml")))(t)
	described := regexp.MustCompile(`\{from: (\w+), to: (\S+)\}`).ReplaceAllString(string(text), "{from: $1, to: $2, image: /usr/lib/handout/$1}")
	described = strings.Replace(described, "/var/lib/handout.json", "/book/handout.json", 1) + "mounts:\n  - {container: /book, node: /var/lib/handout}\n"
	must.Do(t, os.WriteFile(filepath.Join(folder, "handout.yaml"), []byte(described), 0o600))
	s, err := systems.Find(t.Context(), filepath.Join(folder, "handout.yaml")+"@"+filepath.Join(folder, "handout.tar"), systems.Options{Cache: t.TempDir()})
	must.Do(t, err)
	handsOut(t, s)
}

// The reference plugins alone, without a daemon, hand out what is in those prefixes.
func TestWithoutDaemon(t *testing.T) {
	needTime(t)
	folder := t.TempDir()
	build := exec.Command("go", "build", "-o", folder+"/", "github.com/containernetworking/plugins/plugins/main/ptp", "github.com/containernetworking/plugins/plugins/ipam/host-local")
	build.Dir, build.Env = filepath.Join("..", ".."), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s := must.Get(systems.Find(t.Context(), "ptp@1.9.1="+folder, systems.Options{}))(t)
	handsOut(t, s)
}
