package ipc

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// null opens so many files.
func null(t *testing.T, n int) (files []*os.File) {
	t.Helper()
	for range n {
		f := must.Get(os.Open(os.DevNull))(t)
		t.Cleanup(func() { f.Close() })
		files = append(files, f)
	}
	return files
}

// opened counts this process's open files.
func opened(t *testing.T) int {
	t.Helper()
	list, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("needs /proc: ", err)
	}
	return len(list)
}

// connected are both ends of a connection.
func connected(t *testing.T) (a, b *net.UnixConn) {
	t.Helper()
	a, b = pair(t)
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// TestMessageAtItsBounds: as long as may be, and with as many files, it comes whole; one byte or file more is an
// error, of writing and of reading.
func TestMessageAtItsBounds(t *testing.T) {
	const limit = largeRequest + 1000
	for name, c := range map[string]struct {
		size, files int
		want        string
	}{
		"empty":          {0, 0, ""},
		"longest":        {limit, MaxFiles, ""},
		"too long":       {limit + 1, 0, "at most 66536 bytes, found 66537"},
		"too many files": {1, MaxFiles + 1, "at most 4 files, found 5"},
	} {
		a, b := connected(t)
		body := bytes.Repeat([]byte("x"), c.size)
		err := writeFrame(a, limit, body, null(t, c.files))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: writing it says %v, expected %q", name, err, c.want)
			}
			continue
		}
		got, files, readErr := readFrame(b, limit, MaxFiles, nil)
		if err != nil || readErr != nil || !bytes.Equal(got, body) || len(files) != c.files {
			t.Errorf("%s: %d bytes and %d files came, %v, %v", name, len(got), len(files), err, readErr)
		}
		closeAll(files)
	}
	a, b := connected(t)
	a.Write([]byte{0, 1, 0x03, 0xe9}) // limit + 1
	if _, _, err := readFrame(b, limit, 0, nil); err == nil ||
		!strings.Contains(err.Error(), "at most 66536 bytes, found one that says 66537") {
		t.Errorf("reading what is too long: %v", err)
	}
	a.Write([]byte{0, 0, 0, 3, 'a', 'b', 'c', 'd', 'e'})
	if _, _, err := readFrame(b, limit, 0, nil); err == nil ||
		!strings.Contains(err.Error(), "expected 3 bytes, found 2 more") {
		t.Errorf("reading more than was announced: %v", err)
	}
}

// TestLongMessageIsWrittenInPieces: a socket takes no MiB at once.
func TestLongMessageIsWrittenInPieces(t *testing.T) {
	a, b := connected(t)
	body := bytes.Repeat([]byte("0123456789abcdef"), MaxRequest/16)
	wrote := make(chan error, 1)
	go func() {
		wrote <- writeFrame(a, MaxRequest, body, nil)
		a.CloseWrite()
	}()
	got, _, err := readFrame(b, MaxRequest, 0, nil)
	if err != nil || !bytes.Equal(got, body) {
		t.Errorf("%d of %d bytes came: %v", len(got), len(body), err)
	}
	b.Close()
	if err := <-wrote; err != nil {
		t.Error(err)
	}

	writer, reader := connected(t)
	go func() { wrote <- writeFrame(writer, MaxRequest, body, nil) }()
	if _, err := io.ReadFull(reader, make([]byte, header)); err != nil { // the first piece is there
		t.Fatal(err)
	}
	reader.Close()
	if err := <-wrote; err == nil {
		t.Error("half a message is sent, without an error")
	}
}

// TestLargeMessageAsksForItsPlace: what is larger than most is read only by who has a place, and the reason to have
// none is the reader's error.
func TestLargeMessageAsksForItsPlace(t *testing.T) {
	for _, size := range []int{largeRequest, largeRequest + 1} {
		a, b := connected(t)
		must.Do(t, writeFrame(a, MaxRequest, make([]byte, size), nil))
		body, _, err := readFrame(b, MaxRequest, 0, func() error { return ErrCrowded })
		if large := size > largeRequest; (err == ErrCrowded) != large || (body == nil) != large {
			t.Errorf("%d bytes: %d are read, %v", size, len(body), err)
		}
	}
}

