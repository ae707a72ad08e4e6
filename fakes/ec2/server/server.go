package server

import (
	"context"
	"net/http"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// Backend carries requests to the model.
type Backend interface {
	// Do makes a request travel to the model, has it served, and returns when its answer has travelled back. It sets
	// r.Caller: SignerOf(ctx) says whose key signed the call. It is called concurrently; the model is stepped by one at a
	// time. An error, like a Response that is Lost, ends the connection without an answer; so the Backend
	// decides how long a caller is left waiting for nothing. ctx ends when the caller hangs up, which does not undo
	// what was executed.
	Do(ctx context.Context, r *ec2.Request) (ec2.Response, error)
}

// Handler speaks EC2's Query protocol of API version 2016-11-15 for a model.
func Handler(b Backend) http.Handler { return &handler{backend: b} }

// Signer is what the header of a signed request claims (Signature Version 4). The signature itself is not verified.
type Signer struct {
	AccessKey string // whose it is; fakes/imds.InstanceOf tells for keys from the instance metadata
	Region    string
	Token     string // X-Amz-Security-Token
}

type signerKey struct{}

// SignerOf is who signed the request that a Backend was called for.
func SignerOf(ctx context.Context) (Signer, bool) {
	s, ok := ctx.Value(signerKey{}).(Signer)
	return s, ok
}

// Limits of a connection. EC2's own are not published; these are far above what a CNI sends.
const (
	headerTimeout = 10 * time.Second
	readTimeout   = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	maxBody       = 256 << 10
)

// Server is an http.Server for a Handler whose clients may be slow, huge or silent: reads end in time, headers are small. An
// answer may take as long as the Backend wants.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
}
