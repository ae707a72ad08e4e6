package report

import (
	"encoding/json"
	"fmt"
	"reflect"
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
func cleaned(p *Page) (*Page, error) {
	data, err := json.Marshal(p)
	if err != nil {
		return nil, err
	}
	c := &Page{}
	if err := json.Unmarshal(data, c); err != nil {
		return nil, err
	}
	cleanAll(reflect.ValueOf(c))
	return c, nil
}

func cleanAll(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			cleanAll(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			cleanAll(v.Field(i))
		}
	case reflect.Slice:
		for i := range v.Len() {
			cleanAll(v.Index(i))
		}
	case reflect.String:
		v.SetString(clean(v.String()))
	}
}
