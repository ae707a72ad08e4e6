package grpclite

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"golang.org/x/net/http2/hpack"
)

// MaxAnswer is a bound on one answer: 16 MiB, kubelet's own (k8s.io/cri-client).
const MaxAnswer = 16 << 20

// Bounds.
const (
	window      = MaxAnswer + 1<<16    // bytes under way to us; more than an answer has, so the server never waits
	maxQuestion = maxFrame - 5         // fits one frame, and every window that is not tiny
	maxHeaders  = 1 << 20              // of an answer, in bytes: texts of errors may be long
	crowded     = 5 * time.Millisecond // before another try when the other side's queue of connections is full
	recent      = 4096                 // bytes of hpack's table (RFC 9113, section 6.5.2: the default)
)

// Conn is a connection, for calls one after another. An error of a call that was not Answered ends it.
type Conn struct {
	unix    net.Conn
	r       *bufio.Reader
	buf     []byte // a frame's
	headers *hpack.Decoder
	stream  uint32 // the last call's
	taken   uint32 // bytes of data that the other side has not been told about
	last    uint32 // no later call is answered
	broken  error
}

// Dial connects to a socket and waits until the other side has said that it speaks HTTP/2. Errors are *Error; an end of ctx is DeadlineExceeded.
func Dial(ctx context.Context, path string) (*Conn, error) {
	s, err := connect(ctx, path)
	if err != nil {
		return nil, failed(ctx, "connection error", err)
	}
	c := open(s)
	defer c.until(ctx)()
	if err := c.greet(); err != nil {
		s.Close()
		return nil, failed(ctx, "connection error", err)
	}
	return c, nil
}

// open is a connection on which nothing has been said.
func open(s net.Conn) *Conn {
	c := &Conn{unix: s, r: bufio.NewReaderSize(s, maxFrame), buf: make([]byte, maxFrame), headers: hpack.NewDecoder(recent, nil), last: 1<<31 - 1}
	c.headers.SetMaxStringLength(maxHeaders)
	return c
}

// connect dials. A full backlog is no refusal: connect(2) on a unix socket does not wait for room.
func connect(ctx context.Context, path string) (net.Conn, error) {
	var d net.Dialer
	for {
		s, err := d.DialContext(ctx, "unix", path)
		if !errors.Is(err, syscall.EAGAIN) {
			return s, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(crowded):
		}
	}
}

// Close ends the connection.
func (c *Conn) Close() error { return c.unix.Close() }

// until ends reading and writing with ctx. What it returns has to be called when both are over.
func (c *Conn) until(ctx context.Context) (over func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.unix.SetDeadline(time.Unix(1, 0)) }) // else the other side decides how long
}

// greet exchanges settings.
func (c *Conn) greet() error {
	var settings []byte
	for _, s := range []struct {
		id    uint16
		value uint32
	}{{settingPush, 0}, {settingWindow, window}} {
		settings = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(settings, s.id), s.value)
	}
	hello := appendFrame([]byte(preface), frameSettings, 0, 0, settings)
	hello = appendFrame(hello, frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, window-65535)) // the connection has that much already
	if _, err := c.unix.Write(hello); err != nil {
		return err
	}
	f, err := readFrame(c.r, c.buf)
	if err != nil {
		return err
	}
	if f.kind != frameSettings || f.has(flagAck) {
		return fmt.Errorf("expected HTTP/2's settings first, found a frame of kind %d", f.kind)
	}
	return c.handle(&f)
}

