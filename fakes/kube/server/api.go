package server

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

type api struct {
	backend   Backend
	token     string
	epoch     time.Time
	bookmarks time.Duration

	mu        sync.Mutex // guards what follows; never held while the Backend is asked
	log       log
	snapshots snapshots
	events    map[string]bool // by namespace and name
}

func newAPI(b Backend) *api {
	return &api{backend: b, bookmarks: time.Minute, log: newLog(), events: map[string]bool{}}
}

// ServeHTTP answers one request, whatever it is.
func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s := a.admit(r); s != nil {
		refuse(w, s)
		return
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		refuse(w, badRequest("the query is malformed: "+err.Error()))
		return
	}
	// Watches last longer than a request may take to arrive.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	switch resource, name, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/"), "/"); {
	case r.Method == http.MethodPost:
		a.postEvent(w, r)
	case r.URL.Path == "/apis/networking.k8s.io/v1/networkpolicies": // a world has none
		Send(w, http.StatusOK, map[string]any{"kind": "NetworkPolicyList", "apiVersion": "networking.k8s.io/v1",
			"metadata": map[string]any{}, "items": []any{}})
	case strings.HasPrefix(r.URL.Path, configs) && r.URL.Path != configs:
		a.getConfig(w, r, strings.TrimPrefix(r.URL.Path, configs))
	case !strings.HasPrefix(r.URL.Path, "/api/v1/"), strings.Contains(name, "/"), strings.HasSuffix(r.URL.Path, "/"):
		refuse(w, failure(http.StatusNotFound, "NotFound", "the server could not find the requested resource"))
	case resource == "nodes" && name != "":
		a.getNode(w, r, name)
	case resource == "nodes":
		a.nodes(w, r, query)
	case resource == "pods" && name == "":
		a.pods(w, r, query)
	default:
		refuse(w, failure(http.StatusNotFound, "NotFound", "the server could not find the requested resource"))
	}
}

// admit says why a request is refused before what it asks for is looked at.
func (a *api) admit(r *http.Request) *status {
	switch {
	case a.token != "" && !equal(r.Header.Get("Authorization"), "Bearer "+a.token):
		return failure(http.StatusUnauthorized, "Unauthorized", "Unauthorized")
	case r.Method != http.MethodGet && (r.Method != http.MethodPost || !isEvents(r.URL.Path)):
		return failure(http.StatusMethodNotAllowed, "MethodNotAllowed", "the server does not allow this method on the requested resource")
	case !acceptsJSON(r.Header.Get("Accept")):
		return failure(http.StatusNotAcceptable, "NotAcceptable", "only the following media types are accepted: application/json")
	}
	return nil
}

func equal(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// acceptsJSON reads an Accept header.
func acceptsJSON(accept string) bool {
	if accept == "" {
		return true
	}
	for kind := range strings.SplitSeq(accept, ",") {
		kind, parameters, _ := strings.Cut(strings.TrimSpace(kind), ";")
		switch strings.TrimSpace(kind) {
		case "application/json", "application/*", "*/*":
			if !strings.Contains(parameters, "as=") { // a Table or PartialObjectMetadata
				return true
			}
		}
	}
	return false
}

// drop ends the connection without an answer.
func drop() { panic(http.ErrAbortHandler) }

// configs is where ENIConfigs are (charts/aws-vpc-cni/crds of amazon-vpc-cni-k8s).
const configs = "/apis/crd.k8s.amazonaws.com/v1alpha1/eniconfigs/"

func (a *api) getConfig(w http.ResponseWriter, r *http.Request, name string) {
	switch e, ok, err := a.backend.ENIConfig(r.Context(), name); {
	case err != nil:
		drop()
	case !ok:
		refuse(w, failure(http.StatusNotFound, "NotFound", `eniconfigs.crd.k8s.amazonaws.com "`+name+`" not found`))
	default:
		Send(w, http.StatusOK, a.configObject(&e))
	}
}

func (a *api) getNode(w http.ResponseWriter, r *http.Request, name string) {
	v, err := a.look(r.Context(), name)
	switch {
	case err != nil:
		drop()
	case v.object == nil:
		refuse(w, noNode(name))
	default:
		Send(w, http.StatusOK, v.object)
	}
}

// nodes lists or watches one node.
func (a *api) nodes(w http.ResponseWriter, r *http.Request, query url.Values) {
	name, s := selected(query, "metadata.name")
	if s == nil && name == "" {
		s = forbidden("nodes")
	}
	watch, bad := flag(query, "watch")
	if s == nil {
		s = bad
	}
	switch {
	case s != nil:
		refuse(w, s)
	case watch:
		a.watch(w, r, name, query)
	default:
		a.listNodes(w, r, name)
	}
}

func (a *api) listNodes(w http.ResponseWriter, r *http.Request, name string) {
	v, err := a.look(r.Context(), name)
	if err != nil {
		drop()
	}
	out := list[*node]{Kind: "NodeList", APIVersion: "v1", Metadata: listMeta{ResourceVersion: format(v.version)}, Items: []*node{}}
	if v.object != nil {
		item := *v.object
		item.Kind, item.APIVersion = "", "" // as the real server: a list says it once
		out.Items = append(out.Items, &item)
	}
	Send(w, http.StatusOK, out)
}

// selected is the value that a fieldSelector demands of a field, "" for none. It must be the only demand.
func selected(query url.Values, field string) (string, *status) {
	if query.Get("labelSelector") != "" {
		return "", badRequest("label selectors are not modelled")
	}
	selector := query.Get("fieldSelector")
	if selector == "" {
		return "", nil
	}
	key, value, ok := strings.Cut(selector, "=")
	value = strings.TrimPrefix(value, "=")
	if !ok || key != field || strings.ContainsAny(value, ",=!") {
		return "", badRequest("field label not supported: " + selector + ": give " + field + "=NAME")
	}
	return value, nil
}

// flag reads a boolean of the query.
func flag(query url.Values, name string) (bool, *status) {
	v := query.Get(name)
	if v == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, badRequest(name + " must be true or false, found " + v)
	}
	return b, nil
}

// number reads a number of the query that is not negative; absent is 0.
func number(query url.Values, name string) (uint64, *status) {
	v := query.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 62)
	if err != nil {
		return 0, badRequest(name + " must be a number, found " + v)
	}
	return n, nil
}

// look reads a node from the Backend and notes in the log what has changed.
func (a *api) look(ctx context.Context, name string) (seen, error) {
	turn := a.turn(name)
	select {
	case turn <- struct{}{}: // two looks at a time could note an older state after a newer one
		defer func() { <-turn }()
	case <-ctx.Done():
		return seen{}, ctx.Err()
	}
	info, ok, err := a.backend.Node(ctx, name)
	if err != nil {
		return seen{}, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.note(a, name, info, ok), nil
}

func (a *api) turn(name string) chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.turn(name)
}
