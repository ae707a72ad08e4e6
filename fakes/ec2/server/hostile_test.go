package server

import (
	"bufio"
	"bytes"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
)

// readIn is how long a request may take to arrive in these tests: what arrives does on a busy machine too.
const readIn = 300 * time.Millisecond

// listening is a server of a handler, and a channel that tells of each of its connections that has ended.
func listening(t *testing.T, h http.Handler, change func(*http.Server)) (address string, ended chan net.Conn) {
	t.Helper()
	ended = make(chan net.Conn, 4096)
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = Server(h)
	srv.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			ended <- c
		}
	}
	change(srv.Config)
	srv.Start()
	t.Cleanup(srv.Close)
	return srv.Listener.Addr().String(), ended
}

func connect(t *testing.T, address string) *net.TCPConn {
	t.Helper()
	c := must.Get(net.Dial("tcp", address))(t)
	t.Cleanup(func() { _ = c.Close() })
	return c.(*net.TCPConn)
}

// head is a request as far as its body, which is to have so many bytes.
func head(length int) string {
	return "POST / HTTP/1.1\r\nHost: ec2\r\nAuthorization: " + authorization + "\r\nX-Amz-Date: 20260102T030405Z\r\nContent-Type: " + form0 +
		"\r\nContent-Length: " + strconv.Itoa(length) + "\r\n\r\n"
}

// TestHostile: what is sent over a raw connection, what comes back, and that the connection ends or goes on. All the while, and
// afterwards, others are served.
func TestHostile(t *testing.T) {
	h, _ := newDirect(t)
	address, ended := listening(t, h, func(s *http.Server) { s.ReadTimeout, s.ReadHeaderTimeout = readIn, readIn })
	good := head(len(ok)) + ok
	rows := []struct {
		name, send string
		answers    []string // the beginnings of the status lines
		ends       bool
	}{
		{"a call", good, []string{"HTTP/1.1 200 "}, false},
		{"three calls at once", good + good + good, []string{"HTTP/1.1 200 ", "HTTP/1.1 200 ", "HTTP/1.1 200 "}, false},
		{"garbage", "\x16\x03\x01\x02\x00\x01\x00\r\n\r\n", []string{"HTTP/1.1 400 "}, true},
		{"nothing", "", nil, true},
		{"half a header", good[:60], nil, true},
		{"half a body", head(len(ok)) + ok[:10], nil, true},
		{"a promise of much", head(maxBody) + "a", nil, true},
		{"a promise of too much", head(maxBody+1) + "a", []string{"HTTP/1.1 413 "}, true},
		{"a promise of far too much", head(1<<50) + "a", []string{"HTTP/1.1 413 "}, true},
		{"two lengths", strings.Replace(good, "Content-Length", "Content-Length: 7\r\nContent-Length", 1), []string{"HTTP/1.1 400 "}, true},
		{"too much in chunks", strings.Replace(head(0), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "50000\r\n" + strings.Repeat("a", 0x50000) + "\r\n", []string{"HTTP/1.1 413 "}, true},
		{"a chunk without size", strings.Replace(head(0), "Content-Length: 0", "Transfer-Encoding: chunked", 1) + "x\r\n", nil, true},
		{"a long header", strings.Replace(good, "Host", "X: "+strings.Repeat("a", 2*maxHeader)+"\r\nHost", 1), []string{"HTTP/1.1 431 "}, true},
		{"many parameters", head(5*5000) + strings.Repeat("a=b&\n", 5000), []string{"HTTP/1.1 404 "}, false},
	}
	for _, r := range rows {
		c := connect(t, address)
		go func() { _, _ = io.Copy(c, strings.NewReader(r.send)) }() // as much as it takes
		in := bufio.NewReader(c)
		_ = c.SetReadDeadline(time.Now().Add(20 * time.Second))
		for _, want := range r.answers {
			p, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Errorf("%s: %v, expected %s", r.name, err, want)
				break
			}
			if _, err := io.Copy(io.Discard, p.Body); err != nil || !strings.HasPrefix(p.Proto+" "+p.Status, want) {
				t.Errorf("%s: found %s, %v, expected %s", r.name, p.Status, err, want)
			}
		}
		if r.ends {
			if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil && !strings.Contains(err.Error(), "reset") {
				t.Errorf("%s: %d bytes and %v follow, expected the connection to end", r.name, len(rest), err)
			}
			<-ended
		} else if _, err := c.Write([]byte(good)); err != nil {
			t.Errorf("%s: %v, expected the connection to go on", r.name, err)
		} else if p, err := http.ReadResponse(in, nil); err != nil || p.StatusCode != 200 {
			t.Errorf("%s: then %v, expected the connection to go on", r.name, err)
		}
	}
}

