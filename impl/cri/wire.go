package cri

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// errWire is a message that is no protobuf, or not of the type it should be.
var errWire = errors.New("malformed protobuf message")

// Wire types of protobuf ("Encoding", protobuf.dev). Groups are not used by CRI.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// field is a member of a message as it is on the wire.
type field struct {
	number int
	kind   int
	value  uint64 // wireVarint
	bytes  []byte // wireBytes
}

// each calls visit for every field of a message, in order. An error is errWire or visit's.
func each(m []byte, visit func(field) error) error {
	for len(m) > 0 {
		f, rest, ok := cut(m)
		if !ok {
			return errWire
		}
		if err := visit(f); err != nil {
			return err
		}
		m = rest
	}
	return nil
}

// cut takes the first field off a message.
func cut(m []byte) (f field, rest []byte, ok bool) {
	key, n := binary.Uvarint(m)
	if n <= 0 || key>>3 == 0 || key>>3 > 1<<29-1 {
		return f, nil, false
	}
	f.number, f.kind, m = int(key>>3), int(key&7), m[n:]
	size := 0
	switch f.kind {
	case wireVarint:
		if f.value, size = binary.Uvarint(m); size <= 0 {
			return f, nil, false
		}
	case wireFixed8:
		size = 8
	case wireFixed4:
		size = 4
	case wireBytes:
		length, n := binary.Uvarint(m)
		if n <= 0 || length > uint64(len(m)-n) {
			return f, nil, false
		}
		m = m[n:]
		size = int(length)
		f.bytes = m[:size]
	default:
		return f, nil, false
	}
	if size > len(m) {
		return f, nil, false
	}
	return f, m[size:], true
}

// text reads a string.
func (f field) text(into *string) error {
	if f.kind != wireBytes || !utf8.Valid(f.bytes) {
		return errWire
	}
	*into = string(f.bytes)
	return nil
}

// enum reads an enumeration's value.
func (f field) enum(into *uint64) error {
	if f.kind != wireVarint {
		return errWire
	}
	*into = uint64(uint32(f.value)) // as generated code does
	return nil
}

// message visits the fields of a message within.
func (f field) message(visit func(field) error) error {
	if f.kind != wireBytes {
		return errWire
	}
	return each(f.bytes, visit)
}

// follow visits the fields at the end of a path of messages within messages.
func follow(m []byte, path []int, visit func(field) error) error {
	return each(m, func(f field) error {
		switch {
		case f.number != path[0]:
			return nil
		case len(path) == 1:
			return visit(f)
		case f.kind != wireBytes:
			return errWire
		}
		return follow(f.bytes, path[1:], visit)
	})
}

// appendText adds a string to a message.
func appendText(m []byte, number int, text string) []byte {
	m = binary.AppendUvarint(m, uint64(number)<<3|wireBytes)
	m = binary.AppendUvarint(m, uint64(len(text)))
	return append(m, text...)
}
