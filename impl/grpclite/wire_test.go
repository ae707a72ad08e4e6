package grpclite

import "testing"

// TestMessageOfAnotherKind: a number is no message, and what is read of it would be nothing, which looks like an empty one.
func TestMessageOfAnotherKind(t *testing.T) {
	visited := 0
	count := func(Field) error { visited++; return nil }
	for _, c := range []struct {
		m    []byte
		ok   bool
		seen int
	}{
		{[]byte{0x0a, 2, 0x08, 7}, true, 1}, // field 1: a message with field 1, a number
		{[]byte{0x08, 7}, false, 0},         // field 1: a number
	} {
		visited = 0
		err := Each(c.m, func(f Field) error { return f.Message(count) })
		if (err == nil) != c.ok || visited != c.seen {
			t.Errorf("%x: %v, %d fields", c.m, err, visited)
		}
	}
}

// TestFieldLongerThanItsMessage: a message that is cut short is an error, and what lies behind it in memory is not read.
func TestFieldLongerThanItsMessage(t *testing.T) {
	text, number := []byte{0x0a, 3, 'a', 'b', 'c'}, []byte{0x0d, 1, 2, 3, 4}
	for _, m := range [][]byte{text[:4], text[:2], text[:1], {0x0a, 0xff}, number[:4], {0x09, 1}} {
		if err := Each(m, func(f Field) error { t.Errorf("%x: field %d is %q", m, f.Number, f.bytes); return nil }); err != ErrWire {
			t.Errorf("%x: %v", m, err)
		}
	}
}
