package node

import (
	"errors"
	"os"
)

// log is Output: a file that begins anew when it is full. The full one is kept as OlderOutput until the next is, so that neither a daemon that
// prints without end fills the node's memory, nor its last lines are lost.
type log struct {
	file *os.File
	size int64
}

// maxOutput bounds each of the two, in bytes.
const maxOutput = 4 << 20

func openOutput() (*log, error) {
	f, err := os.OpenFile(Output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &log{f, info.Size()}, nil
}

// Write never fails: a daemon does not end because its output cannot be kept.
func (l *log) Write(p []byte) (int, error) {
	if l.size+int64(len(p)) > maxOutput {
		l.anew()
	}
	n, _ := l.file.Write(p)
	l.size += int64(n)
	return len(p), nil
}

func (l *log) anew() {
	if os.Rename(Output, OlderOutput) != nil {
		return
	}
	f, err := os.OpenFile(Output, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		return
	}
	_ = l.file.Close()
	l.file, l.size = f, 0
}

func (l *log) close() { _ = l.file.Close() }
