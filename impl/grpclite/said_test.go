package grpclite

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// recorder is a connection whose other side says something, and which keeps what it hears.
type recorder struct {
	net.Conn
	says  bytes.Reader
	heard bytes.Buffer
}

func (r *recorder) Read(b []byte) (int, error)  { return r.says.Read(b) }
func (r *recorder) Write(b []byte) (int, error) { return r.heard.Write(b) }
func (r *recorder) SetDeadline(time.Time) error { return nil }
func (r *recorder) Close() error                { return nil }

func recorded(says ...[]byte) (*Conn, *recorder) {
	r := &recorder{}
	r.says.Reset(bytes.Join(says, nil))
	return open(r), r
}

// TestWhatIsSaidOfItself: settings and room before anything else, and an answer to every setting and ping that asks
// for one.
func TestWhatIsSaidOfItself(t *testing.T) {
	c, r := recorded(settings)
	must.Do(t, c.greet())
	want := appendFrame([]byte(preface), frameSettings, 0, 0,
		[]byte{0, settingPush, 0, 0, 0, 0, 0, settingWindow, 1, 1, 0, 0})
	want = appendFrame(want, frameWindow, 0, 0, binary.BigEndian.AppendUint32(nil, 0x01010000-0xffff))
	want = appendFrame(want, frameSettings, flagAck, 0, nil)
	for _, f := range []frame{{kind: frameSettings}, {kind: frameSettings, flags: flagAck},
		{kind: framePing, body: []byte("12345678")}, {kind: framePing, flags: flagAck},
		{kind: frameWindow}, {kind: 200}} {
		if err := c.handle(&f); err != nil {
			t.Errorf("a frame of kind %d: %v", f.kind, err)
		}
	}
	want = appendFrame(want, frameSettings, flagAck, 0, nil)
	want = appendFrame(want, framePing, flagAck, 0, []byte("12345678"))
	if !bytes.Equal(r.heard.Bytes(), want) {
		t.Errorf("said %x, expected %x", r.heard.Bytes(), want)
	}
}

// TestRoomIsGivenBack before half of it is gone: each byte once.
func TestRoomIsGivenBack(t *testing.T) {
	c, r := recorded()
	const frames = 4 * window / maxFrame
	f := frame{kind: frameData, body: make([]byte, maxFrame)}
	given, times := 0, 0
	for range frames {
		must.Do(t, c.handle(&f))
		for r.heard.Len() > 0 {
			w, err := readFrame(&r.heard, c.buf)
			if err != nil || w.kind != frameWindow || w.stream != 0 || len(w.body) != 4 {
				t.Fatalf("said %+v, %v", w, err)
			}
			given += int(binary.BigEndian.Uint32(w.body))
			times++
		}
	}
	if given+int(c.taken) != frames*maxFrame || c.taken > window/2 || times > 8 {
		t.Errorf("of %d bytes %d are given back in %d times, and %d are not", frames*maxFrame, given, times, c.taken)
	}
}

// TestLongestQuestion is one frame, and its length stands before it; the next question has the next number.
func TestLongestQuestion(t *testing.T) {
	reply := func(stream uint32) []byte {
		b := appendFrame(nil, frameHeaders, flagEndHeaders, stream, ok)
		return appendFrame(appendFrame(b, frameData, 0, stream, empty), frameHeaders, flagEndHeaders|flagEndStream, stream,
			good)
	}
	c, r := recorded(reply(1), reply(3))
	question := bytes.Repeat([]byte("q"), maxQuestion)
	for _, stream := range []uint32{1, 3} {
		must.Get(c.Call(t.Context(), "/t.T/M", question))(t)
		head, err := readFrame(&r.heard, c.buf)
		if err != nil || head.kind != frameHeaders || head.stream != stream || head.flags != flagEndHeaders {
			t.Errorf("headers: %+v, %v", head, err)
		}
		data, err := readFrame(&r.heard, c.buf)
		if err != nil || data.kind != frameData || data.stream != stream || data.flags != flagEndStream ||
			!bytes.Equal(data.body[5:], question) ||
			!bytes.Equal(data.body[:5], []byte{0, 0, 0, 0x3f, 0xfb}) {
			t.Errorf("data: kind %d, stream %d, %d bytes, %v", data.kind, data.stream, len(data.body), err)
		}
	}
}

