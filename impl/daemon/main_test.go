package daemon

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/clock"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/impl/settings"
	"github.com/enilab/enilab/internal/must"
)

// soon bounds every wait of a test: who has not come by then hangs. What takes its own time does so on a busy machine too, so no test
// compares what it took with less.
const soon = 30 * time.Second

// TestSaid: a refusal is a warning, a success is not, and of what only looks nothing is said.
func TestSaid(t *testing.T) {
	for _, c := range []struct {
		verb string
		out  ipc.Response
		says string
	}{{ipc.Add, ipc.Response{}, "level=DEBUG msg=done"}, {ipc.Add, ipc.Response{Code: 11}, "level=WARN msg=refused"},
		{ipc.Del, ipc.Response{Code: 5}, "level=WARN msg=refused"}, {ipc.View, ipc.Response{}, ""},
		{ipc.Status, ipc.Response{Ready: true}, ""}, {ipc.Status, ipc.Response{}, "level=DEBUG msg=\"not ready\""}} {
		var b bytes.Buffer
		log := slog.New(slog.NewTextHandler(&b, &slog.HandlerOptions{Level: slog.LevelDebug}))
		rs := &requests{core: &core{life: &life{log: log, clock: clock.Boot()}}}
		rs.said(&caller{q: &ipc.Request{Verb: c.verb}}, &c.out)
		if got := b.String(); !strings.Contains(got, c.says) || c.says == "" && got != "" {
			t.Errorf("%v, answered %+v: expected %q, found %q", c.verb, c.out, c.says, got)
		}
	}
}

// TestNoteIsLogged with the subjects that it has, and no others.
func TestNoteIsLogged(t *testing.T) {
	for text, n := range map[string]ipam.Note{
		"level=WARN msg=eni-missing eni=eni-1":     {Point: ipam.ENIMissing, Warn: true, ENI: "eni-1"},
		"level=INFO msg=eni-missing":               {Point: ipam.ENIMissing},
		"level=INFO msg=address-missing text=gone": {Point: ipam.AddressMissing, Text: "gone"},
	} {
		var b bytes.Buffer
		d := &daemon{life: life{log: slog.New(slog.NewTextHandler(&b, nil))}}
		d.note(&n)
		if got := strings.TrimSpace(b.String()); !strings.HasSuffix(got, text) {
			t.Errorf("expected %q, found %q", text, got)
		}
	}
}

// TestLogGoesTo: standard error, unless it is standard output, and a file besides.
func TestLogGoesTo(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ipamd.log")
	for name, want := range map[string]struct {
		first io.Writer
		count int
	}{"": {os.Stderr, 1}, "stderr": {os.Stderr, 1}, "stdout": {os.Stdout, 1}, file: {os.Stderr, 2}} {
		w, end, err := openLog(name)
		if err != nil {
			t.Fatal(err)
		}
		if l := w.(*lines); len(l.to) != want.count || l.to[0] != want.first {
			t.Errorf("%q: the log goes to %v", name, l.to)
		}
		end()
	}
}

// TestALogFileThatCannotBeMadeIsTold: the log goes on to standard error, and says so.
func TestALogFileThatCannotBeMadeIsTold(t *testing.T) {
	dir := t.TempDir()
	for name, told := range map[string]bool{filepath.Join(dir, "a file", "ipamd.log"): true, filepath.Join(dir, "ipamd.log"): false} {
		must.Do(t, os.WriteFile(filepath.Join(dir, "a file"), nil, 0o644))
		was, out := os.Stderr, must.Get(os.Create(filepath.Join(dir, "stderr")))(t)
		os.Stderr = out
		log, end := logOf(&settings.Settings{LogFile: name})
		os.Stderr = was
		log.Info("a line")
		end()
		must.Do(t, out.Close())
		said := string(must.Get(os.ReadFile(out.Name()))(t))
		if strings.Contains(said, "cannot be written") != told || !strings.Contains(said, "a line") {
			t.Errorf("%s: standard error has %q", name, said)
		}
	}
}

// TestADamagedAnswerIsAnError, and nothing is printed of it.
func TestADamagedAnswerIsAnError(t *testing.T) {
	for name, show := range map[string]func(io.Writer, *ipc.Response) error{"view": printView, "record": printRecord} {
		var out bytes.Buffer
		if err := show(&out, &ipc.Response{Body: []byte(`{"half`)}); err == nil || !strings.HasPrefix(err.Error(), name+": ") || out.Len() > 0 {
			t.Errorf("%s: %v, printed %q", name, err, out.String())
		}
	}
}

