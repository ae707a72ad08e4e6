package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"time"
)

// A watch without timeoutSeconds ends by itself after this time (the real server: between 30 and 60 minutes).
const (
	watchTime    = 30 * time.Minute
	watchTimeMax = 24 * time.Hour
)

// event is one line of a watch.
type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// watcher is one watch that is being served.
type watcher struct {
	a       *api
	w       http.ResponseWriter
	name    string
	version uint64 // the client knows everything up to here
	marks   bool   // allowWatchBookmarks
}

func (a *api) watch(w http.ResponseWriter, r *http.Request, name string, query url.Values) {
	version, s1 := number(query, "resourceVersion")
	seconds, s2 := number(query, "timeoutSeconds")
	marks, s3 := flag(query, "allowWatchBookmarks")
	for _, s := range []*status{s1, s2, s3} {
		if s != nil {
			refuse(w, s)
			return
		}
	}
	lasts := watchTime
	if seconds > 0 {
		lasts = time.Duration(min(seconds, uint64(watchTimeMax/time.Second))) * time.Second
	}
	t := &watcher{a: a, w: w, name: name, version: version, marks: marks}
	t.serve(r, lasts)
}

// serve sends events until the client goes, the time is over, or an ERROR ends the watch.
func (t *watcher) serve(r *http.Request, lasts time.Duration) {
	end := time.NewTimer(lasts)
	defer end.Stop()
	tick := time.NewTicker(t.a.bookmarks)
	defer tick.Stop()
	for first := true; ; first = false {
		changed := t.a.backend.Changed() // asked for before looking: a change in between is seen by the one or the other
		now, err := t.a.look(r.Context(), t.name)
		if err != nil {
			drop()
		}
		if first {
			t.w.Header().Set("Content-Type", "application/json")
		}
		if !t.catchUp(now) {
			return
		}
		if first && t.flush() != nil {
			return
		}
		if !t.wait(r, changed, tick.C, end.C) {
			return
		}
	}
}

// wait says whether to look again.
func (t *watcher) wait(r *http.Request, changed <-chan struct{}, tick, end <-chan time.Time) bool {
	for {
		select {
		case <-changed:
			return true
		case <-tick:
			if !t.bookmark() {
				return false
			}
		case <-end:
			t.bookmark()
			return false
		case <-r.Context().Done():
			return false
		}
	}
}

// catchUp sends what the client does not know; false ends the watch.
func (t *watcher) catchUp(now seen) bool {
	if t.version == 0 {
		t.version = now.version
		return now.object == nil || t.send("ADDED", now.object)
	}
	if t.version > now.version {
		t.send("ERROR", tooLarge())
		return false
	}
	t.a.mu.Lock()
	changes, ok := t.a.log.since(t.name, t.version)
	t.a.mu.Unlock()
	if !ok {
		t.send("ERROR", expired("too old resource version: "+format(t.version)+" ("+format(now.version)+")"))
		return false
	}
	t.version = max(t.version, now.version)
	for _, c := range changes {
		t.version = max(t.version, c.version)
		if !t.send(c.kind, c.object) {
			return false
		}
	}
	return true
}

// bookmark says how far the client is, if it wants to know.
func (t *watcher) bookmark() bool {
	if !t.marks {
		return true
	}
	n := &node{Kind: "Node", APIVersion: "v1", Metadata: meta{ResourceVersion: format(t.version)}}
	return t.send("BOOKMARK", n)
}

func (t *watcher) send(kind string, object any) bool {
	b, err := json.Marshal(event{kind, object})
	if err != nil {
		return false
	}
	if _, err := t.w.Write(append(b, '\n')); err != nil {
		return false
	}
	return t.flush() == nil
}

func (t *watcher) flush() error { return http.NewResponseController(t.w).Flush() }
