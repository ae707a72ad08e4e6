package server

import (
	"context"
	"crypto/rand"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds"
)

const (
	tokenPath = "/latest/api/token"
	// credentialLife is how long a role's credentials are valid; they are renewed at half of it, as the service does
	// "at least five minutes before".
	credentialLife = 6 * time.Hour
)

type handler struct {
	Config
	key    [32]byte
	bucket bucket
	epoch  func() time.Time
	sign   func(imds.Signature, string) string
}

func newHandler(c Config) *handler {
	h := &handler{Config: c}
	if h.Wall == nil {
		h.Wall = time.Now
	}
	h.HopLimit = min(max(h.HopLimit, 1), maxHops)
	// Not before there is a request: the clock need not run yet.
	h.epoch = sync.OnceValue(func() time.Time { return h.Wall().Add(-h.Now()).Truncate(time.Second) })
	signer := sync.OnceValue(NewSigner)
	if c.Signer != nil {
		signer = func() *Signer { return c.Signer }
	}
	h.sign = func(kind imds.Signature, document string) string { return signer().sign(kind, document) }
	_, _ = rand.Read(h.key[:]) // never fails since Go 1.24
	return h
}

// ServeHTTP answers one request, whatever it is.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header()["Server"] = serverName
	if h.Close {
		w.Header().Set("Connection", "close")
	}
	// A silent service keeps the caller waiting longer than a request may take to arrive.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	view, ok := h.View(r.Context())
	if !ok {
		hang(r.Context())
	}
	put := r.Method == http.MethodPut && r.URL.Path == tokenPath && r.URL.RawPath == ""
	if !h.reaches(r, put, &view) {
		hang(r.Context())
	}
	if !h.bucket.take(h.Throttle, h.Now()) {
		fail(w, http.StatusTooManyRequests)
		return
	}
	if status := h.admit(w, r, put, &view); status != 0 {
		fail(w, status)
		return
	}
	if put {
		h.token(w, r, view.Instance.ID)
		return
	}
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.RawPath // nothing below is written with escapes: what is, names nothing
	}
	p := imds.Get(h.view(view), path)
	if p.Status != http.StatusOK {
		fail(w, p.Status)
		return
	}
	send(w, &p)
}

// hang keeps the caller waiting until it gives up, and drops it.
func hang(ctx context.Context) {
	<-ctx.Done()
	panic(http.ErrAbortHandler)
}

// view is what the tree is made of.
func (h *handler) view(v ec2.IMDS) *imds.View {
	updated := h.Wall().Truncate(credentialLife / 2)
	view := &imds.View{IMDS: v, Role: h.Role, Updated: updated, Expires: updated.Add(credentialLife), Epoch: h.epoch(), Sign: h.sign}
	if h.Extras != nil {
		view.Extras = h.Extras()
	}
	view.Tags = view.Tags || h.Options.Tags
	return view
}

// admit says why a request is refused; 0: it is not. put: it asks for a token.
func (h *handler) admit(w http.ResponseWriter, r *http.Request, put bool, v *ec2.IMDS) (status int) {
	_, forwarded := r.Header["X-Forwarded-For"]
	switch {
	case h.Disabled, forwarded:
		return http.StatusForbidden
	case put:
		return 0
	case r.Method == http.MethodPut && datedToken(r.URL.EscapedPath()):
		return http.StatusForbidden
	case r.URL.Path == tokenPath:
		w.Header().Set("Allow", "PUT")
		return http.StatusMethodNotAllowed
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		w.Header().Set("Allow", "GET, HEAD")
		return http.StatusMethodNotAllowed
	}
	sent := r.Header[TokenHeader]
	if len(sent) == 0 && h.V1 {
		return 0
	}
	if len(sent) != 1 {
		return http.StatusUnauthorized
	}
	left, ok := h.open(sent[0], v.Instance.ID)
	if !ok {
		return http.StatusUnauthorized
	}
	w.Header()[ttlHeader] = []string{strconv.FormatInt(int64(left/time.Second), 10)}
	return 0
}

// datedToken says whether a path is that of tokens below another version than latest: "Issuing PUT requests to any version-specific
// path results in the metadata service returning 403 Forbidden errors".
func datedToken(path string) bool {
	version, ok := strings.CutSuffix(strings.TrimPrefix(path, "/"), "/api/token")
	return ok && imds.Version(version)
}

func send(w http.ResponseWriter, p *imds.Reply) {
	h := w.Header()
	h["Content-Type"] = []string{p.Type}
	h["Accept-Ranges"] = noRanges
	h["Content-Length"] = []string{strconv.Itoa(len(p.Text))}
	_, _ = io.WriteString(w, p.Text) // a caller that has gone does not want it
}

var (
	serverName = []string{"EC2ws"}
	noRanges   = []string{"none"}
)

// fail answers with the page that the service has for a status.
func fail(w http.ResponseWriter, status int) {
	title := strconv.Itoa(status) + " - " + http.StatusText(status)
	body := `<?xml version="1.0" encoding="iso-8859-1"?>
<!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Transitional//EN"
	"http://www.w3.org/TR/xhtml1/DTD/xhtml1-transitional.dtd">
<html xmlns="http://www.w3.org/1999/xhtml" xml:lang="en" lang="en">
 <head>
  <title>` + title + `</title>
 </head>
 <body>
  <h1>` + title + `</h1>
 </body>
</html>
`
	w.Header().Del(ttlHeader)
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = io.WriteString(w, body)
}