// TestCallerThatNeverReadsIsDropped: a caller that never reads its answer is left after a while.
func TestCallerThatNeverReadsIsDropped(t *testing.T) {
	p := ec2.Response{HTTP: 200, ENIs: make([]ec2.ENI, 1000)}
	for i := range p.ENIs {
		p.ENIs[i].Description = strings.Repeat("d", 16<<10) // 16 MiB, which no buffer of a socket holds
	}
	h := New(Options{}, &canned{answer: p}).(*handler)
	h.patience = 50 * time.Millisecond
	address, ended := listening(t, h, func(*http.Server) {})
	c := connect(t, address)
	body := strings.Replace(ok, "Subnets", "NetworkInterfaces", 1)
	must.Get(io.WriteString(c, head(len(body))+body))(t)
	select {
	case <-ended:
	case <-time.After(20 * time.Second):
		t.Fatal("the connection is still there")
	}
}

// TestIdle: a thousand clients that have made a call and stay connected, and a thousand that have promised a body and do not send it,
// cost little memory, and one more is served.
func TestIdle(t *testing.T) {
	const clients = 1000
	h, _ := newDirect(t)
	address, _ := listening(t, h, func(*http.Server) {})
	good := head(len(ok)) + ok
	ask := func(c net.Conn) {
		t.Helper()
		must.Get(io.WriteString(c, good))(t)
		p, err := http.ReadResponse(bufio.NewReaderSize(c, 16), nil)
		if err != nil || p.StatusCode != 200 {
			t.Fatalf("%v, %+v", err, p)
		}
		_, _ = io.Copy(io.Discard, p.Body)
	}
	before := memory()
	for range clients {
		ask(connect(t, address))
		must.Get(io.WriteString(connect(t, address), head(maxBody)+"a"))(t)
	}
	ask(connect(t, address))
	used := memory() - before
	t.Logf("%d KiB for each of %d clients", used/(2*clients)>>10, 2*clients)
	if used > 80<<20 {
		t.Errorf("%d idle clients cost %d KiB each, expected at most 40", 2*clients, used/(2*clients)>>10)
	}
}

// memory is what the heap and the stacks take.
func memory() int {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse + m.StackInuse)
}

// FuzzFront: no verb, URL or signature makes the front panic, or answer anything but XML.
func FuzzFront(f *testing.F) {
	const presigned = ok + "&X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Fus-west-2%2Fec2%2Faws4_request&X-Amz-Date=20260102T030405Z" +
		"&X-Amz-Expires=60&X-Amz-SignedHeaders=host&X-Amz-Signature=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	f.Add("POST", "/", "", authorization, "20260102T030405Z", form0, ok)
	f.Add("GET", "/", presigned, "", "", "", "")
	f.Add("GET", "/..", "a=%zz", authorization, "yesterday", "text/plain", "x")
	f.Add("BREW", "", ok, "AWS4-HMAC-SHA256 Credential=////,Signature=,", "", "application/x-www-form-urlencoded; x", "\x00")
	c := ec2.New(config(), 7)
	keys := func(key string) (string, bool) { return "secret", key != "" }
	h := New(Options{Keys: keys, Clock: func() time.Time { return day }, Epoch: day}, direct{c})
	f.Fuzz(func(t *testing.T, method, path, query, authorization, date, media, body string) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader([]byte(body)))
		r.Method, r.URL.Path, r.URL.RawQuery = method, path, query
		r.Header = http.Header{"Authorization": {authorization}, "X-Amz-Date": {date}, "Content-Type": {media}}
		send(t, h, r)
	})
}