// TestFilesOfAllPiecesCount: a message whose length comes in pieces may have as many files as any other, and their
// error is that of files.
func TestFilesOfAllPiecesCount(t *testing.T) {
	before := 0
	for _, second := range []int{MaxFiles - 2, MaxFiles - 1} {
		a, b := connected(t)
		for i, n := range []int{2, second} {
			var fds []int
			for _, f := range null(t, n) {
				fds = append(fds, int(f.Fd()))
			}
			if _, _, err := a.WriteMsgUnix([][]byte{{0, 0}, {0, 1, 'x'}}[i], syscall.UnixRights(fds...), nil); err != nil {
				t.Fatal(err)
			}
		}
		before = opened(t)
		_, files, err := readFrame(b, 10, MaxFiles, nil)
		if many := 2+second > MaxFiles; errors.Is(err, errFiles) != many || (len(files) == 0) != many {
			t.Errorf("2 files and %d: %d are taken, %v", second, len(files), err)
		}
		closeAll(files)
		if now := opened(t); now != before {
			t.Errorf("%d files are open, %d were before", now, before)
		}
	}
}

// TestTooManyFilesAreSaidSo: and not that this process has no room for them, which would pass.
func TestTooManyFilesAreSaidSo(t *testing.T) {
	a, b := connected(t)
	fds := make([]int, MaxFiles+1)
	for i, f := range null(t, len(fds)) {
		fds[i] = int(f.Fd())
	}
	if _, _, err := a.WriteMsgUnix([]byte{0, 0, 0, 0}, syscall.UnixRights(fds...), nil); err != nil {
		t.Fatal(err)
	}
	if _, files, err := readFrame(b, 10, MaxFiles, nil); err != errFiles || files != nil {
		t.Errorf("%d files, %v; expected %v", len(files), err, errFiles)
	}
}

// TestHTTP2IsToldFromNonsense: its preface is kept for who can answer it.
func TestHTTP2IsToldFromNonsense(t *testing.T) {
	a, b := connected(t)
	const said = "PRI * HTTP/2.0\r\n"
	a.Write([]byte(said))
	_, _, err := readFrame(b, MaxRequest, 0, nil)
	if f := (&Foreign{}); !errors.As(err, &f) || string(f.Said) != said {
		t.Errorf("%v, expected HTTP/2 with what was said", err)
	}
}

// TestReceivedFilesAreFoundBesideOtherControlMessages: each of them, wherever they stand.
func TestReceivedFilesAreFoundBesideOtherControlMessages(t *testing.T) {
	var fds []int
	for range 2 {
		fd := must.Get(syscall.Dup(int(null(t, 1)[0].Fd())))(t)
		fds = append(fds, fd)
	}
	other := syscall.UnixCredentials(&syscall.Ucred{})
	files := rights(append(other, syscall.UnixRights(fds...)...))
	if len(files) != 2 || int(files[0].Fd()) != fds[0] || int(files[1].Fd()) != fds[1] {
		t.Errorf("found %v, expected files %v", files, fds)
	}
	closeAll(files)
	if files := rights([]byte{1, 0, 0, 0}); files != nil {
		t.Errorf("nonsense holds %v", files)
	}
}

// TestNobodyIsBehindAClosedConnection: whoever it was, it is not user 0.
func TestNobodyIsBehindAClosedConnection(t *testing.T) {
	closed, _ := connected(t)
	closed.Close()
	for name, c := range map[string]*net.UnixConn{"closed": closed, "never opened": {}} {
		if pid, uid, err := credentials(c); err == nil {
			t.Errorf("%s: process %d of user %d", name, pid, uid)
		}
	}
}

// peers are a caller's raw connections and the daemon's sides of them.
func peers(t *testing.T, n int) (l *Listener, callers []*net.UnixConn, accepted []*Peer) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	l = must.Get(Listen(path))(t)
	t.Cleanup(func() { l.Close() })
	for range n {
		c := must.Get(net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"}))(t)
		p := must.Get(l.Accept())(t)
		t.Cleanup(func() { c.Close(); p.Close() })
		callers, accepted = append(callers, c), append(accepted, p)
	}
	return l, callers, accepted
}

