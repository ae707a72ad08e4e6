// Package strictyaml reads YAML that people write: every key is known, every value has its form, and a mistake is told with its line, its column
// and what to do, all of a file's at once.
//
//	r := strictyaml.NewReader("small.yaml")
//	if n := r.Tree(data, strictyaml.Form{What: "a world file", Max: 1 << 20, Begin: "begin with an example of worlds/"}); n != nil {
//		r.Object(n, "the world", r.Text("name", &name), r.Duration("hang", &hang))
//	}
//	err := r.Err() // Errors
//
// It is pure. No input makes it panic; anchors and aliases are refused, so that a tree is as large as its text.
package strictyaml

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/enilab/enilab/internal/spelling"
)

// mostErrors bounds how many mistakes are told: who mistook the file needs no more.
const mostErrors = 50

// Error is a mistake in a file.
type Error struct {
	File         string
	Line, Column int // from 1; 0: of the file as a whole
	Text, Hint   string
}

// Error is file:line:column: text (hint).
func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString(e.File)
	if e.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", e.Line, e.Column)
	}
	b.WriteString(": " + e.Text)
	if e.Hint != "" {
		b.WriteString(" (" + e.Hint + ")")
	}
	return b.String()
}

// Errors are all mistakes of a file, in the order of its lines.
type Errors []*Error

// Error is one mistake a line.
func (l Errors) Error() string {
	lines := make([]string, len(l))
	for i, e := range l {
		lines[i] = e.Error()
	}
	return strings.Join(lines, "\n")
}

// Place is where something is written.
type Place struct{ Line, Column int }

// PlaceOf is where a node is written.
func PlaceOf(n *yaml.Node) Place { return Place{n.Line, n.Column} }

// Object is where a mapping and its keys are written.
type Object struct {
	Begin Place
	Keys  map[string]Place
}

// At is where a key is written, or else its mapping.
func (o *Object) At(key string) Place {
	if p, ok := o.Keys[key]; ok {
		return p
	}
	return o.Begin
}

// Field is a key of a mapping and what reads its value.
type Field struct {
	Key  string
	Read func(*yaml.Node)
}

// Reader takes values out of a tree of YAML, and collects mistakes.
type Reader struct {
	file string
	list Errors
}

// NewReader is a reader of the file of that name.
func NewReader(file string) *Reader { return &Reader{file: file} }

// Add is one more mistake.
func (r *Reader) Add(at Place, hint, format string, args ...any) {
	if len(r.list) < mostErrors {
		r.list = append(r.list, &Error{r.file, at.Line, at.Column, fmt.Sprintf(format, args...), hint})
	}
}

// Failed says whether there is a mistake already.
func (r *Reader) Failed() bool { return len(r.list) > 0 }

// Err is what was collected, an Errors; nil if that is nothing.
func (r *Reader) Err() error {
	if len(r.list) == 0 {
		return nil
	}
	slices.SortStableFunc(r.list, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return r.list
}

// Form is what a file should be.
type Form struct {
	What  string // such as a world file
	Max   int    // its largest size in bytes
	Begin string // where to begin, for who has nothing yet
}

// Tree is the file's only document, nil if there is none.
func (r *Reader) Tree(data []byte, form Form) *yaml.Node {
	if len(data) > form.Max {
		r.Add(Place{}, "is this "+form.What+"?", "the file has %d bytes, and %s at most %d", len(data), form.What, form.Max)
		return nil
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, more yaml.Node
	err := d.Decode(&doc)
	switch {
	case errors.Is(err, io.EOF) || err == nil && len(doc.Content) == 0:
		r.Add(Place{}, form.Begin, "the file is empty")
		return nil
	case err != nil:
		r.Add(badLine(err), "", "%s", strings.TrimPrefix(err.Error(), "yaml: "))
		return nil
	}
	if err := d.Decode(&more); !errors.Is(err, io.EOF) {
		r.Add(Place{max(more.Line, 1), max(more.Column, 1)}, "keep one", "there is a second document in the file")
	}
	return doc.Content[0]
}

// badLine is where the text of a syntax error says that it is.
func badLine(err error) Place {
	_, rest, ok := strings.Cut(err.Error(), "line ")
	number, _, _ := strings.Cut(rest, ":")
	line, bad := strconv.Atoi(number)
	if !ok || bad != nil || line < 1 {
		return Place{}
	}
	return Place{line, 1}
}

// Object reads a mapping whose keys are known.
func (r *Reader) Object(n *yaml.Node, what string, fields ...Field) Object {
	o := Object{Begin: PlaceOf(n), Keys: map[string]Place{}}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.Key
	}
	r.Mapping(n, what, func(k, v *yaml.Node) {
		i := slices.Index(names, k.Value)
		if i < 0 {
			r.Add(PlaceOf(k), Meant(k.Value, names), "%s has no key %q", what, k.Value)
			return
		}
		o.Keys[k.Value] = PlaceOf(k)
		fields[i].Read(v)
	})
	return o
}

// Need refuses a mapping that leaves keys out.
func (r *Reader) Need(n *yaml.Node, o *Object, what string, keys ...string) {
	for _, k := range keys {
		if _, ok := o.Keys[k]; !ok && n.Kind == yaml.MappingNode {
			r.Add(o.Begin, "", "%s needs the key %s", what, k)
		}
	}
}

// Mapping calls each for the keys and values of a mapping, each key once.
func (r *Reader) Mapping(n *yaml.Node, what string, each func(k, v *yaml.Node)) {
	if !r.Is(n, yaml.MappingNode, what, "keys and values, such as `id: x`") {
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		k, v := n.Content[i], n.Content[i+1]
		if !r.Is(k, yaml.ScalarNode, "a key", "a word") {
			continue
		}
		if line, twice := seen[k.Value]; twice {
			r.Add(PlaceOf(k), "keep one of them", "%s has the key %q twice, first in line %d", what, k.Value, line)
			continue
		}
		seen[k.Value] = k.Line
		each(k, v)
	}
}

// List calls each for the elements of a list.
func (r *Reader) List(n *yaml.Node, what string, each func(*yaml.Node)) {
	if !r.Is(n, yaml.SequenceNode, what, "a list, such as [a, b] or lines that begin with a dash") {
		return
	}
	for _, e := range n.Content {
		each(e)
	}
}

// Is refuses what is not of a kind.
func (r *Reader) Is(n *yaml.Node, kind yaml.Kind, what, form string) bool {
	switch {
	case n.Kind == yaml.AliasNode || n.Anchor != "":
		r.Add(PlaceOf(n), "write the value out", "anchors and aliases are not read")
	case n.Kind == yaml.ScalarNode && n.Tag == "!!null":
		r.Add(PlaceOf(n), "give "+form+", or leave the key out", "%s is empty", what)
	case n.Kind != kind:
		r.Add(PlaceOf(n), "", "%s: expected %s, found %s", what, form, Found(n))
	default:
		return true
	}
	return false
}

// Found is a value in a few words.
func Found(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "keys and values"
	case yaml.SequenceNode:
		return "a list"
	}
	return strconv.Quote(Shortened(n.Value))
}

