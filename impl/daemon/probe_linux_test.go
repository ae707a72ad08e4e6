package daemon

import (
	"bytes"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/settings"
	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
)

// answering listens as a daemon that always says the same; nil: it says nothing.
func answering(t *testing.T, out *ipc.Response) (socket string) {
	t.Helper()
	dir, err := os.MkdirTemp("", "ipamd") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	l := must.Get(ipc.Listen(filepath.Join(dir, "s")))(t)
	t.Cleanup(func() { l.Close() })
	go accept.Each(l.Accept, func(p *ipc.Peer) {
		go func() {
			defer p.Close()
			if _, _, err := p.Read(); err == nil && out != nil {
				_ = p.Write(out)
			}
			<-p.Gone()
		}()
	})
	return filepath.Join(dir, "s")
}

// TestProbes: what each of the two wants to know, within a second: kubelet's patience unless it is told otherwise. Only a daemon that hangs
// takes as long as is asked of it, and a busy machine longer still, so the second is the constant's, and that it is kept shows in what is
// not waited for: an operator's patience.
func TestProbes(t *testing.T) {
	if statusBound >= askStatus || askStatus >= time.Second {
		t.Errorf("the daemon answers within %v, who asks waits for %v: expected the former to be less, and both less than a second", statusBound, askStatus)
	}
	rival := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { rival.Close() })
	nobody := filepath.Join(t.TempDir(), "s")
	for name, c := range map[string]struct {
		socket, rival        string
		ready, serves, alive bool
		says                 string // of liveness, or its error
	}{
		"serves":                  {socket: answering(t, &ipc.Response{Ready: true, Serving: true}), ready: true, serves: true, alive: true, says: "alive"},
		"recovers":                {socket: answering(t, &ipc.Response{Ready: true, Reasons: []string{"ipamd recovers"}}), ready: true, alive: true, says: "alive"},
		"can take no pods":        {socket: answering(t, &ipc.Response{Reasons: []string{"EC2 refuses"}}), alive: true, says: "alive"},
		"is stuck":                {socket: answering(t, &ipc.Response{Ready: true, Busy: true, Reasons: []string{"ipamd is busy"}}), ready: true, says: "busy"},
		"refuses":                 {socket: answering(t, &ipc.Response{Code: 7, Text: "only root may ask"}), says: "only root"},
		"hangs, as its own port":  {socket: answering(t, nil), rival: rival.Addr().String(), says: "did not answer"},
		"hangs":                   {socket: answering(t, nil), says: "did not answer"},
		"is not there":            {socket: nobody, says: "does not run"},
		"waits for another CNI's": {socket: nobody, rival: rival.Addr().String(), alive: true, says: "alive, and waits: another CNI's daemon"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &settings.Settings{Socket: c.socket, Rival: c.rival}
			for probe, want := range map[string]bool{"": c.ready, readiness: c.serves, liveness: c.alive} {
				var out bytes.Buffer
				began := time.Now()
				err := ask(&out, ipc.Status, probe, s)
				if took := time.Since(began); took >= askBound {
					t.Errorf("%q took %v, an operator's patience", probe, took)
				}
				if (err == nil) != want {
					t.Errorf("%q: %v, %s", probe, err, &out)
				}
				if err != nil {
					out.WriteString(err.Error())
				}
				if probe == liveness && !strings.Contains(out.String(), c.says) {
					t.Errorf("liveness says %q, expected %q", &out, c.says)
				}
			}
		})
	}
}

// TestRecordIsPrinted: the recording as it is, for `enilab replay`; one that is too long for an answer is in a file, which is named.
func TestRecordIsPrinted(t *testing.T) {
	for d, want := range map[Dump]string{
		{File: "/var/log/r.jsonl", Recording: "a header\na line\n"}: "a header\na line\n",
		{File: "/var/log/r.jsonl"}:                                  "the daemon wrote it to /var/log/r.jsonl",
	} {
		body, err := json.Marshal(d)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		s := &settings.Settings{Socket: answering(t, &ipc.Response{Body: body})}
		err = ask(&out, ipc.Record, "", s)
		if long := d.Recording == ""; long != (err != nil) || long && !strings.Contains(err.Error(), want) || !long && out.String() != want {
			t.Errorf("%+v is printed as %q, %v; expected %q", d, &out, err, want)
		}
	}
}

// TestHungLoopIsReportedInTime: when the daemon's own goroutine hangs somebody else says so, in the time that STATUS
// has.
func TestHungLoopIsReportedInTime(t *testing.T) {
	r := newRig(t, 2)
	h := &hanging{gate: make(chan struct{})}
	r.c.Record = h
	r.start().serves()
	h.on.Store(true)
	hung := must.Get(ipc.Dial(r.socket(), soon))(t)
	defer hung.Close()
	go func() { _, _ = hung.Call(delOf("nobody"), soon) }() // a step, which the recording's stream holds up
	r.eventually("STATUS says that it is stuck, on a node that has served", func() bool {
		out := r.must(&ipc.Request{Verb: ipc.Status})
		if out.Busy && !out.Ready {
			t.Error("for a daemon that is stuck the runtime reports the network down, and pods are evicted")
		}
		return out.Busy
	})
	s := &settings.Settings{Socket: r.socket()}
	if err := ask(&bytes.Buffer{}, ipc.Status, liveness, s); err == nil {
		t.Error("a daemon that is stuck is alive")
	}
	close(h.gate)
	r.eventually("it is alive again", func() bool { return ask(&bytes.Buffer{}, ipc.Status, liveness, s) == nil })
}

// hanging is a recording's stream that hangs when it is switched on, until the gate is open.
type hanging struct {
	on   atomic.Bool
	gate chan struct{}
}

func (h *hanging) Write(b []byte) (int, error) {
	if h.on.Load() {
		<-h.gate
	}
	return len(b), nil
}
