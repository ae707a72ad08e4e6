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

// tooMany are the types that have more, and what each may have at most: a number here only falls.
var tooMany = map[string]int{
	"impl/daemon.daemon": 88,
	"sim/kind.World":     108,
	"sim/netns.World":    138,
	"sim/virtual.World":  100,
	"sim/vpc.Network":    62,
}

// TestTypesHaveFewMethods: no type of impl or sim has more than mostMethods, or than its row in tooMany.
func TestTypesHaveFewMethods(t *testing.T) {
	count := map[string]int{}
	for name, text := range texts(t) {
		dir := path.Dir(filepath.ToSlash(name))
		if path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") ||
			!strings.HasPrefix(dir+"/", "impl/") && !strings.HasPrefix(dir+"/", "sim/") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), name, text, parser.SkipObjectResolution))(t)
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv != nil {
				count[dir+"."+receiver(fn.Recv.List[0].Type)]++
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(count)) {
		if most := max(mostMethods, tooMany[name]); count[name] > most {
			t.Errorf("%s has %d methods, expected at most %d: which of them need only a part of its fields?",
				name, count[name], most)
		}
	}
	for name := range tooMany {
		if count[name] <= mostMethods {
			t.Errorf("%s has %d methods: take it out of tooMany", name, count[name])
		}
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
