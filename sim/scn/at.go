package scn

import (
	"slices"
	"strconv"
	"strings"
)

const checkExample = "at 20m within 90s expect node-1 addresses.assigned == 17"

// when reads the statement that begins with "at".
func (c *cursor) when() Stmt { return c.instant() }

func (c *cursor) instant() *At {
	s := &At{When: c.duration()}
	if col := c.peek().col; c.accept("every") {
		c.every(s, col)
	}
	if t := c.peek(); !t.quoted && (t.text == "within" || t.text == "expect") {
		s.Check = c.check()
	} else {
		s.Action = c.action()
	}
	return s
}

// maybe reads an action that may miss its target.
func (c *cursor) maybe() Stmt {
	col := c.peek().col
	c.keyword("at")
	s := c.instant()
	if s.Maybe = true; s.Check != nil {
		c.failAt(col, "delete maybe: an expectation is judged or it is none", "maybe is for actions, and this line expects something")
	}
	return s
}

// every reads "every DUR until DUR" after the first word, which stands at col.
func (c *cursor) every(s *At, col int) {
	c.example = "at 0s every 5s until 10m node-1 restart"
	s.HasEvery = true
	s.Every = c.duration()
	c.keyword("until")
	until := c.peek().col
	s.Until = c.duration()
	switch {
	case s.Every == 0:
		c.failAt(col, durationHint, "\"every\" needs a duration above zero")
	case s.Until < s.When:
		c.failAt(until, "\"until\" is an instant, not a length", "until %s is before at %s", formatDuration(s.Until), formatDuration(s.When))
	case (s.Until-s.When)/s.Every >= maxRepeats:
		c.failAt(col, "write a longer \"every\" or an earlier \"until\"", "the line would happen more than %d times", maxRepeats)
	}
}

func (c *cursor) action() *Action {
	if !c.more() {
		c.expected("an action or a check")
		return nil
	}
	a := &Action{Subject: c.subject(), VerbPos: c.pos()}
	a.Verb = c.name("a verb")
	if a.Verb == "expect" || a.Verb == "within" {
		c.failAt(a.VerbPos.Col, "such as: "+checkExample, "%q stands before the subject", a.Verb)
	}
	seen := map[string]bool{}
	for c.more() {
		if t := c.peek(); t.quoted || t.eq < 0 {
			a.Args = append(a.Args, Arg{Pos: c.at(t.col), Value: t.text, ValuePos: c.at(t.value)})
			c.i++
			continue
		}
		kv := c.keyValue()
		c.unique(seen, kv)
		a.Args = append(a.Args, Arg(kv))
	}
	return a
}

// operators are those of a check.
func operators() []string { return []string{"==", "!=", "<", "<=", ">", ">="} }

func (c *cursor) check() *Check {
	c.example = checkExample
	k := &Check{}
	if c.accept("within") {
		k.HasWithin, k.Within = true, c.duration()
	}
	c.keyword("expect")
	k.Subject = c.subject()
	if t := c.peek(); c.more() && !t.quoted && strings.ContainsAny(t.text, "=<>!") && isName(strings.TrimRight(t.text, "=<>!")) {
		c.failAt(t.col, "write blanks around the operator: "+c.example, "expected a metric, found %s", quoteFound(t.text))
	}
	k.MetricPos, k.Metric = c.pos(), c.name("a metric")
	if !c.more() {
		return k
	}
	t := c.next()
	if k.Op = t.text; t.quoted || !slices.Contains(operators(), t.text) {
		c.failAt(t.col, operatorHint(t.text), "unknown operator %s", quoteFound(t.text))
	}
	if !c.more() {
		c.expected("a value after " + strconv.Quote(clip(k.Op)))
		return k
	}
	v := c.next()
	k.Value, k.ValuePos = v.text, c.at(v.value)
	if v.eq >= 0 {
		k.ValuePos = c.at(v.col) // the value is the whole word, "=" and all
	}
	return k
}

func operatorHint(word string) string {
	if word == "=" {
		return `equal is "=="`
	}
	for _, op := range slices.Backward(operators()) {
		if strings.HasPrefix(word, op) {
			return "write a blank after " + strconv.Quote(op)
		}
	}
	return "one of " + strings.Join(operators(), " ")
}

// subject reads whom the line is about.
func (c *cursor) subject() Subject {
	s := Subject{Pos: c.pos()}
	t := c.peek()
	if !c.more() || t.quoted {
		c.expected("node-1, node-*, pod NAME, ec2, imds or kube")
		return s
	}
	c.i++
	number, isNode := strings.CutPrefix(t.text, "node-")
	switch {
	case t.text == "node-*":
		s.Kind = AllNodes
	case isNode:
		s.Kind, s.Node = Node, c.countFrom(number, t.col, "a node's number")
	case t.text == "pod":
		s.Kind, s.Pod = Pod, c.name("a pod's name")
	case t.text == "ec2":
		s.Kind = EC2
	case t.text == "imds":
		s.Kind = IMDS
	case t.text == "kube":
		s.Kind = Kube
	default:
		known := []string{"node-1", "node-*", "pod", "ec2", "imds", "kube", "expect", "within", "every"}
		hint := didYouMean(t.text, known)
		if slices.Contains(known, t.text) {
			hint = "such as: " + c.example // the right word at the wrong place
		}
		c.failAt(t.col, hint, "unknown subject %s", quoteFound(t.text))
	}
	return s
}
