package apiserver

import (
	"encoding/json"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var tooLargeCauses = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version"}}

// A watch without timeoutSeconds ends by itself after this time (the real server: between 30 and 60 minutes).
const (
	watchTime    = 30 * time.Minute
	watchTimeMax = 24 * time.Hour
)

// watcher is one watch that is being served.
type watcher struct {
	*request
	s       *Server
	w       http.ResponseWriter
	chosen  *choice
	version uint64 // the client knows everything up to here
	initial bool   // it begins with the state
	mark    bool   // and with a bookmark that says where the state ends
	marks   bool   // allowWatchBookmarks
}

func (s *Server) watch(w http.ResponseWriter, q *request, chosen *choice) error {
	t := &watcher{request: q, s: s, w: w, chosen: chosen}
	version, err1 := q.number("resourceVersion")
	seconds, err2 := q.number("timeoutSeconds")
	marks, err3 := q.flag("allowWatchBookmarks")
	initial, err4 := q.flag("sendInitialEvents")
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return err
	}
	t.version, t.marks = version, marks
	match := q.query.Get("resourceVersionMatch")
	switch asked := q.query.Get("sendInitialEvents") != ""; {
	case asked && match != "NotOlderThan":
		return q.invalid("sendInitialEvents requires setting resourceVersionMatch to NotOlderThan")
	case !asked && match != "":
		return q.invalid("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
	case asked:
		t.initial, t.mark = initial, initial && marks
	default:
		t.initial = version == 0
	}
	lasts := watchTime
	if seconds > 0 {
		lasts = time.Duration(min(seconds, uint64(watchTimeMax/time.Second))) * time.Second
	}
	t.serve(lasts)
	return nil
}

// serve sends events until the client goes, the time is over, or an ERROR ends the watch.
func (t *watcher) serve(lasts time.Duration) {
	ctx := t.http.Context()
	end := time.NewTimer(lasts)
	defer end.Stop()
	tick := time.NewTicker(t.s.bookmarks)
	defer tick.Stop()
	for first := true; ; first = false {
		changed := t.s.cluster.Changed() // asked for before looking: a change in between is seen by the one or the other
		if err := t.s.look(ctx); err != nil {
			panic(http.ErrAbortHandler)
		}
		t.s.mu.Lock()
		written := t.s.store.changed
		events, err := t.due(first)
		t.s.mu.Unlock()
		if first {
			t.w.Header().Set("Content-Type", "application/json")
			t.w.WriteHeader(http.StatusOK)
		}
		for _, e := range events {
			if !t.write(e) {
				return
			}
		}
		if err != nil {
			t.write(event{"ERROR", err.Status()})
			return
		}
		if (first || len(events) > 0) && http.NewResponseController(t.w).Flush() != nil {
			return
		}
		for waiting := true; waiting; {
			select {
			case <-changed:
				waiting = false
			case <-written:
				waiting = false
			case <-tick.C:
				if t.marks && !t.bookmark(nil) {
					return
				}
			case <-end.C:
				if t.marks {
					t.bookmark(nil)
				}
				return
			case <-ctx.Done():
				return
			}
		}
	}
}

// event is one line of a watch.
type event struct {
	Type   string `json:"type"`
	Object any    `json:"object"`
}

// due is what the client does not know.
func (t *watcher) due(first bool) (out []event, failed *apierrors.StatusError) {
	store := t.s.store
	if first && t.version > store.version {
		errors.As(tooLarge(t.version, store.version), &failed)
		return nil, failed
	}
	if first && t.initial {
		for _, o := range store.list(t.group, t.plural) {
			if t.chosen.has(o.key, o.data) {
				out = append(out, event{"ADDED", t.shown(o.data)})
			}
		}
		t.version = store.version
		if t.mark {
			out = append(out, t.marked(map[string]any{metav1.InitialEventsAnnotationKey: "true"}))
		}
		return out, nil
	}
	if first && t.version == 0 {
		t.version = store.version
	}
	changes, ok := store.since(t.version)
	if !ok {
		return nil, apierrors.NewResourceExpired("too old resource version: " + format(t.version) + " (" + format(store.version) + ")")
	}
	for _, c := range changes {
		t.version = c.version
		before, after := t.chosen.has(c.key, c.before), t.chosen.has(c.key, c.after)
		switch {
		case before && after:
			out = append(out, event{"MODIFIED", t.shown(c.after)})
		case after:
			out = append(out, event{"ADDED", t.shown(c.after)})
		case before:
			gone := shallow(t.shown(c.before))
			metaOf(gone)["resourceVersion"] = format(c.version)
			out = append(out, event{"DELETED", gone})
		}
	}
	return out, nil
}

// marked is a bookmark: the client knows everything up to its version.
func (t *watcher) marked(annotations map[string]any) event {
	meta := map[string]any{"resourceVersion": format(t.version), "creationTimestamp": nil}
	if annotations != nil {
		meta["annotations"] = annotations
	}
	return event{"BOOKMARK", map[string]any{"kind": t.kind, "apiVersion": t.groupVersion(), "metadata": meta}}
}

func (t *watcher) bookmark(annotations map[string]any) bool {
	return t.write(t.marked(annotations)) && http.NewResponseController(t.w).Flush() == nil
}

func (t *watcher) write(e event) bool {
	b, err := json.Marshal(e)
	if err != nil {
		return false
	}
	_, err = t.w.Write(append(b, '\n'))
	return err == nil
}