// TestConnectionThatEnded says again why, and asks nothing more.
func TestConnectionThatEnded(t *testing.T) {
	whole := appendFrame(appendFrame(appendFrame(nil, frameHeaders, flagEndHeaders, 1, ok), frameData, 0, 1, empty),
		frameHeaders, flagEndHeaders|flagEndStream, 1, good)
	for name, c := range map[string]struct {
		says  []byte
		first string // "": an answer
		again string
	}{
		"it ends after this one": {append(appendFrame(nil, frameGoAway, 0, 0, []byte{0, 0, 0, 1, 0, 0, 0, 0}), whole...),
			"", "no more questions"},
		"given up": {appendFrame(nil, frameReset, 0, 1, []byte{0, 0, 0, 8}), "gave the call up",
			"gave the call up"},
	} {
		conn, r := recorded(c.says)
		if _, err := conn.Call(t.Context(), "/t.T/M", nil); (err == nil) != (c.first == "") || err != nil &&
			!strings.Contains(err.Error(), c.first) {
			t.Errorf("%s: %v", name, err)
		}
		r.heard.Reset()
		_, err := conn.Call(t.Context(), "/t.T/M", nil)
		if CodeOf(err) != Unavailable || !strings.Contains(err.Error(), "connection error: ") ||
			!strings.Contains(err.Error(), c.again) || r.heard.Len() > 0 {
			t.Errorf("%s, again: %v, and %d bytes are sent", name, err, r.heard.Len())
		}
	}
}

// TestWhoseErrorItIs: the other side's own is answered, with its text as far as it can be read; nonsense is neither
// that nor a connection that broke.
func TestWhoseErrorItIs(t *testing.T) {
	for name, c := range map[string]struct {
		says     []byte
		code     int
		answered bool
		text     string
	}{
		"refused": {appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1,
			fields(":status", "200", "grpc-status", "5", "grpc-message", "50%25")), NotFound, true, "50%"},
		"no escape": {appendFrame(nil, frameHeaders, flagEndHeaders|flagEndStream, 1,
			fields(":status", "200", "grpc-status", "5", "grpc-message", "50%")), NotFound, true, "50%"},
		"of HTTP": {appendFrame(nil, frameHeaders, flagEndHeaders, 1, fields(":status", "403")), Unknown, true,
			"unexpected HTTP status code received from server: 403"},
		"no headers":   {appendFrame(nil, frameData, 0, 1, empty), Internal, false, "the answer has no headers"},
		"end of words": {nil, Unavailable, false, "error reading from server: EOF"},
	} {
		conn, _ := recorded(c.says)
		_, err := conn.Call(t.Context(), "/t.T/M", nil)
		var e *Error
		if !errors.As(err, &e) || e.Code != c.code || e.Answered != c.answered || e.Message != c.text {
			t.Errorf("%s: %+v", name, err)
		}
	}
	conn, _ := recorded(appendFrame(nil, frameData, 0, 1, empty))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	conn.unix = struct{ net.Conn }{conn.unix}
	if e := failed(ctx, "x", errors.New("y")); e.Code != DeadlineExceeded || !errors.Is(e, context.Canceled) ||
		e.Message != context.Canceled.Error() {
		t.Errorf("a caller that gave up: %+v", e)
	}
	for code, want := range map[int]string{-1: "Code(-1)", 0: "OK", 16: "Unauthenticated", 17: "Code(17)"} {
		if got := (&Error{Code: code, Message: "m"}).Error(); got != "rpc error: code = "+want+" desc = m" {
			t.Errorf("code %d reads %q", code, got)
		}
	}
}

