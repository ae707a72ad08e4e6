package grpclite

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// ErrWire is a message that is no protobuf, or not of the type it should be.
var ErrWire = errors.New("malformed protobuf message")

// Wire types of protobuf ("Encoding", protobuf.dev). Groups are not read here.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// Field is a member of a message as it is on the wire.
type Field struct {
	Number int

	kind  int
	value uint64 // wireVarint
	bytes []byte // wireBytes
}

// Each calls visit for every field of a message, in order. An error is ErrWire or visit's.
func Each(m []byte, visit func(Field) error) error {
	for len(m) > 0 {
		f, rest, ok := cut(m)
		if !ok {
			return ErrWire
		}
		if err := visit(f); err != nil {
			return err
		}
		m = rest
	}
	return nil
}

// cut takes the first field off a message.
func cut(m []byte) (f Field, rest []byte, ok bool) {
	key, n := binary.Uvarint(m)
	if key>>3 == 0 || key>>3 > 1<<29-1 { // also of a key that is cut short: it is 0
		return f, nil, false
	}
	f.Number, f.kind, m = int(key>>3), int(key&7), m[n:]
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

// Text reads a string.
func (f Field) Text(into *string) error {
	if f.kind != wireBytes || !utf8.Valid(f.bytes) {
		return ErrWire
	}
	*into = string(f.bytes)
	return nil
}

// Enum reads an enumeration's value.
func (f Field) Enum(into *uint64) error {
	if f.kind != wireVarint {
		return ErrWire
	}
	*into = uint64(uint32(f.value)) // as generated code does
	return nil
}

// Message visits the fields of a message within.
func (f Field) Message(visit func(Field) error) error {
	if f.kind != wireBytes {
		return ErrWire
	}
	return Each(f.bytes, visit)
}

// Follow visits the fields at the end of a path of messages within messages.
func Follow(m []byte, path []int, visit func(Field) error) error {
	return Each(m, func(f Field) error {
		switch {
		case f.Number != path[0]:
			return nil
		case len(path) == 1:
			return visit(f)
		case f.kind != wireBytes:
			return ErrWire
		}
		return Follow(f.bytes, path[1:], visit)
	})
}

// AppendText adds a string to a message.
func AppendText(m []byte, number int, text string) []byte {
	m = binary.AppendUvarint(m, uint64(number)<<3|wireBytes)
	m = binary.AppendUvarint(m, uint64(len(text)))
	return append(m, text...)
}

// AppendNumber adds a number that is not negative to a message.
func AppendNumber(m []byte, number int, n uint64) []byte {
	m = binary.AppendUvarint(m, uint64(number)<<3|wireVarint)
	return binary.AppendUvarint(m, n)
}
