package server

import (
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/splitmix"
	"github.com/enilab/enilab/internal/wait"
)

// version is the API's version, and the only one that is spoken.
const version = "2016-11-15"

type handler struct {
	Options
	backend  Backend
	requests atomic.Uint64
	patience time.Duration // for a caller to take its answer; writeTimeout
}

// writers are used again: an answer may be large.
var writers = sync.Pool{New: func() any { return new(writer) }}

// keptAnswer is how large a writer may be that is kept: a page of interfaces with ten addresses each.
const keptAnswer = 2 << 20

// aws-sdk-go-v2 gives up an answer that is longer than the buffer of its connection when it arrives before its own write of the request
// has quite returned ("use of closed network connection": smithy-go closes the body, and net/http takes its end for an error). EC2 is
// never that fast, so it is not hurried with such answers.
const (
	hastyLength = 3 << 10 // with the header, less than net/http's buffer of 4 KiB
	hastyTime   = 2 * time.Millisecond
)

// ServeHTTP answers one request, whatever it is.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	x := writers.Get().(*writer)
	x.b = x.b[:0]
	id, began := h.requestID(), time.Now()
	status := h.answer(x, id, w, r)
	if len(x.b) > hastyLength && strings.HasPrefix(r.UserAgent(), "aws-sdk-go-v2/") {
		_ = wait.For(r.Context(), hastyTime-time.Since(began))
	}
	reply(w, status, id, x.b)
	if cap(x.b) <= keptAnswer {
		writers.Put(x)
	}
}

// answer writes what a request is answered, and gives the status.
func (h *handler) answer(x *writer, id string, w http.ResponseWriter, r *http.Request) int {
	s, body, f := h.front(w, r)
	if f != nil {
		return x.refuse(id, f)
	}
	c := &call{account: h.Account(s), region: s.Region, epoch: h.Epoch}
	if f := c.parse(body); f != nil {
		return x.refuse(id, f)
	}
	// The body has been read: from here on the caller waits for the Backend, for as long as that takes.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{})
	p, err := h.backend.Do(context.WithValue(r.Context(), signerKey{}, s), &c.req)
	if err != nil || p.Lost {
		panic(http.ErrAbortHandler)
	}
	_ = control.SetWriteDeadline(time.Now().Add(h.patience)) // a caller that does not read its answer is not waited for
	if p.Code != "" {
		return x.refuse(id, c.refusal(&p))
	}
	if f := c.narrow(&p); f != nil {
		return x.refuse(id, f)
	}
	c.render(x, id, &p)
	return http.StatusOK
}

// front does what needs no knowledge of the API: verb, media type, size, signature. It gives the parameters, still encoded.
func (h *handler) front(w http.ResponseWriter, r *http.Request) (s Signer, parameters string, f *fault) {
	if r.URL.Path != "/" && r.URL.Path != "" {
		return s, "", &fault{http.StatusNotFound, "MalformedQueryString", "The query string contains a syntax error: the API is at the path /."}
	}
	switch r.Method {
	case http.MethodPost:
		return h.post(w, r)
	case http.MethodGet:
		return h.get(w, r)
	}
	w.Header().Set("Allow", http.MethodGet+", "+http.MethodPost)
	return s, "", &fault{http.StatusMethodNotAllowed, "InvalidRequest", "The method " + excerpt(r.Method) + " is not served: send a POST or a GET."}
}

// post reads parameters from the body.
func (h *handler) post(w http.ResponseWriter, r *http.Request) (s Signer, parameters string, f *fault) {
	if r.URL.RawQuery != "" {
		return s, "", &fault{http.StatusNotFound, "MalformedQueryString", "The query string contains a syntax error: parameters of a POST belong into its body."}
	}
	g, f := signedHeader(r.Header)
	if f != nil {
		return s, "", f
	}
	if !isForm(r.Header) {
		return s, "", &fault{http.StatusUnsupportedMediaType, "MalformedQueryString", "The body must be application/x-www-form-urlencoded, and not compressed."}
	}
	body, f := read(w, r)
	if f != nil {
		return s, "", f
	}
	s, f = h.verified(g, r, "", body)
	return s, string(body), f
}