// TestLargeRequestHoldsItsPlaceUntilItIsReleased: a small one holds none, and releasing it gives none away.
func TestLargeRequestHoldsItsPlaceUntilItIsReleased(t *testing.T) {
	l, callers, accepted := peers(t, 2)
	for i, size := range []int{largeRequest, 10} {
		body := must.Get(json.Marshal(&Request{Verb: GC, PodName: strings.Repeat("x", size)}))(t)
		must.Do(t, writeFrame(callers[i], MaxRequest, body, nil))
		if _, _, err := accepted[i].Read(); err != nil {
			t.Fatal(err)
		}
		if held := len(l.bulk); held != 1 {
			t.Fatalf("with a request of %d bytes more, %d places are held, expected 1", size, held)
		}
	}
	accepted[1].Release()
	if len(l.bulk) != 1 {
		t.Error("a small request gave away a large one's place")
	}
	accepted[0].Release()
	if len(l.bulk) != 0 {
		t.Error("a request that was released has its place still")
	}
}

// TestCallerThatSaysNothingIsNoError: somebody looked whether a daemon is there; half a request is something else.
func TestCallerThatSaysNothingIsNoError(t *testing.T) {
	_, callers, accepted := peers(t, 2)
	callers[1].Write([]byte{0})
	for i, want := range []bool{true, false} {
		callers[i].Close()
		if _, _, err := accepted[i].Read(); (err == io.EOF) != want || err == nil {
			t.Errorf("after %d bytes: %v", i, err)
		}
	}
}

// TestAnswerThatCannotBeMadeIsNotSent: the caller hears that there is none, and not an empty one, which would be a
// success.
func TestAnswerThatCannotBeMadeIsNotSent(t *testing.T) {
	_, callers, accepted := peers(t, 2)
	if err := accepted[0].Write(&Response{Body: json.RawMessage("{")}); err == nil {
		t.Error("half a body is an answer")
	}
	accepted[0].Close()
	if heard, err := io.ReadAll(callers[0]); len(heard) > 0 || err != nil {
		t.Errorf("the caller heard %q, %v", heard, err)
	}
	accepted[1].Close()
	if err := accepted[1].Write(&Response{}); err == nil {
		t.Error("an answer is written on a closed connection")
	}
	if _, _, err := accepted[1].Read(); err == nil || err == io.EOF {
		t.Errorf("reading a closed connection: %v", err)
	}
}

// TestPatienceIsInMilliseconds, up to the longest.
func TestPatienceIsInMilliseconds(t *testing.T) {
	for body, want := range map[string]time.Duration{`{"verb":"add","timeoutMS":30000}`: 30 * time.Second,
		`{"verb":"add","timeoutMS":600000}`: MaxTimeout,
		`{"verb":"add"}`:                    0, `{"verb":"add","timeoutMS":600001}`: -1} {
		r, err := parseRequest([]byte(body))
		if (err == nil) != (want >= 0) || err == nil && r.Timeout() != want {
			t.Errorf("%s: %v, %v", body, r, err)
		}
	}
}

// TestRequestThatCannotBeSentIsNotWaitedFor: nobody will answer it.
func TestRequestThatCannotBeSentIsNotWaitedFor(t *testing.T) {
	a, _ := connected(t)
	c := &Conn{unix: a}
	for _, want := range []string{"send: expected a message of at most", "send: "} {
		_, err := c.Call(&Request{Verb: GC, PodName: strings.Repeat("x", MaxRequest)}, 20*time.Millisecond)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "wait for") {
			t.Errorf("%v, expected %q", err, want)
		}
		c.Close()
	}
}

