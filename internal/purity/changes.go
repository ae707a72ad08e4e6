package purity

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

// kinds of x op= e that commute with themselves.
var kinds = map[token.Token]string{token.ADD_ASSIGN: "sum", token.SUB_ASSIGN: "sum", token.OR_ASSIGN: "or", token.AND_ASSIGN: "and", token.XOR_ASSIGN: "xor"}

// assign judges x = e, x op= e and x := e.
func (o *order) assign(s *ast.AssignStmt, block token.Pos) {
	if s.Tok != token.DEFINE && s.Tok != token.ASSIGN {
		o.sum(s, s.Lhs[0], s.Rhs[0], kinds[s.Tok], block)
		return
	}
	for i, l := range s.Lhs {
		switch {
		case o.root(l) != nil && o.isKey(o.root(l)):
			o.refuse(s, "changes the range's own key")
		case o.own(l):
			if len(s.Rhs) == len(s.Lhs) {
				o.expr(s.Rhs[i])
			}
		case len(s.Rhs) != len(s.Lhs) || !o.outside(s, l, s.Rhs[i], block):
			o.refuse(s, "assigns "+types.ExprString(l)+": the last element wins")
		}
	}
	if len(s.Rhs) != len(s.Lhs) {
		o.expr(s.Rhs[0])
	}
}

// outside judges l = r where l is not the body's own.
func (o *order) outside(s ast.Stmt, l, r ast.Expr, block token.Pos) bool {
	ch := change{target: base(l), stmt: s, block: block, mentions: 1}
	if ix, ok := l.(*ast.IndexExpr); ok {
		o.expr(ix.Index)
	}
	call, _ := r.(*ast.CallExpr)
	switch {
	case o.entry(l, r, &ch):
	case call != nil && o.accumulates(l, call, &ch):
		ch.mentions = 2
	case o.constant(r) && base(l) == types.ExprString(l):
		ch.kind = "= " + types.ExprString(r)
	default:
		return false
	}
	if call != nil && ch.mentions == 2 {
		for _, a := range call.Args {
			o.expr(a)
		}
	} else {
		o.expr(r)
	}
	if ch.target != "" {
		o.changes = append(o.changes, ch)
	}
	return true
}

// entry recognizes a write to a map that no other element's write can meet, or meets with the same value.
func (o *order) entry(l, r ast.Expr, ch *change) bool {
	ix, ok := l.(*ast.IndexExpr)
	if !ok {
		return false
	}
	if _, isMap := o.TypesInfo.TypeOf(ix.X).Underlying().(*types.Map); !isMap {
		return false
	}
	switch {
	case o.isKey(ix.Index) && o.isRanged(ix.X):
		ch.target = "" // an element's own value
	case o.isKey(ix.Index):
		ch.kind = "entry"
	case o.constant(r) && !o.isRanged(ix.X): // what is added to the map itself may or may not be seen
		ch.kind = "= " + types.ExprString(r)
	default:
		return false
	}
	return true
}

// accumulates recognizes x = append(x, …) that is sorted later, x = max(x, …) and x = min(x, …).
func (o *order) accumulates(l ast.Expr, call *ast.CallExpr, ch *change) bool {
	pkg, name, _ := function(o.TypesInfo, call)
	target := types.ExprString(l)
	if pkg != "builtin" || len(call.Args) == 0 {
		return false
	}
	ch.kind = name
	switch name {
	case "append":
		return types.ExprString(call.Args[0]) == target && o.sortedLater(target)
	case "max", "min":
		return slices.ContainsFunc(call.Args, func(a ast.Expr) bool { return types.ExprString(a) == target })
	}
	return false
}

// sortedLater says whether the function sorts that after the loop.
func (o *order) sortedLater(target string) (found bool) {
	if o.body == nil {
		return false
	}
	ast.Inspect(o.body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		found = found || ok && call.Pos() > o.loop.End() && sorts(o.TypesInfo, call) && types.ExprString(call.Args[0]) == target
		return !found
	})
	return found
}

// sum judges x++ and x op= e: integers only, for a float's sum depends on the order.
func (o *order) sum(s ast.Stmt, x, e ast.Expr, kind string, block token.Pos) {
	o.expr(e)
	o.expr(x)
	if o.own(x) {
		return
	}
	basic, ok := o.TypesInfo.TypeOf(x).Underlying().(*types.Basic)
	switch {
	case !ok || basic.Info()&types.IsInteger == 0:
		o.refuse(s, "adds to "+types.ExprString(x)+", which is no integer")
	case kind == "":
		o.refuse(s, "changes "+types.ExprString(x)+" in a way that does not commute")
	default:
		o.changes = append(o.changes, change{base(x), kind, s, block, 1})
	}
}

