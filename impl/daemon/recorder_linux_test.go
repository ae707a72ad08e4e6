package daemon

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/kube"
	"github.com/enilab/enilab/internal/must"
)

func newNode(t *testing.T, p *ipam.Policy) *ipam.Node {
	t.Helper()
	return must.Get(ipam.New(p))(t)
}

// TestRingForgetsTheOldestAndReplays: the ring forgets the oldest, and what is left replays.
func TestRingForgetsTheOldestAndReplays(t *testing.T) {
	n := newNode(t, ipam.Sound())
	stream := &buffer{}
	r := &recorder{policy: "sound", log: slogTo(&buffer{}), stream: stream}
	step := func(at time.Duration, in ipam.Input) {
		r.turn(n)
		r.line(at, in, n.Step(at, in))
	}
	step(0, ipam.Start{Boot: "b", Seed: 1, Settings: ipam.Defaults()})
	padding := strings.Repeat("x", 4096)
	for i := range 700 {
		att := ipam.Attachment{Network: "aws-cni", ContainerID: "c", IfName: "eth0"}
		step(time.Duration(i)*time.Second, ipam.Del{Req: ipam.Req(i + 1), Att: att, Pod: ipam.Pod{Name: padding}, Version: 2})
		step(time.Duration(i)*time.Second, ipam.Gone{Req: ipam.Req(i + 1)})
	}
	path := must.Get(r.panicked(t.TempDir()))(t)
	data := must.Get(os.ReadFile(path))(t)
	if len(data) < ringSegment || len(data) > 3*ringSegment {
		t.Errorf("the ring holds %d bytes", len(data))
	}
	got, err := ipam.Replay(data, func(string) (*ipam.Policy, bool) { return ipam.Sound(), true }, nil)
	if err != nil || got.Lines == 0 || got.Lines >= 1400 {
		t.Errorf("it replays %d lines: %v", got.Lines, err)
	}
	got, err = ipam.Replay(stream.bytes(), func(string) (*ipam.Policy, bool) { return ipam.Sound(), true }, nil)
	if err != nil || got.Lines != 1401 {
		t.Errorf("of the stream, which has all of 1,401 lines after one header, it replays %d: %v", got.Lines, err)
	}
}

func TestPanicsAreKept(t *testing.T) {
	dir := t.TempDir()
	r := &recorder{}
	for range maxPanics + 2 {
		must.Get(r.panicked(dir))(t)
	}
	if list, _ := os.ReadDir(dir); len(list) != maxPanics {
		t.Errorf("%d dumps", len(list))
	}
}

// TestPanicIsExplained: what is kept of a crash ends with the input that the core did not survive, and the panic says where it is: nobody
// writes what waits in the log any more.
func TestPanicIsExplained(t *testing.T) {
	p := ipam.Sound()
	p.Speaks = func(ipam.Verb, int, int) bool { panic("a bug") }
	dir := t.TempDir()
	log := slogTo(&buffer{})
	l := &life{c: Config{LogDir: dir}, log: log, clock: clock.Boot(), recorder: &recorder{policy: "sound", log: log}}
	d := &core{life: l, node: newNode(t, p), perform: func([]ipam.Effect) {}}
	d.step(ipam.Start{Boot: "b", Seed: 1, Version: ipam.Version, Settings: ipam.Defaults()})
	said := func() (said any) {
		defer func() { said = recover() }()
		defer d.crash()
		d.step(ipam.Del{Req: 1, Att: ipam.Attachment{Network: "aws-cni", ContainerID: "fatal", IfName: "eth0"}, Deadline: time.Hour, Version: 2})
		return nil
	}()
	path := filepath.Join(dir, "ipamd-panic-1.jsonl")
	if text := fmt.Sprint(said); !strings.Contains(text, "a bug") || !strings.Contains(text, path) {
		t.Errorf("the panic says %q, expected what happened and %s", text, path)
	}
	data := must.Get(os.ReadFile(path))(t)
	if all := strings.Split(strings.TrimSpace(string(data)), "\n"); len(all) != 3 || !strings.Contains(all[2], `"ContainerID":"fatal"`) {
		t.Errorf("the recording has %d lines, expected the header, the start and the fatal input:\n%s", len(all), data)
	}
}

