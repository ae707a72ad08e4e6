package server

import (
	"bytes"
	"encoding/xml"
	"strconv"
	"strings"
)

const header = `<?xml version="1.0" encoding="UTF-8"?>` + "\n"

// writer makes XML of elements without attributes.
type writer struct{ b []byte }

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
	if strings.ContainsAny(v, "&<>'\"\r\n\t") || !printable(v) {
		var buf bytes.Buffer
		_ = xml.EscapeText(&buf, []byte(v)) // a Buffer does not fail
		x.b = append(x.b, buf.Bytes()...)
	} else {
		x.b = append(x.b, v...)
	}
	x.end(tag)
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
