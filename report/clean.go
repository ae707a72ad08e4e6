package report

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/enilab/enilab/sim/runner"
)

// mostText is how long one text of a report may be: a daemon's last words may be megabytes.
const mostText = 4000

// clean is a text that can be shown and be part of XML: valid, without control characters and without those that turn the direction of what
// follows, and not too long.
func clean(s string) string {
	if n := len(s); n > mostText {
		cut := mostText
		for cut > mostText-utf8.UTFMax && !utf8.RuneStart(s[cut]) {
			cut--
		}
		s = s[:cut] + fmt.Sprintf("… (%s bytes in all)", runner.Number(uint64(n)))
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r < ' ':
			return '␀' + r // Unicode has pictures of them
		case r == 0x7f:
			return '␡'
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Co, unicode.Cs), r == 0x2028, r == 0x2029, r&0xfffe == 0xfffe:
			return utf8.RuneError
		}
		return r
	}, strings.ToValidUTF8(s, string(utf8.RuneError)))
}

// cleaned is a copy of a page whose texts are all clean.
func cleaned(p *Page) *Page { return copied(reflect.ValueOf(p)).Interface().(*Page) }

// copied copies a value and all that it is made of.
func copied(v reflect.Value) reflect.Value {
	switch v.Kind() {
	case reflect.Pointer:
		if v.IsNil() {
			return v
		}
		c := reflect.New(v.Type().Elem())
		c.Elem().Set(copied(v.Elem()))
		return c
	case reflect.Struct:
		c := reflect.New(v.Type()).Elem()
		for i := range v.NumField() {
			c.Field(i).Set(copied(v.Field(i)))
		}
		return c
	case reflect.Slice:
		if v.IsNil() {
			return v
		}
		c := reflect.MakeSlice(v.Type(), v.Len(), v.Len())
		for i := range v.Len() {
			c.Index(i).Set(copied(v.Index(i)))
		}
		return c
	case reflect.String:
		return reflect.ValueOf(clean(v.String())).Convert(v.Type())
	}
	return v
}

// trimmed is a page whose runs have details only as far as they are shown: a sweep has a hundred thousand.
func trimmed(p *Page, details int) *Page {
	c := *p
	c.Runs = make([]Run, len(p.Runs))
	copy(c.Runs, p.Runs)
	order := make([]*Run, len(c.Runs))
	for i := range c.Runs {
		order[i] = &c.Runs[i]
	}
	slices.SortStableFunc(order, func(a, b *Run) int { return rank(a) - rank(b) })
	for i, r := range order {
		if i < details {
			continue
		}
		r.Lanes, r.Curves, r.Script = nil, nil, nil
		if !r.Red() {
			r.Timeline = nil
		}
	}
	return &c
}
