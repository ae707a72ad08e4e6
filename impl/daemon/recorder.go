package daemon

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// recorder is the flight recorder: what the Node was, and every input since. Memory holds two segments, each of which begins with
// the Node as it was; so the older one may be forgotten at any time, and what is left can be stepped again.
type recorder struct {
	policy string
	stream io.Writer // has every step before its effects begin; nil once it broke
	log    *slog.Logger

	dumping sync.Mutex // there is one file for all who ask

	mu       sync.Mutex // a goroutine that panics or dumps reads the ring
	writer   *ipam.Recording
	old, now segment
	broken   bool // the Node cannot be recorded: a bug, said once
}

// segment is a header and the lines after it.
type segment struct{ header, lines []byte }

// turn begins a segment when there is none or it is full. The Node is as it is before the next step.
func (r *recorder) turn(n *ipam.Node) {
	if r.broken || r.writer != nil && len(r.now.lines) < ringSegment {
		return
	}
	w, err := ipam.NewRecording(n, r.policy)
	if err != nil {
		r.fail(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	first := r.writer == nil
	r.writer = w
	spare := r.old.lines
	r.old = r.now
	r.now = segment{w.Header(), spare[:0]}
	if first {
		r.send(w.Header())
	}
}

// line records a step.
func (r *recorder) line(at time.Duration, in ipam.Input, effs []ipam.Effect) {
	if r.broken {
		return
	}
	text, err := r.writer.Line(at, in, effs)
	if err != nil {
		r.fail(err)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.now.lines = append(r.now.lines, text...)
	r.send(text)
}

// fatal records the input that the Node did not survive, in memory alone: a reader that steps with the stream would
// not survive it either. Its effects are those that came out, none.
func (r *recorder) fatal(at time.Duration, in ipam.Input) {
	if r.broken {
		return
	}
	if text, err := r.writer.Line(at, in, nil); err == nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.now.lines = append(r.now.lines, text...)
	}
}

// send writes to the stream. One that breaks or hangs is dropped: the daemon goes on.
func (r *recorder) send(text []byte) {
	if r.stream == nil {
		return
	}
	if c, ok := r.stream.(net.Conn); ok {
		_ = c.SetWriteDeadline(time.Now().Add(streamBound)) // a failure shows in Write
	}
	if _, err := r.stream.Write(text); err != nil {
		r.log.Error("the stream of the flight recorder broke; nobody gets the steps from here on", "err", err)
		if c, ok := r.stream.(io.Closer); ok {
			_ = c.Close() // its reader knows then that this is all
		}
		r.stream = nil
	}
}

// fail ends recording. A gap would make the rest worthless.
func (r *recorder) fail(err error) {
	r.broken = true
	r.log.Error("the flight recorder cannot go on: a bug", "err", err)
}

// recording is what the ring holds, as one recording.
func (r *recorder) recording() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.old.header == nil {
		return append(append([]byte(nil), r.now.header...), r.now.lines...)
	}
	b := make([]byte, 0, len(r.old.header)+len(r.old.lines)+len(r.now.lines))
	b = append(append(b, r.old.header...), r.old.lines...)
	return append(b, r.now.lines...)
}

// dumpFile is the dump that was asked for; the next one replaces it.
const dumpFile = "ipamd-recording.jsonl"

func (r *recorder) dump(dir string) (path string, data []byte, err error) {
	r.dumping.Lock()
	defer r.dumping.Unlock()
	data = r.recording()
	path = filepath.Join(dir, dumpFile)
	return path, data, os.WriteFile(path, data, 0o600)
}

// panicked keeps the recording of a crash. The first ones stay: what crashes again usually does so for the same reason.
func (r *recorder) panicked(dir string) (path string, err error) {
	if !r.mu.TryLock() { // it crashed in here
		return "", fmt.Errorf("the flight recorder was busy")
	}
	r.mu.Unlock()
	for i := 1; i <= maxPanics; i++ {
		if path = filepath.Join(dir, fmt.Sprintf("ipamd-panic-%d.jsonl", i)); !exists(path) {
			break
		}
	}
	return path, os.WriteFile(path, r.recording(), 0o600)
}
