package main

import (
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

	"github.com/enilab/enilab/internal/mutation"
)

// checker says what compiles, without a compiler: packages that others import are read from what the compiler left of them.
type checker struct {
	exports  map[string]string // package path: file
	packages map[string]*loaded
	imports  types.Importer
	set      *token.FileSet
}

type loaded struct {
	path  string
	files map[string]*ast.File
}

func (c *checker) open() error {
	c.set, c.packages, c.exports = token.NewFileSet(), map[string]*loaded{}, map[string]string{}
	list := exec.Command("go", "list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}", "./impl/...")
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		return fmt.Errorf("go list: %w", err)
	}
	for line := range strings.Lines(string(out)) {
		if path, file, ok := strings.Cut(strings.TrimSpace(line), "\t"); ok {
			c.exports[path] = file
		}
	}
	c.imports = importer.ForCompiler(c.set, "gc", func(path string) (io.ReadCloser, error) {
		if c.exports[path] == "" {
			return nil, fmt.Errorf("%s: the compiler left nothing of it", path)
		}
		return os.Open(c.exports[path])
	})
	return nil
}

func (c *checker) compiles(m *mutation.Mutant) (bool, error) {
	if c.imports == nil {
		if err := c.open(); err != nil {
			return false, err
		}
	}
	dir := filepath.Dir(m.Path)
	p := c.packages[dir]
	if p == nil {
		p = &loaded{files: map[string]*ast.File{}}
		out, err := exec.Command("go", "list", "-f", `{{.ImportPath}}{{range .GoFiles}} {{.}}{{end}}`, dir).Output()
		if err != nil {
			return false, fmt.Errorf("go list %s: %w", dir, err)
		}
		names := strings.Fields(string(out))
		p.path = names[0]
		for _, name := range names[1:] {
			path := filepath.Join(dir, name)
			if p.files[path], err = parser.ParseFile(c.set, path, nil, parser.SkipObjectResolution); err != nil {
				return false, err
			}
		}
		c.packages[dir] = p
	}
	f, err := parser.ParseFile(c.set, m.Path, m.Now, parser.SkipObjectResolution)
	if err != nil {
		return false, nil
	}
	files := []*ast.File{f}
	for path, f := range p.files {
		if path != m.Path {
			files = append(files, f)
		}
	}
	wrong := false
	conf := types.Config{Importer: c.imports, Error: func(error) { wrong = true }}
	_, _ = conf.Check(p.path, c.set, files, nil)
	return !wrong, nil
}
