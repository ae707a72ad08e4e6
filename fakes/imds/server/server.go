package server

import (
	"context"
	"net/http"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// Config is one instance's metadata service.
type Config struct {
	// View is what the model says now. False: the service is silent, so the caller hangs until ctx ends, and is then dropped
	// without an answer. It is called concurrently, once per request; it is what may take time.
	View func(ctx context.Context) (ec2.IMDS, bool)
	// Now is the clock by which tokens age.
	Now func() time.Duration
	// Wall is printed as the times of credentials; nil: time.Now.
	Wall func() time.Time
	// Role is the instance profile's role; "": none, and its credentials are a 404.
	Role string
	// V1 answers requests without a token too (HttpTokens=optional). A token that is there must be good in any case.
	V1 bool
	// Disabled answers 403 to everything (HttpEndpoint=disabled).
	Disabled bool
}

// Handler serves the instance metadata of one instance.
func Handler(c Config) http.Handler { return newHandler(c) }

// Limits of a connection; the real service's are not published.
const (
	headerTimeout = 5 * time.Second
	readTimeout   = 10 * time.Second
	idleTimeout   = time.Minute
	maxHeader     = 8 << 10
)

// Server is an http.Server for a Handler whose clients may be slow, huge or silent: reads end in time, headers are small. An
// answer may take as long as the View wants.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
}
