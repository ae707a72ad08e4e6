package apiserver

import (
	"context"
	"net/http"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Cluster is what stands behind the API server. It is called concurrently.
type Cluster interface {
	// Look gives all objects as they are. What it gave once is never changed afterwards, by either side. An error ends the connection
	// without an answer; it takes as long as the API server takes.
	Look(ctx context.Context) (Objects, error)
	// Changed is closed at the next change of what Look gives; until then, it is the same channel. Nil says nothing: then every request
	// looks, and watches are woken by other clients' requests alone.
	Changed() <-chan struct{}
}

// Objects are a cluster's. Their resource versions are the server's own.
type Objects struct {
	Nodes []*corev1.Node
	Pods  []*corev1.Pod
	// Custom are objects of CustomResourceDefinitions. Those of a kind whose definition is not there are not shown.
	Custom []*unstructured.Unstructured
}

// Option is a property of the API server that is not the cluster's.
type Option func(*Server)

// WithToken demands "Authorization: Bearer TOKEN" of everything but /version and the health checks.
func WithToken(token string) Option { return func(s *Server) { s.token = token } }

// WithBookmarks is how often a watch that wants bookmarks gets one; default one minute, as the real server.
func WithBookmarks(every time.Duration) Option { return func(s *Server) { s.bookmarks = every } }

// Version is the gitVersion that /version answers.
const Version = "v1.33.5"

// Asked is a request and how it was answered. A watch is told when it begins.
type Asked struct {
	Method, Path, Query string
	Agent               string // User-Agent
	Accept, ContentType string
	Code                int
}

// WithTrace is told of every answer. It is called concurrently.
func WithTrace(told func(Asked)) Option { return func(s *Server) { s.told = told } }

// Server is an API server.
type Server struct {
	cluster   Cluster
	token     string
	bookmarks time.Duration
	told      func(Asked)

	turn chan struct{} // one looks at the cluster at a time: two could note an older state after a newer one

	mu     sync.Mutex // guards what follows; never held while the cluster is asked
	looked <-chan struct{}
	store  *store
}

// New is an API server over a cluster, with the namespaces that every cluster has.
func New(c Cluster, options ...Option) *Server {
	s := &Server{cluster: c, bookmarks: time.Minute, turn: make(chan struct{}, 1)}
	for _, o := range options {
		o(s)
	}
	s.store = newStore(time.Now)
	return s
}

// look brings the store up to what the cluster says.
func (s *Server) look(ctx context.Context) error {
	select {
	case s.turn <- struct{}{}:
		defer func() { <-s.turn }()
	case <-ctx.Done():
		return ctx.Err()
	}
	changed := s.cluster.Changed()
	s.mu.Lock()
	same := changed != nil && changed == s.looked
	s.mu.Unlock()
	if same {
		return nil
	}
	objects, err := s.cluster.Look(ctx)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.looked = changed
	s.store.take(objects)
	return nil
}

// Put makes or exchanges an object of a resource that is served, as a client with all rights would.
func (s *Server) Put(objects ...map[string]any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range objects {
		if err := s.store.put(o); err != nil {
			return err
		}
	}
	return nil
}

// Remove takes an object away; false: there is none.
func (s *Server) Remove(group, plural, namespace, name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.remove(key{group, plural, namespace, name})
}

// Get is an object as clients see it now, with what they wrote. It must not be changed.
func (s *Server) Get(group, plural, namespace, name string) (map[string]any, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o := s.store.objects[key{group, plural, namespace, name}]
	if o == nil {
		return nil, false
	}
	return o.data, true
}

// All are the objects of a resource, by namespace and name. They must not be changed.
func (s *Server) All(group, plural string) []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []map[string]any
	for _, o := range s.store.list(group, plural) {
		out = append(out, o.data)
	}
	return out
}

// Limits of a connection, of the size that k8s.io/apiserver has.
const (
	headerTimeout = 32 * time.Second
	idleTimeout   = 90 * time.Second
	maxHeader     = 64 << 10
)

// Serve is an http.Server for a Server whose clients may be slow, huge or silent: headers come in time and are small. Watches may last.
func Serve(s *Server) *http.Server {
	return &http.Server{Handler: s, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
}
