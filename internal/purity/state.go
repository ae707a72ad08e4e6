package purity

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strings"
)

const constantState = "package-level variables are constants here: make it part of the value that is stepped"

// State finds package-level variables that change.
var State = rule("state", "package state", "find changes to package-level variables, in pure packages", func(c *checker) {
	c.declarations(func(d ast.Decl) {
		switch fn, ok := d.(*ast.FuncDecl); {
		case !ok:
			c.literals(d)
		case fn.Recv != nil || fn.Name.Name != "init": // that one may set variables: nothing runs before it
			c.writes(d)
		}
	})
})

// literals judges functions in the initial values of variables: they run later.
func (c *checker) literals(d ast.Decl) {
	ast.Inspect(d, func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncLit); ok {
			c.writes(f)
			return false
		}
		return true
	})
}

// writes finds changes to package-level variables below a node.
func (c *checker) writes(n ast.Node) {
	ast.Inspect(n, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				for _, e := range n.Lhs {
					c.written(e, "assigns to")
				}
			}
		case *ast.IncDecStmt:
			c.written(n.X, "assigns to")
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				c.written(n.Key, "assigns to")
				c.written(n.Value, "assigns to")
			}
		case *ast.UnaryExpr:
			if n.Op == token.AND {
				c.written(n.X, "takes the address of")
			}
		case *ast.CallExpr:
			c.changed(n)
		}
		return true
	})
}

func (c *checker) written(e ast.Expr, how string) {
	if v := c.global(e); v != nil {
		c.add(e.Pos(), constantState, "%s the package-level variable %s", how, v.Name())
	}
}

// changed judges a call that changes its first argument or its receiver.
func (c *checker) changed(call *ast.CallExpr) {
	pkg, name, method := function(c.TypesInfo, call)
	switch {
	case method:
		c.receiver(call)
	case len(call.Args) > 0 && changesFirst(c.TypesInfo, call, pkg, name):
		c.written(call.Args[0], name+" changes")
	}
}

func changesFirst(info *types.Info, call *ast.CallExpr, pkg, name string) bool {
	switch pkg {
	case "builtin":
		return slices.Contains([]string{"delete", "clear", "copy", "append"}, name)
	case "slices":
		return sorts(info, call) ||
			slices.Contains([]string{"Reverse", "Delete", "DeleteFunc", "Insert", "Replace", "Compact", "CompactFunc"}, name)
	case "maps":
		return slices.Contains([]string{"Copy", "DeleteFunc", "Insert"}, name)
	case "sort":
		return sorts(info, call)
	}
	return false
}

// receiver judges a method with a pointer receiver that is called on a package-level variable. Those of the standard library on
// pointers (a parsed template, say) are taken for readers.
func (c *checker) receiver(call *ast.CallExpr) {
	sel, ok := ast.Unparen(call.Fun).(*ast.SelectorExpr)
	if !ok {
		return
	}
	s := c.TypesInfo.Selections[sel]
	if s == nil || s.Kind() != types.MethodVal {
		return
	}
	fn := s.Obj().(*types.Func)
	if _, pointer := fn.Signature().Recv().Type().(*types.Pointer); !pointer {
		return
	}
	_, held := s.Recv().(*types.Pointer)
	if held && !strings.HasPrefix(fn.Pkg().Path(), Module) {
		return
	}
	c.written(sel.X, "calls a method that may change")
}

// global is the package-level variable that an expression is part of.
func (c *checker) global(e ast.Expr) *types.Var {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.SelectorExpr:
			if c.TypesInfo.Selections[x] == nil { // package.Name
				return packageLevel(c.TypesInfo.Uses[x.Sel])
			}
			e = x.X
		case *ast.Ident:
			return packageLevel(c.TypesInfo.Uses[x])
		default:
			return nil
		}
	}
}

func packageLevel(obj types.Object) *types.Var {
	if v, ok := obj.(*types.Var); ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope() {
		return v
	}
	return nil
}
