package daemon

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// TestWhoHasSpokenIsNotSilent: who was heard, or may not ask, is no longer among the callers of which the first goes when there are too many: it
// would lose its answer to the silence of others.
func TestWhoHasSpokenIsNotSilent(t *testing.T) {
	dir, err := os.MkdirTemp("", "ipamd") // a socket's path is short
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l := must.Get(ipc.Listen(path))(t)
	defer l.Close()
	for who, uid := range map[string]uint32{"one that left": 0, "one that is not root": 1000} {
		s := &server{life: &life{log: slog.New(slog.DiscardHandler)}}
		c := must.Get(net.Dial("unix", path))(t)
		p := must.Get(l.Accept())(t)
		p.UID = uid
		s.silent.add(p)
		c.Close()
		s.serve(p)
		if n := len(s.silent.peers); n != 0 {
			t.Errorf("%s: %d callers are taken for silent", who, n)
		}
	}
}

// TestNamespaceOfARequestThatIsNotTaken: it is let go, whether the daemon has ended by then or serves too many;
// a kept one would be a pod's for ever.
func TestNamespaceOfARequestThatIsNotTaken(t *testing.T) {
	if why := lacking(); why != "" {
		t.Skip("needs CAP_NET_ADMIN: whose namespace a socket is in can only be asked with it")
	}
	dir := must.Get(os.MkdirTemp("", "ipamd"))(t) // a socket's path is short
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l := must.Get(ipc.Listen(path))(t)
	defer l.Close()
	done := make(chan struct{})
	close(done)
	for _, c := range []struct {
		q     *ipc.Request
		slots int
		code  int // 0: nothing is answered
	}{{addOf("one"), 1, 0}, {delOf("one"), 1, 0}, {addOf("one"), 0, ipam.CodeTryAgain}} {
		files, inode := newNamespace(t).pass(t)
		defer closeAll(files)
		sent := files
		if c.q.Verb != ipc.Add {
			sent = nil
		}
		s := &server{life: &life{log: slog.New(slog.DiscardHandler), done: done}, slots: make(chan struct{}, c.slots)}
		open := openNamespaces(t, inode)
		conn := must.Get(ipc.Dial(path, soon))(t)
		answered := make(chan int, 1)
		go func() {
			code := 0
			if out, err := conn.Call(c.q, soon, sent...); err == nil {
				code = out.Code
			}
			answered <- code
		}()
		p := must.Get(l.Accept())(t)
		p.UID = 0
		s.serve(p)
		if code := <-answered; code != c.code {
			t.Errorf("%s, of %d callers: code %d, expected %d", c.q.Verb, c.slots, code, c.code)
		}
		conn.Close()
		if n := openNamespaces(t, inode); n != open || len(s.slots) != 0 {
			t.Errorf("%s, of %d callers: the namespace is open %d times, before %d; %d callers are served",
				c.q.Verb, c.slots, n, open, len(s.slots))
		}
	}
}

// TestSilentCallersAreHurried: when there are too many, the first that has said nothing is not heard any more, also where its request
// has come by then; the others are.
func TestSilentCallersAreHurried(t *testing.T) {
	dir := must.Get(os.MkdirTemp("", "ipamd"))(t)
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "s")
	l := must.Get(ipc.Listen(path))(t)
	defer l.Close()
	var s silent
	var callers []*ipc.Peer
	for range 2 {
		c := must.Get(ipc.Dial(path, soon))(t)
		defer c.Close()
		go func() { _, _ = c.Call(&ipc.Request{Verb: ipc.Status}, soon) }() // nobody answers it
		p := must.Get(l.Accept())(t)
		defer p.Close()
		s.add(p)
		callers = append(callers, p)
	}
	s.hurry(2)
	s.hurry(1)
	if len(s.peers) != 1 {
		t.Errorf("%d callers are silent", len(s.peers))
	}
	if q, _, err := callers[0].Read(); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the first caller is heard: %+v, %v", q, err)
	}
	if _, _, err := callers[1].Read(); err != nil {
		t.Errorf("the second caller is not heard: %v", err)
	}
}

