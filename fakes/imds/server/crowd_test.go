package server

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
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

// patience is how long the tests wait for what must come.
const patience = 20 * time.Second

// dial opens a connection that ends with the test.
func (w *world) dial() net.Conn {
	w.t.Helper()
	c := must.Get((&net.Dialer{}).DialContext(w.t.Context(), "tcp", w.srv.Listener.Addr().String()))(w.t)
	w.t.Cleanup(func() { _ = c.Close() })
	must.Do(w.t, c.SetDeadline(time.Now().Add(patience)))
	return c
}

// ended says whether the other side has closed a connection, without a word.
func ended(c net.Conn) error {
	b, err := io.ReadAll(c)
	if ne, ok := err.(net.Error); ok && ne.Timeout() || len(b) > 0 {
		return fmt.Errorf("read %q, %w", b, err)
	}
	return nil // closed or reset
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + m.StackInuse
}

// TestIdleClients: a thousand clients that say nothing, or half of something, cost little and are dropped; others are answered
// meanwhile.
func TestIdleClients(t *testing.T) {
	w := newWorld(t)
	hasty := httptest.NewUnstartedServer(nil)
	hasty.Config = Server(w.srv.Config.Handler)
	hasty.Config.ReadHeaderTimeout = time.Second // half a request
	hasty.Start()
	t.Cleanup(hasty.Close)
	w.srv = hasty
	h := with(TokenHeader, w.token(60))
	before := heap()
	var idle []net.Conn
	for i := range 1000 {
		c := w.dial()
		if i%2 == 0 {
			must.Get(c.Write([]byte("GET /latest/meta-data/mac HTTP/1.1\r\nHost: i")))(t)
		}
		idle = append(idle, c)
	}
	if status, _, _ := w.do("GET", macPath, h); status != 200 {
		t.Errorf("beside the idle clients: status %d", status)
	}
	if grown := int64(heap() - before); grown > 64<<20 {
		t.Errorf("1,000 idle clients cost %d bytes, expected less than 64 MiB", grown)
	}
	for _, c := range idle {
		if err := ended(c); err != nil {
			t.Fatalf("an idle client is not dropped: %v", err)
		}
	}
}

// TestConnections: what is more than the instance may have at once is closed, and a place that is left can be taken.
func TestConnections(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Connections, c.V1 = 2, true })
	read := func(c net.Conn) (int, error) {
		if _, err := io.WriteString(c, "GET "+macPath+" HTTP/1.1\r\nHost: imds\r\n\r\n"); err != nil {
			return 0, err
		}
		p, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return 0, err
		}
		defer p.Body.Close()
		_, err = io.Copy(io.Discard, p.Body)
		return p.StatusCode, err
	}
	one, two := w.dial(), w.dial()
	for _, c := range []net.Conn{one, two} {
		if status, err := read(c); status != 200 {
			t.Fatalf("status %d, %v", status, err)
		}
	}
	if err := ended(w.dial()); err != nil {
		t.Errorf("a third connection: %v, expected none", err)
	}
	_ = one.Close()
	for end := time.Now().Add(patience); ; {
		if status, _ := read(w.dial()); status == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatal("no connection takes the place of one that was closed")
		}
	}
	if status, err := read(two); status != 200 {
		t.Errorf("the second one: status %d, %v", status, err)
	}
}

