package daemon

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// Bounds of the log. A caller that writes a line never waits for a disk or a pipe: a container runtime that does not
// read its containers' standard error must not stop a network.
const (
	maxLines   = 4096            // that wait to be written; more are counted and lost
	maxLogFile = 32 << 20        // bytes; then the file becomes NAME.1 and a new one begins
	flushBound = 2 * time.Second // at the end, for what waits
)

// openLog is where log lines go: "stdout", "stderr", or a file and standard error. The error says why there is no file.
func openLog(name string) (w io.Writer, end func(), err error) {
	l := &lines{queue: make(chan []byte, maxLines), done: make(chan struct{})}
	switch name {
	case "stdout":
		l.to = []io.Writer{os.Stdout}
	case "stderr", "":
		l.to = []io.Writer{os.Stderr}
	default:
		l.to = []io.Writer{os.Stderr}
		var f *logFile
		if f, err = openLogFile(name); err == nil {
			l.to = append(l.to, f)
		}
	}
	go l.run()
	return l, l.close, err
}

// lines writes log lines on a goroutine of its own.
type lines struct {
	to    []io.Writer
	queue chan []byte
	lost  atomic.Int64
	done  chan struct{}
}

// Write takes one line (slog writes each with one call).
func (l *lines) Write(b []byte) (int, error) {
	select {
	case l.queue <- append([]byte(nil), b...):
	default:
		l.lost.Add(1)
	}
	return len(b), nil
}

func (l *lines) run() {
	defer close(l.done)
	for b := range l.queue {
		if b == nil {
			return
		}
		for _, w := range l.to {
			_, _ = w.Write(b) // there is nowhere else to report it
		}
		if n := l.lost.Swap(0); n > 0 {
			for _, w := range l.to {
				fmt.Fprintf(w, "level=WARN msg=\"log lines were lost: they came faster than they could be written\" lines=%d\n", n)
			}
		}
	}
}

// close waits a little for what was written.
func (l *lines) close() {
	end := time.After(flushBound)
	select {
	case l.queue <- nil:
	case <-end:
		return
	}
	select {
	case <-l.done:
	case <-end:
	}
}

// logFile is a file that begins again when it is full.
type logFile struct {
	name string
	f    *os.File
	size int64
}

func openLogFile(name string) (*logFile, error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return nil, err
	}
	l := &logFile{name: name}
	return l, l.open()
}

func (l *logFile) open() error {
	f, err := os.OpenFile(l.name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	l.f, l.size = f, 0
	if st, err := f.Stat(); err == nil {
		l.size = st.Size()
	}
	return nil
}

func (l *logFile) Write(b []byte) (int, error) {
	if l.f == nil || l.size+int64(len(b)) > maxLogFile {
		if l.f != nil {
			l.f.Close()
			l.f = nil
			_ = os.Rename(l.name, l.name+".1") // else the old file goes on
		}
		if err := l.open(); err != nil {
			return 0, err
		}
	}
	n, err := l.f.Write(b)
	l.size += int64(n)
	return n, err
}
