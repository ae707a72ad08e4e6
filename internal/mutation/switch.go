package mutation

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"slices"
	"strings"
)

// switched is a file in which a number chooses among mutations of its declarations.
type switched struct {
	set     *token.FileSet
	src     string
	file    *ast.File
	changed map[ast.Decl]map[int]string // by declaration: its text in each mutant
}

// Env is the variable that says which mutant a binary is; unset, it is the source as it stands.
const Env = "ENILAB_MUTANT"

// Reached is the variable that names a file to which such a binary appends the numbers of the mutants whose functions it calls.
const Reached = "ENILAB_REACHED"

// chosenSource is a file that every package with mutants gets: the number, and what chooses among values.
const chosenSource = `package %s

import (
	enilabos "os"
	enilabnumbers "strconv"
	enilabsync "sync"
)

var (
	enilabReached = enilabos.Getenv("` + Reached + `")
	enilabSeen    enilabsync.Map
)

func enilabReach(numbers string) {
	if _, again := enilabSeen.LoadOrStore(numbers, true); again {
		return
	}
	if f, err := enilabos.OpenFile(enilabReached, enilabos.O_APPEND|enilabos.O_CREATE|enilabos.O_WRONLY, 0o666); err == nil {
		f.WriteString(numbers)
		f.Close()
	}
}

var enilabMutant, _ = enilabnumbers.Atoi(enilabos.Getenv("` + Env + `"))

func enilabPick[T any](value T, numbers []int, others ...T) T {
	for k, n := range numbers {
		if n == enilabMutant {
			return others[k]
		}
	}
	return value
}

var _ = enilabPick[int]
`

func newSwitched(src string) (*switched, error) {
	s := &switched{set: token.NewFileSet(), src: src, changed: map[ast.Decl]map[int]string{}}
	var err error
	s.file, err = parser.ParseFile(s.set, "", src, parser.SkipObjectResolution)
	return s, err
}

func (s *switched) text(n ast.Node) string {
	return s.src[s.set.Position(n.Pos()).Offset:s.set.Position(n.End()).Offset]
}

// bare is a function's text without its comment.
func (s *switched) bare(d ast.Decl) string {
	f, ok := d.(*ast.FuncDecl)
	if !ok {
		return s.text(d)
	}
	return s.src[s.set.Position(f.Type.Pos()).Offset:s.set.Position(f.End()).Offset]
}

// add takes a mutant in. It is false when what the mutation changes cannot be chosen at run time: a constant, a type,
// several things, a function that recovers from a panic.
func (s *switched) add(number int, mutant string) bool {
	m, err := newSwitched(mutant)
	if err != nil || len(m.file.Decls) != len(s.file.Decls) {
		return false
	}
	var decl ast.Decl
	var now string
	for k, d := range s.file.Decls {
		if a, b := s.bare(d), m.bare(m.file.Decls[k]); a != b {
			if decl != nil {
				return false
			}
			decl, now = d, b
		}
	}
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Body == nil || d.Type.TypeParams != nil || d.Recv == nil && (d.Name.Name == "init" || d.Name.Name == "main") {
			return false
		}
		if strings.Contains(s.text(d.Body), "recover()") { // it recovers nothing for a caller that was deferred in its place
			return false
		}
	case *ast.GenDecl:
		if d.Tok != token.VAR || len(d.Specs) != 1 || len(d.Specs[0].(*ast.ValueSpec).Values) != 1 {
			return false
		}
		value := m.file.Decls[indexOf(s.file.Decls, decl)].(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Values[0]
		now = m.text(value)
	default:
		return false
	}
	if s.changed[decl] == nil {
		s.changed[decl] = map[int]string{}
	}
	s.changed[decl][number] = now
	return true
}

func indexOf(list []ast.Decl, d ast.Decl) int {
	for k := range list {
		if list[k] == d {
			return k
		}
	}
	return -1
}

