package server

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
)

// Bounds of Events: of one's body, and of how many names are kept. A real server keeps each for an hour.
const (
	mostEvent  = 1 << 20
	mostEvents = 10_000
)

// isEvents says whether a path is that of a namespace's Events.
func isEvents(path string) bool {
	rest, ok := strings.CutPrefix(path, "/api/v1/namespaces/")
	namespace, resource, found := strings.Cut(rest, "/")
	return ok && found && namespace != "" && resource == "events"
}

// postEvent accepts an Event, of which only the name is kept; another of that name is refused, as the real server
// does.
func (a *api) postEvent(w http.ResponseWriter, r *http.Request) {
	var e struct {
		Kind     string
		Metadata struct{ Name, Namespace string }
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, mostEvent))
	if err == nil {
		err = json.Unmarshal(data, &e)
	}
	switch {
	case err != nil:
		refuse(w, badRequest("the body is no object: "+err.Error()))
	case e.Kind != "Event" || e.Metadata.Name == "":
		refuse(w, badRequest("expected an Event with a name"))
	case r.URL.Path != "/api/v1/namespaces/"+e.Metadata.Namespace+"/events":
		refuse(w, badRequest("the namespace of the provided object does not match the namespace sent on the request"))
	case !a.keepEvent(e.Metadata.Namespace + "/" + e.Metadata.Name):
		refuse(w, failure(http.StatusConflict, "AlreadyExists", `events "`+e.Metadata.Name+`" already exists`))
	default:
		Send(w, http.StatusCreated, json.RawMessage(data))
	}
}

// keepEvent says whether the name is new.
func (a *api) keepEvent(name string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.events[name] {
		return false
	}
	if len(a.events) < mostEvents {
		a.events[name] = true
	}
	return true
}
