package pipeline

import (
	"fmt"
	"strings"
	"testing"

	verdicts "github.com/enilab/enilab/sim/runner"
)

// TestExitCodes: docs/ci.md has every exit code with its meaning, and the action a word for each.
func TestExitCodes(t *testing.T) {
	var table strings.Builder
	table.WriteString("| exit code | verdict | what it says |\n|---|---|---|\n")
	action := string(read(t, root+"/action.yml"))
	for _, m := range verdicts.Meanings() {
		fmt.Fprintf(&table, "| %d | %s | %s |\n", m.Exit, m.Word, m.Doc)
		if !strings.Contains(action, fmt.Sprintf("\n          %d) verdict=", m.Exit)) {
			t.Errorf("action.yml has no verdict for exit code %d, %s", m.Exit, m.Word)
		}
	}
	_, found, _ := strings.Cut(string(read(t, root+"/docs/ci.md")), "<!-- exit codes: checked by internal/pipeline -->\n")
	found, _, _ = strings.Cut(found, "<!-- end -->")
	if found != table.String() {
		t.Errorf("docs/ci.md: expected between its marks\n%sfound\n%s", table.String(), found)
	}
}
