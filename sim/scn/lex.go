package scn

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// A token is a run of text between blanks, a quoted text, or key="quoted text".
type token struct {
	col    int    // of the first byte
	end    int    // column after the last byte
	text   string // without quotes and escapes
	eq     int    // where in text the first "=" outside quotes is, or -1
	value  int    // column of what follows that "=" (or of the text), inside the quotes
	quoted bool   // the token begins with a quote: never a word of the language
}

func blank(b byte) bool { return b == ' ' || b == '\t' }

// lex cuts the line from offset i on into tokens and its comment.
func (c *cursor) lex(i int) (comment string) {
	raw := c.raw
	for c.err == nil {
		gap := i
		for i < len(raw) && blank(raw[i]) {
			i++
		}
		if i == len(raw) {
			break
		}
		if raw[i] == '#' {
			if i-gap < 2 && raw[i-1] != '\t' {
				c.failAt(i+1, "write two blanks or a tab before it, or put a value in quotes", "a comment right behind a word")
			}
			return strings.TrimSpace(raw[i+1:])
		}
		i = c.lexToken(i)
	}
	return ""
}

// lexToken reads the token at offset i and returns the offset after it.
func (c *cursor) lexToken(i int) int {
	raw, start := c.raw, i
	t := token{col: i + 1, eq: -1, value: i + 1}
	for i < len(raw) && !blank(raw[i]) && c.err == nil {
		if raw[i] == '"' {
			if i != start && !(t.eq >= 0 && i == start+t.eq+1) {
				c.failAt(i+1, `quotes go around a whole value: "a b" or key="a b"`, "a quote in the middle of a word")
				return i
			}
			t.quoted, t.value = i == start, i+2
			t.text = raw[start:i] + c.lexQuoted(i, &i)
			t.end = i + 1
			c.tokens = append(c.tokens, t)
			return i
		}
		if raw[i] == '=' && t.eq < 0 {
			t.eq, t.value = i-start, i+2
		}
		r, size := utf8.DecodeRuneInString(raw[i:])
		c.refuseRune(i, r, false)
		i += size
	}
	t.text, t.end = raw[start:i], i+1
	c.tokens = append(c.tokens, t)
	return i
}

// lexQuoted reads the quoted text that opens at offset i; *end is set to the offset after it.
func (c *cursor) lexQuoted(i int, end *int) string {
	raw, open := c.raw, i
	var b strings.Builder
	for i++; i < len(raw) && c.err == nil; {
		switch r, size := utf8.DecodeRuneInString(raw[i:]); {
		case r == '"':
			*end = i + 1
			if i+1 < len(raw) && !blank(raw[i+1]) {
				c.failAt(i+2, "write a blank after the quote, or \\\" for a quote inside", "text right behind a closing quote")
			}
			return b.String()
		case r == '\\':
			if i+1 == len(raw) || (raw[i+1] != '"' && raw[i+1] != '\\') {
				c.failAt(i+1, `inside quotes write \\ for a backslash and \" for a quote`, "a backslash that escapes nothing")
				return ""
			}
			b.WriteByte(raw[i+1])
			i += 2
		default:
			c.refuseRune(i, r, true)
			b.WriteString(raw[i : i+size])
			i += size
		}
	}
	c.failAt(open+1, `write a closing "`, "unclosed quote")
	return ""
}

// refuseRune fails on letters that are invisible or look like others. They come from chats and
// web pages, and a word that holds one is not the word it looks like.
func (c *cursor) refuseRune(i int, r rune, quoted bool) {
	switch {
	case r == '\t':
	case r == '\r':
		c.failAt(i+1, "lines end in LF or CR LF", "a carriage return inside a line")
	case r == '\uFEFF':
		c.failAt(i+1, "save the file as UTF-8 without it", "a byte order mark")
	case unicode.IsControl(r), unicode.Is(unicode.Cf, r):
		c.failAt(i+1, "delete it", "invisible character %U", r)
	case quoted:
	case unicode.IsSpace(r):
		c.failAt(i+1, "write a plain blank", "%U looks like a blank and is none", r)
	case strings.ContainsRune("“”„‟«»", r):
		c.failAt(i+1, `write a plain "`, "typographic quote %c", r)
	}
}

// quote writes s in quotes.
func quote(s string) string {
	return `"` + strings.ReplaceAll(strings.ReplaceAll(s, `\`, `\\`), `"`, `\"`) + `"`
}

// quoteValue writes s, in quotes if it would otherwise not be read as this one value.
// A key may stand before a value, but not before a word on its own.
func quoteValue(s string, afterKey bool) string {
	if !afterKey && (s == "" || s[0] == '#' || strings.Contains(s, "=")) {
		return quote(s)
	}
	odd := func(r rune) bool {
		return r == '"' || unicode.IsSpace(r) || unicode.IsControl(r) || strings.ContainsRune("“”„‟«»", r)
	}
	if strings.ContainsFunc(s, odd) {
		return quote(s)
	}
	return s
}
