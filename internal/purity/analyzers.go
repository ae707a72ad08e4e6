package purity

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/tools/go/analysis"
)

// Analyzers are all rules.
var Analyzers = []*analysis.Analyzer{Layers, Pure, State, mapOrder}

// rule is an analyzer whose findings begin with a title.
func rule(name, title, doc string, judge func(*checker)) *analysis.Analyzer {
	return &analysis.Analyzer{Name: name, Doc: doc, Run: func(p *analysis.Pass) (any, error) {
		path, _, _ := strings.Cut(p.Pkg.Path(), " ") // with its tests it is "PATH [PATH.test]"
		judge(&checker{Pass: p, rel: rel(path), title: title})
		return nil, nil
	}}
}

// checker judges a package by one rule.
type checker struct {
	*analysis.Pass
	rel   string // path below the module
	title string
	file  *ast.File
	body  *ast.BlockStmt // of the function around
}

// add reports what was found, and what to do.
func (c *checker) add(at token.Pos, fix, format string, args ...any) {
	c.Report(analysis.Diagnostic{Pos: at, Category: c.title, Message: fmt.Sprintf("%s: %s; %s", c.title, fmt.Sprintf(format, args...), fix)})
}

// sources are the files that are no tests.
func (c *checker) sources() []*ast.File {
	return slices.DeleteFunc(slices.Clone(c.Files), func(f *ast.File) bool {
		return strings.HasSuffix(filepath.Base(c.Fset.Position(f.Package).Filename), "_test.go")
	})
}

// declarations calls judge for each declaration of a pure package.
func (c *checker) declarations(judge func(ast.Decl)) {
	if !isPure(c.rel) {
		return
	}
	for _, f := range c.sources() {
		c.file = f
		for _, d := range f.Decls {
			c.body = nil
			if fn, ok := d.(*ast.FuncDecl); ok {
				c.body = fn.Body
			}
			judge(d)
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
