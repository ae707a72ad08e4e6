package agent

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// soon bounds every wait of a test: who has not come by then hangs. What takes its own time does so on a busy machine too, so no test
// compares what it took with less.
const soon = 30 * time.Second

func TestParse(t *testing.T) {
	var out bytes.Buffer
	if _, err := parse([]string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), "ipamd init") {
		t.Errorf("help: %v\n%s", err, out.String())
	}
	f, err := parse([]string{"--clock", "unix:/a", "--record", "unix:/b", "--record-version", "1"}, io.Discard)
	if err != nil || f.clock != "unix:/a" || f.record != "unix:/b" || f.recordVersion != 1 {
		t.Errorf("%+v %v", f, err)
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

func TestLogFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "ipamd.log")
	l, err := openLogFile(name)
	if err != nil {
		t.Fatal(err)
	}
	l.size = maxLogFile
	for range 2 {
		if _, err := l.Write([]byte("a line\n")); err != nil {
			t.Fatal(err)
		}
	}
	if data, err := os.ReadFile(name); err != nil || string(data) != "a line\na line\n" || !exists(name+".1") {
		t.Errorf("%q %v", data, err)
	}
}

// slow is a disk that hangs.
type slow struct{ leave chan struct{} }

func (s slow) Write(b []byte) (int, error) { <-s.leave; return len(b), nil }

// TestLogNeverBlocks: who writes a line does not wait for where it goes.
func TestLogNeverBlocks(t *testing.T) {
	s := slow{make(chan struct{})}
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
	if l.lost.Load() == 0 {
		t.Error("nothing was lost, and nothing was read")
	}
	close(s.leave)
	l.close()
}
