package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// script is an API server whose watches are played in order; after the last one it holds the connection.
type script struct {
	t       *testing.T
	version string   // of the Node that a get returns
	watches []string // bodies; "410", "500", "drop" are answers; a leading "hold " leaves the watch open after the body
	n       int
}

func (s *script) handle(w http.ResponseWriter, q *http.Request) {
	if q.FormValue("watch") == "" {
		_, _ = io.WriteString(w, nodeObject(s.version, false, `"110"`))
		return
	}
	if q.FormValue("fieldSelector") != "metadata.name=node-1" || q.FormValue("allowWatchBookmarks") != "true" || q.FormValue("timeoutSeconds") == "" {
		s.t.Errorf("watch asked for %s", q.URL)
	}
	if s.n == len(s.watches) {
		w.(http.Flusher).Flush()
		<-q.Context().Done()
		return
	}
	body := s.watches[s.n]
	s.n++
	body, hold := strings.CutPrefix(body, "hold ")
	switch body {
	case "410":
		text(http.StatusGone, `{"kind":"Status","message":"too old resource version","code":410}`)(w, q)
	case "500":
		text(http.StatusInternalServerError, ``)(w, q)
	case "drop":
		drop(w, q)
	default:
		_, _ = io.WriteString(w, body)
		w.(http.Flusher).Flush()
		if hold {
			<-q.Context().Done()
		}
	}
}

func eventOf(kind, object string) string {
	return fmt.Sprintf("{\"type\":%q,\"object\":%s}\n", kind, object)
}

// watchAll runs a Watch until so many facts came.
func watchAll(t *testing.T, s *script, want []NodeFacts) *apiServer {
	t.Helper()
	server := serve(t, s.handle)
	r := reader(t, server.URL)
	ctx, cancel := context.WithCancel(bounded(t, 20*time.Second))
	defer cancel()
	var got []NodeFacts
	err := r.Watch(ctx, func(f NodeFacts) {
		if got = append(got, f); len(got) == len(want) {
			cancel()
		}
	})
	if !errors.Is(err, context.Canceled) || !slices.Equal(got, want) {
		t.Fatalf("got %+v, %v\nwant %+v", got, err, want)
	}
	return server
}

var (
	open     = NodeFacts{MaxPods: 110}
	cordoned = NodeFacts{Cordoned: true, MaxPods: 110}
)

// versions are the resource versions that watches went on from; "get" is a read.
func versions(s *apiServer) []string {
	var out []string
	for _, q := range s.requests() {
		if q.FormValue("watch") == "" {
			out = append(out, "get")
		} else {
			out = append(out, q.FormValue("resourceVersion"))
		}
	}
	return out
}

// Facts are told when they change, not for every heartbeat.
func TestWatchTellsChanges(t *testing.T) {
	t.Parallel()
	s := &script{t: t, version: "1", watches: []string{"hold " +
		eventOf("MODIFIED", nodeObject("2", false, `"110"`)) + eventOf("MODIFIED", nodeObject("3", true, `"110"`)) +
		eventOf("MODIFIED", nodeObject("4", true, `"110"`)) + eventOf("DELETED", nodeObject("5", true, `"0"`)) +
		eventOf("ADDED", nodeObject("6", false, `"29"`))}}
	watchAll(t, s, []NodeFacts{open, cordoned, {MaxPods: 29}})
}

// A watch that ends goes on where it was, by the last event or bookmark.
func TestWatchGoesOn(t *testing.T) {
	t.Parallel()
	s := &script{t: t, version: "1", watches: []string{
		eventOf("MODIFIED", nodeObject("2", true, `"110"`)) + eventOf("BOOKMARK", `{"kind":"Node","metadata":{"resourceVersion":"9"}}`),
		"hold " + eventOf("MODIFIED", nodeObject("10", false, `"110"`)),
	}}
	server := watchAll(t, s, []NodeFacts{open, cordoned, open})
	if got, want := versions(server), []string{"get", "1", "9"}; !slices.Equal(got, want) {
		t.Errorf("asked %v, want %v", got, want)
	}
}

