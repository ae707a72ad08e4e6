package ipc_test

import (
	"errors"
	"os"
	"syscall"
	"testing"

	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// TestNoFilesLeft: a daemon that has as many files open as it may says so, and not that too many came.
func TestNoFilesLeft(t *testing.T) {
	l, path := listen(t)
	c := dial(t, path)
	p := must.Get(l.Accept())(t)
	defer p.Close()
	file := must.Get(os.Open(os.DevNull))(t)
	defer file.Close()
	answered := make(chan error, 1)
	go func() {
		_, err := c.Call(&ipc.Request{Verb: ipc.Add}, moment, file)
		answered <- err
	}()
	var limit syscall.Rlimit
	must.Do(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	none := limit
	none.Cur = 3
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &none))
	_, _, err := p.Read()
	must.Do(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
	if !errors.Is(err, ipc.ErrNoFiles) {
		t.Errorf("%v, expected %v", err, ipc.ErrNoFiles)
	}
	p.Close()
	<-answered
}
