package grpclite

import (
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/enilab/enilab/internal/accept"
	"github.com/enilab/enilab/internal/must"
)

// TestServeAnswersGRPCsOwnClient: gRPC's own client, and ours, understand what Serve says.
func TestServeAnswersGRPCsOwnClient(t *testing.T) {
	for name, want := range map[string]Reply{
		"an answer":        {Message: []byte("yes")},
		"an empty answer":  {},
		"an error":         {Code: 9, Text: "50 % of it:\nnonsense, für immer"},
		"an empty message": {Code: Unimplemented},
	} {
		t.Run(name, func(t *testing.T) {
			path := socket(t)
			l := must.Get(net.Listen("unix", path))(t)
			defer l.Close()
			served := make(chan error, 2)
			go accept.Each(l.Accept, func(c net.Conn) {
				said := make([]byte, 4)
				_, err := c.Read(said)
				if err == nil {
					err = Serve(c, said, patience, func(method string, message []byte) Reply {
						if method != "/t.T/M" || string(message) != "really?" {
							t.Errorf("asked %s %q", method, message)
						}
						return want
					})
				}
				served <- err
				c.Close()
			})
			check := func(got []byte, code int, text string) {
				t.Helper()
				if code != want.Code || code != OK && text != want.Text || code == OK && string(got) != string(want.Message) {
					t.Errorf("heard %q, code %d, %q", got, code, text)
				}
				if err := <-served; err != nil {
					t.Errorf("served: %v", err)
				}
			}
			g := must.Get(grpc.NewClient("unix:"+path, grpc.WithTransportCredentials(insecure.NewCredentials())))(t)
			var got []byte
			err := g.Invoke(bounded(t), "/t.T/M", []byte("really?"), &got, grpc.ForceCodecV2(plain{}))
			g.Close()
			check(got, int(status.Code(err)), status.Convert(err).Message())

			c := must.Get(Dial(bounded(t), path))(t)
			got, err = c.Call(bounded(t), "/t.T/M", []byte("really?"))
			c.Close()
			text := ""
			if e, ok := err.(*Error); ok {
				text = e.Message
			}
			check(got, CodeOf(err), text)
		})
	}
}

// TestServeNonsense: what is no call ends the connection, and nobody is asked.
func TestServeNonsense(t *testing.T) {
	hello := appendFrame([]byte(preface), frameSettings, 0, 0, nil)
	call := appendFrame(hello, frameHeaders, flagEndHeaders, 1, nil)
	more := func(b []byte, kind, flags byte, stream uint32, body []byte) []byte {
		return appendFrame(slices.Clip(b), kind, flags, stream, body)
	}
	for name, c := range map[string]struct {
		said []byte
		want string // in the error
	}{
		"another preface":     {more([]byte("PRI * HTTP/3.0\r\n\r\nSM\r\n\r\n"), frameSettings, 0, 0, nil), "preface"},
		"an early end":        {[]byte(preface)[:10], "preface"},
		"no question":         {hello, "EOF"},
		"half a message":      {more(call, frameData, flagEndStream, 1, []byte{0, 0, 0, 0, 2, 'a'}), "not one whole"},
		"less than a message": {more(call, frameData, flagEndStream, 1, empty[:4]), "not one whole"},
		"compressed":          {more(call, frameData, flagEndStream, 1, []byte{1, 0, 0, 0, 0}), "not one whole"},
		"no message":          {more(hello, frameHeaders, flagEndHeaders|flagEndStream, 1, nil), "not one whole"},
		"a second call":       {more(call, frameHeaders, flagEndHeaders, 3, nil), "a second call"},
		"headers without end": {more(hello, frameHeaders, 0, 1, nil), "expected headers of at most"},
		"nonsense":            {more(hello, frameHeaders, flagEndHeaders, 1, []byte{0xff, 0xff, 0xff}), "decoding error"},
		"padded headers":      {more(hello, frameHeaders, flagEndHeaders|flagPadded, 1, []byte{1}), "padding"},
		"padded data":         {more(call, frameData, flagPadded, 1, []byte{1}), "padding"},
		"data of no call":     {more(hello, frameData, flagEndStream, 0, empty), "EOF"},
		"data of another":     {more(call, frameData, flagEndStream, 3, empty), "EOF"},
		"too much": {more(more(call, frameData, 0, 1, make([]byte, maxQuestion)), frameData, 0, 1, []byte{0}),
			"at most"},
		"as much as may be": {more(call, frameData, flagEndStream, 1, make([]byte, maxQuestion)), "not one whole"},
	} {
		said := c.said
		t.Run(name, func(t *testing.T) {
			_, r := recorded(said[min(4, len(said)):])
			if err := Serve(r, said[:min(4, len(said))], patience, func(string, []byte) Reply {
				t.Error("somebody was asked")
				return Reply{}
			}); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, expected %q", err, c.want)
			}
		})
	}
}

// TestNobodyIsAskedForACallerThatHungUp: its call is whole, and the answer would reach nobody.
func TestNobodyIsAskedForACallerThatHungUp(t *testing.T) {
	a, b := net.Pipe()
	a.Close()
	call := appendFrame([]byte(preface), frameHeaders, flagEndHeaders, 1, fields(":method", "POST", ":path", "/t.T/M"))
	call = appendFrame(call, frameData, flagEndStream, 1, empty)
	if err := Serve(b, call, patience, func(string, []byte) Reply {
		t.Error("somebody was asked")
		return Reply{}
	}); err == nil {
		t.Error("no error")
	}
}

// TestAnswerIsNotCutOff: the connection stays open until the caller has hung up, also when that has more to say: a connection that is closed with
// something unread is reset, and the answer in it may be lost. A handler whose disk takes longer than callers may is none of their fault.
func TestAnswerIsNotCutOff(t *testing.T) {
	a, b := net.Pipe()
	_ = a.SetDeadline(time.Now().Add(patience))
	served := make(chan error, 1)
	go func() {
		err := Serve(b, nil, patience, func(string, []byte) Reply {
			_ = b.SetDeadline(time.Unix(1, 0)) // what the caller had is over
			return Reply{Message: []byte("yes")}
		})
		b.Close()
		served <- err
	}()
	heard := make(chan struct{})
	go func() { // settings, and the three frames of the answer, which come in one piece each
		for range 2 {
			_, _ = a.Read(make([]byte, 1024))
		}
		close(heard)
	}()
	call := appendFrame([]byte(preface), frameHeaders, flagEndHeaders, 1, fields(":method", "POST", ":path", "/t.T/M"))
	must.Get(a.Write(appendFrame(call, frameData, flagEndStream, 1, empty)))(t)
	<-heard
	if _, err := a.Write(appendFrame(nil, framePing, 0, 0, make([]byte, 8))); err != nil {
		t.Errorf("after the answer: %v", err)
	}
	a.Close()
	if err := <-served; err != nil {
		t.Errorf("served: %v", err)
	}
}
