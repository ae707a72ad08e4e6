package grpclite

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// Frames of HTTP/2 (RFC 9113, section 6).
const (
	frameData         = 0
	frameHeaders      = 1
	frameReset        = 3
	frameSettings     = 4
	framePush         = 5
	framePing         = 6
	frameGoAway       = 7
	frameWindow       = 8
	frameContinuation = 9
)

// Flags of frames. Which frame has which is said there.
const (
	flagEndStream  = 0x01 // data, headers
	flagAck        = 0x01 // settings, ping
	flagEndHeaders = 0x04 // headers, continuation
	flagPadded     = 0x08 // data, headers
	flagPriority   = 0x20 // headers
)

// Settings that are announced (section 6.5.2).
const (
	settingPush   = 2
	settingWindow = 4
)

// preface is what a client says first (section 3.4).
const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

// maxFrame is the largest frame that either side may send without having been told otherwise, in bytes of its body.
const maxFrame = 16384

// header is the length of a frame's header in bytes.
const header = 9

type frame struct {
	kind, flags byte
	stream      uint32
	body        []byte // valid until the next is read
}

func (f *frame) has(flag byte) bool { return f.flags&flag != 0 }

// appendFrame adds a frame to what is to be written.
func appendFrame(b []byte, kind, flags byte, stream uint32, body []byte) []byte {
	b = append(b, byte(len(body)>>16), byte(len(body)>>8), byte(len(body)), kind, flags)
	b = binary.BigEndian.AppendUint32(b, stream)
	return append(b, body...)
}

// readFrame reads one into buf, which has room for the largest.
func readFrame(r io.Reader, buf []byte) (f frame, err error) {
	if _, err := io.ReadFull(r, buf[:header]); err != nil {
		return f, err
	}
	size := int(buf[0])<<16 | int(buf[1])<<8 | int(buf[2])
	f.kind, f.flags, f.stream = buf[3], buf[4], binary.BigEndian.Uint32(buf[5:header])&(1<<31-1)
	if size > maxFrame {
		return f, fmt.Errorf("expected a frame of at most %d bytes, found one of %d: it is no HTTP/2", maxFrame, size)
	}
	f.body = buf[:size]
	_, err = io.ReadFull(r, f.body)
	return f, err
}

var errPadding = errors.New("a frame is shorter than its padding")

// content is a data or headers frame's without padding and priority.
func (f *frame) content() ([]byte, error) {
	b, pad := f.body, 0
	if f.has(flagPadded) {
		if len(b) == 0 {
			return nil, errPadding
		}
		b, pad = b[1:], int(b[0])
	}
	if f.kind == frameHeaders && f.has(flagPriority) {
		if len(b) < 5 {
			return nil, errPadding
		}
		b = b[5:]
	}
	if pad > len(b) {
		return nil, errPadding
	}
	return b[:len(b)-pad], nil
}
