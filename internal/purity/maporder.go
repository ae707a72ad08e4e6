package purity

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// mark in a comment takes the responsibility for a range over a map. A reason has to stand beside it.
const mark = "the order does not show"

const sortFirst = "range over a sorted slice or slices.Sorted(maps.Keys(m)), or say why in a comment: // a set: " + mark

// mapOrder finds where the order of a map may show.
var mapOrder = rule("maporder", "map order", "find ranges over maps whose order may show, in pure packages", func(c *checker) {
	c.declarations(func(d ast.Decl) { ast.Inspect(d, c.ordered) })
})

// ordered judges one node of the syntax.
func (c *checker) ordered(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.Ident:
		if fn, ok := c.TypesInfo.Uses[n].(*types.Func); ok && isPackages(fn) && fn.Pkg().Path() == "maps" &&
			slices.Contains([]string{"Keys", "Values", "All"}, fn.Name()) {
			c.add(n.Pos(), "write slices.Sorted(maps.Keys(m)), and read the map by key", "the order of maps.%s shows", fn.Name())
		}
	case *ast.CallExpr:
		if inner := c.sortedKeys(n); inner != nil {
			for _, a := range slices.Concat(inner.Args, n.Args[1:]) {
				ast.Inspect(a, c.ordered)
			}
			return false
		}
	case *ast.RangeStmt:
		c.ranges(n)
	}
	return true
}

// sortedKeys recognizes slices.Sorted(maps.Keys(m)), which is the way to do it, and returns the inner call.
func (c *checker) sortedKeys(call *ast.CallExpr) *ast.CallExpr {
	if !sortedCopy(c.TypesInfo, call) {
		return nil
	}
	inner, ok := call.Args[0].(*ast.CallExpr)
	if !ok || !iterates(c.TypesInfo, inner) {
		return nil
	}
	return inner
}

// ranges judges a range over a map.
func (c *checker) ranges(r *ast.RangeStmt) {
	switch t := c.TypesInfo.TypeOf(r.X).Underlying().(type) {
	case *types.Map:
	case *types.Interface: // of a type parameter: its constraint
		if !anyMap(t) {
			return
		}
	default:
		return
	}
	if c.marked(r) {
		return
	}
	if at, what := c.shows(r); at != nil {
		c.add(r.Pos(), sortFirst, "the order of %s may show: line %d %s", types.ExprString(r.X), c.Fset.Position(at.Pos()).Line, what)
	}
}

func anyMap(t *types.Interface) bool {
	for i := range t.NumEmbeddeds() {
		switch e := t.EmbeddedType(i).(type) {
		case *types.Union:
			for j := range e.Len() {
				if _, ok := e.Term(j).Type().Underlying().(*types.Map); ok {
					return true
				}
			}
		default:
			if _, ok := e.Underlying().(*types.Map); ok {
				return true
			}
			if named, ok := e.Underlying().(*types.Interface); ok && anyMap(named) {
				return true
			}
		}
	}
	return false
}

// marked says whether a comment on the range's line, or the one above, has the mark and a reason.
func (c *checker) marked(r *ast.RangeStmt) bool {
	line := c.Fset.Position(r.Pos()).Line
	for _, g := range c.file.Comments {
		for _, m := range g.List {
			at := c.Fset.Position(m.Pos()).Line
			reason := strings.Trim(strings.Replace(m.Text, mark, "", 1), "/ :;.")
			if (at == line || at == line-1) && strings.Contains(m.Text, mark) && reason != "" {
				return true
			}
		}
	}
	return false
}

// shows finds what in a range's body lets the order show; nil is nothing.
func (c *checker) shows(r *ast.RangeStmt) (ast.Node, string) {
	o := &order{checker: c, loop: r}
	if r.Tok == token.ASSIGN {
		o.refuse(r, "keeps the last key")
	}
	o.block(r.Body.List)
	o.oneKind()
	o.exitsAgree()
	o.readsBack()
	return o.bad, o.what
}

// order looks for something in the body of a range that lets the order show. It ends with the first.
type order struct {
	*checker
	loop    *ast.RangeStmt
	bad     ast.Node
	what    string
	changes []change // of what is outside the body
	exits   []exit
	inner   int // depth of loops and switches inside, whose break is theirs
}

// change is a statement that changes something outside the body.
type change struct {
	target   string // as written, without indexes
	kind     string // changes of two kinds to one target do not commute
	stmt     ast.Node
	block    token.Pos // of the list of statements around
	mentions int       // how often the statement itself names its target
}

// exit ends the loop early.
type exit struct {
	text  string
	block token.Pos
	node  ast.Node
}

func (o *order) refuse(n ast.Node, what string) {
	if o.bad == nil {
		o.bad, o.what = n, what
	}
}

func (o *order) block(list []ast.Stmt) {
	for _, s := range list {
		o.stmt(s, list[0].Pos())
	}
}

const tooMuch = "is more than the test of package purity understands"

