package gate

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestManual: docs/gate.md has the plays and the bands that there are.
func TestManual(t *testing.T) {
	data := must.Get(os.ReadFile("../docs/gate.md"))(t)
	between := func(what string) string {
		_, rest, found := strings.Cut(string(data), "<!-- "+what+": checked by gate -->\n")
		table, _, ended := strings.Cut(rest, "<!-- end -->")
		if !found || !ended {
			t.Fatalf("docs/gate.md has no table of %s", what)
		}
		return table
	}
	want := "| Play | |\n|---|---|\n"
	for _, p := range Plays() {
		want += fmt.Sprintf("| `%s` | %s |\n", p, p.Doc())
	}
	if got := between("plays"); got != want {
		t.Errorf("docs/gate.md: %s\nexpected: %s", got, want)
	}
	want = "| Figure | may become dearer by | and by at least |\n|---|---|---|\n"
	for _, b := range append(Bands(), callsBand("each action"), errorsBand("each code")) {
		want += fmt.Sprintf("| %s | %.0f %% | %s |\n", b.Name, 100*b.Share, strings.TrimSpace(fmt.Sprintf("%.4g %s", b.Slack, b.Unit)))
	}
	if got := between("bands"); got != want {
		t.Errorf("docs/gate.md: %s\nexpected: %s", got, want)
	}
}
