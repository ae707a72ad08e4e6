package server

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"net/http"
	"strconv"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/fakes/imds"
)

const (
	tokenPath   = "/latest/api/token"
	tokenHeader = "X-Aws-Ec2-Metadata-Token"
	ttlHeader   = "X-Aws-Ec2-Metadata-Token-Ttl-Seconds"
	// maxTTL is six hours in seconds.
	maxTTL = 21600
	// credentialLife is how long a role's credentials are valid; they are renewed at half of it, as the service does
	// "at least five minutes before".
	credentialLife = 6 * time.Hour
)

type handler struct {
	Config
	key [32]byte
}

func newHandler(c Config) *handler {
	h := &handler{Config: c}
	if h.Wall == nil {
		h.Wall = time.Now
	}
	_, _ = rand.Read(h.key[:]) // never fails since Go 1.24
	return h
}

// ServeHTTP answers one request, whatever it is.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Server", "EC2ws")
	// A silent service keeps the caller waiting longer than a request may take to arrive.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	view, ok := h.View(r.Context())
	if !ok {
		<-r.Context().Done()
		panic(http.ErrAbortHandler)
	}
	if status := h.admit(w, r, &view); status != 0 {
		fail(w, status)
		return
	}
	if r.Method == http.MethodPut {
		h.token(w, r, view.Instance.ID)
		return
	}
	path := r.URL.Path
	if r.URL.RawPath != "" {
		path = r.URL.RawPath // nothing below is written with escapes: what is, names nothing
	}
	now := h.Wall()
	updated := now.Truncate(credentialLife / 2)
	p := imds.Get(&imds.View{IMDS: view, Role: h.Role, Updated: updated, Expires: updated.Add(credentialLife)}, path)
	if p.Status != http.StatusOK {
		fail(w, p.Status)
		return
	}
	send(w, &p)
}

// admit says why a request is refused; 0: it is not.
func (h *handler) admit(w http.ResponseWriter, r *http.Request, v *ec2.IMDS) (status int) {
	_, forwarded := r.Header["X-Forwarded-For"]
	switch {
	case h.Disabled, forwarded:
		return http.StatusForbidden
	case r.Method == http.MethodPut && r.URL.Path == tokenPath && r.URL.RawPath == "":
		return 0
	case r.Method != http.MethodGet && r.Method != http.MethodHead, r.URL.Path == tokenPath:
		w.Header().Set("Allow", "GET, HEAD, PUT")
		return http.StatusMethodNotAllowed
	}
	sent := r.Header[tokenHeader]
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
	w.Header().Set(ttlHeader, strconv.FormatInt(int64(left/time.Second), 10))
	return 0
}

// token answers a PUT.
func (h *handler) token(w http.ResponseWriter, r *http.Request, id ec2.InstanceID) {
	sent := r.Header[ttlHeader]
	if len(sent) != 1 {
		fail(w, http.StatusBadRequest)
		return
	}
	ttl, err := strconv.Atoi(sent[0])
	if err != nil || ttl < 1 || ttl > maxTTL {
		fail(w, http.StatusBadRequest)
		return
	}
	w.Header().Set(ttlHeader, strconv.Itoa(ttl))
	send(w, &imds.Reply{Status: http.StatusOK, Text: h.seal(h.Now()+time.Duration(ttl)*time.Second, id)})
}

// seal makes a token: the instant of its end, and a seal over that and the instance.
func (h *handler) seal(end time.Duration, id ec2.InstanceID) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(end))
	return base64.URLEncoding.EncodeToString(h.sum(b, id))
}

// sum appends a seal to b.
func (h *handler) sum(b []byte, id ec2.InstanceID) []byte {
	m := hmac.New(sha256.New, h.key[:])
	m.Write(b)
	m.Write([]byte(id))
	return m.Sum(b)
}

// open checks a token and says how long it lasts.
func (h *handler) open(token string, id ec2.InstanceID) (left time.Duration, ok bool) {
	b, err := base64.URLEncoding.DecodeString(token)
	if err != nil || len(b) != 8+sha256.Size || !hmac.Equal(b, h.sum(b[:8:8], id)) {
		return 0, false
	}
	left = time.Duration(binary.BigEndian.Uint64(b)) - h.Now()
	return left, left > 0
}

func send(w http.ResponseWriter, p *imds.Reply) {
	kind := "text/plain"
	if p.JSON {
		kind = "application/json"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Content-Length", strconv.Itoa(len(p.Text)))
	_, _ = w.Write([]byte(p.Text)) // a caller that has gone does not want it
}

// fail answers with the page that the service has for a status.
func fail(w http.ResponseWriter, status int) {
	title := strconv.Itoa(status) + " - " + http.StatusText(status)
	body := `<?xml version="1.0" encoding="iso-8859-1"?>` + "\n<html><head><title>" + title + "</title></head><body><h1>" + title + "</h1></body></html>\n"
	w.Header().Del(ttlHeader)
	w.Header().Set("Content-Type", "text/html")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}
