package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// spec is a leaf of Ginkgo's tree, where it is written: one in a loop or in a function that is shared is one.
type spec struct {
	folder, file string // without test/integration, and without ending
	words        string
}

var (
	containers = []string{"Describe", "Context", "When", "DescribeTable", "DescribeTableSubtree"}
	leaves     = []string{"It", "Specify", "Entry"}
	labels     = regexp.MustCompile(`\[[A-Z_]+\] *`) // such as [CANARY]
)

// most is how long words are: what is longer is cut.
const most = 120

// specsIn finds the specs of all files below a folder.
func specsIn(dir string) (out []spec, err error) {
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".go" {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(f.Imports, func(i *ast.ImportSpec) bool { return strings.Contains(i.Path.Value, "onsi/ginkgo") }) {
			return nil
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		file := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(name), ".go"), "_test")
		for _, words := range leavesOf(f) {
			out = append(out, spec{filepath.ToSlash(filepath.Dir(name)), file, words})
		}
		return nil
	})
	return out, err
}

// leavesOf are the words of a file's specs: the innermost container's, then the spec's own. Pending ones say so.
func leavesOf(f *ast.File) (out []string) {
	var around []string // what each node is inside of: a container's words, or nothing
	ast.Inspect(f, func(n ast.Node) bool {
		if n == nil {
			around = around[:len(around)-1]
			return true
		}
		words := ""
		if c, ok := n.(*ast.CallExpr); ok && len(c.Args) > 0 {
			name, off := bare(called(c.Fun))
			switch text := textOf(c.Args[0]); {
			case slices.Contains(containers, name):
				if words = text; off {
					words = pending + text
				}
			case slices.Contains(leaves, name):
				out = append(out, short(inside(around, text, off)))
			}
		}
		around = append(around, words)
		return true
	})
	return out
}

const pending = "pending: "

// inside is a spec's text after the innermost container's words; it is pending with any of them.
func inside(around []string, text string, off bool) string {
	around = slices.DeleteFunc(slices.Clone(around), func(w string) bool { return w == "" })
	off = off || slices.ContainsFunc(around, func(w string) bool { return strings.HasPrefix(w, pending) })
	if n := len(around); n > 0 {
		text = strings.TrimPrefix(around[n-1], pending) + ": " + text
	}
	if off {
		text = pending + text
	}
	return text
}

// bare takes the letter off that makes a spec or container pending (P, X) or focused (F).
func bare(name string) (rest string, off bool) {
	for _, letter := range []string{"P", "X", "F"} {
		if rest, ok := strings.CutPrefix(name, letter); ok && slices.Contains(append(containers, leaves...), rest) {
			return rest, letter != "F"
		}
	}
	return name, false
}

// called is the name of a function, whatever package it is of.
func called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

// textOf is a literal, or a call's first one: of fmt.Sprintf the format.
func textOf(e ast.Expr) (text string) {
	ast.Inspect(e, func(n ast.Node) bool {
		if b, ok := n.(*ast.BasicLit); ok && b.Kind == token.STRING && text == "" {
			text, _ = strconv.Unquote(b.Value)
		}
		return text == ""
	})
	return text
}

// short is a text as a cell of the table has it.
func short(text string) string {
	words := strings.Fields(strings.ReplaceAll(labels.ReplaceAllString(text, ""), "|", "/"))
	for n := range words {
		if s := strings.Join(words[:n+1], " "); len(s) > most {
			return strings.Join(words[:n], " ") + " ..."
		}
	}
	return strings.Join(words, " ")
}