// TestContentOfFrames: without padding and priority, which may be all there is.
func TestContentOfFrames(t *testing.T) {
	for _, c := range []struct {
		f    frame
		want string // "-": an error
	}{
		{frame{kind: frameData, body: []byte("ab")}, "ab"},
		{frame{kind: frameData, flags: flagPriority, body: []byte("ab")}, "ab"}, // no flag of data
		{frame{kind: frameData, flags: flagPadded, body: []byte("\x01abc")}, "ab"},
		{frame{kind: frameData, flags: flagPadded, body: []byte("\x02ab")}, ""},
		{frame{kind: frameData, flags: flagPadded, body: []byte("\x03ab")}, "-"},
		{frame{kind: frameData, flags: flagPadded, body: []byte("\x00")}, ""},
		{frame{kind: frameData, flags: flagPadded}, "-"},
		{frame{kind: frameHeaders, flags: flagPriority, body: []byte("12345")}, ""},
		{frame{kind: frameHeaders, flags: flagPriority, body: []byte("1234")}, "-"},
		{frame{kind: frameHeaders, flags: flagPriority | flagPadded, body: []byte("\x0112345ab")}, "a"},
		{frame{kind: frameHeaders, body: []byte("12345a")}, "12345a"},
	} {
		got, err := c.f.content()
		if (err != nil) != (c.want == "-") || err == nil && string(got) != c.want {
			t.Errorf("%+v: %q, %v", c.f, got, err)
		}
	}
}

// TestEscapedText is printable ASCII without its percent signs.
func TestEscapedText(t *testing.T) {
	if got := escape("a ~%\x1f\x7fü\n"); got != "a ~%25%1F%7F%C3%BC%0A" {
		t.Errorf("%q", got)
	}
}

// TestFieldsAreReadAsWritten, whatever stands between them, and as what they are alone.
func TestFieldsAreReadAsWritten(t *testing.T) {
	m := AppendText(nil, 1, "text")
	m = AppendNumber(m, 2, 1<<32+300) // of which an enumeration has 32 bits
	m = append(m, 3<<3|wireFixed8, 1, 2, 3, 4, 5, 6, 7, 8)
	m = append(m, 4<<3|wireFixed4, 1, 2, 3, 4)
	m = append(m, 0xf8, 0xff, 0xff, 0xff, 0x0f, 7) // the last number that a field may have
	m = AppendText(m, 1, "")                       // again
	m = AppendText(m, 5, string(AppendText(AppendNumber(nil, 6, 1), 7, "within")))
	var texts []string
	var number uint64
	numbers := ""
	if err := Each(m, func(f Field) error {
		numbers += string(rune('0' + f.Number%10))
		switch text := ""; f.Number {
		case 1:
			defer func() { texts = append(texts, text) }()
			if f.Enum(&number) != ErrWire {
				t.Error("a text is a number")
			}
			return f.Text(&text)
		case 2:
			if f.Text(&text) != ErrWire || f.Message(nil) != ErrWire {
				t.Error("a number is a text")
			}
			return f.Enum(&number)
		}
		return nil
	}); err != nil || strings.Join(texts, ",") != "text," || number != 300 || numbers != "1234115" {
		t.Errorf("fields %s, texts %q, number %d: %v", numbers, texts, number, err)
	}
	within := ""
	if err := Follow(m, []int{5, 7}, func(f Field) error { return f.Text(&within) }); err != nil || within != "within" {
		t.Errorf("within: %q, %v", within, err)
	}
	if err := Follow(m, []int{2, 7}, func(Field) error { return nil }); err != ErrWire {
		t.Errorf("within a number: %v", err)
	}
	mine := errors.New("mine")
	if err := Each(m, func(Field) error { return mine }); err != mine {
		t.Errorf("the visitor's error is %v", err)
	}
	for _, bad := range []string{"\x00\x01", "\x80", "\x80\x80\x80\x80\x10\x01", "\x08", "\x08\x80",
		"\x09\x01\x02\x03\x04\x05\x06\x07", "\x0d\x01\x02\x03", "\x0a", "\x0b", "\x0e\x01"} {
		if err := Each([]byte(bad), func(f Field) error {
			t.Errorf("%x has field %d", bad,
				f.Number)
			return nil
		}); err != ErrWire {
			t.Errorf("%x: %v", bad, err)
		}
	}
	if err := Each([]byte("\x0a\x01\xff"), func(f Field) error { return f.Text(&within) }); err != ErrWire ||
		within != "within" {
		t.Errorf("a text that is no UTF-8: %q, %v", within, err)
	}
}
