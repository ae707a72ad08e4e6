package scn

import (
	"maps"
	"slices"
	"strings"
)

// Variants returns the values of $names for each run: the cross product of the vary lines, the
// last line's values changing fastest. Without a vary line it is one empty map.
func (f *File) Variants() []map[string]string {
	runs := []map[string]string{{}}
	for _, l := range f.Lines {
		v, ok := l.Stmt.(*Vary)
		if !ok {
			continue
		}
		var more []map[string]string
		for _, run := range runs {
			for _, value := range v.Values {
				if len(more) == maxVariants {
					break // Parse refuses such a file; a program may have built it
				}
				with := map[string]string{v.Key: value}
				maps.Copy(with, run)
				more = append(more, with)
			}
		}
		runs = more
	}
	return runs
}

// VariantName prints one of Variants in the order of the vary lines: "wrong=empty size=3".
func (f *File) VariantName(vars map[string]string) string {
	var names []string
	for _, l := range f.Lines {
		if v, ok := l.Stmt.(*Vary); ok {
			names = append(names, v.Key+"="+vars[v.Key])
		}
	}
	return strings.Join(names, " ")
}

// Expand returns the file with vars in place of $names in all values. Positions stay those of the
// source. Each vary line keeps the one value that was taken, so that the printed result says which
// variant it is and is a scenario of its own. The error is an ErrorList: $names that are not in
// vars, lines that become too long, and values that a vary line does not have.
func (f *File) Expand(vars map[string]string) (*File, error) {
	g := f.Clone()
	var errs ErrorList
	for i, l := range f.Lines {
		if l.Stmt == nil {
			continue
		}
		x := expander{vars: vars, room: maxLine}
		if v, ok := l.Stmt.(*Vary); ok {
			g.Lines[i].Stmt = x.vary(l.Pos, v)
		} else {
			g.Lines[i].Stmt = rewrite(l.Stmt, x.value)
		}
		if x.room < 0 || len(g.Lines[i].String()) > maxLine {
			x.errs = append(x.errs, Errorf(l.Pos, "", "the expanded line has more than %d bytes", maxLine))
		}
		errs = append(errs, x.errs...)
	}
	if err := errs.err(); err != nil {
		return nil, err
	}
	return g, nil
}

// An expander replaces $names in one line.
type expander struct {
	vars map[string]string
	room int // bytes left for the line's values: it bounds the work
	errs ErrorList
}

// vary keeps the one value of the line that is being run.
func (x *expander) vary(pos Pos, v *Vary) Stmt {
	values := v.Values
	if value, ok := x.vars[v.Key]; ok {
		if !slices.Contains(values, value) {
			x.errs = append(x.errs, Errorf(pos, didYouMean(value, values), "%s has no value %s", v.Key, quoteFound(value)))
		}
		values = []string{value}
	}
	return &Vary{Key: v.Key, Values: slices.Clone(values)}
}

// value replaces the $names in the value at pos.
func (x *expander) value(pos Pos, s string) string {
	var b strings.Builder
	for i := 0; i < len(s) && x.room >= 0; {
		name := ""
		if s[i] == '$' {
			name = variableName(s[i+1:])
		}
		if name == "" {
			b.WriteByte(s[i])
			x.room--
			i++
			continue
		}
		value, ok := x.vars[name]
		if !ok {
			at := pos
			at.Col += i
			x.errs = append(x.errs, Errorf(at, x.hint(name), "unknown variable %s", quoteFound("$"+name)))
		}
		if x.room -= len(value); x.room >= 0 {
			b.WriteString(value)
		}
		i += 1 + len(name)
	}
	return b.String()
}

func (x *expander) hint(name string) string {
	known := slices.Sorted(maps.Keys(x.vars))
	if s := Suggest(name, known); s != "" {
		return "did you mean $" + s + "?"
	}
	return "write a line such as: vary " + clip(name) + "=absent,empty"
}

// variableName is the longest variable's name that s begins with.
func variableName(s string) string {
	for i := 0; i < len(s); i++ {
		b := s[i]
		letter := b == '_' || 'a' <= b && b <= 'z' || 'A' <= b && b <= 'Z'
		if !letter && (i == 0 || b < '0' || b > '9') {
			return s[:i]
		}
	}
	return s
}
