package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
)

// TestDemoFigures: README.md says how many incidents and mutants make demo replays: as many as there are.
func TestDemoFigures(t *testing.T) {
	cases, err := embedded(runner.Sim())
	if err != nil {
		t.Fatal(err)
	}
	kernel, proofs := 0, 0
	onIt, err := embedded(netnsworld.Place(netnsworld.Parts{}))
	if err != nil {
		t.Fatal(err)
	}
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
	readme, err := os.ReadFile(filepath.Join("..", "..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), want) {
		t.Errorf("README.md: expected %q, found %q", want, regexp.MustCompile("`make demo` replays .*? mutants").Find(readme))
	}
}
