package grpclite

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"

	"golang.org/x/net/http2/hpack"
)

// Reply is what a Handler says: a message, or an error with gRPC's code and a text.
type Reply struct {
	Code    int // OK: Message is the answer
	Text    string
	Message []byte
}

// Handler answers a call of a method ("/package.Service/Method").
type Handler func(method string, message []byte) Reply

// Serve answers one call on a connection, of which said has been read already, and waits until the caller hangs up. The caller has patience to
// ask, and once more to take the answer; what the handler needs in between is not the caller's time.
func Serve(c net.Conn, said []byte, patience time.Duration, h Handler) error {
	_ = c.SetDeadline(time.Now().Add(patience)) // of a closed connection: reading says so
	s := &server{Conn: Conn{unix: c, r: bufio.NewReaderSize(io.MultiReader(bytes.NewReader(said), c), maxFrame), buf: make([]byte, maxFrame),
		headers: hpack.NewDecoder(recent, nil), last: 1<<31 - 1}}
	hello := make([]byte, len(preface))
	if _, err := io.ReadFull(s.r, hello); err != nil || string(hello) != preface {
		return errors.Join(fmt.Errorf("expected HTTP/2's preface, found %q", hello), err)
	}
	if _, err := c.Write(appendFrame(nil, frameSettings, 0, 0, nil)); err != nil {
		return err
	}
	q, err := s.question()
	if err != nil {
		return err
	}
	reply := h(q.method, q.body[5:])
	_ = c.SetDeadline(time.Now().Add(patience)) // of a closed connection: writing says so
	if err := s.answer(reply); err != nil {
		return err
	}
	_, _ = io.Copy(io.Discard, s.r) // a connection that is closed with something unread is reset, and the answer may be lost
	return nil
}

type server struct{ Conn }

// question is a call as it comes.
type question struct {
	method string
	body   []byte
	ended  bool
}

// question reads frames until one is whole.
func (s *server) question() (*question, error) {
	q := &question{}
	for !q.ended {
		f, err := readFrame(s.r, s.buf)
		if err != nil {
			return nil, err
		}
		switch {
		case f.kind == frameHeaders && s.stream == 0:
			s.stream = f.stream
			err = s.method(&f, q)
		case f.kind == frameHeaders:
			err = errors.New("a second call, or trailers: neither is expected")
		case f.kind == frameData && f.stream == s.stream && s.stream != 0:
			var part []byte
			if part, err = f.content(); len(q.body)+len(part) > maxQuestion {
				err = fmt.Errorf("expected a question of at most %d bytes", maxQuestion)
			}
			q.body, q.ended = append(q.body, part...), f.has(flagEndStream)
		default:
			err = s.handle(&f)
		}
		if err != nil {
			return nil, err
		}
	}
	if b := q.body; len(b) < 5 || b[0] != 0 || int64(binary.BigEndian.Uint32(b[1:])) != int64(len(b)-5) {
		return nil, errors.New("the question is not one whole message")
	}
	return q, nil
}

// method reads the headers of the call. They fit one frame.
func (s *server) method(f *frame, q *question) error {
	block, err := f.content()
	if err != nil {
		return err
	}
	if !f.has(flagEndHeaders) {
		return fmt.Errorf("expected headers of at most %d bytes", maxFrame)
	}
	fields, err := s.headers.DecodeFull(block)
	for _, h := range fields {
		if h.Name == ":path" {
			q.method = h.Value
		}
	}
	q.ended = f.has(flagEndStream)
	return err
}

// answer writes what the handler said.
func (s *server) answer(r Reply) error {
	status := []hpack.HeaderField{{Name: "grpc-status", Value: strconv.Itoa(r.Code)}, {Name: "grpc-message", Value: escape(r.Text)}}
	first := []hpack.HeaderField{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc"}}
	var b []byte
	if r.Code == OK {
		data := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(r.Message)))
		b = appendFrame(b, frameHeaders, flagEndHeaders, s.stream, block(first))
		b = appendFrame(b, frameData, 0, s.stream, append(data, r.Message...))
		first = nil
	}
	b = appendFrame(b, frameHeaders, flagEndHeaders|flagEndStream, s.stream, block(append(first, status...)))
	_, err := s.unix.Write(b)
	return err
}

// block is headers as they are on the wire.
func block(fields []hpack.HeaderField) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	e.SetMaxDynamicTableSize(0) // what the other side remembers is its to say, and the next block has another encoder
	for _, f := range fields {
		_ = e.WriteField(f) // a buffer takes everything
	}
	return b.Bytes()
}

// escape is gRPC's percent-encoding of a message: all but printable ASCII, and the percent sign.
func escape(text string) string {
	var b strings.Builder
	for i := range len(text) {
		if c := text[i]; c < ' ' || c > '~' || c == '%' {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
