package conform

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sample are the rows whose mutants every test run tries: spread over calls, and over the packages of the fakes.
var sample = []string{
	"protocol.unknown-parameter", "create.primary-in-use", "create.prefix", "delete.in-use", "attach.too-many", "detach.primary", "assign.again",
	"unassign.all-or-none", "describe.pages", "tags.one-unknown", "throttle.attach",
	"token.zero", "read.no-token", "macs.local-ipv4s", "iam.credentials",
}

// table are both tables.
func table() []Row { return append(EC2Rows(), IMDSRows()...) }

// mutate is a file of the fakes with a mutation.
func (m *Mutation) mutate() (path, was, now string, err error) {
	path, err = filepath.Abs(filepath.Join("..", "fakes", filepath.FromSlash(m.File)))
	if err != nil {
		return "", "", "", err
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return path, "", "", err
	}
	if n := strings.Count(string(data), m.Old); n != 1 {
		return path, "", "", fmt.Errorf("expected its old text once, found it %d times: %s", n, m.Old)
	}
	now = strings.Replace(string(data), m.Old, m.New, 1)
	_, err = parser.ParseFile(token.NewFileSet(), path, now, parser.SkipObjectResolution)
	return path, string(data), now, err
}

// TestMutationsApply: every row has a mutation whose old text is in the fakes exactly once.
func TestMutationsApply(t *testing.T) {
	for _, r := range table() {
		if r.Mutation == (Mutation{}) {
			t.Errorf("%s: it names no mutation that makes it fail", r.Name)
		} else if _, _, _, err := r.Mutation.mutate(); err != nil {
			t.Errorf("%s: its mutation of %s: %v", r.Name, r.Mutation.File, err)
		}
	}
}

// TestMutants: a row that its mutation does not turn red would pass whatever the fake does. With ENILAB_CONFORM_MUTANTS=all every row is
// tried (make conform-mutants), with names those rows, otherwise the sample.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("builds binaries of the mutants")
	}
	wanted := sample
	switch names := os.Getenv("ENILAB_CONFORM_MUTANTS"); names {
	case "":
	case "all":
		wanted = nil
	default:
		wanted = strings.Split(names, ",")
	}
	rows := map[Mutation][]string{} // what several rows name is built once
	var order []Mutation
	for _, r := range table() {
		if _, _, _, err := r.Mutation.mutate(); err != nil || len(wanted) > 0 && !slices.Contains(wanted, r.Name) {
			continue // what does not apply is TestMutationsApply's
		}
		if rows[r.Mutation] == nil {
			order = append(order, r.Mutation)
		}
		rows[r.Mutation] = append(rows[r.Mutation], r.Name)
	}
	together := map[int]Mutation{}
	files := map[string]*switched{}
	for n, m := range order {
		path, was, now, err := m.mutate()
		if err == nil && files[path] == nil {
			files[path], err = newSwitched(was)
		}
		if err != nil {
			t.Fatal(err)
		}
		if files[path].add(n+1, now) {
			together[n+1] = m
		}
	}
	overlay := map[string]string{}
	for path, s := range files {
		overlay[path] = s.source()
		overlay[filepath.Join(filepath.Dir(path), "conform_mutant.go")] = fmt.Sprintf(chosenSource, s.file.Name.Name)
	}
	binary := build(t, overlay)
	judged := 0
	for _, n := range slices.Sorted(maps.Keys(together)) {
		judged++
		red(t, binary, rows[together[n]], fmt.Sprintf("ENILAB_CONFORM_MUTANT=%d", n))
	}
	for n, m := range order {
		if _, ok := together[n+1]; ok {
			continue
		}
		path, _, now, err := m.mutate()
		if err != nil {
			t.Fatal(err)
		}
		judged++
		red(t, build(t, map[string]string{path: now}), rows[m], "")
	}
	t.Logf("%d mutants of %d rows, %d of them in one binary", judged, len(table()), len(together))
}

// build builds this package's tests with some files of the fakes replaced.
func build(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	replace := map[string]string{}
	for path, text := range files {
		replace[path] = filepath.Join(dir, fmt.Sprintf("mutant%d.go", len(replace)))
		if err := os.WriteFile(replace[path], []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	spec, err := json.Marshal(map[string]any{"Replace": replace})
	overlay, binary := filepath.Join(dir, "overlay.json"), filepath.Join(dir, "mutant.test")
	if err = errors.Join(err, os.WriteFile(overlay, spec, 0o600)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-gcflags=-e", "-overlay", overlay, "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("the mutants do not build: %v\n%s", err, quoted(string(out), dir))
	}
	return binary
}

// quoted is what the compiler said, with the lines that it is about.
func quoted(out, dir string) string {
	var b strings.Builder
	for line := range strings.SplitSeq(out, "\n") {
		b.WriteString(line + "\n")
		part := strings.Split(line, ":")
		if data, err := os.ReadFile(filepath.Join(dir, filepath.Base(part[0]))); err == nil && len(part) > 2 {
			if n, err := strconv.Atoi(part[1]); err == nil {
				lines := strings.Split(string(data), "\n")
				b.WriteString("\t" + strings.Join(lines[max(0, n-6):min(n+3, len(lines))], "\n\t") + "\n")
			}
		}
	}
	return b.String()
}

// red fails for each row that a mutant leaves green.
func red(t *testing.T, binary string, rows []string, env string) {
	t.Helper()
	for _, name := range rows {
		test := "^TestEC2$"
		if slices.ContainsFunc(IMDSRows(), func(r Row) bool { return r.Name == name }) {
			test = "^TestIMDS$"
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		c := exec.CommandContext(ctx, binary, "-test.run", test, "-test.timeout", "1m")
		c.Env = append(os.Environ(), "ENILAB_CONFORM_ROWS="+name, env)
		out, err := c.CombinedOutput()
		cancel()
		if err == nil || !bytes.Contains(out, []byte(": "+name+": differs: ")) {
			t.Errorf("%s: expected the mutant to turn it red, found:\n%s", name, out)
		}
	}
}
