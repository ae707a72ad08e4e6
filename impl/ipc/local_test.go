package ipc_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/impl/ipc"
	"github.com/enilab/enilab/internal/must"
)

// moment bounds every wait of these tests.
const moment = 30 * time.Second

func listen(t *testing.T) (*ipc.Listener, string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l := must.Get(ipc.Listen(path))(t)
	t.Cleanup(func() { l.Close() })
	return l, path
}

func accept(t *testing.T, l *ipc.Listener) *ipc.Peer {
	t.Helper()
	p := must.Get(l.Accept())(t)
	t.Cleanup(func() { p.Close() })
	return p
}

func dial(t *testing.T, path string) *ipc.Conn {
	t.Helper()
	c := must.Get(ipc.Dial(path, moment))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// files opens two files whose content tells them apart.
func files(t *testing.T, n int) (fs []*os.File) {
	t.Helper()
	for i := range n {
		name := filepath.Join(t.TempDir(), "f")
		must.Do(t, os.WriteFile(name, []byte{byte('a' + i)}, 0o600))
		f := must.Get(os.Open(name))(t)
		t.Cleanup(func() { f.Close() })
		fs = append(fs, f)
	}
	return fs
}

func TestCallWithFiles(t *testing.T) {
	l, path := listen(t)
	want := ipc.Request{Version: 1, Verb: ipc.Add, Network: "aws-cni", ContainerID: "c1", IfName: "eth0",
		PodNamespace: "default", PodName: "web-0", PodUID: "u", Inode: 4026532000, TimeoutMS: 30000}
	answer := ipc.Response{Version: 2, Address: netip.MustParseAddr("10.0.0.7"), Device: 1, Table: 2, Veth: "eni0123", HostMAC: "02:00:00:00:00:01"}
	type result struct {
		r   *ipc.Response
		err error
	}
	done := make(chan result, 1)
	c, passed := dial(t, path), files(t, 2)
	go func() {
		r, err := c.Call(&want, moment, passed...)
		done <- result{r, err}
	}()
	p := accept(t, l)
	if p.PID != os.Getpid() || int(p.UID) != os.Geteuid() {
		t.Errorf("the caller is %s, expected process %d of user %d", p, os.Getpid(), os.Geteuid())
	}
	got, fs, err := p.Read()
	must.Do(t, err)
	if !reflect.DeepEqual(*got, want) {
		t.Errorf("read %+v, expected %+v", *got, want)
	}
	for i, f := range fs {
		b, err := io.ReadAll(f)
		f.Close()
		if err != nil || string(b) != string(rune('a'+i)) {
			t.Errorf("file %d holds %q (%v)", i, b, err)
		}
	}
	if len(fs) != 2 {
		t.Errorf("%d files came, expected 2", len(fs))
	}
	must.Do(t, p.Write(&answer))
	r := <-done
	if r.err != nil || !reflect.DeepEqual(*r.r, answer) {
		t.Errorf("the answer is %+v, %v; expected %+v", r.r, r.err, answer)
	}
}

func TestVersionsAreInEveryMessage(t *testing.T) {
	l, path := listen(t)
	go func() {
		p, err := l.Accept()
		if err != nil {
			return
		}
		defer p.Close()
		r, _, err := p.Read()
		if err == nil {
			p.Write(&ipc.Response{Text: "heard " + r.Verb, Code: r.Version})
		}
	}()
	r, err := dial(t, path).Call(&ipc.Request{Verb: ipc.Status}, moment)
	if err != nil || r.Version != ipam.Version || r.Code != ipam.Version {
		t.Errorf("answer %+v (%v), expected version %d in both directions", r, err, ipam.Version)
	}
}

// raw is a caller that writes what it likes.
func raw(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c := must.Get(net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"}))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

func frame(body string) []byte {
	n := len(body)
	return append([]byte{byte(n >> 24), byte(n >> 16), byte(n >> 8), byte(n)}, body...)
}

func TestReadOfOtherVersions(t *testing.T) {
	l, path := listen(t)
	raw(t, path).Write(frame(`{"version":9,"verb":"del","network":"n","containerID":"c","ifName":"i","newMember":{"a":[1]}}`))
	r, _, err := accept(t, l).Read()
	if err != nil || r.Version != 9 || r.Verb != ipc.Del {
		t.Errorf("read %+v, %v: expected the members that are known", r, err)
	}
}

func TestReadRefuses(t *testing.T) {
	long := strings.Repeat("x", 300)
	for name, c := range map[string]struct {
		wire []byte
		want string
	}{
		"no JSON":             {frame(`hello`), "JSON object"},
		"a list":              {frame(`[]`), "JSON object"},
		"empty":               {frame(``), "JSON object"},
		"no verb":             {frame(`{}`), "verb"},
		"a length too large":  {[]byte{0xff, 0xff, 0xff, 0xff}, "at most"},
		"more than announced": {append(frame(`{"verb":"del"}`), '!'), "more"},
		"less than announced": {frame(`{"verb":"del"}`)[:9], "unexpected EOF"},
		"half a length":       {[]byte{0, 0}, "unexpected EOF"},
		"nothing":             {nil, "EOF"},
		"a name with spaces":  {frame(`{"verb":"del","ifName":"eth0 x"}`), "without spaces"},
		"a long name":         {frame(`{"verb":"del","containerID":"` + long + `"}`), "at most 255"},
		"a control character": {frame(`{"verb":"gc","valid":[{"Network":"a\u0000"}]}`), "valid[0]"},
		"negative patience":   {frame(`{"verb":"del","timeoutMS":-1}`), "timeoutMS"},
		"endless patience":    {frame(`{"verb":"del","timeoutMS":9223372036854775807}`), "timeoutMS"},
	} {
		t.Run(name, func(t *testing.T) {
			l, path := listen(t)
			c0 := raw(t, path)
			c0.Write(c.wire)
			c0.CloseWrite()
			r, fs, err := accept(t, l).Read()
			if err == nil || !strings.Contains(err.Error(), c.want) || r != nil || fs != nil {
				t.Errorf("read %+v, %d files, error %v; expected an error that says %q", r, len(fs), err, c.want)
			}
		})
	}
}

// openFiles counts this process's open files.
func openFiles(t *testing.T) int {
	t.Helper()
	es, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	return len(es)
}

func TestFilesAreClosedOnError(t *testing.T) {
	for name, c := range map[string]struct {
		body  string
		files int
	}{
		"malformed":      {`{`, 4},
		"too many files": {`{"verb":"add"}`, 5},
		"many too many":  {`{"verb":"add"}`, 100},
	} {
		t.Run(name, func(t *testing.T) {
			l, path := listen(t)
			c0, one := raw(t, path), files(t, 1)[0]
			p := accept(t, l)
			before := openFiles(t)
			fds := make([]int, c.files)
			for i := range fds {
				fds[i] = int(one.Fd())
			}
			if _, _, err := c0.WriteMsgUnix(frame(c.body), syscall.UnixRights(fds...), nil); err != nil {
				t.Fatal(err)
			}
			if _, _, err := p.Read(); err == nil {
				t.Error("expected an error")
			}
			if now := openFiles(t); now != before {
				t.Errorf("%d files are open, %d were before", now, before)
			}
		})
	}
}

func TestGone(t *testing.T) {
	l, path := listen(t)
	for name, leave := range map[string]func(*net.UnixConn){
		"hangs up":            func(c *net.UnixConn) { c.Close() },
		"speaks out of turn":  func(c *net.UnixConn) { c.Write([]byte("x")) },
		"closes one side":     func(c *net.UnixConn) { c.CloseWrite() },
		"the daemon hangs up": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c := raw(t, path)
			c.Write(frame(`{"verb":"add"}`))
			p := accept(t, l)
			if _, _, err := p.Read(); err != nil {
				t.Fatal(err)
			}
			select {
			case <-p.Gone():
				t.Fatal("gone, and it is there")
			default:
			}
			if leave != nil {
				leave(c)
			} else {
				p.Close()
			}
			select {
			case <-p.Gone():
			case <-time.After(moment):
				t.Fatal("waited for Gone")
			}
		})
	}
}

func TestCallWithoutAnswer(t *testing.T) {
	l, path := listen(t)
	for name, c := range map[string]struct {
		daemon  func(*ipc.Peer)
		timeout time.Duration
		is      error
	}{
		"hangs":                {func(p *ipc.Peer) { <-p.Gone() }, 50 * time.Millisecond, os.ErrDeadlineExceeded},
		"hangs up":             {func(*ipc.Peer) {}, moment, io.EOF},
		"dies as it answers":   {func(p *ipc.Peer) { p.Conn().Write([]byte{0, 0}) }, moment, io.ErrUnexpectedEOF},
		"answers, not reading": {nil, moment, nil},
	} {
		t.Run(name, func(t *testing.T) {
			go func() {
				p, err := l.Accept()
				if err != nil {
					return
				}
				defer p.Close()
				if c.daemon == nil {
					p.Write(&ipc.Response{Code: 4, Text: "who are you?"})
					return
				}
				p.Read()
				c.daemon(p)
			}()
			r, err := dial(t, path).Call(&ipc.Request{Verb: ipc.Del}, c.timeout)
			if !errors.Is(err, c.is) || c.is == nil && r.Code != 4 {
				t.Errorf("answer %+v, error %v; expected %v", r, err, c.is)
			}
			if c.is != nil && c.timeout == moment && !strings.Contains(err.Error(), "ipamd hung up before it answered") {
				t.Errorf("the error does not say what happened: %v", err)
			}
		})
	}
}

// TestAnswerThatIsNone: what cannot be read is no empty answer, which would be a success.
func TestAnswerThatIsNone(t *testing.T) {
	l, path := listen(t)
	go func() {
		if p, err := l.Accept(); err == nil {
			p.Read()
			p.Conn().Write(frame(`hello`))
			p.Close()
		}
	}()
	if r, err := dial(t, path).Call(&ipc.Request{Verb: ipc.Del}, moment); err == nil || !strings.Contains(err.Error(), "read the answer") {
		t.Errorf("answer %+v, error %v", r, err)
	}
}

func TestLargeMessages(t *testing.T) {
	l, path := listen(t)
	body, _ := json.Marshal(strings.Repeat("r", ipc.MaxResponse-100))
	valid := make([]ipc.Attachment, 8000)
	for i := range valid {
		valid[i] = ipc.Attachment{ContainerID: strings.Repeat("0", 64), IfName: "eth0"}
	}
	got := make(chan error, 1)
	go func() {
		p, err := l.Accept()
		if err == nil {
			var r *ipc.Request
			if r, _, err = p.Read(); err == nil && len(r.Valid) != len(valid) {
				err = errors.New("attachments were lost")
			}
			if err == nil {
				err = p.Write(&ipc.Response{Body: body})
			}
			p.Close()
		}
		got <- err
	}()
	r, err := dial(t, path).Call(&ipc.Request{Verb: ipc.GC, Valid: valid}, moment)
	must.Do(t, <-got)
	if err != nil || !bytes.Equal(r.Body, body) {
		t.Errorf("the answer did not come whole: %v", err)
	}
	if _, err := dial(t, path).Call(&ipc.Request{Verb: ipc.GC, PodName: strings.Repeat("x", ipc.MaxRequest)}, moment); err == nil {
		t.Error("expected an error for a request that is too large")
	}
}

func TestListen(t *testing.T) {
	l, path := listen(t)
	if st, err := os.Lstat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("expected mode 0600, found %v (%v)", st.Mode(), err)
	}
	if _, err := ipc.Listen(path); err == nil || !strings.Contains(err.Error(), "another daemon") {
		t.Errorf("a live socket was not refused: %v", err)
	}
	dir := filepath.Dir(path)

	dead := filepath.Join(dir, "dead")
	u := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: dead, Net: "unix"}))(t)
	u.SetUnlinkOnClose(false)
	u.Close()
	if _, err := ipc.Dial(dead, moment); err == nil || !strings.Contains(err.Error(), "nobody listens") {
		t.Errorf("dialled a dead socket: %v", err)
	}
	again, err := ipc.Listen(dead)
	if err != nil {
		t.Fatalf("a dead socket was not replaced: %v", err)
	}

	// A successor's socket outlives its predecessor's Close.
	os.Remove(dead)
	next := must.Get(ipc.Listen(dead))(t)
	again.Close()
	if _, err := os.Lstat(dead); err != nil {
		t.Error("Close removed the socket of another listener")
	}
	starting := dead + ".new" // of one that starts just now
	os.WriteFile(starting, nil, 0o600)
	next.Close()
	if _, err := os.Lstat(dead); err == nil {
		t.Error("Close left the socket behind")
	}
	if _, err := os.Lstat(starting); err != nil {
		t.Error("Close removed what another listener was about to show")
	}

	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o600)
	if _, err := ipc.Listen(file); err == nil || !strings.Contains(err.Error(), "expected a socket") {
		t.Errorf("a file was taken for a socket: %v", err)
	}
	long := filepath.Join(dir, strings.Repeat("x", 98-len(dir))) // 99 bytes: what a name has room for beside ".new"
	if l, err := ipc.Listen(long); err != nil {
		t.Errorf("the longest path: %v", err)
	} else {
		l.Close()
	}
	if _, err := ipc.Listen(long + "x"); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("a path that is too long: %v", err)
	}
	l.Close()
	if _, err := ipc.Dial(path, moment); err == nil || strings.Contains(err.Error(), "no such file") {
		t.Errorf("nobody there: %v", err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("Accept of a closed listener: %v", err)
	}
}

// TestListenThatFailsLeavesNothing: the socket is made, and cannot get its name, for it has none.
func TestListenThatFailsLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	if l, err := ipc.Listen(""); err == nil {
		l.Close()
		t.Error("a daemon listens on no name")
	}
	if left := must.Get(os.ReadDir(dir))(t); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}
