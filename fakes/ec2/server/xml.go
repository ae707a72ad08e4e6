package server

import (
	"bytes"
	"encoding/xml"
	"net/netip"
	"strconv"
)

const header = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// writer makes XML of elements without attributes.
type writer struct{ b []byte }

// begin and finish enclose the answer to an action.
func (x *writer) begin(action string) {
	x.b = append(x.b, header+"<"...)
	x.b = append(x.b, action...)
	x.b = append(x.b, `Response xmlns="http://ec2.amazonaws.com/doc/`+version+`/">`...)
}

func (x *writer) finish(action string) {
	x.b = append(append(append(x.b, '<', '/'), action...), "Response>"...)
}

func (x *writer) open(tag string) {
	x.b = append(x.b, '<')
	x.b = append(x.b, tag...)
	x.b = append(x.b, '>')
}

func (x *writer) end(tag string) {
	x.b = append(x.b, '<', '/')
	x.b = append(x.b, tag...)
	x.b = append(x.b, '>')
}

func (x *writer) text(tag, v string) {
	x.open(tag)
	if verbatim(v) {
		x.b = append(x.b, v...)
	} else {
		var buf bytes.Buffer
		_ = xml.EscapeText(&buf, []byte(v)) // a Buffer does not fail
		x.b = append(x.b, buf.Bytes()...)
	}
	x.end(tag)
}

// verbatim says whether a text needs no escape: ASCII without control characters and what has a meaning.
func verbatim(v string) bool {
	for i := range len(v) {
		switch c := v[i]; {
		case c < ' ', c >= 0x7f, c == '&', c == '<', c == '>', c == '\'', c == '"':
			return false
		}
	}
	return true
}

// option is an element that is left out when it is empty.
func (x *writer) option(tag, v string) {
	if v != "" {
		x.text(tag, v)
	}
}

func (x *writer) number(tag string, n int) {
	x.open(tag)
	x.b = strconv.AppendInt(x.b, int64(n), 10)
	x.end(tag)
}

func (x *writer) flag(tag string, v bool) {
	x.open(tag)
	x.b = strconv.AppendBool(x.b, v)
	x.end(tag)
}

// address is an element with an address, empty for none.
func (x *writer) address(tag string, a netip.Addr) {
	x.open(tag)
	if a.IsValid() {
		x.b = a.AppendTo(x.b)
	}
	x.end(tag)
}
