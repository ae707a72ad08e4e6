package purity

import (
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// texts are the repository's files by name, but for what is built and what comes from elsewhere.
func texts(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	must.Do(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, p)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "bin" || name == ".git" || name == ".enilab"):
			return fs.SkipDir
		case !d.Type().IsRegular() || strings.HasSuffix(name, ".test"):
			return nil
		}
		data, err := os.ReadFile(p)
		out[name] = string(data)
		return err
	}))
	return out
}

// TestNeighbours: the repository knows variables, and .ci/run alone what may be beside its checkout.
func TestNeighbours(t *testing.T) {
	neighbour := strings.Join([]string{"..", "shared"}, "/")
	for name, text := range texts(t) {
		if strings.Contains(text, neighbour+"/") && name != ".ci/run" {
			t.Errorf("%s mentions %s: let .ci/run look there, and set a variable", name, neighbour)
		}
	}
}

var (
	budgeted = regexp.MustCompile(`(?m)^\t+(?:step|with "\$\w+"|last) (\w+) (\d+) `)
	planned  = regexp.MustCompile(`(?m)^(usual|full)\w*\(\) \{\n((?:\t.*\n)+)\}`)
	variable = regexp.MustCompile(`(?:Getenv|LookupEnv)\("((?:ENILAB|KIND)_\w+)"\)|\b\w+ *= "(ENILAB_\w+)"`)
)

// TestBudgets: the steps of .ci/run and .ci/full, and their budgets, are those of the table in docs/testing.md.
func TestBudgets(t *testing.T) {
	files := texts(t)
	found := map[string]string{}
	for _, plan := range planned.FindAllStringSubmatch(files[".ci/run"], -1) {
		for _, s := range budgeted.FindAllStringSubmatch(plan[2], -1) {
			found[plan[1]+" "+s[1]] = s[2]
		}
	}
	if len(found) < 10 {
		t.Fatalf(".ci/run has %d steps: %v; this test does not know any more how they are written", len(found), found)
	}
	expected := map[string]string{}
	_, table, _ := strings.Cut(files["docs/testing.md"], "| step |")
	table, _, _ = strings.Cut(table, "\n\n")
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 7 || strings.Contains(line, "---") || strings.HasPrefix(line, " ") {
			continue
		}
		for plan, at := range map[string]int{"usual": 3, "full": 5} {
			if minutes := strings.TrimSpace(cells[at]); minutes != "" {
				expected[plan+" "+strings.TrimSpace(cells[1])] = minutes
			}
		}
	}
	steps := maps.Clone(found)
	maps.Copy(steps, expected)
	for _, step := range slices.Sorted(maps.Keys(steps)) {
		if found[step] != expected[step] {
			t.Errorf("%s: .ci/run gives it %q minutes, the table in docs/testing.md %q", step, found[step], expected[step])
		}
	}
}

// TestVariables: every variable that the project reads is in docs/testing.md, or, if it is the daemon's, in docs/ipamd.md.
func TestVariables(t *testing.T) {
	files := texts(t)
	docs := files["docs/testing.md"] + files["docs/ipamd.md"]
	read := 0
	for name, text := range files {
		if !strings.HasSuffix(name, ".go") {
			continue
		}
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			v := fmt.Sprint(m[1], m[2])
			if read++; v != "" && !strings.Contains(docs, "`"+v+"`") {
				t.Errorf("%s reads %s, which is in neither docs/testing.md nor docs/ipamd.md", name, v)
			}
		}
	}
	if read < 15 {
		t.Errorf("%d variables are read: this test does not know any more how", read)
	}
}
