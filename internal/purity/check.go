package purity

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
	"strconv"
	"strings"
)

// Finding is a place that breaks a rule.
type Finding struct {
	Pos  token.Position
	Rule string // in a word or two
	What string // found
	Fix  string // what to do
}

func (f Finding) String() string {
	return fmt.Sprintf("%s:%d: %s: %s; %s", f.Pos.Filename, f.Pos.Line, f.Rule, f.What, f.Fix)
}

// Check judges every package of the module.
func (t *Tree) Check() ([]Finding, error) {
	var all []Finding
	for i := range t.packages {
		l := &t.packages[i]
		if !Pure(rel(l.ImportPath)) && !layeredAtAll(rel(l.ImportPath)) {
			continue
		}
		p, err := t.load(l)
		if err != nil {
			return nil, err
		}
		c := &checker{Package: p}
		c.imports()
		if Pure(p.Rel) {
			c.unread(l)
			c.bodies()
		}
		all = append(all, c.found...)
	}
	return all, nil
}

func layeredAtAll(from string) bool {
	return slices.ContainsFunc(layers, func(l layer) bool { return within(l.from, from) })
}

// Linked are the packages that a shipped binary must not contain and does. built is false when there is no such command yet.
func (t *Tree) Linked(cmd string) (bad []string, built bool) {
	for i := range t.packages {
		if rel(t.packages[i].ImportPath) != cmd {
			continue
		}
		for _, d := range t.packages[i].Deps {
			if ours := strings.HasPrefix(d, Module+"/"); ours && within(unlinked, rel(d)) || !ours && within(foreign, d) {
				bad = append(bad, d)
			}
		}
		return bad, true
	}
	return nil, false
}

type checker struct {
	*Package
	found []Finding
	file  *ast.File
	body  *ast.BlockStmt // of the function around
}

func (c *checker) add(at token.Pos, rule, fix, format string, args ...any) {
	c.found = append(c.found, Finding{c.Fset.Position(at), rule, fmt.Sprintf(format, args...), fix})
}

// imports judges import paths: purity, and the layers.
func (c *checker) imports() {
	for _, f := range c.Files {
		for _, s := range f.Imports {
			path, _ := strconv.Unquote(s.Path.Value) // it was parsed
			inside := strings.HasPrefix(path, Module+"/")
			if reason := layered(c.Rel, rel(path)); inside && reason != "" {
				c.add(s.Pos(), "layers", reason, "%s imports %s", c.Rel, rel(path))
				continue
			}
			switch {
			case !Pure(c.Rel):
			case inside && !Pure(rel(path)):
				c.add(s.Pos(), "purity", "a pure package imports pure packages only: turn the import around", "%s imports %s", c.Rel, rel(path))
			case !inside && !allowed[path]:
				c.add(s.Pos(), "purity", why(path), "imports %q", path)
			}
		}
	}
}

// unread are files that the checker has not seen: they may not exist in a pure package.
func (c *checker) unread(l *listed) {
	for _, name := range slices.Concat(l.CgoFiles, l.SFiles, l.IgnoredGoFiles) {
		c.found = append(c.found, Finding{token.Position{Filename: l.Dir + "/" + name, Line: 1}, "purity",
			"C, assembly, or Go that only some machines compile", "write plain Go for all machines"})
	}
}

// bodies judges everything but imports.
func (c *checker) bodies() {
	for _, f := range c.Files {
		c.file = f
		for _, d := range f.Decls {
			c.body = nil
			if fn, ok := d.(*ast.FuncDecl); ok {
				c.body = fn.Body
				if fn.Recv == nil && fn.Name.Name == "init" {
					ast.Inspect(d, c.node) // it may set variables: nothing runs before it
					continue
				}
				c.writes(d)
			} else {
				c.literals(d)
			}
			ast.Inspect(d, c.node)
		}
	}
	slices.SortStableFunc(c.found, func(a, b Finding) int {
		if n := strings.Compare(a.Pos.Filename, b.Pos.Filename); n != 0 {
			return n
		}
		return a.Pos.Offset - b.Pos.Offset
	})
}

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

const concurrent = "a value that is stepped has no concurrency: return an effect, and take its outcome as an input"

