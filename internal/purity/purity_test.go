package purity

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
)

const root = "../.."

// tree lists the module once for all tests. It also reads the folders itself, so that a cached result of these tests ends when a
// file comes or goes.
var tree = sync.OnceValues(func() (*Tree, error) {
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if d != nil && d.IsDir() && (d.Name() == "bin" || len(d.Name()) > 2 && d.Name()[0] == '.') {
			return fs.SkipDir
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	var extra []string
	for p := range allowed {
		extra = append(extra, p)
	}
	slices.Sort(extra)
	return List(root, extra...)
})

func TestRepository(t *testing.T) {
	found, err := mustTree(t).Check()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found {
		if r, err := filepath.Rel(absolute(t), f.Pos.Filename); err == nil {
			f.Pos.Filename = r
		}
		t.Error(f)
	}
}

// TestNothingIsForgotten: a pattern that matches no package judges nothing.
func TestNothingIsForgotten(t *testing.T) {
	for _, p := range pure {
		if !slices.ContainsFunc(mustTree(t).packages, func(l listed) bool { ok, _ := path.Match(p, rel(l.ImportPath)); return ok }) {
			t.Errorf("no package matches %s: it was moved, and nothing judges it", p)
		}
	}
}

func TestShippedBinaries(t *testing.T) {
	for _, cmd := range shipped {
		t.Run(cmd, func(t *testing.T) {
			bad, built := mustTree(t).Linked(cmd)
			if !built {
				t.Skip("not built yet")
			}
			for _, p := range bad {
				t.Errorf("%s links %s: go list -deps ./%s shows the way; mutants, fakes and client-go stay off nodes", cmd, p, cmd)
			}
		})
	}
}

// TestLinkedIsSeen: the rule about shipped binaries finds what is far away.
func TestLinkedIsSeen(t *testing.T) {
	fake := &Tree{packages: []listed{{ImportPath: Module + "/cmd/ipamd",
		Deps: []string{"fmt", Module + "/impl/ipam", Module + "/sim/mutants", Module + "/fakes/ec2", "k8s.io/client-go/rest"}}}}
	bad, built := fake.Linked("cmd/ipamd")
	if want := []string{Module + "/sim/mutants", Module + "/fakes/ec2", "k8s.io/client-go/rest"}; !built || !slices.Equal(bad, want) {
		t.Errorf("linked: found %v, expected %v", bad, want)
	}
	if _, built := fake.Linked("cmd/aws-cni"); built {
		t.Error("a command that is not there was found")
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
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
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
	doc, err := os.ReadFile(filepath.Join(root, "docs", "incidents.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string][]string{}
	for line := range strings.Lines(string(doc)) {
		rest, ok := strings.CutPrefix(line, "| [")
		if name, row, found := strings.Cut(rest, "](../scenarios/"); ok && found {
			rows[name] = append(rows[name], row)
		}
	}
	return rows
}

func mustTree(t *testing.T) *Tree {
	t.Helper()
	tr, err := tree()
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func absolute(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// judge judges a snippet as if it were a package of the module.
func judge(t *testing.T, pkg, src string) []Finding {
	t.Helper()
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, "x.go", "package x\n"+src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	p := &Package{Rel: pkg, Fset: fset, Files: []*ast.File{f}}
	c := &checker{Package: p}
	c.imports()
	if len(c.found) > 0 { // what may not be imported has no export data here
		return c.found
	}
	if err := p.check(Module+"/"+pkg, mustTree(t).importer); err != nil {
		t.Fatal(err)
	}
	c.bodies()
	return c.found
}
