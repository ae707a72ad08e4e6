package apiserver

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"

	"github.com/enilab/enilab/fakes/kube/server"
)

// request is one for a resource.
type request struct {
	*resource
	http      *http.Request
	query     url.Values
	namespace string // "": all, or the resource has none
	name      string // "": the collection
	sub       string // "" or status
}

func (r *request) key() key { return key{r.group, r.plural, r.namespace, r.name} }

// answer remembers the status for the trace.
type answer struct {
	http.ResponseWriter
	tell func(code int)
}

func (a *answer) WriteHeader(code int) {
	if a.tell != nil {
		a.tell(code)
		a.tell = nil
	}
	a.ResponseWriter.WriteHeader(code)
}

// Unwrap is for http.ResponseController.
func (a *answer) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// ServeHTTP answers one request, whatever it is.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.told != nil {
		w = &answer{w, func(code int) {
			s.told(Asked{r.Method, r.URL.Path, r.URL.RawQuery, r.UserAgent(), r.Header.Get("Accept"), r.Header.Get("Content-Type"), code})
		}}
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // watches last longer than a request may take to arrive
	if err := s.serve(w, r); err != nil {
		refuse(w, err)
	}
}

// errGone means that the client is gone.
var errGone = errors.New("the connection ends without an answer")

func (s *Server) serve(w http.ResponseWriter, r *http.Request) error {
	if open(r.URL.Path) {
		return s.about(w, r)
	}
	if s.token != "" && subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), []byte("Bearer "+s.token)) != 1 {
		return apierrors.NewUnauthorized("Unauthorized")
	}
	if !acceptsJSON(r.Header.Get("Accept")) {
		return failure(http.StatusNotAcceptable, "NotAcceptable", "only the following media types are accepted: application/json")
	}
	if _, err := url.ParseQuery(r.URL.RawQuery); err != nil {
		return apierrors.NewBadRequest("the query is malformed: " + err.Error())
	}
	q, discovery, err := s.route(r)
	switch {
	case err != nil:
		return err
	case discovery != nil && r.Method != http.MethodGet:
		return notAllowed(schema.GroupResource{}, r.Method)
	case discovery != nil:
		server.Send(w, http.StatusOK, discovery)
		return nil
	}
	if err := s.look(r.Context()); err != nil {
		return errGone
	}
	return s.handle(w, q)
}

func (s *Server) handle(w http.ResponseWriter, q *request) error {
	switch q.http.Method {
	case http.MethodGet:
		return s.read(w, q)
	case http.MethodPost:
		return s.create(w, q)
	case http.MethodPut:
		return s.update(w, q)
	case http.MethodPatch:
		return s.patch(w, q)
	case http.MethodDelete:
		return s.delete(w, q)
	}
	return notAllowed(q.groupResource(), q.http.Method)
}

// open says what everybody may read.
func open(path string) bool {
	switch path {
	case "/version", "/version/", "/healthz", "/livez", "/readyz":
		return true
	}
	return strings.HasPrefix(path, "/healthz/") || strings.HasPrefix(path, "/livez/") || strings.HasPrefix(path, "/readyz/")
}

// about answers with the version, or that all is well.
func (s *Server) about(w http.ResponseWriter, r *http.Request) error {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return notAllowed(schema.GroupResource{}, r.Method)
	}
	if !strings.HasPrefix(r.URL.Path, "/version") {
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.WriteHeader(http.StatusOK)
		_, _ = w.Write([]byte("ok")) // a caller that has gone does not want it
		return nil
	}
	major, rest, _ := strings.Cut(strings.TrimPrefix(Version, "v"), ".")
	minor, _, _ := strings.Cut(rest, ".")
	server.Send(w, http.StatusOK, version.Info{Major: major, Minor: minor, GitVersion: Version, GitTreeState: "clean", GoVersion: "go1.24", Compiler: "gc",
		Platform: "linux/amd64"})
	return nil
}