// extremum recognizes if a < b { b = a }.
func (o *order) extremum(s *ast.IfStmt, block token.Pos) bool {
	cond, ok := s.Cond.(*ast.BinaryExpr)
	if !ok || s.Init != nil || s.Else != nil || len(s.Body.List) != 1 {
		return false
	}
	set, ok := s.Body.List[0].(*ast.AssignStmt)
	if !ok || set.Tok != token.ASSIGN || len(set.Lhs) != 1 || len(set.Rhs) != 1 || o.own(set.Lhs[0]) {
		return false
	}
	kind := ""
	l, r := types.ExprString(set.Lhs[0]), types.ExprString(set.Rhs[0])
	x, y := types.ExprString(cond.X), types.ExprString(cond.Y)
	less, greater := cond.Op == token.LSS || cond.Op == token.LEQ, cond.Op == token.GTR || cond.Op == token.GEQ
	switch {
	case less && l == x && r == y, greater && l == y && r == x:
		kind = "max"
	case greater && l == x && r == y, less && l == y && r == x:
		kind = "min"
	default:
		return false
	}
	o.expr(set.Rhs[0])
	o.changes = append(o.changes, change{base(set.Lhs[0]), kind, s, block, 2})
	return true
}

// readers are packages of the standard library whose functions change nothing, apart from those of changesFirst.
var readers = []string{"bytes", "cmp", "errors", "math", "math/bits", "net/netip", "slices", "strconv", "strings", "time", "unicode", "unicode/utf8"}

// calls refuses calls that may change something.
func (o *order) calls(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.FuncLit:
		o.refuse(n, "has a function")
		return false
	case *ast.CallExpr:
		if o.TypesInfo.Types[n.Fun].IsType() { // a conversion
			return true
		}
		pkg, name, method := function(o.TypesInfo, n)
		switch {
		case pkg == "builtin" && slices.Contains([]string{"len", "cap", "min", "max", "make", "new", "append"}, name):
		case pkg == "fmt" && strings.HasPrefix(name, "Sprint"):
		case slices.Contains(readers, pkg) && !method && !changesFirst(o.TypesInfo, n, pkg, name):
		case slices.Contains(readers, pkg) && method && o.byValue(n):
		default:
			o.refuse(n, "calls "+types.ExprString(n.Fun)+", which may do anything")
			return false
		}
	}
	return true
}

// byValue says whether a method has no pointer receiver.
func (o *order) byValue(call *ast.CallExpr) bool {
	sel, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || o.TypesInfo.Selections[sel] == nil {
		return false
	}
	recv := o.TypesInfo.Selections[sel].Obj().(*types.Func).Signature().Recv().Type()
	_, pointer := recv.(*types.Pointer)
	return !pointer && !types.IsInterface(recv)
}

// oneKind: a count and a maximum of one variable, or two constants, do not commute.
func (o *order) oneKind() {
	first := map[string]string{}
	for _, ch := range o.changes {
		if kind, ok := first[ch.target]; ok && kind != ch.kind {
			o.refuse(ch.stmt, "changes "+ch.target+" in two ways")
		}
		first[ch.target] = ch.kind
	}
}

// exitsAgree: a loop that ends early has seen elements that depend on the order, so it may only say that it ended.
func (o *order) exitsAgree() {
	for _, e := range o.exits {
		if e.text != o.exits[0].text || len(o.changes) > 0 && len(o.exits) > 1 {
			o.refuse(e.node, "ends the loop in more than one way")
		}
		for _, ch := range o.changes {
			if ch.block != e.block || !strings.HasPrefix(ch.kind, "= ") {
				o.refuse(e.node, "ends the loop early, after it changed "+ch.target)
			}
		}
	}
}

// readsBack: what the body counts, collects or sets it may not read, for that is what the elements before made of it.
func (o *order) readsBack() {
	for _, ch := range o.changes {
		right := 0
		for _, same := range o.changes {
			if same.target == ch.target {
				right += same.mentions
			}
		}
		if mentions(o.loop.Body, ch.target) > right {
			o.refuse(ch.stmt, "changes "+ch.target+", which the body also reads")
		}
	}
}

// mentions counts where an expression is written.
func mentions(n ast.Node, target string) (count int) {
	ast.Inspect(n, func(n ast.Node) bool {
		e, ok := n.(ast.Expr)
		if ok && types.ExprString(e) == target {
			count++
			return false
		}
		if sel, ok := n.(*ast.SelectorExpr); ok {
			count += mentions(sel.X, target) // a field of that name is another thing
			return false
		}
		return true
	})
	return count
}
