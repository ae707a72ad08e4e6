package grpclite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"

	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
)

// plain is a codec that leaves messages alone.
type plain struct{}

func (plain) Name() string { return "plain" }
func (plain) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}
func (plain) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = plain{}

// serve is gRPC's own server with one method, /t.T/M.
func serve(t testing.TB, answer func(context.Context, []byte) ([]byte, error)) (path string, stop func()) {
	t.Helper()
	path = socket(t)
	l := must.Get(net.Listen("unix", path))(t)
	g := grpc.NewServer(grpc.ForceServerCodecV2(plain{}), grpc.MaxSendMsgSize(2*MaxAnswer))
	g.RegisterService(&grpc.ServiceDesc{ServiceName: "t.T", Methods: []grpc.MethodDesc{{MethodName: "M",
		Handler: func(_ any, ctx context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
			var q []byte
			if err := decode(&q); err != nil {
				return nil, err
			}
			return answer(ctx, q)
		}}}}, nil)
	done := make(chan struct{})
	go func() { defer close(done); _ = g.Serve(l) }()
	t.Cleanup(func() { g.Stop(); <-done })
	return path, g.GracefulStop
}

func socket(t testing.TB) string {
	t.Helper()
	dir := must.Get(os.MkdirTemp("", "unary"))(t)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return filepath.Join(dir, "s")
}

// patience bounds what should come by itself.
const patience = 20 * time.Second

func bounded(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

func dial(t testing.TB, path string) *Conn {
	t.Helper()
	c := must.Get(Dial(bounded(t), path))(t)
	t.Cleanup(func() { c.Close() })
	return c
}

// TestManyCallsShareOneConnection: many on one connection, of every size, more than any window holds.
func TestManyCallsShareOneConnection(t *testing.T) {
	path, _ := serve(t, func(_ context.Context, q []byte) ([]byte, error) {
		switch {
		case len(q) < 4:
			return nil, status.Error(codes.NotFound, "a text with 100 % and ü\n")
		default:
			return bytes.Repeat([]byte("x"), int(binary.BigEndian.Uint32(q))), nil
		}
	})
	c := dial(t, path)
	for range 2 {
		for _, size := range []int{0, 1, maxFrame - 5, maxFrame, 1 << 20, MaxAnswer, MaxAnswer} {
			q := append(binary.BigEndian.AppendUint32(nil, uint32(size)), make([]byte, size%(maxQuestion-4))...)
			got, err := c.Call(bounded(t), "/t.T/M", q)
			if err != nil || len(got) != size {
				t.Fatalf("%d bytes: %d, %v", size, len(got), err)
			}
		}
		_, err := c.Call(bounded(t), "/t.T/M", nil)
		var e *Error
		if !errors.As(err, &e) || !e.Answered || e.Code != NotFound || e.Message != "a text with 100 % and ü\n" {
			t.Errorf("%#v", err)
		}
		if _, err := c.Call(bounded(t), "/t.T/N", nil); CodeOf(err) != Unimplemented {
			t.Errorf("%v", err)
		}
	}
	if _, err := c.Call(bounded(t), "/t.T/M", make([]byte, maxQuestion+1)); err == nil {
		t.Error("a question that is too large is taken")
	}
	if _, err := c.Call(bounded(t), "/t.T/M", binary.BigEndian.AppendUint32(nil, MaxAnswer+1)); err == nil || !strings.Contains(err.Error(), "larger than max") {
		t.Errorf("an answer that is too large: %v", err)
	}
	if _, err := c.Call(bounded(t), "/t.T/M", []byte{0, 0, 0, 0}); err == nil {
		t.Error("a connection that broke is used again")
	}
}

// TestLongStatus: a status text as long as gRPC's server lets it be comes in several frames.
func TestLongStatus(t *testing.T) {
	text := strings.Repeat("a long text, ", 8000)
	path, _ := serve(t, func(context.Context, []byte) ([]byte, error) { return nil, status.Error(codes.Aborted, text) })
	if _, err := dial(t, path).Call(bounded(t), "/t.T/M", nil); CodeOf(err) != int(codes.Aborted) || !strings.Contains(err.Error(), text) {
		t.Errorf("%.200v", err)
	}
}

// TestCallEndsByDeadlineCancelOrServer: a deadline, a caller who gives up, a server that ends; each is an error at
// once, and the server hears of the first two.
func TestCallEndsByDeadlineCancelOrServer(t *testing.T) {
	var ended atomic.Int32
	asked := make(chan struct{}, 10)
	path, stop := serve(t, func(ctx context.Context, _ []byte) ([]byte, error) {
		asked <- struct{}{}
		<-ctx.Done()
		ended.Add(1)
		return nil, ctx.Err()
	})
	for _, deadline := range []bool{true, false} {
		ctx, cancel := context.WithCancel(t.Context())
		if deadline {
			ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
		} else {
			go func() { <-asked; cancel() }()
		}
		c := dial(t, path)
		_, err := c.Call(ctx, "/t.T/M", nil)
		var e *Error
		if !errors.As(err, &e) || e.Answered || e.Code != DeadlineExceeded || !errors.Is(err, ctx.Err()) {
			t.Errorf("%#v", err)
		}
		cancel()
		if deadline {
			<-asked
		}
	}
	for end := time.Now().Add(patience); ended.Load() != 2; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("after %v the server has heard of %d ends, expected 2", patience, ended.Load())
		}
	}
	c := dial(t, path)
	go stop()
	for range 2 { // the first ends with the server, the second finds that it did
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		if _, err := c.Call(ctx, "/t.T/M", nil); err == nil {
			t.Error("an answer")
		}
		cancel()
	}
}

