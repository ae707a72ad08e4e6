package plugin

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/containernetworking/cni/libcni"
	"github.com/containernetworking/cni/pkg/skel"
	"github.com/containernetworking/cni/pkg/types"

	"github.com/enilab/enilab/impl/conflist"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// TestWarnsWhereConflistAndDaemonDiffer: a warning is written for what the conflist says and ipamd does otherwise, and
// for nothing else.
func TestWarnsWhereConflistAndDaemonDiffer(t *testing.T) {
	for _, c := range []struct {
		prefix, veth string
		mtu, made    int
		warns        int
	}{
		{"eni", "eni123", 9001, 9001, 0},
		{"", "vlan1", 0, 9001, 0},
		{"eni", "", 0, 0, 0},
		{"eni", "vlan1", 9001, 9001, 1},
		{"eni", "eni1", 1500, 9001, 1},
		{"eni", "vlan1", 1500, 9001, 2},
	} {
		var b bytes.Buffer
		v := &verb{log: newLog(&b, "nonsense")}
		v.conf.VethPrefix, v.conf.MTU = c.prefix, c.mtu
		v.compare(&ipc.Response{Veth: c.veth}, &link{mtu: c.made})
		if n := strings.Count(b.String(), "WARN"); n != c.warns {
			t.Errorf("%+v: %d warnings\n%s", c, n, &b)
		}
	}
}

// TestLogSaysHowAVerbEnded: the log says how a verb ended.
func TestLogSaysHowAVerbEnded(t *testing.T) {
	for _, err := range []error{nil, errors.New("no")} {
		var b bytes.Buffer
		v := &verb{log: newLog(&b, ""), ended: io.NopCloser(nil), args: &skel.CmdArgs{}}
		if got := v.end(err); got != err {
			t.Errorf("end made %v of %v", got, err)
		}
		if failed := strings.Contains(b.String(), `"failed"`); failed != (err != nil) || strings.Contains(b.String(), `"done"`) == failed {
			t.Errorf("%v ended as %s", err, &b)
		}
	}
}

// TestCallEndsItsConnection: the daemon sees that the caller is gone once it has the answer, not only when the process
// ends.
func TestCallEndsItsConnection(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	l := must.Get(ipc.Listen(path))(t)
	defer l.Close()
	gone := make(chan (<-chan struct{}), 1)
	go func() {
		if p, err := l.Accept(); err == nil {
			_, _, _ = p.Read()
			_ = p.Write(&ipc.Response{})
			gone <- p.Gone()
		}
	}()
	const bound = 20 * time.Second
	must.Get(call(path, &ipc.Request{Verb: ipc.Status}, bound, nil))(t)
	select {
	case <-<-gone:
	case <-time.After(bound):
		t.Error("the connection stays open")
	}
}

func TestPipeOf(t *testing.T) {
	f := must.Get(pipeOf([]byte("what is said")))(t)
	defer f.Close()
	if b, err := io.ReadAll(f); string(b) != "what is said" {
		t.Errorf("%q, %v", b, err)
	}
}

