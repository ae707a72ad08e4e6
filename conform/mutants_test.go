package conform

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/internal/mutation"
)

// sample are the rows whose mutants every test run tries: spread over calls, and over the packages of the fakes.
var sample = []string{
	"protocol.unknown-parameter", "create.primary-in-use", "create.prefix", "delete.in-use", "attach.too-many", "detach.primary", "assign.again",
	"unassign.all-or-none", "describe.pages", "tags.one-unknown", "throttle.attach",
	"token.zero", "read.no-token", "macs.local-ipv4s", "iam.credentials",
}

// table are both tables.
func table() []Row { return append(EC2Rows(), IMDSRows()...) }

const root = ".."

// mutations are the changes of the fakes that make rows fail, by row.
func mutations(t *testing.T) map[string]mutation.Change {
	t.Helper()
	all := must.Get(mutation.ReadPatches(filepath.Join("testdata", "mutations")))(t)
	out := map[string]mutation.Change{}
	for _, p := range all {
		if _, twice := out[p.Test]; twice {
			t.Errorf("testdata/mutations/%s.txt: %s has a mutation already", p.Name, p.Test)
		}
		out[p.Test] = p.Change
	}
	return out
}

// TestMutationsApply: every row has one mutation, which names a row and whose old text is in the fakes exactly once.
func TestMutationsApply(t *testing.T) {
	unused := mutations(t)
	for _, r := range table() {
		m, ok := unused[r.Name]
		if !ok {
			t.Errorf("%s: testdata/mutations has no mutation that makes it fail", r.Name)
		} else if _, err := m.Apply(root); err != nil {
			t.Errorf("%s: its mutation: %v", r.Name, err)
		}
		delete(unused, r.Name)
	}
	for _, name := range slices.Sorted(maps.Keys(unused)) {
		t.Errorf("testdata/mutations: %s is no row", name)
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
	all := mutations(t)
	rows := map[mutation.Change][]string{} // what several rows name is built once
	var order []mutation.Change
	for _, r := range table() {
		m := all[r.Name]
		if _, err := m.Apply(root); err != nil || len(wanted) > 0 && !slices.Contains(wanted, r.Name) {
			continue // what does not apply is TestMutationsApply's
		}
		if rows[m] == nil {
			order = append(order, m)
		}
		rows[m] = append(rows[m], r.Name)
	}
	together := map[int]mutation.Change{}
	var set mutation.Set
	for n, m := range order {
		mutant := must.Get(m.Apply(root))(t)
		if ok, err := set.Add(n+1, mutant); err != nil {
			t.Fatal(err)
		} else if ok {
			together[n+1] = m
		}
	}
	binary := build(t, set.Overlay())
	judged := 0
	for _, n := range slices.Sorted(maps.Keys(together)) {
		judged++
		red(t, binary, rows[together[n]], fmt.Sprintf("%s=%d", mutation.Env, n))
	}
	for n, m := range order {
		if _, ok := together[n+1]; ok {
			continue
		}
		mutant := must.Get(m.Apply(root))(t)
		judged++
		red(t, build(t, mutant.Alone()), rows[m], "")
	}
	t.Logf("%d mutants of %d rows, %d of them in one binary", judged, len(table()), len(together))
}

// build builds this package's tests with some files of the fakes replaced.
func build(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "mutant.test")
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	must.Get(mutation.BuildTest(ctx, dir, ".", ".", binary, files))(t)
	return binary
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
