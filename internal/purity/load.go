package purity

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Module is the path of this module.
const Module = "github.com/enilab/enilab"

// listed is what `go list` says about a package.
type listed struct {
	ImportPath                string
	Dir, Export               string
	GoFiles, CgoFiles, SFiles []string
	IgnoredGoFiles            []string
	Deps                      []string
	Error                     *struct{ Err string }
}

// Tree is the module's packages, and export data of all that they import.
type Tree struct {
	Fset     *token.FileSet
	packages []listed
	importer types.Importer
}

// List asks the go command about the module at root. extra are import paths to have export data of besides.
func List(root string, extra ...string) (*Tree, error) {
	args := append([]string{"list", "-e", "-deps", "-export",
		"-json=ImportPath,Dir,Export,GoFiles,CgoFiles,SFiles,IgnoredGoFiles,Deps,Error", "./..."}, extra...)
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list in %s: %w: %s", root, err, stderr.String())
	}
	t := &Tree{Fset: token.NewFileSet()}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list in %s: %w", root, err)
		}
		exports[p.ImportPath] = p.Export
		if p.ImportPath == Module || strings.HasPrefix(p.ImportPath, Module+"/") {
			t.packages = append(t.packages, p)
		}
	}
	t.importer = importer.ForCompiler(t.Fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("%s does not compile, or is not imported by the module", path)
		}
		return os.Open(exports[path])
	})
	return t, nil
}

// Package is a package's syntax and types.
type Package struct {
	Rel   string // path below the module
	Fset  *token.FileSet
	Files []*ast.File
	Types *types.Package
	Info  *types.Info
}

// load parses and checks a package.
func (t *Tree) load(l *listed) (*Package, error) {
	if l.Error != nil {
		return nil, fmt.Errorf("%s: %s", l.ImportPath, l.Error.Err)
	}
	p := &Package{Rel: rel(l.ImportPath), Fset: t.Fset}
	for _, name := range l.GoFiles {
		f, err := parser.ParseFile(t.Fset, filepath.Join(l.Dir, name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		p.Files = append(p.Files, f)
	}
	return p, p.check(l.ImportPath, t.importer)
}

func (p *Package) check(path string, imp types.Importer) error {
	p.Info = &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	var err error
	p.Types, err = (&types.Config{Importer: imp}).Check(path, p.Fset, p.Files, p.Info)
	return err
}

// rel is a path below the module; others stay as they are.
func rel(path string) string {
	if path == Module {
		return "."
	}
	return strings.TrimPrefix(path, Module+"/")
}
