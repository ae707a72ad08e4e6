package scn

import (
	"strconv"
	"strings"
	"time"
)

// A cursor reads one line. Its first error sticks, and reading goes on harmlessly until the
// statement's function returns: so those functions read like the grammar.
type cursor struct {
	file    string
	number  int
	raw     string
	tokens  []token
	i       int
	example string // of the statement being read: the hint when a piece is missing
	err     *Error
}

func (c *cursor) at(col int) Pos { return Pos{File: c.file, Line: c.number, Col: col} }

func (c *cursor) failAt(col int, hint, format string, args ...any) {
	if c.err == nil {
		c.err = Errorf(c.at(col), hint, format, args...)
	}
}

// peek returns the next token; at the end of the line it is an empty one.
func (c *cursor) peek() token {
	if c.i < len(c.tokens) {
		return c.tokens[c.i]
	}
	return token{col: c.endCol(), eq: -1, quoted: true}
}

// endCol is the column after the last token, where a missing piece should have been.
func (c *cursor) endCol() int { return c.tokens[len(c.tokens)-1].end }

func (c *cursor) more() bool { return c.i < len(c.tokens) && c.err == nil }
func (c *cursor) pos() Pos   { return c.at(c.peek().col) }

func (c *cursor) next() token {
	t := c.peek()
	c.i++
	return t
}

// expected fails at the next token, which is not what should stand there.
func (c *cursor) expected(what string) {
	found := "the end of the line"
	if c.i < len(c.tokens) {
		found = quoteFound(c.peek().text)
		if c.peek().quoted {
			found += " in quotes"
		}
	}
	c.failAt(c.peek().col, c.hint(c.peek().text, "such as: "+c.example), "expected %s, found %s", what, found)
}

// hint is the usual hint, unless the word holds a $name where it cannot.
func (c *cursor) hint(word, usual string) string {
	if strings.Contains(word, "$") {
		return "a $name stands for a value only"
	}
	return usual
}

// accept reads the keyword if it is next.
func (c *cursor) accept(keyword string) bool {
	if t := c.peek(); !c.more() || t.quoted || t.text != keyword {
		return false
	}
	c.i++
	return true
}

// keyword reads a word that must be there.
func (c *cursor) keyword(word string) {
	if !c.accept(word) {
		c.expected(strconv.Quote(word))
	}
}

// nameLetters are the letters of names, verbs, metrics, marks and keys: those of Kubernetes and
// AWS identifiers and tag keys. No "=", no "$", no quotes: a name is never taken for a value.
const nameLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:"

func isName(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool { return !strings.ContainsRune(nameLetters, r) })
}

// name reads a name.
func (c *cursor) name(what string) string {
	t := c.peek()
	if !c.more() || t.quoted || !isName(t.text) {
		c.expected(what)
		return ""
	}
	c.i++
	return t.text
}

// phrase reads an invariant, which must be in quotes.
func (c *cursor) phrase() string {
	t := c.peek()
	if !c.more() || !t.quoted {
		c.expected("an invariant in quotes")
		return ""
	}
	if strings.TrimSpace(t.text) == "" {
		c.failAt(t.col, "such as: "+c.example, "an empty invariant")
	}
	c.i++
	return t.text
}

// duration reads a duration.
func (c *cursor) duration() time.Duration {
	t := c.peek()
	if !c.more() || t.quoted {
		c.expected("a duration")
		return 0
	}
	d, bad := parseDuration(t.text)
	if bad != "" {
		c.failAt(t.col, c.hint(t.text, durationHint), "%s %s", quoteFound(t.text), bad)
	}
	c.i++
	return d
}

// countFrom reads a whole number from 1 to MaxCount out of text, which stands at col.
func (c *cursor) countFrom(text string, col int, what string) int {
	n, err := strconv.Atoi(text)
	switch {
	case !isDigits(text) || text[0] == '0' && len(text) > 1:
		c.failAt(col, c.hint(text, "such as: "+c.example), "expected %s, found %s", what, quoteFound(text))
	case err != nil || n > MaxCount:
		c.failAt(col, "write a smaller number", "%s is more than %d", clip(text), MaxCount)
	case n == 0:
		c.failAt(col, "such as: "+c.example, "%s must be at least 1", what)
	}
	return n
}

// keyValue reads KEY=VALUE.
func (c *cursor) keyValue() KV {
	t := c.peek()
	if !c.more() || t.eq < 0 || t.quoted {
		c.expected("KEY=VALUE")
		return KV{}
	}
	c.i++
	kv := KV{Pos: c.at(t.col), Key: t.text[:t.eq], Value: t.text[t.eq+1:], ValuePos: c.at(t.value)}
	switch {
	case kv.Key == "":
		c.failAt(t.col, `a value that holds "=" needs quotes`, "no key before \"=\" in %s", quoteFound(t.text))
	case !isName(kv.Key):
		c.failAt(t.col, `a key holds letters, digits and _ - . / : only; put a value that holds "=" in quotes`, "bad key %s", quoteFound(kv.Key))
	}
	return kv
}

// keyValues reads one KEY=VALUE or more, to the end of the line.
func (c *cursor) keyValues() []KV {
	var kvs []KV
	seen := map[string]bool{}
	for c.more() || kvs == nil {
		kv := c.keyValue()
		c.unique(seen, kv)
		kvs = append(kvs, kv)
	}
	return kvs
}

// unique fails if the line had this key before.
func (c *cursor) unique(seen map[string]bool, kv KV) {
	if seen[kv.Key] {
		c.failAt(kv.Pos.Col, "delete one", "key %s stands twice in the line", quoteFound(kv.Key))
	}
	seen[kv.Key] = true
}

// done fails if the line goes on after a complete statement.
func (c *cursor) done() {
	if c.more() {
		c.failAt(c.peek().col, "such as: "+c.example, "unexpected %s after a complete statement", quoteFound(c.peek().text))
	}
}
