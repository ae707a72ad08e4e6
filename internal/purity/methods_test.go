package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// mostMethods is how many methods a type may have: one with a hundred is several types.
const mostMethods = 60

// TestTypesHaveFewMethods: no type of impl or sim has more than mostMethods. One that two systems have counts once.
func TestTypesHaveFewMethods(t *testing.T) {
	methods := map[string]map[string]bool{}
	for name, text := range texts(t) {
		dir := path.Dir(filepath.ToSlash(name))
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			!strings.HasPrefix(dir+"/", "impl/") && !strings.HasPrefix(dir+"/", "sim/") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution))(t)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				name := dir + "." + receiver(fn.Recv.List[0].Type)
				if methods[name] == nil {
					methods[name] = map[string]bool{}
				}
				methods[name][fn.Name.Name] = true
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		if n := len(methods[name]); n > mostMethods {
			t.Errorf("%s has %d methods, expected at most %d: which of them need only a part of its fields?", name, n, mostMethods)
		}
	}
	if len(methods) < 100 {
		t.Errorf("%d types have methods; this test does not know any more where they are", len(methods))
	}
}

// receiver is the name of a receiver's type.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}