// Call sends a message to a method ("/package.Service/Method") and returns the answer's. The end of ctx ends the connection, by which the other side
// hears of it. Errors are *Error.
func (c *Conn) Call(ctx context.Context, method string, message []byte) ([]byte, error) {
	if len(message) > maxQuestion {
		return nil, nonsense("expected a question of at most %d bytes, found %d", maxQuestion, len(message))
	}
	if c.broken == nil && c.last <= c.stream {
		c.broken = errors.New("the other side takes no more questions on this connection")
	}
	if c.broken != nil {
		return nil, failed(ctx, "connection error", c.broken)
	}
	defer c.until(ctx)()
	c.stream += 1 + c.stream&1 // 1, 3, 5, …
	a := &answer{}
	err := c.ask(method, message)
	if err == nil {
		err = c.hear(a)
	}
	if err != nil {
		c.broken = err
		c.unix.Close() // so that the other side hears of it
		var whole *Error
		if errors.As(err, &whole) && ctx.Err() == nil {
			return nil, whole
		}
		return nil, failed(ctx, "error reading from server", err)
	}
	return a.message()
}

// ask sends the question.
func (c *Conn) ask(method string, message []byte) error {
	headers := []hpack.HeaderField{{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"},
		{Name: ":path", Value: method}, {Name: ":authority", Value: "localhost"},
		{Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
		{Name: "user-agent", Value: "enilab"}}
	// No grpc-timeout: the other side would hang up at the very instant of our deadline, and which of the two comes first is luck.
	data := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))) // not compressed, length
	b := appendFrame(nil, frameHeaders, flagEndHeaders, c.stream, block(headers))
	b = appendFrame(b, frameData, flagEndStream, c.stream, append(data, message...))
	_, err := c.unix.Write(b)
	return err
}

// hear reads frames until the answer is whole.
func (c *Conn) hear(a *answer) error {
	for !a.ended {
		f, err := readFrame(c.r, c.buf)
		if err != nil {
			return err
		}
		switch {
		case f.kind == frameHeaders:
			err = c.hearHeaders(&f, a)
		case f.kind == frameData && f.stream == c.stream:
			err = errors.Join(c.handle(&f), a.data(&f))
		case f.kind == frameReset && f.stream == c.stream:
			err = fmt.Errorf("the other side gave the call up (HTTP/2 error %x)", f.body)
		default:
			err = c.handle(&f)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// handle does what every connection has to, whatever a frame is about.
func (c *Conn) handle(f *frame) error {
	var say []byte
	switch f.kind {
	case frameSettings:
		if !f.has(flagAck) {
			say = appendFrame(nil, frameSettings, flagAck, 0, nil)
		}
	case framePing:
		if !f.has(flagAck) {
			say = appendFrame(nil, framePing, flagAck, 0, f.body)
		}
	case frameData:
		if c.taken += uint32(len(f.body)); c.taken > window/2 {
			say = appendFrame(nil, frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, c.taken))
			c.taken = 0
		}
	case frameGoAway:
		if len(f.body) < 8 {
			return errPadding
		}
		if c.last = binary.BigEndian.Uint32(f.body) & (1<<31 - 1); c.last < c.stream {
			return fmt.Errorf("the other side ends the connection (HTTP/2 error %x %s)", f.body[4:8], f.body[8:])
		}
	case framePush, frameContinuation:
		return fmt.Errorf("a frame of kind %d where none may be", f.kind)
	}
	if say == nil {
		return nil
	}
	_, err := c.unix.Write(say)
	return err
}

// hearHeaders reads a block of headers to its end. Every one has to be read, for the next may refer to it.
func (c *Conn) hearHeaders(f *frame, a *answer) error {
	part, err := f.content()
	if err != nil {
		return err
	}
	mine, end, stream := f.stream == c.stream, f.has(flagEndStream), f.stream
	block := bytes.Clone(part)
	for !f.has(flagEndHeaders) {
		next, err := readFrame(c.r, c.buf)
		if err != nil {
			return err
		}
		if next.kind != frameContinuation || next.stream != stream || len(block)+len(next.body) > maxHeaders {
			return fmt.Errorf("the headers of an answer have no end, or more than %d bytes", maxHeaders)
		}
		block = append(block, next.body...)
		*f = next
	}
	fields, err := c.headers.DecodeFull(block)
	if err != nil || !mine {
		return err
	}
	return a.fields(fields, end)
}
