package purity

import (
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// Layers finds imports inside the module that turn the layers around.
var Layers = rule("layers", "layers", "find imports that package purity's layers forbid", func(c *checker) {
	c.imports(func(at token.Pos, path string) {
		if reason := forbiddenLayer(c.rel, path); reason != "" {
			c.add(at, reason, "%s imports %s", c.rel, rel(path))
		}
	})
})

// Pure finds what makes a package more than a function of its arguments: imports, clocks, generators, files, concurrency.
var Pure = rule("purity", "purity", "find clocks, files, global generators and concurrency in pure packages", func(c *checker) {
	if !isPure(c.rel) {
		return
	}
	c.imports(c.pureImport)
	c.unread()
	c.declarations(func(d ast.Decl) { ast.Inspect(d, c.node) })
})

// imports calls judge for each import.
func (c *checker) imports(judge func(at token.Pos, path string)) {
	for _, f := range c.sources() {
		for _, s := range f.Imports {
			path, _ := strconv.Unquote(s.Path.Value) // it was parsed
			judge(s.Pos(), path)
		}
	}
}

// pureImport judges an import of a pure package; what Layers refuses is refused once.
func (c *checker) pureImport(at token.Pos, path string) {
	inside := strings.HasPrefix(path, Module+"/")
	switch {
	case inside && forbiddenLayer(c.rel, path) != "":
	case inside && !isPure(rel(path)):
		c.add(at, "a pure package imports pure packages only: turn the import around", "%s imports %s", c.rel, rel(path))
	case !inside && !allowed[path]:
		c.add(at, why(path), "imports %q", path)
	}
}

// unread are files that the analyzers have not seen: they may not exist in a pure package.
func (c *checker) unread() {
	for _, name := range slices.Concat(c.OtherFiles, c.IgnoredFiles) {
		c.add(c.Fset.AddFile(name, -1, 0).Pos(0), "write plain Go for all machines", "C, assembly, or Go that only some machines compile")
	}
}

const concurrent = "a value that is stepped has no concurrency: return an effect, and take its outcome as an input"

// node judges one node of the syntax.
func (c *checker) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.add(n.Pos(), concurrent, "starts a goroutine")
	case *ast.SelectStmt:
		c.add(n.Pos(), concurrent, "selects")
	case *ast.ChanType:
		c.add(n.Pos(), concurrent, "has a channel")
	case *ast.SendStmt:
		c.add(n.Pos(), concurrent, "sends to a channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.add(n.Pos(), concurrent, "receives from a channel")
		}
	case *ast.RangeStmt:
		if _, ok := c.TypesInfo.TypeOf(n.X).Underlying().(*types.Chan); ok {
			c.add(n.Pos(), concurrent, "receives from a channel")
		}
	case *ast.Ident:
		c.use(n)
	}
	return true
}

// use judges a name: what it stands for may be impure.
func (c *checker) use(id *ast.Ident) {
	obj := c.TypesInfo.Uses[id]
	if obj == nil {
		return
	}
	if _, ok := obj.(*types.Builtin); ok && (obj.Name() == "print" || obj.Name() == "println") {
		c.add(id.Pos(), printing, "calls %s", obj.Name())
		return
	}
	if !isPackages(obj) {
		return
	}
	name := obj.Pkg().Path() + "." + obj.Name()
	if fix := forbidden[name]; fix != "" {
		c.add(id.Pos(), fix, "uses %s", name)
	}
	_, fn := obj.(*types.Func)
	if global := obj.Pkg().Path() == "math/rand" || obj.Pkg().Path() == "math/rand/v2"; fn && global && !strings.HasPrefix(obj.Name(), "New") {
		c.add(id.Pos(), "draw from a seeded generator that is part of the value", "uses the global generator: %s", name)
	}
}

// isPackages says whether something is declared by a package itself, not inside a function or a type.
func isPackages(obj types.Object) bool { return obj.Pkg() != nil && obj.Parent() == obj.Pkg().Scope() }
