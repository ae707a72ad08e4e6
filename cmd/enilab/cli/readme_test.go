package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
)

// TestDemoFigures: README.md says how many incidents and mutants make demo replays: as many as there are.
func TestDemoFigures(t *testing.T) {
	cases := must.Get(embedded(runner.Sim()))(t)
	kernel, proofs := 0, 0
	onIt := must.Get(embedded(netnsworld.Place(netnsworld.Parts{})))(t)
	for i, c := range cases {
		proofs += len(c.Against)
		if (&stage{cases: onIt, some: onKernel}).plays(i) {
			kernel++
			proofs += len(onIt[i].Against)
		}
	}
	if kernel != len(onKernel) {
		t.Errorf("a demonstration plays %q on a kernel, of which %d exist", onKernel, kernel)
	}
	want := fmt.Sprintf("`make demo` replays %d incidents in virtual time and %d of them on this machine's kernel, with %d mutants", len(cases), kernel, proofs)
	readme := must.Get(os.ReadFile(filepath.Join("..", "..", "..", "README.md")))(t)
	if !strings.Contains(string(readme), want) {
		t.Errorf("README.md: expected %q, found %q", want, regexp.MustCompile("`make demo` replays .*? mutants").Find(readme))
	}
}

// TestRunsInTheManual: what docs/scenarios.md shows of runs is what they say, but for where lines are wrapped.
func TestRunsInTheManual(t *testing.T) {
	data := must.Get(os.ReadFile(filepath.Join("..", "..", "..", "docs", "scenarios.md")))(t)
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	manual := words(string(data))
	_, roll, found := strings.Cut(string(data), "```\n# A deployment of 12")
	if roll, _, _ = strings.Cut(roll, "```"); !found {
		t.Fatal("docs/scenarios.md has no roll.scn any more")
	}
	t.Chdir(filepath.Join("..", "..", "..")) // files are named as from there
	file := filepath.Join(t.TempDir(), "roll.scn")
	must.Do(t, os.WriteFile(file, []byte("# A deployment of 12"+roll), 0o644))
	incident := "scenarios/socket-mismatch.scn"
	for _, args := range [][]string{{incident}, {incident, "--against", "recover-from-runtime-only"}, {file}} {
		_, out, errs := enilab(t, append([]string{"run"}, args...)...)
		out = regexp.MustCompile("(?m)^also .*\n").ReplaceAllString(out, "") // the other variants
		if out == "" || !strings.Contains(manual, words(out)) {
			t.Errorf("docs/scenarios.md shows another %v:\n%s%s", args, out, errs)
		}
	}
}
