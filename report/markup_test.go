package report

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestMarkupIsConstant: names of elements and attributes are literals, nothing is put unescaped but the page's own style and script, no attribute runs a script or
// leads elsewhere by what a run says, and parts are made in markup.go alone.
func TestMarkupIsConstant(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatalf("%v, %d files", err, len(files))
	}
	calls := 0
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		tree := must.Get(parser.ParseFile(set, file, nil, 0))(t)
		own := file == "markup.go"
		ast.Inspect(tree, func(n ast.Node) bool {
			if n == nil {
				return true
			}
			say := func(why string) { t.Errorf("%s: %s", set.Position(n.Pos()), why) }
			switch n := n.(type) {
			case *ast.CompositeLit:
				if x, ok := n.Type.(*ast.Ident); ok && !own && slices.Contains([]string{"attribute", "element"}, x.Name) {
					say(x.Name + " is made with tag, attr or flag")
				}
			case *ast.CallExpr:
				f, ok := n.Fun.(*ast.Ident)
				if !ok || len(n.Args) == 0 {
					return true
				}
				word, literal := n.Args[0].(*ast.BasicLit)
				switch f.Name {
				case "tag", "attr", "flag":
					if calls++; !literal {
						say("the name is no literal")
						return true
					}
					if f.Name == "tag" {
						return true
					}
					name := strings.Trim(word.Value, `"`)
					if _, constant := n.Args[1].(*ast.BasicLit); !constant && (strings.HasPrefix(name, "on") || slices.Contains([]string{"href", "src", "srcdoc", "action", "formaction", "http-equiv"}, name)) {
						say(name + " has to be a literal too")
					}
				case "raw":
					x, named := n.Args[0].(*ast.Ident)
					if !literal && (!named || x.Name != "styleText" && x.Name != "scriptText") {
						say("raw is for the page's own style and script")
					}
				case "name", "written", "attribute", "element":
					if !own {
						say("no string becomes a " + f.Name)
					}
				}
			}
			return true
		})
	}
	if calls < 50 {
		t.Errorf("%d calls were looked at, expected those of a page", calls)
	}
}

// TestTextsAreEscaped: whatever a text or a value is, a reader of HTML gets it back, and nothing else.
func TestTextsAreEscaped(t *testing.T) {
	for _, s := range []string{`<b>`, `"`, `'`, `&lt;`, `">`, `</p>`} {
		got := string(write(tag("p", class(s), text(s), link(s, text(s)))))
		if n := strings.Count(got, "<"); n != 4 {
			t.Errorf("%q: %d tags begin in %s, expected 4", s, n, got)
		}
		if n := strings.Count(got, `"`); n != 4 {
			t.Errorf("%q: %d quotes in %s, expected 4", s, n, got)
		}
	}
	if got := string(write(tag("p", class(""), flag("open", false), nil, when(false, text("x")), text("a")))); got != "<p>a</p>" {
		t.Errorf("what is not there is written as %s", got)
	}
}