// route reads a path: it is of a resource, or discovery.
func (s *Server) route(r *http.Request) (*request, any, error) {
	path := strings.Split(strings.Trim(r.URL.EscapedPath(), "/"), "/")
	for i := range path {
		part, err := url.PathUnescape(path[i])
		if err != nil || part == "" || strings.Contains(part, "/") {
			return nil, nil, unknown()
		}
		path[i] = part
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var group, version string
	switch {
	case path[0] == "api" && len(path) == 1:
		return nil, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions"}, Versions: []string{"v1"},
			ServerAddressByClientCIDRs: []metav1.ServerAddressByClientCIDR{{ClientCIDR: "0.0.0.0/0", ServerAddress: r.Host}}}, nil
	case path[0] == "api":
		version, path = path[1], path[2:]
	case path[0] == "apis" && len(path) == 1:
		return nil, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: s.store.groups()}, nil
	case path[0] == "apis" && len(path) == 2:
		for _, g := range s.store.groups() {
			if g.Name == path[1] {
				g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
				return nil, g, nil
			}
		}
		return nil, nil, unknown()
	case path[0] == "apis":
		group, version, path = path[1], path[2], path[3:]
	default:
		return nil, nil, unknown()
	}
	if len(path) == 0 {
		list, ok := s.store.resourceList(group, version)
		if !ok {
			return nil, nil, unknown()
		}
		return nil, list, nil
	}
	q, err := s.store.aim(group, version, path)
	if err != nil {
		return nil, nil, err
	}
	q.http, q.query = r, r.URL.Query()
	return q, nil, nil
}

// aim finds the resource, and which of it, that the rest of a path names.
func (s *store) aim(group, version string, path []string) (*request, error) {
	q := &request{}
	if path[0] == "namespaces" && len(path) > 2 && path[2] != "status" {
		q.namespace, path = path[1], path[2:]
	}
	q.resource = s.find(group, version, path[0])
	if q.resource == nil || q.namespace != "" && !q.namespaced || len(path) > 3 {
		return nil, unknown()
	}
	if len(path) > 1 {
		q.name = path[1]
	}
	if len(path) > 2 {
		q.sub = path[2]
	}
	if q.sub != "" && (q.sub != "status" || !q.status) || q.name != "" && q.namespaced && q.namespace == "" {
		return nil, unknown()
	}
	return q, nil
}

// acceptsJSON reads an Accept header.
func acceptsJSON(accept string) bool {
	if accept == "" {
		return true
	}
	for kind := range strings.SplitSeq(accept, ",") {
		kind, parameters, err := mime.ParseMediaType(kind)
		if err != nil {
			continue
		}
		switch kind {
		case "application/json", "application/*", "*/*":
			if parameters["as"] == "" { // a Table, PartialObjectMetadata or aggregated discovery
				return true
			}
		}
	}
	return false
}

// flag reads a boolean of the query.
func (q *request) flag(name string) (bool, error) {
	v := q.query.Get(name)
	if v == "" {
		return false, nil
	}
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, apierrors.NewBadRequest(name + " must be true or false, found " + v)
	}
	return b, nil
}

// number reads a number of the query that is not negative; absent is 0.
func (q *request) number(name string) (uint64, error) {
	v := q.query.Get(name)
	if v == "" {
		return 0, nil
	}
	n, err := strconv.ParseUint(v, 10, 62)
	if err != nil {
		return 0, apierrors.NewBadRequest(name + " must be a number, found " + v)
	}
	return n, nil
}

func failure(code int32, reason metav1.StatusReason, message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Status: metav1.StatusFailure, Code: code, Reason: reason, Message: message}}
}

func unknown() error {
	return failure(http.StatusNotFound, metav1.StatusReasonNotFound, "the server could not find the requested resource")
}

func notAllowed(r schema.GroupResource, method string) error {
	if r.Resource == "" {
		return failure(http.StatusMethodNotAllowed, metav1.StatusReasonMethodNotAllowed, "the server does not allow "+method+" here")
	}
	return apierrors.NewMethodNotSupported(r, strings.ToLower(method))
}

// refuse answers with the Status of an error.
func refuse(w http.ResponseWriter, err error) {
	var known apierrors.APIStatus
	if errors.Is(err, errGone) || errors.Is(err, context.Canceled) {
		panic(http.ErrAbortHandler)
	}
	if !errors.As(err, &known) {
		known = apierrors.NewInternalError(fmt.Errorf("%w", err))
	}
	status := known.Status()
	status.Kind, status.APIVersion = "Status", "v1"
	server.Send(w, int(status.Code), status)
}
