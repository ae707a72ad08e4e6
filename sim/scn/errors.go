package scn

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// An Error says what is wrong at one place of a scenario, and in Hint what to do about it.
type Error struct {
	Pos       Pos
	Msg, Hint string
}

// Errorf makes an Error. Packages that give words their meaning use it for what they find wrong.
func Errorf(pos Pos, hint, format string, args ...any) *Error {
	return &Error{Pos: pos, Msg: fmt.Sprintf(format, args...), Hint: hint}
}

// Error is "file:line:col: msg (hint)".
func (e *Error) Error() string {
	s := e.Msg
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	if p := e.Pos.String(); p != "" {
		s = p + ": " + s
	}
	return s
}

// String is "file:line:col", without the parts that are unknown.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	s := strconv.Itoa(p.Line) + ":" + strconv.Itoa(p.Col)
	if p.File != "" {
		s = p.File + ":" + s
	}
	return s
}

// An ErrorList is every error found in one scenario, in the order of the file.
type ErrorList []*Error

// shownErrors is how many errors a list prints: more do not fit on a screen, and the first ones
// are usually the cause of the rest.
const shownErrors = 10

// Error prints one error per line, at most 10, then "and N more".
// Listed is what is wrong with a file as errors of it.
func Listed(name string, err error) ErrorList {
	if list, ok := errors.AsType[ErrorList](err); ok {
		return list
	}
	return ErrorList{Errorf(Pos{File: name}, "", "%v", err)}
}

func (l ErrorList) Error() string {
	var b strings.Builder
	for i, e := range l {
		if i > 0 {
			b.WriteByte('\n')
		}
		if i == shownErrors {
			fmt.Fprintf(&b, "and %d more", len(l)-i)
			break
		}
		b.WriteString(e.Error())
	}
	return b.String()
}

// Unwrap gives errors.As and errors.Is the single errors.
func (l ErrorList) Unwrap() []error {
	errs := make([]error, len(l))
	for i, e := range l {
		errs[i] = e
	}
	return errs
}

// err is l as an error, and nil when l is empty.
func (l ErrorList) err() error {
	if len(l) == 0 {
		return nil
	}
	return l
}

// clippedAt is how many bytes of a found word an error shows.
const clippedAt = 40

// clip shortens a found text for a message.
func clip(s string) string {
	if len(s) <= clippedAt {
		return s
	}
	n := clippedAt
	for !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// quoteFound is a found word as messages show it: in quotes, shortened, in one line.
func quoteFound(s string) string { return strconv.Quote(clip(s)) }
