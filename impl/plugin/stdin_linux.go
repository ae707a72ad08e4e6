package plugin

import (
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// patient reads until stdinPatience is over. It waits in poll(2) and not on a goroutine: each that waits costs this short process a
// thread.
func patient(f *os.File) io.Reader { return waiting{f, time.Now().Add(stdinPatience)} }

type waiting struct {
	f     *os.File
	until time.Time
}

func (w waiting) Read(b []byte) (int, error) {
	for {
		left := time.Until(w.until)
		if left <= 0 {
			return 0, os.ErrDeadlineExceeded
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(w.f.Fd()), Events: unix.POLLIN}}, int(left/time.Millisecond)+1)
		switch {
		case err == unix.EINTR || err == nil && n == 0:
			continue
		case err != nil:
			return 0, os.NewSyscallError("poll", err)
		}
		return w.f.Read(b)
	}
}

// fileOf is a file in memory that has data.
func fileOf(data []byte) (*os.File, error) {
	fd, err := unix.MemfdCreate("stdin", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), "stdin")
	if _, err = f.Write(data); err == nil {
		_, err = f.Seek(0, io.SeekStart)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
