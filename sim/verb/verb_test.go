package verb_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/verb"
)

// TestVerbsAreComplete: every verb does something, says what, and has a key of its own; what nobody survives has a
// reason.
func TestVerbsAreComplete(t *testing.T) {
	var keys []string
	for _, v := range verb.All() {
		if slices.Contains(keys, v.Key()) {
			t.Errorf("two verbs have the key %q", v.Key())
		}
		keys = append(keys, v.Key())
		if v.Strike == nil || v.Doc == "" || len(v.On) == 0 {
			t.Errorf("%s: it lacks Strike, Doc or On", v.Key())
		}
		for _, s := range []verb.Survival{v.Survives, v.AnyCNI} {
			if s.Never && s.Why == "" {
				t.Errorf("%s: it is not survived, and nobody says why", v.Key())
			}
		}
		if v.Survives.Never && v.AnyCNI.Why != "" {
			t.Errorf("%s: no CNI survives it, which is said already", v.Key())
		}
		for _, s := range v.Skips {
			if s.Why == "" || !strings.HasPrefix(s.Line, v.Name) {
				t.Errorf("%s: a skip of %q, because %q", v.Key(), s.Line, s.Why)
			}
		}
	}
}

// docs/skips.md has the table of skips, in its own order.
func TestSkipsManual(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/skips.md"))(t)
	var rows []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[2], "`") {
			rows = append(rows, strings.TrimSpace(cells[1])+"|"+strings.Trim(cells[2],
				" `")+"|"+strings.TrimSpace(cells[3]))
		}
	}
	var want []string
	for _, s := range sim.Skips() {
		want = append(want, s.World+"|"+s.Line+"|"+s.Why)
	}
	slices.Sort(rows)
	slices.Sort(want)
	if !slices.Equal(rows, want) {
		t.Errorf("docs/skips.md has\n%s\nand the code\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}
