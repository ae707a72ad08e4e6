package server

import (
	"context"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds"
)

// Config is one instance's metadata service.
type Config struct {
	// View is what the model says now. False: the service is silent, so the caller hangs until ctx ends, and is then dropped
	// without an answer. It is called concurrently, once per request; it is what may take time.
	View func(ctx context.Context) (ec2.IMDS, bool)
	// Now is the clock by which tokens age and throttling refills: since the model's beginning.
	Now func() time.Duration
	// Wall is printed as the times of credentials, and Wall less Now is when the model began; nil: time.Now.
	Wall func() time.Time
	// Role is the instance profile's role; "": none, and its credentials are a 404.
	Role string
	// Extras is what the model does not know, notices among it: called once per request; nil: nothing.
	Extras func() imds.Extras
	// Signer signs the identity document; nil: one of its own.
	Signer *Signer
	Options
}

// Options are an instance's metadata options ("Configure the instance metadata options"), and what the real service does not let
// anybody configure. The zero Options are those of a new instance: tokens required, one hop.
type Options struct {
	// V1 answers requests without a token too (HttpTokens=optional). A token that is there must be good in any case.
	V1 bool
	// Disabled answers 403 to everything (HttpEndpoint=disabled).
	Disabled bool
	// HopLimit is how far the answer to a token request gets (HttpPutResponseHopLimit), 1 to 64; 0: 1, EC2's default.
	HopLimit int
	// Tags lets instance tags be read (InstanceMetadataTags=enabled); so does Extras.Tags.
	Tags bool
	// Inside says that the service listens inside of the instance's network namespace.
	Inside bool
	// Throttle is the bucket of requests that the instance has; zero: never empty. No number is published; the limit of 1024
	// packets a second for all link-local services allows some 200 requests, when each has a connection of its own.
	Throttle ec2.Bucket
	// Connections at once; 0: maxConnections.
	Connections int
	// Close ends each connection with its first answer, as the real service was seen to do.
	Close bool
}

// Handler serves the instance metadata of one instance.
func Handler(c Config) http.Handler { return newHandler(c) }

// Limits of a connection; the real service's are not published.
const (
	headerTimeout  = 5 * time.Second
	readTimeout    = 10 * time.Second
	idleTimeout    = time.Minute
	maxHeader      = 8 << 10
	maxConnections = 4096
)

// Server is an http.Server for a Handler whose clients may be slow, huge, silent or many: reads end in time, headers are small,
// connections are counted. An answer may take as long as the View wants.
func Server(h http.Handler) *http.Server {
	limit := int64(maxConnections)
	if l, ok := h.(*handler); ok && l.Connections > 0 {
		limit = int64(l.Connections)
	}
	var open atomic.Int64
	return &http.Server{
		Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader,
		ConnContext: withConn,
		ConnState: func(c net.Conn, s http.ConnState) {
			switch s {
			case http.StateNew:
				if open.Add(1) > limit {
					_ = c.Close() // the goroutine that reads from it ends at once, and it is counted as closed then
				}
			case http.StateClosed, http.StateHijacked:
				open.Add(-1)
			}
		},
	}
}
