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
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/tools/go/analysis"
	driver "golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/packages"

	"github.com/enilab/enilab/internal/must"
)

const root = "../.."

// listed is what `go list` says about a package.
type listed struct {
	ImportPath string
	Deps       []string
}

// list are the module's packages, by path below it. The files are read, too, so that a cached result of these tests ends when one changes.
func list(t *testing.T) map[string]listed {
	t.Helper()
	texts(t)
	c := exec.Command("go", "list", "-json=ImportPath,Deps", "./...")
	c.Dir, c.Stderr = root, os.Stderr
	out := must.Get(c.Output())(t)
	all := map[string]listed{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		if err := d.Decode(&l); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			t.Fatal(err)
		}
		all[rel(l.ImportPath)] = l
	}
}

// TestRepository: no package of the module breaks a rule. It loads them itself: go vet would ask a new tool about each package that they
// import, which takes half a minute.
func TestRepository(t *testing.T) {
	if testing.Short() {
		t.Skip("every package is type-checked; make lint asks the same")
	}
	texts(t) // so that a cached result ends when a file changes
	loaded := must.Get(packages.Load(&packages.Config{Mode: packages.LoadSyntax, Dir: root}, "./..."))(t)
	for _, p := range loaded {
		for _, err := range p.Errors {
			t.Error(err)
		}
	}
	graph := must.Get(driver.Analyze(Analyzers, loaded, nil))(t)
	for a := range graph.All() {
		if a.Err != nil {
			t.Error(a.Err)
		}
		for _, d := range a.Diagnostics {
			at := a.Package.Fset.Position(d.Pos)
			if r, err := filepath.Rel(absolute(t), at.Filename); err == nil {
				at.Filename = r
			}
			t.Errorf("%s:%d: %s", at.Filename, at.Line, d.Message)
		}
	}
	if len(loaded) < 50 {
		t.Errorf("%d packages are judged: this test does not know any more how to find them", len(loaded))
	}
}

// TestVetFinds: what the analyzers find in a pure package reaches whoever runs go vet, and its tests may do what they like.
func TestVetFinds(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the analyzers, as make lint does")
	}
	dir := t.TempDir()
	replace := map[string]string{}
	for name, src := range map[string]string{
		"found.go":       "package spelling\n\nimport \"time\"\n\nvar found = time.Now()\n\nfunc find() { found = found.Add(1) }\n",
		"found_plan9.go": "package spelling\n",
		"found_test.go":  "package spelling\n\nimport _ \"os\"\n",
	} {
		replace[filepath.Join(absolute(t), "internal", "spelling", name)] = filepath.Join(dir, name)
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(src), 0o600))
	}
	spec, err := json.Marshal(map[string]any{"Replace": replace})
	overlay := filepath.Join(dir, "overlay.json")
	must.Do(t, errors.Join(err, os.WriteFile(overlay, spec, 0o600)))
	tool := filepath.Join(dir, "purity")
	if out, err := exec.Command("go", "build", "-o", tool, "./vet").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	c := exec.Command("go", "vet", "-vettool="+tool, "-overlay="+overlay, "./internal/spelling")
	c.Dir = root
	data, err := c.CombinedOutput()
	out := string(data)
	if n := strings.Count(out, "/found"); err == nil || n != 3 {
		t.Errorf("expected 3 findings and an error, found %d and %v", n, err)
	}
	for _, want := range []string{
		"found.go:5:18: purity: uses time.Now; ", "found.go:7:15: package state: assigns to ", "found_plan9.go:1:1: purity: C, ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("expected %q", want)
		}
	}
	if t.Failed() {
		t.Log(out)
	}
}

// TestNothingIsForgotten: a pattern that matches no package judges nothing.
func TestNothingIsForgotten(t *testing.T) {
	all := slices.Collect(maps.Keys(list(t)))
	for _, p := range pure {
		if !slices.ContainsFunc(all, func(rel string) bool { ok, _ := path.Match(p, rel); return ok }) {
			t.Errorf("no package matches %s: it was moved, and nothing judges it", p)
		}
	}
}

func TestBinaries(t *testing.T) {
	all := list(t)
	for _, b := range binaries {
		l, built := all[b.cmd]
		if !built {
			t.Errorf("there is no %s: it was moved, and nothing judges it", b.cmd)
		}
		for _, p := range b.linked(l.Deps) {
			t.Errorf("%s links %s: go list -deps ./%s shows the way; what a binary may not link is in internal/purity/rules.go", b.cmd, p, b.cmd)
		}
	}
}

// linked are the packages among these that the binary must not contain.
func (b *binary) linked(deps []string) []string {
	return slices.DeleteFunc(slices.Clone(deps), func(d string) bool { return !within(b.never, d) || within(b.except, d) })
}

// TestLinkedIsSeen: the rule about binaries finds what is far away.
func TestLinkedIsSeen(t *testing.T) {
	deps := []string{"fmt", Module + "/impl/ipam", Module + "/internal/splitmix", Module + "/sim/mutants", Module + "/fakes/ec2", "k8s.io/client-go/rest", "sigs.k8s.io/kind/pkg/log"}
	for _, b := range binaries {
		want := deps[3:]
		if b.cmd == "cmd/enilab" {
			want = deps[5:]
		}
		if bad := b.linked(deps); !slices.Equal(bad, want) {
			t.Errorf("%s: linked are %v, expected %v", b.cmd, bad, want)
		}
	}
}

