package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
)

// version is the API's version, and the only one that is spoken.
const version = "2016-11-15"

type handler struct {
	backend  Backend
	requests atomic.Uint64
}

// ServeHTTP answers one request, whatever it is.
func (h *handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	id := h.requestID()
	signer, body, f := front(w, r)
	if f != nil {
		refuse(w, id, f)
		return
	}
	c, f := parseCall(body)
	if f != nil {
		refuse(w, id, f)
		return
	}
	// The body has been read: from here on the caller waits for the Backend, for as long as that takes.
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{})
	p, err := h.backend.Do(context.WithValue(r.Context(), signerKey{}, signer), &c.req)
	if err != nil || p.Lost {
		panic(http.ErrAbortHandler)
	}
	if p.Code != "" {
		refuse(w, id, c.refusal(&p))
		return
	}
	if f := c.narrow(&p); f != nil {
		refuse(w, id, f)
		return
	}
	reply(w, http.StatusOK, id, c.render(id, &p))
}

// front does what needs no knowledge of the API: verb, signature, media type, size.
func front(w http.ResponseWriter, r *http.Request) (s Signer, body string, f *fault) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		return s, "", &fault{http.StatusMethodNotAllowed, "InvalidRequest", "The method " + r.Method + " is not served: send a POST."}
	}
	if r.URL.Path != "/" || r.URL.RawQuery != "" {
		return s, "", &fault{http.StatusNotFound, "MalformedQueryString", "The query string contains a syntax error: parameters belong into the body of a POST to /."}
	}
	s, f = signerOf(r.Header)
	if f != nil {
		return s, "", f
	}
	media, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || media != "application/x-www-form-urlencoded" || r.Header.Get("Content-Encoding") != "" {
		return s, "", &fault{http.StatusUnsupportedMediaType, "MalformedQueryString", "The body must be application/x-www-form-urlencoded, and not compressed."}
	}
	data, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		return s, "", &fault{http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "The body exceeds " + strconv.Itoa(maxBody) + " bytes."}
	case err != nil:
		panic(http.ErrAbortHandler) // the caller broke off
	}
	return s, string(data), nil
}

// requestID is unique for the Handler, and looks like EC2's.
func (h *handler) requestID() string {
	n := h.requests.Add(1)
	v, u := mix(n), mix(^n)
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", v>>32, v>>16&0xffff, v>>4&0xfff, u>>48&0xfff, u&0xffffffffffff)
}

// mix is a bijection (the finalizer of splitmix64).
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
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

func refuse(w http.ResponseWriter, id string, f *fault) {
	if f.status == http.StatusRequestEntityTooLarge {
		w.Header().Set("Connection", "close")
	}
	var x writer
	x.b = append(x.b, header...)
	x.open("Response")
	x.open("Errors")
	x.open("Error")
	x.text("Code", f.code)
	x.text("Message", f.message)
	x.end("Error")
	x.end("Errors")
	x.text("RequestID", id)
	x.end("Response")
	reply(w, f.status, id, x.b)
}

func reply(w http.ResponseWriter, status int, id string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/xml;charset=UTF-8")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	h.Set("X-Amzn-Requestid", id)
	h.Set("Server", "AmazonEC2")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that has gone does not want it
}