// source is the file with its switches.
func (s *switched) source() string {
	var b strings.Builder
	at := 0
	for _, d := range s.file.Decls {
		mutants := s.changed[d]
		if mutants == nil {
			continue
		}
		if f, ok := d.(*ast.FuncDecl); ok {
			b.WriteString(s.src[at:s.set.Position(f.Type.Pos()).Offset])
			b.WriteString(s.function(f, mutants))
			at = s.set.Position(f.End()).Offset
			continue
		}
		value := d.(*ast.GenDecl).Specs[0].(*ast.ValueSpec).Values[0]
		b.WriteString(s.src[at:s.set.Position(value.Pos()).Offset])
		numbers, others := "", ""
		for _, n := range slices.Sorted(maps.Keys(mutants)) {
			text := mutants[n]
			numbers += fmt.Sprint(n, ", ")
			others += ", " + text
		}
		fmt.Fprintf(&b, "enilabPick(%s, []int{%s}%s)", s.text(value), numbers, others)
		at = s.set.Position(value.End()).Offset
	}
	b.WriteString(s.src[at:])
	return b.String()
}

// function is a function that calls the copy that is chosen, and the copies.
func (s *switched) function(f *ast.FuncDecl, mutants map[int]string) string {
	var head, args []string
	fields := func(list *ast.FieldList, letter string) (out, names []string) {
		for k, p := range list.List {
			n := max(1, len(p.Names))
			for j := range n {
				name := fmt.Sprintf("%s%d_%d", letter, k, j)
				out = append(out, name+" "+s.text(p.Type))
				if _, many := p.Type.(*ast.Ellipsis); many {
					name += "..."
				}
				names = append(names, name)
			}
		}
		return out, names
	}
	head, args = fields(f.Type.Params, "mutantArg")
	receiver, on := "", ""
	if f.Recv != nil {
		r, names := fields(f.Recv, "mutantRecv")
		receiver, on = "("+r[0]+") ", names[0]+"."
	}
	kinds, results, give := "", "", ""
	if f.Type.TypeParams != nil {
		kinds = s.text(f.Type.TypeParams)
	}
	if f.Type.Results != nil {
		results, give = s.text(f.Type.Results), "return "
	}
	var b strings.Builder
	order := slices.Sorted(maps.Keys(mutants))
	fmt.Fprintf(&b, "func %s%s%s(%s) %s {\n\tif enilabReached != \"\" {\n\t\tenilabReach(%q)\n\t}\n\tswitch enilabMutant {\n",
		receiver, f.Name.Name, kinds, strings.Join(head, ", "), results, strings.Trim(fmt.Sprint(order), "[]")+"\n")
	call := func(suffix string) {
		fmt.Fprintf(&b, "\t\t%s%s%s%s(%s)\n", give, on, f.Name.Name, suffix, strings.Join(args, ", "))
	}
	for _, n := range order {
		fmt.Fprintf(&b, "\tcase %d:\n", n)
		call(fmt.Sprintf("Mutant%d", n))
	}
	b.WriteString("\tdefault:\n")
	call("AsItIs")
	if give != "" {
		b.WriteString("\t}\n}\n") // a switch with a default that returns everywhere ends the function
	} else {
		b.WriteString("\t}\n}\n")
	}
	for _, n := range order {
		b.WriteString("\n" + renamed(mutants[n], f.Name.Name, fmt.Sprintf("Mutant%d", n)) + "\n")
	}
	b.WriteString("\n" + renamed(s.bare(f), f.Name.Name, "AsItIs") + "\n")
	return b.String()
}

// renamed is a function's text with something behind its name, which comes after the receiver.
func renamed(text, name, suffix string) string {
	from := len("func ")
	if strings.HasPrefix(text[from:], "(") {
		from += strings.Index(text[from:], ")")
	}
	at := from + strings.Index(text[from:], name)
	return text[:at+len(name)] + suffix + text[at+len(name):]
}
