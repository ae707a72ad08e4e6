package server

import (
	"context"
	"maps"
	"net/http"
	"net/netip"
	"time"

	"github.com/enilab/enilab/fakes/kube"
)

// Backend is the cluster behind the API server. It is called concurrently; the model is stepped by one at a time.
// An error ends the connection without an answer; a method takes as long as the API server takes.
type Backend interface {
	// Pods are the pods bound to a node, as kube.Cluster.ListPods gives them, in a slice of the caller's own.
	Pods(ctx context.Context, node string) ([]kube.Pod, error)
	// Node is a node object; false if there is none of that name.
	Node(ctx context.Context, name string) (NodeInfo, bool, error)
	// ENIConfig is an object of amazon-vpc-cni-k8s's; false if there is none of that name.
	ENIConfig(ctx context.Context, name string) (kube.ENIConfig, bool, error)
	// Changed is closed at the next change of any node. A watch asks for it before it reads, so that no change is missed.
	Changed() <-chan struct{}
}

// NodeInfo is what varies between node objects.
type NodeInfo struct {
	UID      string
	Cordoned bool // spec.unschedulable, with its taint
	NotReady bool // condition Ready is False
	MaxPods  int  // status.allocatable.pods
	Address  netip.Addr
	Instance string // spec.providerID is aws:///ZONE/INSTANCE
	Type     string // labels of the cloud provider
	Zone     string

	Labels, Annotations map[string]string // others, which are not written to
}

// same says whether two are.
func (v *NodeInfo) same(o *NodeInfo) bool {
	return maps.Equal(v.Labels, o.Labels) && maps.Equal(v.Annotations, o.Annotations) && v.UID == o.UID && v.Cordoned == o.Cordoned &&
		v.NotReady == o.NotReady && v.MaxPods == o.MaxPods && v.Address == o.Address && v.Instance == o.Instance && v.Type == o.Type &&
		v.Zone == o.Zone
}

// Option is a property of the API server that is not the cluster's.
type Option func(*api)

// WithToken demands "Authorization: Bearer TOKEN".
func WithToken(token string) Option { return func(a *api) { a.token = token } }

// WithEpoch is the wall clock's time at the model's instant 0: objects have a time of creation.
func WithEpoch(t time.Time) Option { return func(a *api) { a.epoch = t } }

// WithBookmarks is how often a watch that wants bookmarks gets one; default one minute, as the real server.
func WithBookmarks(every time.Duration) Option { return func(a *api) { a.bookmarks = every } }

// Handler serves the part of the Kubernetes API that a node's daemon reads.
func Handler(b Backend, options ...Option) http.Handler {
	a := newAPI(b)
	for _, o := range options {
		o(a)
	}
	return a
}

// Limits of a connection, of the size that k8s.io/apiserver has.
const (
	headerTimeout = 32 * time.Second
	idleTimeout   = 90 * time.Second
	maxHeader     = 64 << 10
)

// Server is an http.Server for a Handler whose clients may be slow, huge or silent: headers come in time and are small. Watches
// may last.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: headerTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
}