// TestDialWaitsForRoomAlone, and no longer than it may: the daemon's queue may be full, any other error does not
// pass.
func TestDialWaitsForRoomAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	fd := must.Get(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	defer syscall.Close(fd)
	must.Do(t, errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)))
	first := must.Get(Dial(path, 0))(t)
	defer first.Close()
	if _, err := Dial(path, 0); !errors.Is(err, syscall.EAGAIN) || errors.Is(err, ErrNotRunning) {
		t.Errorf("a full queue: %v", err)
	}
	if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), "another daemon listens there") {
		t.Errorf("a daemon with a full queue is none: %v", err)
	}
	accepted := make(chan int, 1)
	go func() {
		fd, _, err := syscall.Accept(fd)
		if err != nil {
			fd = -1
		}
		accepted <- fd
	}()
	second, err := Dial(path, time.Minute)
	if err != nil {
		t.Errorf("there is room, and Dial says %v", err)
	} else {
		second.Close()
	}
	syscall.Close(<-accepted)
	began := time.Now()
	if _, err := Dial(strings.Repeat("x", 200), 20*time.Second); err == nil || time.Since(began) > 19*time.Second {
		t.Errorf("a name that is none, after %v: %v", time.Since(began), err)
	}
}

// TestListenSaysWhatIsInItsWay: what an earlier start left and cannot be removed, and a path that leads nowhere.
func TestListenSaysWhatIsInItsWay(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "s")
	must.Do(t, os.MkdirAll(path+fresh+"/full", 0o700))
	os.WriteFile(filepath.Join(dir, "file"), nil, 0o600)
	for path, want := range map[string]string{path: "remove what an earlier start left",
		filepath.Join(dir, "file", "s"): "not a directory"} {
		if _, err := Listen(path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, expected %q", err, want)
		}
	}
}

// TestLongestIntentIsReadAgain: one that is longer is refused when it is written, and when somebody else has written
// it.
func TestLongestIntentIsReadAgain(t *testing.T) {
	dir := t.TempDir()
	in := of("a")
	raw := must.Get(encode(in))(t)
	in.Pod.Name += strings.Repeat("x", maxFile-len(raw)+1) // the line's end is beside it
	write(t, dir, in)
	before := opened(t)
	list, bad := read(t, dir)
	if len(list) != 1 || list[0].Intent != in || len(bad) > 0 {
		t.Fatalf("read %d intents, and not %v", len(list), bad)
	}
	path := filepath.Join(dir, list[0].Name)
	raw = must.Get(os.ReadFile(path))(t)
	os.WriteFile(path, append([]byte(" "), raw...), 0o600)
	if list, bad := read(t, dir); len(list) > 0 || len(bad) != 1 || !strings.Contains(bad[0].Err.Error(), "found more") {
		t.Errorf("read %v, and not %v", list, bad)
	}
	if now := opened(t); now != before {
		t.Errorf("%d files are open, %d were before", now, before)
	}
	in.Pod.Name += "x"
	if err := WriteIntent(dir, in); err == nil || !strings.Contains(err.Error(), "at most 16384 bytes, found 16385") {
		t.Errorf("a longer one: %v", err)
	}
}

// TestIntentOfAnIncompleteAttachment: each of the three parts is needed.
func TestIntentOfAnIncompleteAttachment(t *testing.T) {
	for k := range 3 {
		in := of("a")
		*[]*string{&in.Attachment.Network, &in.Attachment.ContainerID, &in.Attachment.IfName}[k] = ""
		if _, err := encode(in); err == nil || !strings.Contains(err.Error(), "found an empty one") {
			t.Errorf("part %d is empty: %v", k, err)
		}
	}
}

// TestRemoveSaysWhatItCouldNot: an intent that is still there is done again. One whose removal had begun may be gone.
func TestRemoveSaysWhatItCouldNot(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o600)
	if err := RemoveIntent(file, IntentFile{Name: "a.json"}); err == nil {
		t.Error("removed from what is no folder")
	}
	const begun = ".a.json" + leaving
	if err := RemoveIntent(dir, IntentFile{Name: begun}); err != nil {
		t.Errorf("gone already: %v", err)
	}
	os.MkdirAll(filepath.Join(dir, begun, "full"), 0o700)
	if err := RemoveIntent(dir, IntentFile{Name: begun}); err == nil {
		t.Error("what cannot be removed is removed")
	}
}
