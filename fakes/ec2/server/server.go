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
	// r.Caller: SignerOf(ctx) says whose key signed the call, and for which region; so one Backend can be several accounts in
	// several regions. It is called concurrently; the model is stepped by one at a
	// time. An error, like a Response that is Lost, ends the connection without an answer; so the Backend
	// decides how long a caller is left waiting for nothing. ctx ends when the caller hangs up, which does not undo
	// what was executed.
	Do(ctx context.Context, r *ec2.Request) (ec2.Response, error)
}

// Options are what the front knows. The zero value is a front that believes every signature and shows no times.
type Options struct {
	// Epoch is when the model's time was zero: attachTime and launchTime are counted from it. Zero: they are left out.
	Epoch time.Time
	// Keys is the secret of an access key, and whether there is such a key. nil: signatures are parsed and not verified. It is
	// called concurrently.
	Keys func(accessKey string) (secret string, ok bool)
	// Clock is the time of day by which a signature is too old or too new, by signatureLife. nil: age does not matter. It is
	// called concurrently.
	Clock func() time.Time
	// Account is the account that a signer acts for, which owns the subnets, VPCs and groups that it sees. nil: ec2.Account. It is
	// called concurrently.
	Account func(Signer) string
}

// New speaks EC2's Query protocol of API version 2016-11-15 for a model.
func New(o Options, b Backend) http.Handler {
	if o.Account == nil {
		o.Account = func(Signer) string { return ec2.Account }
	}
	return &handler{Options: o, backend: b, patience: writeTimeout}
}

// Handler is New with the zero Options.
func Handler(b Backend) http.Handler { return New(Options{}, b) }

// Signer is what a signed request claims (Signature Version 4), in its header or in the query of a presigned one.
type Signer struct {
	AccessKey string // whose it is; fakes/imds.InstanceOf tells for keys from the instance metadata
	Region    string
	Service   string // always "ec2": other scopes are refused
	Token     string // X-Amz-Security-Token
	Verified  bool   // the signature is right, by Options.Keys
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
	writeTimeout  = 30 * time.Second // from when the answer is there
	idleTimeout   = 2 * time.Minute
	maxHeader     = 16 << 10
	maxBody       = 256 << 10
)

// Server is an http.Server for a Handler whose clients may be slow, huge or silent: reads end in time, headers are small. An
// answer may take as long as the Backend wants.
func Server(h http.Handler) *http.Server {
	return &http.Server{Handler: h, ReadHeaderTimeout: headerTimeout, ReadTimeout: readTimeout, IdleTimeout: idleTimeout, MaxHeaderBytes: maxHeader}
}
