package scn

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

const clusterHint = `write a line such as: cluster nodes=1 type=c5.xlarge`

// Parse reads a scenario. The name is for positions. The error is an ErrorList: as many mistakes
// as can be told apart, of each line the first; then the File is nil.
func Parse(name string, data []byte) (*File, error) {
	f, errs := Read(name, data)
	if err := errs.err(); err != nil {
		return nil, err
	}
	return f, nil
}

// Read is Parse for who has more to say about a scenario with mistakes: it gives the lines without one too. The File is nil when it is none.
func Read(name string, data []byte) (*File, ErrorList) {
	if len(data) > MaxFile {
		hint := fmt.Sprintf("the limit is %d bytes; is this a scenario?", MaxFile)
		return nil, ErrorList{Errorf(Pos{File: name}, hint, "the file has %d bytes", len(data))}
	}
	text := string(data)
	if e := binary(name, text); e != nil {
		return nil, ErrorList{e}
	}
	p := &parser{file: &File{Name: name}, seen: map[string][]sighting{}}
	script, sections := splitArchive(name, text)
	p.script(script)
	p.sections(sections)
	p.whole(text)
	slices.SortStableFunc(p.errs, func(a, b *Error) int { return cmp.Compare(a.Pos.Line, b.Pos.Line) })
	p.file.Comment, p.file.Source = leadingComment(p.file.Lines)
	return p.file, p.errs
}

// binary finds the first byte that is no text. Byte offsets count from 0.
func binary(name, text string) *Error {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, size := utf8.DecodeRuneInString(text[i:]); size > 1 {
				continue // a real U+FFFD
			}
		} else if r != 0 {
			continue
		}
		pos := Pos{File: name, Line: 1 + strings.Count(text[:i], "\n"), Col: i - strings.LastIndexByte(text[:i], '\n')}
		return Errorf(pos, "", "not a scenario: binary data at byte %d", i)
	}
	return nil
}

// A parser sees the file as a whole: what may stand in it only once, and what must.
type parser struct {
	file       *File
	errs       ErrorList
	seen       map[string][]sighting
	statements int
	cluster    bool // a cluster line was there, if only a misspelt one
	variants   int
}

// A sighting is one line with something that a world may read only once.
type sighting struct {
	guard *Guard
	line  int
}

func (p *parser) fail(e *Error) { p.errs = append(p.errs, e) }

func (p *parser) script(text string) {
	p.variants = 1
	for number := 1; text != ""; number++ {
		if number > maxLines {
			p.fail(Errorf(Pos{p.file.Name, number, 1}, "split the scenario", "more than %d lines", maxLines))
			return
		}
		raw, end, rest := nextLine(text)
		text = rest
		l, err := parseLine(p.file.Name, number, raw)
		l.end = end
		if err != nil {
			p.fail(err)
			p.statements++
			// A broken line that may have been meant as the cluster line is complaint enough.
			p.cluster = p.cluster || strings.Contains(raw+err.Hint, "cluster")
			l.Stmt = nil // half of one
		} else if l.Stmt != nil {
			p.statement(l)
		}
		p.file.Lines = append(p.file.Lines, l)
	}
}

// parseLine reads one line, given without its line end.
func parseLine(file string, number int, raw string) (Line, *Error) {
	c := &cursor{file: file, number: number, raw: raw}
	i := len(raw) - len(strings.TrimLeft(raw, " \t"))
	l := Line{Pos: c.at(i + 1), Number: number, Raw: raw}
	if len(raw) > maxLine {
		c.failAt(maxLine+1, "", "the line has %d bytes, the limit is %d", len(raw), maxLine)
		return l, c.err
	}
	if i == len(raw) {
		l.Pos.Col = 1
		return l, nil
	}
	if raw[i] == '#' {
		l.Comment = strings.TrimSpace(raw[i+1:])
		return l, nil
	}
	if raw[i] == '[' {
		l.Guard, i = c.guard(i)
	}
	if c.err != nil {
		return l, c.err
	}
	l.Comment = c.lex(i)
	if c.err == nil && len(c.tokens) == 0 {
		c.failAt(i+1, "such as: [sim] at 0s node-1 restart", "expected a statement after the guard")
	}
	if c.err == nil {
		l.Stmt = c.statement()
	}
	return l, c.err
}

// statement judges a line against those before it.
func (p *parser) statement(l Line) {
	p.statements++
	switch s := l.Stmt.(type) {
	case *Cluster:
		p.cluster = true
		p.once("the cluster", l, l.Pos)
	case *Finally:
		p.once("finally", l, l.Pos)
	case *Never:
		p.once("never settles", l, l.Pos)
	case *Config:
		for _, kv := range s.Args {
			p.once("config "+clip(kv.Key), l, kv.Pos)
		}
	case *Vary:
		if l.Guard != nil {
			p.fail(Errorf(l.Pos, "delete the guard; guard the lines that use $"+clip(s.Key), "a vary line takes no guard"))
		}
		p.once("vary "+clip(s.Key), l, l.Pos)
		if p.variants <= maxVariants {
			p.variants *= len(s.Values)
			if p.variants > maxVariants {
				p.fail(Errorf(l.Pos, "delete values, or split the scenario", "more than %d variants", maxVariants))
			}
		}
	}
}

// once fails if some world reads the same thing on an earlier line.
func (p *parser) once(what string, l Line, pos Pos) {
	for _, s := range p.seen[what] {
		if overlap(s.guard, l.Guard) {
			p.fail(Errorf(pos, fmt.Sprintf("the first is on line %d", s.line), "%s is given twice", what))
			return
		}
	}
	p.seen[what] = append(p.seen[what], sighting{l.Guard, l.Number})
}

// sections files what comes after the script.
func (p *parser) sections(sections []Section) {
	first := map[string]int{}
	for _, s := range sections {
		if n := first[s.Name]; n > 0 {
			p.fail(Errorf(s.Pos, fmt.Sprintf("the first is on line %d", n), "a second section %s", quoteFound(s.Name)))
			continue
		}
		first[s.Name] = s.Pos.Line
		if s.Name != storySection {
			p.file.Extra = append(p.file.Extra, s)
			continue
		}
		p.file.Story, p.file.HasStory = unixEnds(s.Data), true
		p.file.story, p.file.storyAt = s, len(p.file.Extra)
	}
}

// whole fails if the file lacks what every scenario has.
func (p *parser) whole(text string) {
	start := Pos{p.file.Name, 1, 1}
	switch {
	case text == "":
		p.fail(Errorf(start, clusterHint, "the file is empty"))
	case p.statements == 0:
		p.fail(Errorf(start, clusterHint, "the file has no statement"))
	case !p.cluster:
		p.fail(Errorf(start, clusterHint, "no cluster line"))
	}
}