// TestSizeOfEnilab: bin/enilab stays as small as its documents say. One package that finds methods by their names, such as html/template, doubles it.
func TestSizeOfEnilab(t *testing.T) {
	if testing.Short() {
		t.Skip("links cmd/enilab")
	}
	name := filepath.Join(t.TempDir(), "enilab")
	c := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", name, "./cmd/enilab")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	info := must.Get(os.Stat(name))(t)
	if info.Size() > mostBytes {
		t.Errorf("cmd/enilab has %d bytes, expected at most %d: see which package it links anew (go version -m, go list -deps), "+
			"or keeps all methods (go build -tags grpcnotrace -ldflags=-dumpdep -o /dev/null ./cmd/enilab 2>&1 | grep ReflectMethod)", info.Size(), mostBytes)
	}
	for file, pattern := range map[string]string{"README.md": "`bin/enilab` (%d MB)", "docs/kind.md": "`bin/enilab` has %d MB"} {
		text := must.Get(os.ReadFile(filepath.Join(root, file)))(t)
		if want := fmt.Sprintf(pattern, (info.Size()+500_000)/1_000_000); !strings.Contains(string(text), want) {
			t.Errorf("%s: expected %s", file, want)
		}
	}
}

// TestScenariosAreInTheCatalogue: docs/incidents.md has one row for each scenario, with its mutants and marks.
func TestScenariosAreInTheCatalogue(t *testing.T) {
	rows := catalogue(t)
	files, err := filepath.Glob(filepath.Join(root, "scenarios", "*.scn"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	for _, f := range files {
		name := strings.TrimSuffix(filepath.Base(f), ".scn")
		if len(rows[name]) != 1 {
			t.Errorf("docs/incidents.md has %d rows for scenarios/%s.scn: it needs one that begins | [%s](../scenarios/%s.scn) |", len(rows[name]), name, name, name)
			continue
		}
		data := must.Get(os.ReadFile(f))(t)
		script, _, _ := strings.Cut(string(data), "\n-- ")
		for line := range strings.Lines(script) {
			w := strings.Fields(line)
			if len(w) > 1 && (w[0] == "against" || w[0] == "reaches") && !strings.Contains(rows[name][0], w[1]) {
				t.Errorf("docs/incidents.md, row %s: the scenario says %s %s, the row does not", name, w[0], w[1])
			}
		}
		delete(rows, name)
	}
	for name := range rows {
		t.Errorf("docs/incidents.md has a row for %s, and there is no scenarios/%s.scn: remove the row", name, name)
	}
}

// catalogue are the rows of docs/incidents.md by scenario.
func catalogue(t *testing.T) map[string][]string {
	t.Helper()
	doc := must.Get(os.ReadFile(filepath.Join(root, "docs", "incidents.md")))(t)
	rows := map[string][]string{}
	for line := range strings.Lines(string(doc)) {
		rest, ok := strings.CutPrefix(line, "| [")
		if name, row, found := strings.Cut(rest, "](../scenarios/"); ok && found {
			rows[name] = append(rows[name], row)
		}
	}
	return rows
}

func absolute(t *testing.T) string {
	t.Helper()
	return must.Get(filepath.Abs(root))(t)
}

// standard imports what pure packages may import.
var standard = sync.OnceValues(func() (types.Importer, error) {
	args := []string{"list", "-deps", "-export", "-f", "{{.ImportPath}} {{.Export}}"}
	c := exec.Command("go", append(args, slices.Sorted(maps.Keys(allowed))...)...)
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		name, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[name] = file
	}
	return importer.ForCompiler(token.NewFileSet(), "gc", func(name string) (io.ReadCloser, error) {
		if exports[name] == "" {
			return nil, fmt.Errorf("%s is not in the list", name)
		}
		return os.Open(exports[name])
	}), nil
})

// judge judges a snippet as if it were a package of the module: findings as FILE:LINE: TEXT.
func judge(t *testing.T, pkg, src string) (found []string) {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", "package x\n"+src, parser.ParseComments|parser.SkipObjectResolution)
	must.Do(t, err)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}, Defs: map[*ast.Ident]types.Object{},
		Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	imp := must.Get(standard())(t)
	p, wrong := (&types.Config{Importer: imp, Error: func(error) {}}).Check(Module+"/"+pkg, fset, []*ast.File{f}, info)
	for _, a := range Analyzers {
		report := func(d analysis.Diagnostic) {
			at := fset.Position(d.Pos)
			found = append(found, fmt.Sprintf("%s:%d: %s", at.Filename, at.Line, d.Message))
		}
		if _, err := a.Run(&analysis.Pass{Analyzer: a, Fset: fset, Files: []*ast.File{f}, Pkg: p, TypesInfo: info, Report: report}); err != nil {
			t.Fatal(err)
		}
	}
	if wrong != nil && len(found) == 0 { // what may not be imported has no types here
		t.Fatal(wrong)
	}
	return found
}
