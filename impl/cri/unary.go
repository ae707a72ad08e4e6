package cri

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

// mostAnswer is a bound on one answer: 16 MiB, kubelet's own (k8s.io/cri-client).
const mostAnswer = 16 << 20

// Codes of gRPC that are told apart here (grpc.io, "Status codes").
const (
	codeOK               = 0
	codeUnknown          = 2
	codeDeadlineExceeded = 4
	codeNotFound         = 5
	codeInternal         = 13
	codeUnavailable      = 14
)

var codeNames = [...]string{"OK", "Canceled", "Unknown", "InvalidArgument", "DeadlineExceeded", "NotFound", "AlreadyExists", "PermissionDenied",
	"ResourceExhausted", "FailedPrecondition", "Aborted", "OutOfRange", "Unimplemented", "Internal", "Unavailable", "DataLoss", "Unauthenticated"}

// Error is a call that failed, with the text that crictl and kubelet would show.
type Error struct {
	Code    int // gRPC's
	Message string
}

func (e *Error) Error() string {
	name := fmt.Sprintf("Code(%d)", e.Code)
	if e.Code >= 0 && e.Code < len(codeNames) {
		name = codeNames[e.Code]
	}
	return "rpc error: code = " + name + " desc = " + e.Message
}

// codeOf is the code of an error; codeOK for nil.
func codeOf(err error) int {
	var e *Error
	switch {
	case err == nil:
		return codeOK
	case errors.As(err, &e):
		return e.Code
	}
	return codeUnknown
}

// client makes unary gRPC calls over HTTP/2 without TLS ("gRPC over HTTP2", grpc/doc/PROTOCOL-HTTP2.md).
type client struct{ transport *http.Transport }

func newClient(socket string) *client {
	p := new(http.Protocols)
	p.SetUnencryptedHTTP2(true)
	return &client{&http.Transport{
		Protocols: p,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "unix", socket)
		},
		DisableCompression: true,
		IdleConnTimeout:    5 * time.Minute,
	}}
}

// call sends a message to a method of the runtime service and returns the answer's.
func (c *client) call(ctx context.Context, method string, message []byte) ([]byte, error) {
	frame := make([]byte, 5, 5+len(message)) // not compressed, length
	binary.BigEndian.PutUint32(frame[1:], uint32(len(message)))
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost/runtime.v1.RuntimeService/"+method, bytes.NewReader(append(frame, message...)))
	if err != nil {
		return nil, err
	}
	q.Header = http.Header{"Content-Type": {"application/grpc"}, "Te": {"trailers"}, "User-Agent": {"enilab"}}
	// No Grpc-Timeout: the runtime would hang up at the very instant of our deadline, and which of the two comes first is luck. The end
	// of ctx resets the stream, which tells it as well.
	r, err := c.transport.RoundTrip(q)
	if err != nil {
		return nil, failed(ctx, "connection error: "+err.Error())
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		return nil, &Error{codeUnknown, "unexpected HTTP status code received from server: " + r.Status}
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, mostAnswer+6))
	if err != nil {
		return nil, failed(ctx, "error reading from server: "+err.Error())
	}
	if len(body) > mostAnswer+5 {
		return nil, &Error{codeInternal, "the answer is larger than max (" + strconv.Itoa(mostAnswer) + " bytes)"}
	}
	if err := outcome(r); err != nil {
		return nil, err
	}
	if len(body) < 5 || body[0] != 0 || int64(binary.BigEndian.Uint32(body[1:])) != int64(len(body)-5) {
		return nil, &Error{codeInternal, "the answer is not one whole message"}
	}
	return body[5:], nil
}

// failed is an answer that did not come.
func failed(ctx context.Context, text string) error {
	if err := ctx.Err(); err != nil {
		return &Error{codeDeadlineExceeded, err.Error()}
	}
	return &Error{codeUnavailable, text}
}

// outcome reads the status after the answer, or in its place. Without one nobody vouches for the message.
func outcome(r *http.Response) error {
	h := r.Trailer
	if r.Header.Get("Grpc-Status") != "" {
		h = r.Header
	}
	text := h.Get("Grpc-Status")
	code, err := strconv.Atoi(text)
	if err != nil {
		return &Error{codeInternal, fmt.Sprintf("the answer ended without gRPC's status (%q)", text)}
	}
	if code == codeOK {
		return nil
	}
	said := h.Get("Grpc-Message")
	if plain, err := url.PathUnescape(said); err == nil {
		said = plain
	}
	return &Error{code, said}
}

func (c *client) close() { c.transport.CloseIdleConnections() }
