package mutation

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
)

// Candidate is a change that a machine thinks of.
type Candidate struct {
	File     string // below the module, with slashes
	Func     string
	Line     int
	Operator string
	Was, Now string // of the expression or statement
	// Key tells it apart from all others, also after its function has moved: another key is another function, or an edited one.
	Key string

	mutant Mutant
}

func (c *Candidate) String() string {
	short := func(s string) string {
		s = strings.Join(strings.Fields(s), " ")
		if r := []rune(s); len(r) > 70 {
			s = string(r[:70]) + "…"
		}
		return s
	}
	return fmt.Sprintf("%s:%d %s: %s: %s → %s", c.File, c.Line, c.Func, c.Operator, short(c.Was), short(c.Now))
}

// Mutant is the file with the change.
func (c *Candidate) Mutant() *Mutant { return &c.mutant }

// Candidates are all changes of a file, in its order.
func Candidates(root, file string) ([]Candidate, error) {
	path, err := filepath.Abs(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return nil, err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	w := &walker{root: root, file: file, path: path, src: string(data), set: token.NewFileSet()}
	f, err := parser.ParseFile(w.set, path, data, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	for _, d := range f.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && fn.Body != nil && fn.Type.TypeParams == nil {
			w.fn, w.name = fn, fn.Name.Name
			sum := sha256.Sum256([]byte(w.text(fn)))
			w.sum = hex.EncodeToString(sum[:6])
			ast.Inspect(fn.Body, w.visit)
		}
	}
	return w.out, nil
}

type walker struct {
	root, file, path, src string
	set                   *token.FileSet
	fn                    *ast.FuncDecl
	name, sum             string
	out                   []Candidate
}

func (w *walker) offset(p token.Pos) int { return w.set.Position(p).Offset }
func (w *walker) text(n ast.Node) string { return w.src[w.offset(n.Pos()):w.offset(n.End())] }
func (w *walker) add(operator string, at, end token.Pos, now string) {
	from, to := w.offset(at), w.offset(end)
	c := Candidate{File: w.file, Func: w.name, Line: w.set.Position(at).Line, Operator: operator, Was: w.src[from:to], Now: now}
	c.Key = fmt.Sprintf("%s %s %s %s %d %s", w.file, w.name, w.sum, operator, from-w.offset(w.fn.Pos()), now)
	c.mutant = Mutant{Path: w.path, Was: w.src, Now: w.src[:from] + now + w.src[to:]}
	w.out = append(w.out, c)
}

// Operators: the comparison on its boundary, and its contrary; the other arithmetic; and for or; a condition that never and always holds;
// true for false; a loop that ends instead of going on; a statement less.
var (
	boundary = map[token.Token]token.Token{token.LSS: token.LEQ, token.LEQ: token.LSS, token.GTR: token.GEQ, token.GEQ: token.GTR}
	contrary = map[token.Token]token.Token{token.EQL: token.NEQ, token.NEQ: token.EQL, token.LSS: token.GEQ, token.GEQ: token.LSS, token.GTR: token.LEQ, token.LEQ: token.GTR}
	sums     = map[token.Token]token.Token{token.ADD: token.SUB, token.SUB: token.ADD, token.MUL: token.QUO, token.QUO: token.MUL}
	logic    = map[token.Token]token.Token{token.LAND: token.LOR, token.LOR: token.LAND}
)

func (w *walker) visit(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.BinaryExpr:
		for _, o := range []struct {
			name string
			to   map[token.Token]token.Token
		}{{"boundary", boundary}, {"contrary", contrary}, {"arithmetic", sums}, {"logic", logic}} {
			if to, ok := o.to[n.Op]; ok {
				w.add(o.name, n.Pos(), n.End(), w.text(n.X)+" "+to.String()+" "+w.text(n.Y))
			}
		}
	case *ast.IncDecStmt:
		w.add("count", n.Pos(), n.End(), w.text(n.X)+map[token.Token]string{token.INC: "--", token.DEC: "++"}[n.Tok])
	case *ast.IfStmt:
		w.add("never", n.Cond.Pos(), n.Cond.End(), "false && ("+w.text(n.Cond)+")")
		w.add("always", n.Cond.Pos(), n.Cond.End(), "true || ("+w.text(n.Cond)+")")
	case *ast.Ident:
		if n.Name == "true" || n.Name == "false" {
			w.add("truth", n.Pos(), n.End(), map[string]string{"true": "false", "false": "true"}[n.Name])
		}
	case *ast.BranchStmt:
		if to := map[token.Token]string{token.CONTINUE: "break", token.BREAK: "continue"}[n.Tok]; to != "" && n.Label == nil {
			w.add("loop", n.Pos(), n.End(), to)
		}
	case *ast.ExprStmt:
		if call, ok := n.X.(*ast.CallExpr); ok && !told(call) {
			w.add("less", n.Pos(), n.End(), "")
		}
		return !logged(n)
	case *ast.DeferStmt:
		w.add("less", n.Pos(), n.End(), "")
	case *ast.AssignStmt:
		if n.Tok == token.DEFINE {
			break
		}
		var names []string
		for _, l := range n.Lhs {
			if id, ok := l.(*ast.Ident); !ok || id.Name != "_" {
				names = append(names, w.text(l))
			}
		}
		if n.Tok == token.ASSIGN && len(names) > 0 {
			w.add("less", n.Pos(), n.End(), strings.Repeat("_, ", len(n.Lhs)-1)+"_ = "+w.text(n.Rhs[0])+rest(w, n))
		}
	}
	return true
}

func rest(w *walker, n *ast.AssignStmt) (out string) {
	for _, r := range n.Rhs[1:] {
		out += ", " + w.text(r)
	}
	return out
}

// told says whether a call only writes to the log, or panics: what a line of a log says is no behaviour.
func told(call *ast.CallExpr) bool {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name == "panic"
	case *ast.SelectorExpr:
		switch f.Sel.Name {
		case "Debug", "Info", "Warn", "Error", "Printf", "Println", "Fprintf", "Fprintln", "Close", "Unlock", "RUnlock":
			return true
		}
	}
	return false
}

func logged(n *ast.ExprStmt) bool {
	call, ok := n.X.(*ast.CallExpr)
	return ok && told(call)
}