// A list as libcni of today and of containerd 1.7 reads it.
func TestConflist(t *testing.T) {
	raw := conflist.Make(conflist.Options{
		MTU: 1500, PluginLogFile: "/var/log/p.log", Socket: "/run/s", StateDir: "/run/d", LocalProtocol: 1, Timeout: 5 * time.Second,
		Chained: []json.RawMessage{conflist.PortMap(), json.RawMessage(`{`), conflist.Bandwidth()},
	})
	list, err := libcni.ConfListFromBytes(raw)
	if err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if list.Name != "aws-cni" || list.CNIVersion != "1.1.0" || list.DisableCheck || list.DisableGC {
		t.Errorf("list %+v", list)
	}
	var types []string
	for _, p := range list.Plugins {
		types = append(types, p.Network.Type)
	}
	if want := []string{"aws-cni", "portmap", "bandwidth"}; !reflect.DeepEqual(types, want) {
		t.Errorf("plugins %v, expected %v", types, want)
	}
	var old struct{ CNIVersion string }
	if err := json.Unmarshal(raw, &old); err != nil || old.CNIVersion != "0.4.0" {
		t.Errorf("a reader that knows no cniVersions takes %q", old.CNIVersion)
	}
	c, err := parseConf(list.Plugins[0].Bytes)
	if err != nil || c.Socket != "/run/s" || c.StateDir != "/run/d" || c.Protocol != 1 || c.Timeout != 5*time.Second || c.MTU != 1500 || c.VethPrefix != "eni" || c.LogFile != "/var/log/p.log" {
		t.Errorf("the plugin reads %+v, %v", c, err)
	}
	bare := must.Get(libcni.ConfListFromBytes(conflist.Make(conflist.Options{})))(t)
	if c, err := parseConf(bare.Plugins[0].Bytes); err != nil || c.StateDir != StateDir || c.Protocol != ipam.Version || c.Timeout != defaultTimeout || c.MTU != 9001 {
		t.Errorf("the defaults are %+v, %v", c, err)
	}
}

func TestMissed(t *testing.T) {
	const s = time.Second
	for name, c := range map[string]struct {
		at      []time.Duration // of the misses
		reached time.Duration   // an answer before the miss at that index; 0: none
		want    time.Duration
	}{
		"once":                   {at: []time.Duration{100 * s}, want: 0},
		"every ten seconds":      {at: []time.Duration{100 * s, 110 * s, 120 * s, 170 * s}, want: 70 * s},
		"a silence between":      {at: []time.Duration{100 * s, 200 * s}, want: 0},
		"a silence, then again":  {at: []time.Duration{100 * s, 200 * s, 230 * s}, want: 30 * s},
		"an answer between":      {at: []time.Duration{100 * s, 150 * s, 170 * s}, reached: 1, want: 20 * s},
		"a clock that went back": {at: []time.Duration{100 * s, 5 * s}, want: 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := contact{t.TempDir()}
			if _, served := k.missed(0); served {
				t.Error("served before the first answer")
			}
			k.reached(true)
			var got time.Duration
			for i, at := range c.at {
				if i > 0 && time.Duration(i) == c.reached {
					k.reached(false)
				}
				var served bool
				if got, served = k.missed(at); !served {
					t.Error("it has served")
				}
			}
			if got != c.want {
				t.Errorf("out of reach for %v, expected %v", got, c.want)
			}
		})
	}
	// A damaged file, and a folder that cannot be written: the count begins again.
	k := contact{t.TempDir()}
	os.WriteFile(filepath.Join(k.dir, missedFile), []byte("yesterday"), 0o600)
	if since, _ := k.missed(time.Hour); since != 0 {
		t.Errorf("out of reach for %v by a damaged file", since)
	}
	if since, _ := (contact{"/proc/nowhere"}).missed(time.Hour); since != 0 {
		t.Errorf("out of reach for %v without a file", since)
	}
}

func TestPodArgs(t *testing.T) {
	web := ipam.Pod{Namespace: "default", Name: "web-0", UID: "u"}
	for args, want := range map[string]struct {
		pod ipam.Pod
		bad bool
	}{
		"": {},
		"K8S_POD_UID=u;IgnoreUnknown=1;K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=default":   {pod: web},
		"K8S_POD_NAME=web-0;OTHER=a=b;K8S_POD_NAMESPACE=default;K8S_POD_UID=u;":        {pod: web},
		"K8S_POD_NAME=web-0;nonsense;K8S_POD_NAMESPACE=default;K8S_POD_UID=u;nonsense": {pod: web, bad: true},
		"K8S_POD_NAME=a;K8S_POD_NAMESPACE=b":                                           {pod: ipam.Pod{Namespace: "b", Name: "a"}},
	} {
		if got, err := podArgs(args); got != want.pod || (err != nil) != want.bad {
			t.Errorf("%q: %+v, %v; expected %+v", args, got, err, want)
		}
	}
}

