package plugin

import (
	"io"
	"log/slog"
	"os"
	"strings"
	"syscall"
)

// maxLog is the size at which a log is put aside under the name NAME.1, in bytes: a node keeps at most twice that.
const maxLog = 64 << 20

// openLog opens what pluginLogFile names; nowhere when it is empty or cannot be written, for a log never fails a verb. It
// is never standard output, which belongs to the result.
func openLog(path, level string) (*slog.Logger, io.Closer) {
	switch path {
	case "":
		return slog.New(slog.DiscardHandler), io.NopCloser(nil)
	case "stdout", "stderr":
		return newLog(os.Stderr, level), io.NopCloser(nil)
	}
	f, err := appendTo(path)
	if err != nil {
		return slog.New(slog.DiscardHandler), io.NopCloser(nil)
	}
	return newLog(f, level), f
}

// appendTo opens a log. It does not wait for a reader, should the path be a FIFO.
func appendTo(path string) (*os.File, error) {
	open := func() (*os.File, error) {
		return os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY|syscall.O_NONBLOCK|syscall.O_NOCTTY, 0o600)
	}
	f, err := open()
	if err != nil {
		return nil, err
	}
	if st, err := f.Stat(); err != nil || st.Size() < maxLog { // what is no file has no size
		return f, nil
	}
	f.Close()
	os.Rename(path, path+".1")
	return open()
}

// newLog writes JSON, one line at once, so that plugins that run at the same time do not mix theirs.
func newLog(w io.Writer, level string) *slog.Logger {
	var l slog.Level // Info, also where the word is none
	l.UnmarshalText([]byte(strings.ToUpper(level)))
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{Level: l})).With("pid", os.Getpid())
}