func TestCallWithoutListenerFails(t *testing.T) {
	path := socket(t)
	if _, err := Dial(bounded(t), path); CodeOf(err) != Unavailable || !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("no socket: %v", err)
	}
	l := must.Get(net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"}))(t)
	l.SetUnlinkOnClose(false)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, path); CodeOf(err) != DeadlineExceeded {
		t.Errorf("one that says nothing: %v", err)
	}
	l.Close()
	if _, err := Dial(bounded(t), path); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("a dead socket: %v", err)
	}
}

// TestFullQueueIsNoRefusal: a queue that is full is no refusal.
func TestFullQueueIsNoRefusal(t *testing.T) {
	path := socket(t)
	fd := must.Get(syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0))(t)
	defer syscall.Close(fd)
	must.Do(t, errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: path}), syscall.Listen(fd, 0)))
	for range 3 {
		go func() {
			if c, err := net.Dial("unix", path); err == nil {
				<-t.Context().Done()
				c.Close()
			}
		}()
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := Dial(ctx, path); CodeOf(err) != DeadlineExceeded {
		t.Errorf("%v", err)
	}
}

// TestDeadlineOfTheSocket: a dialer looks at the clock itself, and can be late before the context that gave it the deadline is.
func TestDeadlineOfTheSocket(t *testing.T) {
	late := net.Dialer{Deadline: time.Unix(1, 0)}
	_, err := late.Dial("unix", socket(t))
	if CodeOf(failed(t.Context(), "connection error", err)) != DeadlineExceeded {
		t.Errorf("a dialer that is late: %v", err)
	}
	if CodeOf(failed(t.Context(), "connection error", os.ErrDeadlineExceeded)) != DeadlineExceeded {
		t.Error("a socket whose deadline has passed is no deadline")
	}
}

// script is a server that says these bytes, whatever it hears, and waits for the caller to leave.
func script(t testing.TB, says []byte) (path string) {
	t.Helper()
	path = socket(t)
	l := must.Get(net.Listen("unix", path))(t)
	t.Cleanup(func() { l.Close() })
	go accept.Each(l.Accept, func(c net.Conn) {
		_, _ = c.Write(says)
		_ = c.(*net.UnixConn).CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		c.Close()
	})
	return path
}

// fields are headers as a frame has them.
func fields(pairs ...string) []byte {
	var b bytes.Buffer
	e := hpack.NewEncoder(&b)
	for i := 0; i < len(pairs); i += 2 {
		_ = e.WriteField(hpack.HeaderField{Name: pairs[i], Value: pairs[i+1]}) // into memory
	}
	return b.Bytes()
}

var (
	settings = appendFrame(nil, frameSettings, 0, 0, nil)
	ok       = fields(":status", "200", "content-type", "application/grpc")
	good     = fields("grpc-status", "0")
	empty    = []byte{0, 0, 0, 0, 0}
)