// Shortened is a text that fits into a sentence.
func Shortened(s string) string {
	const most = 60
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}

// Meant is the hint for a word that is not known.
func Meant(word string, known []string) string {
	if s := spelling.Suggest(word, known); s != "" {
		return "did you mean " + s + "?"
	}
	if len(known) == 0 {
		return ""
	}
	return "there are " + strings.Join(known, ", ")
}

// Scalar reads a value that convert understands.
func (r *Reader) Scalar(n *yaml.Node, what, form string, convert func(string) bool) {
	if r.Is(n, yaml.ScalarNode, what, form) && !convert(n.Value) {
		r.Add(PlaceOf(n), "", "%s: expected %s, found %s", what, form, Found(n))
	}
}

// Text is any word, up to 255 characters as in tags.
func (r *Reader) Text(key string, to *string) Field {
	return Field{key, func(n *yaml.Node) {
		r.Scalar(n, key, "a text of 1 to 255 characters", func(s string) bool {
			*to = s
			return s != "" && len(s) <= 255
		})
	}}
}

// Texts is a list of them.
func (r *Reader) Texts(key string, to *[]string) Field {
	return Field{key, func(n *yaml.Node) {
		r.List(n, key, func(e *yaml.Node) {
			var s string
			r.Text(key, &s).Read(e)
			*to = append(*to, s)
		})
	}}
}

// Number is a whole number within limits.
func (r *Reader) Number(key string, low, high int, to *int) Field {
	return Field{key, func(n *yaml.Node) {
		r.Scalar(n, key, fmt.Sprintf("a whole number from %d to %d", low, high), func(s string) bool {
			v, err := strconv.Atoi(s)
			*to = min(max(v, low), high)
			return err == nil && *to == v
		})
	}}
}

// Flag is true or false.
func (r *Reader) Flag(key string, to *bool) Field {
	return r.Choice(key, map[string]bool{"true": true, "false": false}, "true or false", to)
}

// Choice is one of two words.
func (r *Reader) Choice(key string, words map[string]bool, form string, to *bool) Field {
	return Field{key, func(n *yaml.Node) {
		r.Scalar(n, key, form, func(s string) (ok bool) {
			*to, ok = words[s]
			return ok
		})
	}}
}

// Duration is one such as 5s.
func (r *Reader) Duration(key string, to *time.Duration) Field {
	return Field{key, func(n *yaml.Node) {
		r.Scalar(n, key, "a duration such as 250ms or 5s", func(s string) bool { return ParseDuration(s, to) })
	}}
}

// longest bounds durations: sums of a few thousand of them stay far from overflow.
const longest = 1000 * time.Hour

// ParseDuration reads one that is not negative and not absurd.
func ParseDuration(s string, to *time.Duration) bool {
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 || d > longest {
		return false
	}
	*to = d
	return true
}
