package netns

import (
	"net/http"
	"sync/atomic"

	imdsserver "github.com/enilab/enilab/fakes/imds/server"
)

// tokenless is the last thing of which a node's metadata refused to tell its daemon, which had sent no token (IMDSv2). A script goes on with what the
// refusal says, and what it prints when it fails is about something else.
type tokenless struct {
	path atomic.Pointer[string]
}

// watch is a handler of metadata whose refusals are noted.
func (t *tokenless) watch(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(&refusal{w, t, r}, r)
	})
}

type refusal struct {
	http.ResponseWriter
	of *tokenless
	r  *http.Request
}

func (w *refusal) WriteHeader(status int) {
	if status == http.StatusUnauthorized && len(w.r.Header[imdsserver.TokenHeader]) == 0 {
		w.of.note(w.r.URL.Path)
	}
	w.ResponseWriter.WriteHeader(status)
}

func (t *tokenless) note(path string) { t.path.Store(&path) }

// begin forgets what an earlier daemon, perhaps of another version, was refused.
func (t *tokenless) begin() { t.path.Store(nil) }

// and is what a daemon said, and what it was not told.
func (t *tokenless) and(said string) string {
	if path := t.path.Load(); path != nil {
		return said + " (metadata refuses " + *path + " without a token)"
	}
	return said
}