// TestSocketRemoved: somebody removes the socket's file, and plugins find the daemon again.
func TestSocketRemoved(t *testing.T) {
	r := newRig(t, 2).start().serves()
	for range 2 {
		must.Do(t, os.Remove(r.socket()))
		r.eventually("the socket is there again", func() bool { return exists(r.socket()) })
	}
	r.add("one")
	r.del("one")
	if !strings.Contains(r.log.String(), "somebody has removed the socket") {
		t.Error("nobody says so")
	}
	r.end()
	if exists(r.socket()) {
		t.Error("the second socket is left")
	}
}

// TestIdleConnections: who connects and says nothing keeps nobody out.
func TestIdleConnections(t *testing.T) {
	r := newRig(t, 2).start().serves()
	for i := range 1500 {
		c, err := net.Dial("unix", r.socket())
		for until := time.Now().Add(soon); errors.Is(err, syscall.EAGAIN) && time.Now().Before(until); {
			c, err = net.Dial("unix", r.socket())
		}
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
	}
	r.add("one")
	r.del("one")
}

// TestLargeRequests: many long lists at once are read two at a time, and each has an answer.
func TestLargeRequests(t *testing.T) {
	r := newRig(t, 2).start().serves()
	q := &ipc.Request{Verb: ipc.GC, Network: "aws-cni"}
	for i := range 8000 {
		q.Valid = append(q.Valid, ipc.Attachment{ContainerID: fmt.Sprintf("%064x", i), IfName: "eth0"})
	}
	callers := 80
	if testing.Short() {
		callers = 16
	}
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			c, err := ipc.Dial(r.socket(), soon)
			if err != nil {
				t.Error(err)
				return
			}
			defer c.Close()
			if out, err := c.Call(q, soon); err != nil {
				t.Error(err)
			} else if out.Code != 0 && out.Code != ipam.CodeTryAgain {
				t.Errorf("code %d: %s", out.Code, out.Text)
			}
		})
	}
	wait.Wait()
	r.add("one")
}

// TestWhatPassesIsNoConfiguration: a runtime repeats code 11 and gives up at code 7.
func TestWhatPassesIsNoConfiguration(t *testing.T) {
	for _, x := range []struct {
		err  error
		code int
	}{
		{ipc.ErrNoFiles, ipam.CodeTryAgain},
		{fmt.Errorf("read: %w", ipc.ErrCrowded), ipam.CodeTryAgain},
		{&os.SyscallError{Syscall: "dup", Err: syscall.EMFILE}, ipam.CodeTryAgain},
		{os.ErrDeadlineExceeded, ipam.CodeTryAgain},
		{io.ErrUnexpectedEOF, ipam.CodeConfig},
	} {
		if got := codeOf(x.err); got != x.code {
			t.Errorf("%v: code %d, want %d", x.err, got, x.code)
		}
	}
}

func TestMemoryLimit(t *testing.T) {
	if n, limited := memoryLimit([]byte("33554432\n")); !limited || n != 33554432/10*8 {
		t.Errorf("32 MiB: %d %t", n, limited)
	}
	for _, none := range []string{"max\n", "0\n", "-1\n", ""} {
		if n, limited := memoryLimit([]byte(none)); limited {
			t.Errorf("%q is no limit: %d", none, n)
		}
	}
}

func TestPrintSettings(t *testing.T) {
	if code := Main([]string{"--print-settings"}, Parts{}); code != exitOK {
		t.Errorf("without problems: exit code %d", code)
	}
	t.Setenv("WARM_IP_TARGET", "many")
	if code := Main([]string{"--print-settings"}, Parts{}); code != exitFailed {
		t.Errorf("with a problem: exit code %d, expected %d", code, exitFailed)
	}
}
