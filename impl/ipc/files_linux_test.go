package ipc_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/enilab/enilab/impl/ipc"
)

// TestNoFilesLeft: a daemon that has as many files open as it may says so, and not that too many came.
func TestNoFilesLeft(t *testing.T) {
	l, path := listen(t)
	c := dial(t, path)
	p, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	file, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := c.Call(&ipc.Request{Verb: ipc.Add}, moment, file)
		answered <- err
	}()
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	none := limit
	none.Cur = 3
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, _, err = p.Read()
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if !errors.Is(err, ipc.ErrNoFiles) {
		t.Errorf("%v, expected %v", err, ipc.ErrNoFiles)
	}
	p.Close()
	<-answered
}