// 410 Gone, as a status or as an event, makes it read the Node anew.
func TestWatchGone(t *testing.T) {
	for name, gone := range map[string]string{"status": "410", "event": eventOf("ERROR", `{"kind":"Status","code":410,"message":"too old resource version"}`)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t, version: "1", watches: []string{gone, "hold " + eventOf("MODIFIED", nodeObject("2", true, `"110"`))}}
			server := watchAll(t, s, []NodeFacts{open, cordoned})
			if got, want := versions(server), []string{"get", "1", "get", "1"}; !slices.Equal(got, want) {
				t.Errorf("asked %v, want %v", got, want)
			}
		})
	}
}

// Whatever a watch's stream is, it is not taken for facts, and the next one is tried.
func TestWatchBadStreams(t *testing.T) {
	good := eventOf("MODIFIED", nodeObject("2", true, `"110"`))
	for name, bad := range map[string]string{
		"500": "500", "dropped": "drop", "ended at once": "", "cut off": good[:len(good)/2], "no JSON": "<html>", "unknown event": eventOf("SURPRISE", `{}`),
		"object is no object": eventOf("MODIFIED", `[]`), "bad capacity": eventOf("MODIFIED", nodeObject("2", true, `"x"`)),
		"error without status": eventOf("ERROR", `7`), "null": "null\n", "too large": `{"type":"` + strings.Repeat("x", mostNode),
		"another node": eventOf("MODIFIED", strings.ReplaceAll(nodeObject("2", true, `"7"`), "node-1", "node-2")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &script{t: t, version: "1", watches: []string{bad, "hold " + good}}
			watchAll(t, s, []NodeFacts{open, cordoned})
		})
	}
}

// refusing is an API server that nobody reaches, and counts who tries.
type refusing func()

func (r refusing) RoundTrip(*http.Request) (*http.Response, error) {
	r()
	return nil, errors.New("unreachable")
}

// TestPausesGrowUpToHalfAMinute: from one failure to the next, each up to twice as long as the one before.
func TestPausesGrowUpToHalfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := reader(t, "http://api")
		ctx, cancel := context.WithCancel(t.Context())
		var asked []time.Time
		r.http = &http.Client{Transport: refusing(func() {
			if asked = append(asked, time.Now()); len(asked) == 10 {
				cancel()
			}
		})}
		if err := r.Watch(ctx, func(NodeFacts) { t.Error("facts from nowhere") }); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		most := firstPause
		for i := range asked[1:] {
			if pause := asked[i+1].Sub(asked[i]); pause < most/2 || pause > most {
				t.Errorf("pause %d is %v, expected %v to %v", i+1, pause, most/2, most)
			}
			most = min(2*most, 30*time.Second)
		}
	})
}

func TestWatchEndsWithItsContext(t *testing.T) {
	server := serve(t, text(500, ""))
	r := reader(t, server.URL)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- r.Watch(ctx, func(NodeFacts) { t.Error("facts from nowhere") }) }()
	cancel()
	select {
	case err := <-done:
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	case <-time.After(20 * time.Second):
		t.Fatal("waited 20 s for Watch to return after its context ended")
	}
}

// TestAWatchThatEndsAtOnceIsAFailure, after which there is a pause: else a server that ends each would be asked in a loop.
func TestAWatchThatEndsAtOnceIsAFailure(t *testing.T) {
	s := serve(t, text(http.StatusOK, ""))
	w := &watch{r: reader(t, s.URL), version: "1"}
	if err := w.run(bounded(t, 5*time.Second)); !errors.Is(err, errEnded) {
		t.Errorf("found %v", err)
	}
}

// TestAnErrorThatIsNoStatus is told as what it is.
func TestAnErrorThatIsNoStatus(t *testing.T) {
	w := &watch{r: reader(t, "http://localhost:1")}
	if err := w.failed(&event{Object: []byte(`"x"`)}); err == nil || !strings.Contains(err.Error(), "ERROR: ") {
		t.Errorf("found %v", err)
	}
}