// node judges one node of the syntax.
func (c *checker) node(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		c.add(n.Pos(), "purity", concurrent, "starts a goroutine")
	case *ast.SelectStmt:
		c.add(n.Pos(), "purity", concurrent, "selects")
	case *ast.ChanType:
		c.add(n.Pos(), "purity", concurrent, "has a channel")
	case *ast.SendStmt:
		c.add(n.Pos(), "purity", concurrent, "sends to a channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			c.add(n.Pos(), "purity", concurrent, "receives from a channel")
		}
	case *ast.Ident:
		c.use(n)
	case *ast.CallExpr:
		if inner := c.sortedKeys(n); inner != nil {
			for _, a := range slices.Concat(inner.Args, n.Args[1:]) {
				ast.Inspect(a, c.node)
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
	if !sortedCopy(c.Info, call) {
		return nil
	}
	inner, ok := call.Args[0].(*ast.CallExpr)
	if !ok || !iterates(c.Info, inner) {
		return nil
	}
	return inner
}

// use judges a name: what it stands for may be impure.
func (c *checker) use(id *ast.Ident) {
	obj := c.Info.Uses[id]
	if obj == nil {
		return
	}
	if _, ok := obj.(*types.Builtin); ok && (obj.Name() == "print" || obj.Name() == "println") {
		c.add(id.Pos(), "purity", printing, "calls %s", obj.Name())
		return
	}
	if obj.Pkg() == nil || obj.Parent() != obj.Pkg().Scope() {
		return
	}
	name := obj.Pkg().Path() + "." + obj.Name()
	if fix := forbidden[name]; fix != "" {
		c.add(id.Pos(), "purity", fix, "uses %s", name)
	}
	if _, ok := obj.(*types.Func); !ok {
		return
	}
	switch obj.Pkg().Path() {
	case "math/rand", "math/rand/v2":
		if !strings.HasPrefix(obj.Name(), "New") {
			c.add(id.Pos(), "purity", "draw from a seeded generator that is part of the value", "uses the global generator: %s", name)
		}
	case "maps":
		if slices.Contains([]string{"Keys", "Values", "All"}, obj.Name()) {
			c.add(id.Pos(), "map order", "write slices.Sorted(maps.Keys(m)), and read the map by key", "the order of %s shows", name)
		}
	}
}

// function is what a call calls, as package.name; methods are package.Type.name.
func function(info *types.Info, call *ast.CallExpr) (pkg, name string, method bool) {
	fun := ast.Unparen(call.Fun)
	switch x := fun.(type) {
	case *ast.IndexExpr:
		fun = x.X
	case *ast.IndexListExpr:
		fun = x.X
	}
	var id *ast.Ident
	switch x := fun.(type) {
	case *ast.Ident:
		id = x
	case *ast.SelectorExpr:
		id = x.Sel
	default:
		return "", "", false
	}
	switch obj := info.Uses[id].(type) {
	case *types.Builtin:
		return "builtin", obj.Name(), false
	case *types.Func:
		if obj.Pkg() != nil {
			return obj.Pkg().Path(), obj.Name(), obj.Signature().Recv() != nil
		}
	}
	return "", "", false
}

// sorts says whether a call sorts its first argument in place.
func sorts(info *types.Info, call *ast.CallExpr) bool {
	pkg, name, _ := function(info, call)
	return pkg == "slices" && slices.Contains([]string{"Sort", "SortFunc", "SortStableFunc"}, name) ||
		pkg == "sort" && slices.Contains([]string{"Slice", "SliceStable", "Sort", "Stable", "Strings", "Ints", "Float64s"}, name)
}

// sortedCopy recognizes slices.Sorted and its like, which make a sorted slice of an iterator.
func sortedCopy(info *types.Info, call *ast.CallExpr) bool {
	pkg, name, _ := function(info, call)
	return pkg == "slices" && strings.HasPrefix(name, "Sorted") && len(call.Args) > 0
}

func iterates(info *types.Info, call *ast.CallExpr) bool {
	pkg, name, _ := function(info, call)
	return pkg == "maps" && (name == "Keys" || name == "Values" || name == "All")
}
