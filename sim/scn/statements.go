package scn

import (
	"slices"
	"strings"
)

// A form is one kind of statement.
type form struct {
	word, example string
	read          func(*cursor) Stmt
}

// forms are all statements, in the order of the manual.
func forms() []form {
	return []form{
		{"cluster", "cluster nodes=1 type=c5.xlarge", (*cursor).cluster},
		{"config", "config WARM_ENI_TARGET=1", (*cursor).config},
		{"start", "start pods web 17 on node-1", (*cursor).start},
		{"vary", "vary wrong=absent,empty", (*cursor).vary},
		{"always", `always "every live pod is reachable"`, (*cursor).always},
		{"at", "at 20m node-1 restart", (*cursor).when},
		{"maybe", "maybe at 20m node-1 kill", (*cursor).maybe},
		{"finally", "finally converges within 2m", (*cursor).finally},
		{"never", `never settles "the subnet stays full"`, (*cursor).never},
		{"against", `against MUTANT breaks "every live pod is reachable" by 20m`, (*cursor).against},
		{"reaches", "reaches runtime-list-refused", (*cursor).reaches},
		{"compare", `compare counts "eni"`, (*cursor).compare},
	}
}

// statement reads one whole statement.
func (c *cursor) statement() Stmt {
	t := c.next()
	i := slices.IndexFunc(forms(), func(f form) bool { return !t.quoted && f.word == t.text })
	if i < 0 {
		c.failAt(t.col, unknownHint(t), "unknown statement %s", quoteFound(t.text))
		return nil
	}
	f := forms()[i]
	c.example = f.example
	s := f.read(c)
	c.done()
	return s
}

func unknownHint(t token) string {
	switch {
	case t.quoted:
		return "a line's first word stands without quotes"
	case strings.HasPrefix(t.text, "--"):
		return `a section begins with a line such as "-- story --"`
	case strings.HasPrefix(t.text, "["):
		return "one guard for a line, such as [sim,netns]"
	}
	return didYouMean(t.text, words())
}

// words are the first words of all statements.
func words() []string {
	var ws []string
	for _, f := range forms() {
		ws = append(ws, f.word)
	}
	return ws
}

func (c *cursor) cluster() Stmt { return &Cluster{Args: c.keyValues()} }
func (c *cursor) config() Stmt  { return &Config{Args: c.keyValues()} }

func (c *cursor) start() Stmt {
	s := &Start{}
	c.keyword("pods")
	s.Name = c.name("a name for the pods")
	if t := c.peek(); !c.more() {
		c.expected("how many pods")
	} else {
		s.Count = c.countFrom(t.text, t.col, "a number of pods")
		c.i++
	}
	c.keyword("on")
	s.Target = c.subject()
	if k := s.Target.Kind; k != Node && k != AllNodes {
		c.failAt(s.Target.Pos.Col, "such as: "+c.example, "pods start on a node or on node-*")
	}
	return s
}

func (c *cursor) vary() Stmt {
	kv := c.keyValue()
	v := &Vary{Key: kv.Key, Values: strings.Split(kv.Value, ",")}
	if c.err == nil && variableName(kv.Key) != kv.Key {
		c.failAt(kv.Pos.Col, "a variable's name holds letters, digits and _ only, and begins with no digit", "bad variable %s", quoteFound(kv.Key))
	}
	col := kv.ValuePos.Col
	for i, value := range v.Values {
		switch {
		case value == "":
			c.failAt(col, "commas without blanks separate values, such as: "+c.example, "an empty value for %s", clip(v.Key))
		case strings.Contains(value, "$"):
			c.failAt(col, "list the values themselves", "a value of %s holds a \"$\"", clip(v.Key))
		case slices.Contains(v.Values[:min(i, maxVariants)], value):
			c.failAt(col, "delete one", "value %s stands twice", quoteFound(value))
		}
		col += len(value) + 1
	}
	return v
}

func (c *cursor) always() Stmt { return &Always{InvariantPos: c.pos(), Invariant: c.phrase()} }

func (c *cursor) finally() Stmt {
	c.keyword("converges")
	c.keyword("within")
	return &Finally{Within: c.duration()}
}

func (c *cursor) never() Stmt {
	c.keyword("settles")
	s := &Never{Pos: c.pos()}
	t := c.peek()
	switch {
	case !c.more() || !t.quoted:
		c.expected("in quotes why it cannot")
	case strings.TrimSpace(t.text) == "":
		c.failAt(t.col, "such as: "+c.example, "an empty reason")
	}
	c.i++
	s.Reason = t.text
	return s
}

func (c *cursor) against() Stmt {
	s := &Against{MutantPos: c.pos(), Mutant: c.name("a mutant's name")}
	c.keyword("breaks")
	s.InvariantPos, s.Invariant = c.pos(), c.phrase()
	if c.accept("by") {
		s.HasBy, s.By = true, c.duration()
	}
	return s
}

func (c *cursor) reaches() Stmt { return &Reaches{Pos: c.pos(), Point: c.name("a coverage point")} }

func (c *cursor) compare() Stmt {
	c.keyword("counts")
	if !c.more() {
		c.expected("what to count")
	}
	return &Compare{Counts: c.next().text}
}
