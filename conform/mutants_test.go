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

// mutate is a file of the fakes with a mutation.
func (m *Mutation) mutate() (*mutation.Mutant, error) {
	return mutation.Change(*m).Apply(filepath.Join("..", "fakes"))
}

// TestMutationsApply: every row has a mutation whose old text is in the fakes exactly once.
func TestMutationsApply(t *testing.T) {
	for _, r := range table() {
		if r.Mutation == (Mutation{}) {
			t.Errorf("%s: it names no mutation that makes it fail", r.Name)
		} else if _, err := r.Mutation.mutate(); err != nil {
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
		if _, err := r.Mutation.mutate(); err != nil || len(wanted) > 0 && !slices.Contains(wanted, r.Name) {
			continue // what does not apply is TestMutationsApply's
		}
		if rows[r.Mutation] == nil {
			order = append(order, r.Mutation)
		}
		rows[r.Mutation] = append(rows[r.Mutation], r.Name)
	}
	together := map[int]Mutation{}
	var set mutation.Set
	for n, m := range order {
		mutant, err := m.mutate()
		if err != nil {
			t.Fatal(err)
		}
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
		mutant, err := m.mutate()
		if err != nil {
			t.Fatal(err)
		}
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
	if _, err := mutation.BuildTest(ctx, dir, ".", ".", binary, files); err != nil {
		t.Fatal(err)
	}
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
