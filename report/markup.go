package report

import (
	"bytes"
	"fmt"
	"html"
)

// A page is made of parts: elements, their attributes, and texts. Every text and every value is escaped when it is written, and names are constants, so
// no string of a run can become markup. The only parts that are written as they are is what this package has rendered before, and its own style and
// script. html/template would do the same and look into contexts too, but it finds methods by their names: with it linked in the linker keeps
// every method of every type of the program, which is 36 MB of enilab.

// part is a piece of a page.
type part interface{ put(b *bytes.Buffer) }

// name is that of an element or an attribute. Only constants are given one: TestMarkup looks through the source.
type name string

// text is what a reader sees.
type text string

func (t text) put(b *bytes.Buffer) { b.WriteString(html.EscapeString(string(t))) }

func textf(format string, args ...any) text { return text(fmt.Sprintf(format, args...)) }

// attribute of an element.
type attribute struct {
	name  name
	value string
}

func (a attribute) put(b *bytes.Buffer) {
	b.WriteString(" " + string(a.name))
	if a.value != "" {
		b.WriteString(`="` + html.EscapeString(a.value) + `"`)
	}
}

func attr(n name, value string) part {
	if value == "" {
		return nil
	}
	return attribute{n, value}
}

// class names what an element looks like; empty: as it does.
func class(names string) part { return attr("class", names) }

// flag is an attribute without a value.
func flag(n name, on bool) part {
	if !on {
		return nil
	}
	return attribute{name: n}
}

// link leads to another place of the page, and nowhere else: no string of a run is an address.
func link(id string, of ...part) part {
	if id == "" {
		return parts(of)
	}
	return tag("a", attribute{"href", "#" + id}, parts(of))
}

// element with its attributes and what is in it.
type element struct {
	name name
	of   []part
}

func tag(n name, of ...part) part { return element{n, of} }

// void are the elements that have no end.
var void = map[name]bool{"meta": true, "link": true, "input": true}

func (e element) put(b *bytes.Buffer) {
	b.WriteString("<" + string(e.name))
	for _, p := range e.of {
		if a, ok := p.(attribute); ok {
			a.put(b)
		}
	}
	b.WriteString(">")
	if void[e.name] {
		return
	}
	for _, p := range e.of {
		if _, ok := p.(attribute); !ok && p != nil {
			p.put(b)
		}
	}
	b.WriteString("</" + string(e.name) + ">")
}

// parts are several in place of one.
type parts []part

func (g parts) put(b *bytes.Buffer) {
	for _, p := range g {
		if p != nil {
			p.put(b)
		}
	}
}

// when is the parts if a condition holds.
func when(yes bool, of ...part) part {
	if !yes {
		return nil
	}
	return parts(of)
}

// each is a part for each thing of a list.
func each[T any](list []T, of func(*T) part) part {
	g := make(parts, 0, len(list))
	for i := range list {
		g = append(g, of(&list[i]))
	}
	return g
}

// written is what parts were rendered to: it is put as it is.
type written []byte

func (w written) put(b *bytes.Buffer) { b.Write(w) }

// raw is the page's own style and script.
type raw string

func (r raw) put(b *bytes.Buffer) { b.WriteString(string(r)) }

// write renders parts, so that their size is known before they become part of a page.
func write(of ...part) written {
	var b bytes.Buffer
	parts(of).put(&b)
	return b.Bytes()
}
