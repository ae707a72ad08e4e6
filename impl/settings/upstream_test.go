package settings

import (
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// upstreamVariable names a folder with the source of amazon-vpc-cni-k8s, and update writes what it asks the environment for.
const upstreamVariable = "ENILAB_UPSTREAM"

var update = flag.Bool("update", false, "write testdata/upstream.txt anew")

const upstreamList = "testdata/upstream.txt"

// TestUpstreamList: the list of upstream's settings is what is in its README and what its source asks the environment for.
func TestUpstreamList(t *testing.T) {
	dir := os.Getenv(upstreamVariable)
	if dir == "" {
		t.Skipf("set %s to a folder with the source of amazon-vpc-cni-k8s", upstreamVariable)
	}
	names := map[string]bool{}
	readme := must.Get(os.ReadFile(filepath.Join(dir, "README.md")))(t)
	for _, m := range regexp.MustCompile("(?m)^#+ `([A-Za-z0-9_]+)`").FindAllSubmatch(readme, -1) {
		names[string(m[1])] = true
	}
	for _, folder := range []string{"cmd", "pkg", "utils"} {
		must.Do(t, filepath.WalkDir(filepath.Join(dir, folder), func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.IsDir() {
				for name := range asked(t, path) {
					names[name] = true
				}
			}
			return err
		}))
	}
	text := strings.Join(slices.Sorted(maps.Keys(names)), "\n") + "\n"
	if *update {
		must.Do(t, os.WriteFile(upstreamList, []byte(text), 0o644))
	}
	if have, err := os.ReadFile(upstreamList); err != nil || string(have) != text {
		t.Errorf("%s is another list (-update writes it): %v\n%s", upstreamList, err, text)
	}
}

// environment is how a variable is named.
var environment = regexp.MustCompile(`^[A-Z][A-Za-z0-9_]{3,}$`)

// asked are the names that a package's functions are given which read the environment: those with "env" in their own names. A name is a literal, or a
// constant of the package or of another one that it names.
func asked(t *testing.T, dir string) map[string]bool {
	files := must.Get(filepath.Glob(filepath.Join(dir, "*.go")))(t)
	constants, names := map[string]string{}, map[string]bool{}
	var parsed []*ast.File
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f := must.Get(parser.ParseFile(token.NewFileSet(), path, nil, 0))(t)
		parsed = append(parsed, f)
		ast.Inspect(f, func(n ast.Node) bool {
			if v, ok := n.(*ast.ValueSpec); ok {
				for i, id := range v.Names {
					if i < len(v.Values) {
						constants[id.Name] = literal(v.Values[i])
					}
				}
			}
			return true
		})
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			c, ok := n.(*ast.CallExpr)
			if !ok || !strings.Contains(strings.ToLower(called(c.Fun)), "env") {
				return true
			}
			for _, arg := range c.Args {
				name := literal(arg)
				if id, ok := arg.(*ast.Ident); ok {
					name = constants[id.Name]
				}
				if environment.MatchString(name) {
					names[name] = true
				}
			}
			return true
		})
	}
	return names
}

func called(f ast.Expr) string {
	switch f := f.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	}
	return ""
}

func literal(e ast.Expr) string {
	if b, ok := e.(*ast.BasicLit); ok && b.Kind == token.STRING {
		if s, err := strconv.Unquote(b.Value); err == nil {
			return s
		}
	}
	return ""
}

// helpers are what only cni-metrics-helper asks for, a program of its own that stays upstream's.
var helpers = []string{"AWS_CLUSTER_ID", "Debug", "METRIC_UPDATE_INTERVAL", "USE_CLOUDWATCH", "USE_PROMETHEUS"}

// elsewhere are what others than this package read: impl/cloud. And VPC_CNI_VERSION only goes into upstream's User-Agent.
var elsewhere = []string{"AWS_EC2_ENDPOINT", "AWS_REGION", "VPC_CNI_VERSION"}

// values are tried until one has an effect.
var values = []string{"true", "false", "0", "1", "7", "1500", "abc", "/tmp/abc", "10.9.0.0/16", `{"a":"b"}`, "standard", "debug", "https://10.0.0.1", "127.0.0.1:1", "ERROR", "hashrandom", "0x100"}

// TestUpstreamSettings: each of upstream's settings changes ours, or something is said about it. None is accepted in silence. What
// comes of each is shown by TestUpstreamEffects of impl/daemon.
func TestUpstreamSettings(t *testing.T) {
	list := must.Get(os.ReadFile(upstreamList))(t)
	names := strings.Fields(string(list))
	if len(names) < 60 {
		t.Errorf("the list has %d names", len(names))
	}
	read := func(name, value string) (Settings, []Problem) {
		s, problems := Read(func(n string) (string, bool) { return value, n == name && name != "" })
		s.Values = nil
		return *s, problems
	}
	plain, said := read("", "")
	for _, name := range names {
		if slices.Contains(helpers, name) || slices.Contains(elsewhere, name) {
			continue
		}
		if !slices.ContainsFunc(values, func(v string) bool {
			s, problems := read(name, v)
			wrong := func(p Problem) bool { return strings.HasPrefix(p.Text, `"`) && strings.Contains(p.Text, "expected") } // as any value of another form
			return !slices.ContainsFunc(problems, wrong) && (!reflect.DeepEqual(s, plain) || len(problems) > len(said))
		}) {
			t.Errorf("%s is accepted in silence", name)
		}
	}
}