// TestStreamBreaks: a reader that is gone or reads nothing does not stop the daemon.
func TestStreamBreaks(t *testing.T) {
	for _, name := range []string{"gone", "asleep"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, 2)
			path := filepath.Join(r.c.RunDir, "record.sock")
			l := must.Get(net.Listen("unix", path))(t)
			defer l.Close()
			conn := must.Get(net.Dial("unix", path))(t)
			defer conn.Close()
			reader := must.Get(l.Accept())(t)
			if name == "gone" {
				reader.Close()
			} else {
				defer reader.Close()
				_ = conn.(*net.UnixConn).SetWriteBuffer(4096)
			}
			r.c.Record = conn
			r.start().serves()
			r.add("one")
			for i := 0; name == "asleep" && i < 2000 && !strings.Contains(r.log.String(), "broke"); i++ {
				r.must(&ipc.Request{Verb: ipc.Del, Network: "aws-cni", ContainerID: "none", IfName: "eth0", PodName: strings.Repeat("x", 2000)})
			}
			r.eventually("it says that the stream broke", func() bool { return strings.Contains(r.log.String(), "recorder broke") })
			r.add("two")
			if name == "asleep" { // it learns that there is no more to come
				_ = reader.SetReadDeadline(time.Now().Add(soon))
				if _, err := io.Copy(io.Discard, reader); err != nil {
					t.Errorf("the reader of a stream that broke: %v, expected its end", err)
				}
			}
		})
	}
}

// list is a runtime's.
type list []ipam.Sandbox

func (l list) Sandboxes(context.Context) ([]ipam.Sandbox, error) { return append(list(nil), l...), nil }

// TestRuntimeListNeedsTheDaemonsOwnPod: the runtime's list is believed when it holds the daemon's own pod, and only
// then.
func TestRuntimeListNeedsTheDaemonsOwnPod(t *testing.T) {
	self := ipam.Pod{Namespace: "kube-system", Name: "aws-node-1"}
	old := ipam.Sandbox{ID: "old", Pod: self}
	now := ipam.Sandbox{ID: "now", Pod: self, Ready: true}
	web := ipam.Sandbox{ID: "web", Pod: ipam.Pod{Namespace: "default", Name: "web"}, Ready: true}
	for _, c := range []struct {
		name     string
		list     list
		self     ipam.Pod
		sandbox  string
		believed bool
	}{
		{"its own pod is listed", list{web, old, now}, self, "", true},
		{"another runtime's list", list{web}, self, "", false},
		{"an empty list", nil, self, "", false},
		{"only its last sandbox", list{web, old}, self, "", false},
		{"by its container ID", list{web, now}, ipam.Pod{}, "now", true},
		{"by another container ID", list{web, now}, self, "other", false},
		{"it runs in no pod", list{web}, ipam.Pod{}, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, 2)
			r.c.Runtime, r.c.Self, r.c.Sandbox = c.list, c.self, c.sandbox
			r.start()
			r.eventually("it serves", func() bool {
				out, err := r.call(&ipc.Request{Verb: ipc.Status})
				return err == nil && out.Ready
			})
			if refused := strings.Contains(r.log.String(), "runtime-list-refused"); refused == c.believed {
				t.Errorf("refused: %v\n%s", refused, r.log)
			}
		})
	}
}

// api is an API server whose Node object changes.
type api struct {
	mu    sync.Mutex
	tell  func(kube.NodeFacts)
	watch int
}

func (a *api) Pods(context.Context) ([]ipam.Pod, error) { return nil, nil }

func (a *api) ENIConfig(context.Context, *ipam.Settings) (ipam.ENIConfig, error) {
	return ipam.ENIConfig{}, os.ErrDeadlineExceeded
}

func (a *api) Watch(ctx context.Context, f func(kube.NodeFacts)) error {
	a.mu.Lock()
	a.tell = f
	a.watch++
	first := a.watch == 1
	a.mu.Unlock()
	f(kube.NodeFacts{MaxPods: 29})
	if first {
		return os.ErrDeadlineExceeded // it is watched again
	}
	<-ctx.Done()
	return ctx.Err()
}

func TestNodeFacts(t *testing.T) {
	r := newRig(t, 2)
	a := &api{}
	r.c.Pods = a
	r.start().serves()
	r.eventually("the watch is begun again", func() bool { a.mu.Lock(); defer a.mu.Unlock(); return a.watch == 2 })
	a.tell(kube.NodeFacts{MaxPods: 29, Cordoned: true})
	r.eventually("the core knows", func() bool {
		s := r.view().View.Settings
		return s.Cordoned && s.MaxPods == 29 && s.API && !s.Runtime
	})
	r.end()
	r.replays()
}
