package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// listen is a server of one connection after another, gone at the test's end.
func listen(t *testing.T, serve func(net.Listener)) string {
	t.Helper()
	l := must.Get(net.Listen("tcp4", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go serve(l)
	return l.Addr().String()
}

func TestAsk(t *testing.T) {
	s := httptest.NewServer(handler("web-0", filepath.Join(t.TempDir(), "unready")))
	defer s.Close()
	to := strings.TrimPrefix(s.URL, "http://")
	closed := listen(t, func(l net.Listener) { l.Close() })
	want := fmt.Sprintf("%s web-0 127.0.0.1\n%s !", to, closed)
	if got := answers(ask, []string{to, closed}); !strings.HasPrefix(got, want) {
		t.Errorf("found %q, expected %q and an error", got, want)
	}
}

func TestReady(t *testing.T) {
	file := filepath.Join(t.TempDir(), "unready")
	s := httptest.NewServer(handler("web-0", file))
	defer s.Close()
	if got, err := get(s.URL + "/ready"); err != nil || got != "200 OK" {
		t.Errorf("found %q, %v, expected 200 OK", got, err)
	}
	must.Do(t, os.WriteFile(file, nil, 0o644))
	if got, err := get(s.URL + "/ready"); err != nil || !strings.HasPrefix(got, "503") {
		t.Errorf("found %q, %v, expected 503", got, err)
	}
}

func TestEcho(t *testing.T) {
	whole := listen(t, func(l net.Listener) { _ = serveEcho(l) })
	if got, err := echo(whole); err != nil || got != "ok" {
		t.Errorf("found %q, %v, expected ok", got, err)
	}
	half := listen(t, func(l net.Listener) {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = io.CopyN(c, c, payloadSize/2)
			_, _ = io.Copy(io.Discard, c)
			c.Close()
		}
	})
	if _, err := echo(half); err == nil || !strings.Contains(err.Error(), "100000 came back") {
		t.Errorf("found %v, expected that half of it came back", err)
	}
}

func TestReadAndPipe(t *testing.T) {
	to := listen(t, func(l net.Listener) { _ = serveEcho(l) })
	var out bytes.Buffer
	if err := pipe(to, strings.NewReader("one\ntwo\n"), &out); err != nil || out.String() != "one\ntwo\n" {
		t.Errorf("found %q, %v, expected what was sent", out.String(), err)
	}
	says := listen(t, func(l net.Listener) {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			fmt.Fprintln(c, "10.0.1.10")
			c.Close()
		}
	})
	if got, err := read(says); err != nil || got != "10.0.1.10\n" {
		t.Errorf("found %q, %v, expected what it says", got, err)
	}
}

func TestBadArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"fly"}, {"pipe"}, {"pipe", "a", "b"}} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), "what") {
			t.Errorf("%q: found %v, expected a question", args, err)
		}
	}
}