func TestLog(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "plugin.log")
	for _, level := range []string{"debug", "WARN", "verbose"} {
		log, f := openLog(path, level)
		log.Debug("a debug line")
		log.Info("an info line")
		log.Error("an error line")
		f.Close()
	}
	raw := must.Get(os.ReadFile(path))(t)
	for line, want := range map[string]int{"a debug line": 1, "an info line": 2, "an error line": 3} {
		if got := strings.Count(string(raw), line); got != want {
			t.Errorf("%q is there %d times, expected %d", line, got, want)
		}
	}
	for line := range bytes.Lines(raw) {
		if !json.Valid(line) {
			t.Errorf("%q is no JSON", line)
		}
	}
	for _, nowhere := range []string{"", "/proc/nowhere/x", dir, "stderr"} {
		log, f := openLog(nowhere, "error")
		log.Info("into the void")
		f.Close()
	}
	// A log that has become large makes room.
	must.Do(t, os.Truncate(path, maxLog))
	log, f := openLog(path, "info")
	log.Info("fresh")
	f.Close()
	if st, err := os.Stat(path); err != nil || st.Size() > 1000 {
		t.Errorf("the log was not put aside: %v", err)
	}
	if st, err := os.Stat(path + ".1"); err != nil || st.Size() != maxLog {
		t.Errorf("the old log is gone: %v", err)
	}
}

// badReader fails.
type badReader struct{}

func (badReader) Read([]byte) (int, error) { return 0, errors.New("bad file descriptor") }

func TestReadConf(t *testing.T) {
	if _, err := readConf(badReader{}); err == nil || err.Code != 5 {
		t.Errorf("standard input that is closed: %v", err)
	}
	if _, err := readConf(io.LimitReader(endless{}, maxConf+10)); err == nil || err.Code != 7 {
		t.Errorf("standard input without end: %v", err)
	}
	if got, err := readConf(strings.NewReader("{}")); err != nil || string(got) != "{}" {
		t.Errorf("read %q, %v", got, err)
	}
}

// endless is a reader of spaces.
type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	return len(b), nil
}

// TestDependencies: the plugin starts for every pod; these cost more than its whole run.
func TestDependencies(t *testing.T) {
	out := must.Get(exec.Command("go", "list", "-deps", "github.com/enilab/enilab/cmd/aws-cni").Output())(t)
	for dep := range strings.Lines(string(out)) {
		dep = strings.TrimSpace(dep)
		for _, heavy := range []string{"net/http", "text/template", "google.golang.org/", "k8s.io/", "github.com/aws/", "github.com/spf13/", "github.com/vishvananda/netlink",
			"github.com/enilab/enilab/fakes", "github.com/enilab/enilab/sim", "github.com/enilab/enilab/impl/dataplane/linux"} {
			if strings.HasPrefix(dep, heavy) {
				t.Errorf("cmd/aws-cni links %s", dep)
			}
		}
	}
}

// TestStatusPatience: a STATUS whose daemon hangs ends within the second that a runtime has for it, and time is left to start a process.
func TestStatusPatience(t *testing.T) {
	if statusTimeout > 800*time.Millisecond {
		t.Errorf("STATUS waits %v for the daemon: expected at most 800 ms", statusTimeout)
	}
}

func TestCodeOf(t *testing.T) {
	for _, c := range []struct {
		err  error
		want uint
	}{{nil, 0}, {errors.New("any"), types.ErrInternal}, {fmt.Errorf("around: %w", errorf(11, "again")), 11}} {
		if have := codeOf(c.err); have != c.want {
			t.Errorf("%v: %d, expected %d", c.err, have, c.want)
		}
	}
}
