package cli

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestBuiltin: a scenario that comes with enilab is found by its name where there is no such file, and a file comes first.
func TestBuiltin(t *testing.T) {
	in(t, nil)
	checkEndings(t, []ending{
		{"run drift --seed 2", 0, "held  drift  "},
		{"run drift.scn", 0, "held  drift  "},
		{"run scenarios/drift.scn", 0, "held  drift  "},
		{"run ./scenarios/drift --seeds 1-2", 0, "held  drift  "},
		{"demo drift", 0, "all held: 1 incident"},
		{"record drift", 0, "drift-node-1.rec: node-1, life"},
		{"run elsewhere/drift.scn", 2, "elsewhere/drift.scn: there is no such file (did you mean drift, which comes with enilab?)"},
		{"run drfit", 2, "drfit: there is no such file (did you mean drift, which comes with enilab?)"},
		{"run nothing-like-it", 2, "nothing-like-it: there is no such file (nothing in . has such a name)"},
		{"run drift --update", 2, "--update writes the timeline into the scenario's file, and there is no file drift"},
		{"symptoms no ROUTE to host vanished", 0, "to see the first one: enilab run drift"},
		{"symptoms", 0, "subnet-exhausted"},
		{"symptoms zebra", 2, "no symptom has all of these words: zebra"},
		{"shrink drift", 2, "shrink drift: it holds with seed 1"},
		{"shrink scenarios/drift.scn -o scenarios/drift.scn", 2, "would write over the scenario itself"},
	})
	must.Do(t, os.WriteFile("drift.scn", []byte(calm), 0o644))
	if code, out, errs := enilab(t, "run", "drift.scn"); code != 0 || !strings.Contains(out, "1 variant, 1 expectation judged") {
		t.Errorf("a file of that name comes first: exit code %d: %s%s", code, out, errs)
	}
	if names := builtinNames(); !slices.Contains(names, "socket-mismatch") || !slices.Contains(names, "change") {
		t.Errorf("expected socket-mismatch and change among the scenarios that come with enilab, found %v", names)
	}
}

// TestBuiltinNames: a bare name means one scenario.
func TestBuiltinNames(t *testing.T) {
	names := builtinNames()
	slices.Sort(names)
	if distinct := slices.Compact(slices.Clone(names)); len(distinct) != len(names) {
		t.Errorf("two scenarios that come with enilab have one name: %v", names)
	}
}