func (o *order) stmt(s ast.Stmt, block token.Pos) {
	switch s := s.(type) {
	case nil, *ast.EmptyStmt:
	case *ast.DeclStmt:
		ast.Inspect(s, o.calls)
	case *ast.BlockStmt:
		o.block(s.List)
	case *ast.IfStmt:
		o.ifs(s, block)
	case *ast.SwitchStmt:
		o.switches(s, block)
	case *ast.ForStmt:
		o.stmt(s.Init, block)
		o.expr(s.Cond)
		o.stmt(s.Post, block)
		o.inside(s.Body.List)
	case *ast.RangeStmt:
		if s.Tok == token.ASSIGN && !(o.own(s.Key) && (s.Value == nil || o.own(s.Value))) {
			o.refuse(s, tooMuch)
		}
		o.expr(s.X)
		o.inside(s.Body.List) // its own order, if it is a map's, is judged by itself
	case *ast.IncDecStmt:
		o.sum(s, s.X, nil, "sum", block)
	case *ast.AssignStmt:
		o.assign(s, block)
	case *ast.ExprStmt:
		o.do(s, block)
	case *ast.BranchStmt:
		o.branch(s, block)
	case *ast.ReturnStmt:
		o.returns(s, block)
	default:
		o.refuse(s, tooMuch)
	}
}

// inside is the body of something that a break would end.
func (o *order) inside(list []ast.Stmt) {
	o.inner++
	o.block(list)
	o.inner--
}

func (o *order) ifs(s *ast.IfStmt, block token.Pos) {
	if o.extremum(s, block) {
		return
	}
	o.stmt(s.Init, block)
	o.expr(s.Cond)
	o.block(s.Body.List)
	o.stmt(s.Else, block)
}

func (o *order) switches(s *ast.SwitchStmt, block token.Pos) {
	o.stmt(s.Init, block)
	o.expr(s.Tag)
	for _, clause := range s.Body.List {
		clause := clause.(*ast.CaseClause)
		for _, e := range clause.List {
			o.expr(e)
		}
		o.inside(clause.Body)
	}
}

func (o *order) branch(s *ast.BranchStmt, block token.Pos) {
	switch {
	case s.Label != nil || s.Tok == token.GOTO || s.Tok == token.FALLTHROUGH:
		o.refuse(s, tooMuch)
	case s.Tok == token.BREAK && o.inner == 0:
		o.exits = append(o.exits, exit{"break", block, s})
	}
}

func (o *order) returns(s *ast.ReturnStmt, block token.Pos) {
	text := "return"
	for _, e := range s.Results {
		if !o.constant(e) {
			o.refuse(s, "returns something of the element that came first")
			return
		}
		text += " " + types.ExprString(e)
	}
	o.exits = append(o.exits, exit{text, block, s})
}

// do judges a call that stands alone.
func (o *order) do(s *ast.ExprStmt, block token.Pos) {
	call, ok := s.X.(*ast.CallExpr)
	if !ok {
		o.refuse(s, tooMuch)
		return
	}
	pkg, name, _ := function(o.TypesInfo, call)
	if pkg != "builtin" || name != "delete" && name != "panic" {
		o.refuse(s, "calls "+types.ExprString(call.Fun)+", which may do anything")
		return
	}
	for _, a := range call.Args {
		o.expr(a)
	}
	switch {
	case name == "panic": // a mistake of the program: which element it names is no result
	case !o.isRanged(call.Args[0]):
		o.changes = append(o.changes, change{base(call.Args[0]), "delete", s, block, 1})
	case !o.isKey(call.Args[1]):
		o.refuse(s, "deletes what may or may not have been seen")
	}
}

func (o *order) expr(e ast.Expr) {
	if e != nil {
		ast.Inspect(e, o.calls)
	}
}

// isKey says whether an expression is the range's own key, which no two elements share.
func (o *order) isKey(e ast.Expr) bool {
	key, ok := o.loop.Key.(*ast.Ident)
	id, ok2 := e.(*ast.Ident)
	return ok && ok2 && o.loop.Tok == token.DEFINE && key.Name != "_" && o.TypesInfo.Uses[id] == o.TypesInfo.Defs[key]
}

func (o *order) isRanged(e ast.Expr) bool { return types.ExprString(e) == types.ExprString(o.loop.X) }

// constant says whether an expression is the same for every element.
func (o *order) constant(e ast.Expr) bool {
	tv := o.TypesInfo.Types[e]
	lit, ok := e.(*ast.CompositeLit)
	return tv.Value != nil || tv.IsNil() || ok && len(lit.Elts) == 0
}

// own says whether an expression is _, or a variable of the body or the range itself, or part of one without a pointer between.
func (o *order) own(e ast.Expr) bool {
	id := o.root(e)
	if id == nil {
		return false
	}
	obj := o.TypesInfo.Defs[id]
	if obj == nil {
		obj = o.TypesInfo.Uses[id]
	}
	return id.Name == "_" || obj != nil && obj.Pos() > o.loop.Pos() && obj.Pos() < o.loop.End()
}

// root is the variable that holds an expression in itself; nil is none.
func (o *order) root(e ast.Expr) *ast.Ident {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x
		case *ast.SelectorExpr:
			if s := o.TypesInfo.Selections[x]; s == nil || s.Indirect() {
				return nil
			}
			e = x.X
		case *ast.IndexExpr:
			if _, array := o.TypesInfo.TypeOf(x.X).Underlying().(*types.Array); !array {
				return nil
			}
			e = x.X
		default:
			return nil
		}
	}
}

// base is an expression as written, without the indexes at its end: a change to an element is one to the whole.
func base(e ast.Expr) string {
	for {
		switch x := e.(type) {
		case *ast.IndexExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return types.ExprString(e)
		}
	}
}