// TestBadRequests: what is no request is refused, and ends only its own connection.
func TestBadRequests(t *testing.T) {
	w := newWorld(t)
	for name, r := range map[string]struct {
		sent   string
		status int
	}{
		"no HTTP":           {"hello\r\n\r\n", 400},
		"a huge header":     {"GET / HTTP/1.1\r\nHost: i\r\nX: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", 431},
		"a huge path":       {"GET /" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: i\r\n\r\n", 431},
		"no host":           {"GET / HTTP/1.1\r\n\r\n", 400},
		"a null in a token": {"GET / HTTP/1.1\r\nHost: i\r\n" + TokenHeader + ": \x00\r\n\r\n", 400},
	} {
		c := w.dial()
		_, _ = io.WriteString(c, r.sent) // may be cut short
		p, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		_ = p.Body.Close()
		if p.StatusCode != r.status {
			t.Errorf("%s: status %d, expected %d", name, p.StatusCode, r.status)
		}
	}
	w.token(60)
}

// FuzzRequest: whatever is asked, with whatever headers, is answered with one of the service's statuses and without a panic.
func FuzzRequest(f *testing.F) {
	f.Add("GET", "/latest/meta-data/mac", "60", "", "")
	f.Add("PUT", "/latest/api/token", "21600", "", "")
	f.Add("PUT", "/2021-03-23/api/token", "1", "AQAE", "10.0.0.1")
	f.Add("HEAD", "/latest/meta-data/network/interfaces/macs/../", "-1", "====", "")
	view := newWorldView(f)
	h := newHandler(Config{View: func(context.Context) (ec2.IMDS, bool) { return view, true }, Now: func() time.Duration { return time.Hour }, Role: "node", Options: Options{V1: true}})
	f.Fuzz(func(t *testing.T, method, path, ttl, token, forwarded string) {
		q := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://imds/", nil)
		q.Method, q.URL.Path, q.RequestURI = method, path, path
		for name, value := range map[string]string{ttlHeader: ttl, TokenHeader: token, "X-Forwarded-For": forwarded} {
			if value != "" {
				q.Header.Set(name, value)
			}
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, q)
		switch w.Code {
		case 200, 400, 401, 403, 404, 405:
		default:
			t.Errorf("%s %q: status %d", method, path, w.Code)
		}
		if w.Code == 200 && (forwarded != "" || method != "GET" && method != "HEAD" && path != tokenPath) {
			t.Errorf("%s %q: status 200: %s", method, path, w.Body)
		}
	})
}

func newWorldView(t testing.TB) ec2.IMDS {
	t.Helper()
	cloud := ec2.New(ec2.Config{}, 5)
	inst := must.Get(cloud.Launch(0, ec2.LaunchSpec{Type: "m5.large", SecondaryAddresses: 2}))(t)
	view, _ := cloud.IMDS(0, inst)
	return view
}

// lean is a client that costs little: one connection, one request written as it is, and as much of the answer read as it says.
type lean struct {
	conn    net.Conn
	r       *bufio.Reader
	request []byte
}

func (w *world) lean(token string) *lean {
	c := w.dial()
	must.Do(w.t, c.SetDeadline(time.Time{}))
	return &lean{c, bufio.NewReader(c), []byte("GET " + macPath + " HTTP/1.1\r\nHost: 169.254.169.254\r\n" + TokenHeader + ": " + token + "\r\n\r\n")}
}

// read is one request and its answer.
func (l *lean) read() (status int, err error) {
	if _, err := l.conn.Write(l.request); err != nil {
		return 0, err
	}
	length := 0
	for first := true; ; first = false {
		line, err := l.r.ReadSlice('\n')
		if err != nil {
			return 0, err
		}
		name, value, _ := bytes.Cut(bytes.TrimRight(line, "\r\n"), []byte(" "))
		switch {
		case first:
			status, _ = strconv.Atoi(string(value[:min(3, len(value))]))
		case string(name) == "Content-Length:":
			length, _ = strconv.Atoi(string(value))
		case len(name) == 0:
			_, err := l.r.Discard(length)
			return status, err
		}
	}
}

// BenchmarkReads is reads with a token over loopback by four clients for each core, each with a connection of its own: run it with
// GOMAXPROCS=2 for the rate of two cores, clients included.
func BenchmarkReads(b *testing.B) {
	w := newWorld(b)
	token := w.token(maxTTL)
	b.SetParallelism(4)
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		l := w.lean(token)
		for pb.Next() {
			if status, err := l.read(); status != 200 || err != nil {
				b.Errorf("status %d, %v", status, err)
				return
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "reads/s")
}