// get reads parameters from the URL, as of a presigned request.
func (h *handler) get(w http.ResponseWriter, r *http.Request) (s Signer, parameters string, f *fault) {
	if body, f := read(w, r); f != nil || len(body) > 0 {
		return s, "", &fault{http.StatusBadRequest, "MalformedQueryString", "The query string contains a syntax error: a GET has no body."}
	}
	var g *signature
	parameters = r.URL.RawQuery
	if r.Header.Get("Authorization") != "" {
		g, f = signedHeader(r.Header)
	} else {
		g, parameters, f = presigned(r.URL.RawQuery)
	}
	if f != nil {
		return s, "", f
	}
	query, f := canonicalQuery(r.URL.RawQuery)
	if f != nil {
		return s, "", f
	}
	s, f = h.verified(g, r, query, nil)
	return s, parameters, f
}

// isForm says whether a body is one.
func isForm(h http.Header) bool {
	const form = "application/x-www-form-urlencoded"
	given := h.Get("Content-Type")
	if given != form && given != form+"; charset=utf-8" {
		if media, _, err := mime.ParseMediaType(given); err != nil || media != form {
			return false
		}
	}
	return h.Get("Content-Encoding") == ""
}

// read takes a body that is not larger than maxBody. What a header promises is not allocated before it comes.
func read(w http.ResponseWriter, r *http.Request) ([]byte, *fault) {
	if r.ContentLength == 0 {
		return nil, nil
	}
	const first = 4 << 10
	var err error
	body := make([]byte, 0, min(max(r.ContentLength+1, 512), first)) // one more, to find the end without growing
	for err == nil && len(body) <= maxBody && r.ContentLength <= maxBody {
		if len(body) == cap(body) {
			body = slices.Grow(body, len(body))
		}
		var n int
		n, err = r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+n]
	}
	switch {
	case err == nil || len(body) > maxBody:
		w.Header().Set("Connection", "close")
		return nil, &fault{http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The body exceeds " + strconv.Itoa(maxBody) + " bytes."}
	case err != io.EOF:
		panic(http.ErrAbortHandler) // the caller broke off
	}
	return body, nil
}

// requestID is unique for the Handler, and looks like EC2's.
func (h *handler) requestID() string {
	n := h.requests.Add(1)
	v, u := splitmix.Mix(n), splitmix.Mix(^n)
	var b [36]byte
	hex := func(from, to int, v uint64) {
		for i := to - 1; i >= from; i-- {
			b[i] = "0123456789abcdef"[v&15]
			v >>= 4
		}
	}
	hex(0, 8, v>>32)
	hex(9, 13, v>>16)
	hex(14, 18, 0x4000|v>>4&0xfff)
	hex(19, 23, 0x8000|u>>48&0xfff)
	hex(24, 36, u)
	b[8], b[13], b[18], b[23] = '-', '-', '-', '-'
	return string(b[:])
}

// fault is a refusal that the model did not make.
type fault struct {
	status        int
	code, message string
}

func bad(code, message string) *fault { return &fault{http.StatusBadRequest, code, message} }

// refusal is the model's refusal, with the words that only the request has.
func (c *call) refusal(p *ec2.Response) *fault {
	f := &fault{p.HTTP, p.Code, p.Message}
	if p.Code == "InvalidAction" {
		f.message = "The action " + c.action + " is not valid for this web service."
	}
	return f
}

// refuse writes an error as EC2 does, and gives its status.
func (x *writer) refuse(id string, f *fault) int {
	x.b = append(x.b[:0], header...)
	x.open("Response")
	x.open("Errors")
	x.open("Error")
	x.text("Code", f.code)
	x.text("Message", f.message)
	x.end("Error")
	x.end("Errors")
	x.text("RequestID", id)
	x.end("Response")
	return f.status
}

func reply(w http.ResponseWriter, status int, id string, body []byte) {
	h := w.Header()
	h["Content-Type"] = contentType
	h["Server"] = serverName
	h["Content-Length"] = []string{strconv.Itoa(len(body))}
	h["X-Amzn-Requestid"] = []string{id}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has gone does not want it
}

// Headers that are the same in every answer: the list is shared, and only read.
var contentType, serverName = []string{"text/xml;charset=UTF-8"}, []string{"AmazonEC2"}