func TestParse(t *testing.T) {
	var out bytes.Buffer
	if _, err := parse([]string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "ipamd init") {
		t.Errorf("help: %v\n%s", err, out.String())
	}
	f, err := parse([]string{"--clock", "unix:/a", "--record", "unix:/b", "--record-version", "1", "--booted", "5s"}, io.Discard)
	if err != nil || f.booted != 5*time.Second || f.clock != "unix:/a" || f.record != "unix:/b" || f.recordVersion != 1 {
		t.Errorf("%+v %v", f, err)
	}
	if f, err := parse(nil, io.Discard); err != nil || f.init || f.ask != "" {
		t.Errorf("no arguments: %+v %v", f, err)
	}
	if f, err := parse([]string{"init"}, io.Discard); err != nil || !f.init || f.recordVersion != ipam.Version {
		t.Errorf("%+v %v", f, err)
	}
	for _, verb := range []string{"status", "view", "record"} {
		if f, err := parse([]string{verb}, io.Discard); err != nil || f.ask != verb {
			t.Errorf("%s: %+v %v", verb, f, err)
		}
	}
	if f, err := parse([]string{"status", "--probe=liveness"}, io.Discard); err != nil || f.ask != "status" || f.probe != liveness {
		t.Errorf("%+v %v", f, err)
	}
	for _, bad := range [][]string{{"--probe=liveness"}, {"view", "--probe=liveness"}, {"status", "--probe=startup"}, {"serve"}, {"del"}, {"status", "view"}, {"--clock", "/a"}, {"--record-version", "0"}, {"--record-version", "99"}, {"--nothing"}} {
		if _, err := parse(bad, io.Discard); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestEnvironmentOfEC2IsAProblemLikeAnyOther: a daemon whose EC2 client cannot be made says so, stays up, and whoever asks EC2 hears why.
func TestEnvironmentOfEC2IsAProblemLikeAnyOther(t *testing.T) {
	s, problems := settings.Read(func(string) (string, bool) { return "", false })
	log := slog.New(slog.DiscardHandler)
	for bundle, want := range map[string]string{"": "", "/nonexistent/bundle": "AWS_CA_BUNDLE"} {
		t.Setenv("AWS_CA_BUNDLE", bundle)
		c := configure(s, problems, log)
		if said := strings.Join(c.Problems, "; "); (said == "") != (want == "") || !strings.Contains(said, want) {
			t.Errorf("AWS_CA_BUNDLE=%q: problems %q, expected %q", bundle, said, want)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if c.Cloud == nil {
			t.Errorf("AWS_CA_BUNDLE=%q: there is nobody to ask about EC2", bundle)
		} else if _, err := c.Cloud.ENIs(ended, []string{"eni-1"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("AWS_CA_BUNDLE=%q: EC2 answers %v, expected %q", bundle, err, want)
		}
	}
}

func TestLogFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "ipamd.log")
	l := must.Get(openLogFile(name))(t)
	l.size = maxLogFile
	for range 2 {
		must.Get(l.Write([]byte("a line\n")))(t)
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "a line\na line\n" || !exists(name+".1") {
		t.Errorf("%q %v", data, err)
	}
}

// slow is a disk that hangs.
type slow struct {
	leave chan struct{}
	has   bytes.Buffer
}

func (s *slow) Write(b []byte) (int, error) { <-s.leave; return s.has.Write(b) }

// TestLogNeverBlocks: who writes a line does not wait for where it goes, and how many were lost meanwhile is in
// the log, once.
func TestLogNeverBlocks(t *testing.T) {
	s := &slow{leave: make(chan struct{})}
	l := &lines{to: []io.Writer{s}, queue: make(chan []byte, maxLines), done: make(chan struct{})}
	go l.run()
	wrote := make(chan error, 1)
	go func() {
		for range 2 * maxLines {
			if _, err := l.Write([]byte("x\n")); err != nil {
				wrote <- err
				return
			}
		}
		wrote <- nil
	}()
	select {
	case err := <-wrote:
		if err != nil {
			t.Fatal(err)
		}
	case <-time.After(soon):
		t.Fatalf("waited %v for %d lines to be taken while the disk hangs", soon, 2*maxLines)
	}
	lost := l.lost.Load()
	if lost == 0 {
		t.Error("nothing was lost, and nothing was read")
	}
	close(s.leave)
	close(l.queue)
	select {
	case <-l.done:
	case <-time.After(soon):
		t.Fatalf("waited %v for what was taken to be written", soon)
	}
	text := s.has.String()
	if n := strings.Count(text, "x\n"); int64(n)+lost != 2*maxLines {
		t.Errorf("%d lines are written and %d lost, of %d", n, lost, 2*maxLines)
	}
	if n := strings.Count(text, "lost"); n != 1 || !strings.Contains(text, fmt.Sprintf("lines=%d\n", lost)) {
		t.Errorf("the log says %d times that lines were lost, of which there are %d", n, lost)
	}
}
