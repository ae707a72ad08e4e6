package scn

import "slices"

// Without returns the same file without the statement whose Line has this Number. Numbers and
// positions of the others stay, so a shrinker may delete in any order. A number that is no
// statement's changes nothing. (Without its cluster line a file still prints, but Parse refuses
// the print.)
func (f *File) Without(line int) *File {
	g := f.Clone()
	g.Lines = slices.DeleteFunc(g.Lines, func(l Line) bool { return l.Stmt != nil && l.Number == line })
	return g
}

// Statements returns the Numbers of the lines that have a statement.
func (f *File) Statements() []int {
	var numbers []int
	for _, l := range f.Lines {
		if l.Stmt != nil {
			numbers = append(numbers, l.Number)
		}
	}
	return numbers
}

// Clone returns a copy that shares nothing with f.
func (f *File) Clone() *File {
	g := *f
	g.Extra = slices.Clone(f.Extra)
	g.Lines = slices.Clone(f.Lines)
	for i, l := range f.Lines {
		if l.Guard != nil {
			g.Lines[i].Guard = &Guard{Not: l.Guard.Not, Worlds: slices.Clone(l.Guard.Worlds)}
		}
		g.Lines[i].Stmt = rewrite(l.Stmt, func(_ Pos, s string) string { return s })
	}
	return &g
}

// rewrite returns a copy of s in which each value went through value.
func rewrite(s Stmt, value func(Pos, string) string) Stmt {
	switch s := s.(type) {
	case *Cluster:
		return &Cluster{Args: rewriteArgs(s.Args, value)}
	case *Config:
		return &Config{Args: rewriteArgs(s.Args, value)}
	case *Start:
		return copyOf(s)
	case *Vary:
		return &Vary{Key: s.Key, Values: slices.Clone(s.Values)}
	case *Always:
		return copyOf(s)
	case *At:
		return rewriteAt(s, value)
	case *Finally:
		return copyOf(s)
	case *Never:
		return copyOf(s)
	case *Against:
		return copyOf(s)
	case *Reaches:
		return copyOf(s)
	case *Compare:
		return copyOf(s)
	}
	return nil
}

func copyOf[T any](p *T) *T {
	v := *p
	return &v
}

func rewriteAt(s *At, value func(Pos, string) string) Stmt {
	at := copyOf(s)
	if s.Action != nil {
		at.Action = copyOf(s.Action)
		at.Action.Args = rewriteArgs(s.Action.Args, value)
	}
	if s.Check != nil {
		at.Check = copyOf(s.Check)
		at.Check.Value = value(s.Check.ValuePos, s.Check.Value)
	}
	return at
}

func rewriteArgs[T KV | Arg](args []T, value func(Pos, string) string) []T {
	out := slices.Clone(args)
	for i := range out {
		kv := KV(out[i])
		kv.Value = value(kv.ValuePos, kv.Value)
		out[i] = T(kv)
	}
	return out
}
