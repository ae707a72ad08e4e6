package grpclite

import (
	"encoding/binary"
	"net/url"
	"strconv"
	"strings"

	"golang.org/x/net/http2/hpack"
)

// answer is one call's, as it comes: headers, data, and the status in the last headers.
type answer struct {
	begun  bool // headers have come
	ended  bool
	status string // gRPC's
	text   string
	body   []byte
}

// fields takes headers. What has no body has its status in the first.
func (a *answer) fields(fields []hpack.HeaderField, end bool) error {
	first := !a.begun
	for _, f := range fields {
		switch f.Name {
		case ":status":
			if first && strings.HasPrefix(f.Value, "1") {
				return nil // more to come (RFC 9110, section 15.2)
			}
			if f.Value != "200" {
				return &Error{Code: Unknown, Message: "unexpected HTTP status code received from server: " + f.Value, Answered: true}
			}
		case "grpc-status":
			a.status = f.Value
		case "grpc-message":
			a.text = f.Value
		}
	}
	a.begun, a.ended = true, end
	if !first && !end {
		return nonsense("the answer has headers in its middle")
	}
	return nil
}

func (a *answer) data(f *frame) error {
	b, err := f.content()
	if err != nil {
		return err
	}
	if !a.begun {
		return nonsense("the answer has no headers")
	}
	if len(a.body)+len(b) > MaxAnswer+5 {
		return nonsense("the answer is larger than max (%d bytes)", MaxAnswer)
	}
	a.body = append(a.body, b...)
	a.ended = f.has(flagEndStream)
	return nil
}

// message is what the answer says. Without a status it cannot be relied on.
func (a *answer) message() ([]byte, error) {
	code, err := strconv.Atoi(a.status)
	if err != nil {
		return nil, nonsense("the answer ended without gRPC's status (%q)", a.status)
	}
	if code != OK {
		text := a.text
		if plain, err := url.PathUnescape(text); err == nil {
			text = plain
		}
		return nil, &Error{Code: code, Message: text, Answered: true}
	}
	b := a.body
	if len(b) < 5 || b[0] != 0 || int64(binary.BigEndian.Uint32(b[1:])) != int64(len(b)-5) {
		return nil, nonsense("the answer is not one whole message")
	}
	return b[5:], nil
}