// TestClientAcceptsLegalFramesOnly: what a server may do, and what it may not.
func TestClientAcceptsLegalFramesOnly(t *testing.T) {
	join := func(parts ...[]byte) []byte { return bytes.Join(parts, nil) }
	f := appendFrame
	answer := join(f(nil, frameHeaders, flagEndHeaders, 1, ok), f(nil, frameData, 0, 1, empty), f(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, good))
	trailers := func(size int) (out []byte) { // as many bytes of headers in frames of 16 KiB
		block := append(bytes.Clone(good), fields("x", strings.Repeat("~", size))...) // which does not become shorter
		block = append(bytes.Clone(good), fields("x", strings.Repeat("~", 2*size-len(block)))...)
		kind, flags := byte(frameHeaders), byte(flagEndStream)
		for part := range slices.Chunk(block, 1<<14) {
			out = f(out, kind, flags, 1, part)
			kind, flags = frameContinuation, 0
		}
		return f(out, frameContinuation, flagEndHeaders, 1, nil)
	}
	reserved, begun := uint32(1<<31|1), f(nil, frameHeaders, flagEndHeaders, 1, ok)
	with := func(message ...byte) []byte {
		return join(settings, begun, f(nil, frameData, 0, 1, message),
			f(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, good))
	}
	for name, c := range map[string]struct {
		says []byte
		want string // "": an answer
	}{
		"whole":            {join(settings, answer), ""},
		"padded":           {join(settings, f(nil, frameHeaders, flagEndHeaders|flagPadded|flagPriority, 1, join([]byte{3, 0, 0, 0, 0, 0}, ok, make([]byte, 3))), f(nil, frameData, flagPadded, 1, join([]byte{9}, empty, make([]byte, 9))), f(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, good)), ""},
		"continued":        {join(settings, f(nil, frameHeaders, 0, 1, ok[:2]), f(nil, frameContinuation, 0, 1, ok[2:5]), f(nil, frameContinuation, flagEndHeaders, 1, ok[5:]), f(nil, frameData, 0, 1, empty), f(nil, frameHeaders, flagEndStream, 1, nil), f(nil, frameContinuation, flagEndHeaders, 1, good)), ""},
		"talkative":        {join(settings, f(nil, framePing, 0, 0, make([]byte, 8)), settings, f(nil, frameSettings, flagAck, 0, nil), f(nil, frameWindow, 0, 0, make([]byte, 4)), f(nil, 200, 0, 7, []byte("x")), f(nil, frameHeaders, flagEndHeaders, 1, fields(":status", "103")), answer), ""},
		"in pieces":        {join(settings, f(nil, frameHeaders, flagEndHeaders, 1, ok), f(nil, frameData, 0, 1, empty[:2]), f(nil, frameData, 0, 1, nil), f(nil, frameData, 0, 1, empty[2:]), f(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, good)), ""},
		"another stream":   {join(settings, f(nil, frameHeaders, flagEndHeaders|flagEndStream, 9, ok), f(nil, frameData, flagEndStream, 9, []byte("x")), f(nil, frameReset, 0, 9, make([]byte, 4)), answer), ""},
		"it ends later":    {join(settings, f(nil, frameGoAway, 0, 0, []byte{0, 0, 0, 1, 0, 0, 0, 0}), answer), ""},
		"nothing":          {nil, "EOF"},
		"no settings":      {answer, "settings first"},
		"an ack first":     {join(f(nil, frameSettings, flagAck, 0, nil), answer), "settings first"},
		"no answer":        {settings, "EOF"},
		"half":             {join(settings, answer[:len(answer)-3]), "EOF"},
		"HTTP/1":           {[]byte("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"), "it is no HTTP/2"},
		"ends before":      {join(settings, f(nil, frameGoAway, 0, 0, []byte("\x00\x00\x00\x00\x00\x00\x00\x0benough")), answer), "enough"},
		"ends, reserved":   {join(settings, f(nil, frameGoAway, 0, 0, []byte("\x80\x00\x00\x00\x00\x00\x00\x0benough")), answer), "enough"},
		"ends, cut":        {join(settings, f(nil, frameGoAway, 0, 0, []byte{0, 0}), answer), "shorter"},
		"reset":            {join(settings, f(nil, frameReset, 0, 1, []byte{0, 0, 0, 8})), "gave the call up"},
		"push":             {join(settings, f(nil, framePush, flagEndHeaders, 1, ok), answer), "where none may be"},
		"stray":            {join(settings, f(nil, frameContinuation, flagEndHeaders, 1, ok), answer), "where none may be"},
		"interrupted":      {join(settings, f(nil, frameHeaders, 0, 1, ok), f(nil, framePing, 0, 0, make([]byte, 8)), answer), "have no end"},
		"no hpack":         {join(settings, f(nil, frameHeaders, flagEndHeaders, 1, bytes.Repeat([]byte{0xff}, 20))), "decoding error"},
		"too much padding": {join(settings, f(nil, frameHeaders, flagEndHeaders, 1, ok), f(nil, frameData, flagPadded, 1, []byte{5, 0})), "shorter than its padding"},
		"no padding":       {join(settings, f(nil, frameData, flagPadded, 1, nil)), "shorter than its padding"},
		"no priority":      {join(settings, f(nil, frameHeaders, flagPriority, 1, nil)), "shorter than its padding"},
		"data first":       {join(settings, f(nil, frameData, 0, 1, empty)), "no headers"},
		"headers between":  {join(settings, f(nil, frameHeaders, flagEndHeaders, 1, ok), f(nil, frameHeaders, flagEndHeaders, 1, good)), "in its middle"},
		"no trailers":      {join(settings, f(nil, frameHeaders, flagEndHeaders, 1, ok), f(nil, frameData, flagEndStream, 1, empty)), "without gRPC's status"},
		"long headers":     {join(settings, f(nil, frameHeaders, flagEndHeaders, 1, ok), f(nil, frameData, 0, 1, empty), trailers(maxHeaders)), ""},
		"longer headers":   {join(settings, f(nil, frameHeaders, flagEndHeaders, 1, ok), f(nil, frameData, 0, 1, empty), trailers(maxHeaders+1)), "have no end"},
		"another's": {join(settings, f(nil, frameHeaders, 0, 1, ok),
			f(nil, frameContinuation, flagEndHeaders, 3, nil)), "have no end"},
		"a reserved bit": {join(settings, f(nil, frameHeaders, flagEndHeaders, reserved, ok),
			f(nil, frameData, 0, reserved, empty),
			f(nil, frameHeaders, flagEndHeaders|flagEndStream, reserved, good)), ""},
		"cut short":      {with(0, 0, 0, 0), "not one whole message"},
		"compressed":     {with(1, 0, 0, 0, 0), "not one whole message"},
		"half a message": {with(0, 0, 0, 0, 1), "not one whole message"},
		"unfolding":      {join(settings, begun, f(nil, frameData, 0, 1, empty), unfolding()), "string too long"},
		"forbidden": {join(settings, f(nil, frameHeaders, flagEndHeaders|flagEndStream, 1,
			fields(":status", "403"))), "403"},
	} {
		t.Run(name, func(t *testing.T) {
			path := script(t, c.says)
			var got []byte
			conn, err := Dial(bounded(t), path)
			if err == nil {
				defer conn.Close()
				got, err = conn.Call(bounded(t), "/t.T/M", []byte("q"))
			}
			switch {
			case c.want == "" && (err != nil || got == nil || len(got) != 0):
				t.Errorf("%q, %v", got, err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("%q, %v; expected an error with %q", got, err, c.want)
			}
		})
	}
}

// unfolding are trailers whose text is short on the wire, for hpack has five bits for a letter that is frequent,
// and longer than headers may be.
func unfolding() (out []byte) {
	kind, flags := byte(frameHeaders), byte(flagEndStream)
	for part := range slices.Chunk(fields("x", strings.Repeat("a", maxHeaders+1)), maxFrame) {
		out = appendFrame(out, kind, flags, 1, part)
		kind, flags = frameContinuation, 0
	}
	return appendFrame(out, frameContinuation, flagEndHeaders, 1, nil)
}

// FuzzFrames: nothing that a server says makes the client panic or wait, and what is no answer is none.
func FuzzFrames(f *testing.F) {
	whole := bytes.Join([][]byte{settings, appendFrame(nil, frameHeaders, flagEndHeaders, 1, ok), appendFrame(nil, frameData, 0, 1, empty),
		appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1, good)}, nil)
	for _, n := range []int{0, 9, 20, 40, len(whole)} {
		f.Add(whole[:min(n, len(whole))])
	}
	f.Add(bytes.Join([][]byte{settings, appendFrame(nil, frameGoAway, 0, 0, make([]byte, 8)), appendFrame(nil, framePing, 0, 0, nil)}, nil))
	f.Fuzz(func(t *testing.T, says []byte) {
		ours, theirs := net.Pipe()
		defer ours.Close()
		go func() {
			_, _ = theirs.Write(says)
			theirs.Close()
		}()
		c := open(silent{ours})
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if c.greet() != nil {
			return
		}
		if _, err := c.Call(ctx, "/t.T/M", nil); err == nil && !bytes.Contains(says, []byte{0, 0, 0, 0, 0}) {
			t.Error("an answer without a message")
		}
		if ctx.Err() != nil {
			t.Error("it waited")
		}
	})
}

// silent takes whatever is written.
type silent struct{ net.Conn }

func (silent) Write(b []byte) (int, error) { return len(b), nil }

// TestErrorsReadAsGRPCsOwn: people search logs for gRPC's names of the codes.
func TestErrorsReadAsGRPCsOwn(t *testing.T) {
	for code := OK + 1; code < 20; code++ {
		want := status.Error(codes.Code(code), "why").Error()
		if got := (&Error{Code: code, Message: "why"}).Error(); got != want {
			t.Errorf("code %d reads %q, expected %q", code, got, want)
		}
	}
}
