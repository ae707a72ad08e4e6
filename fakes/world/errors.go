package world

import (
	"fmt"
	"slices"
	"strings"
)

// MaxFile is the largest file that is read, in bytes: 5,000 instances, each written out, are a tenth of it.
const MaxFile = 8 << 20

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

// errors collects mistakes.
type errors struct {
	file string
	list Errors
}

func (c *errors) add(at place, hint, format string, args ...any) {
	if len(c.list) < mostErrors {
		c.list = append(c.list, &Error{c.file, at.line, at.column, fmt.Sprintf(format, args...), hint})
	}
}

// err is what was collected, nil if that is nothing.
func (c *errors) err() error {
	if len(c.list) == 0 {
		return nil
	}
	slices.SortStableFunc(c.list, func(a, b *Error) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return c.list
}
