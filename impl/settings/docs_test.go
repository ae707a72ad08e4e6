package settings

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestManual: the table in docs/ipamd.md has every variable with its default and no other, and says of a switch whose other position
// stops the node that this is not there yet.
func TestManual(t *testing.T) {
	text := must.Get(os.ReadFile("../../docs/ipamd.md"))(t)
	_, table, ok := strings.Cut(string(text), "<!-- settings:")
	table, _, end := strings.Cut(table, "<!-- end of settings -->")
	if !ok || !end {
		t.Fatal("docs/ipamd.md has no table of settings between its marks")
	}
	type row struct{ standard, effect string }
	rows := map[string]row{}
	for _, m := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (unset|`[^`]*`) \\| (.+) \\|$").FindAllStringSubmatch(table, -1) {
		rows[m[1]] = row{strings.Trim(strings.TrimPrefix(m[2], "unset"), "`"), m[3]}
	}
	if lines := strings.Count(table, "\n| `"); lines != len(rows) {
		t.Errorf("%d lines of the table are %d variables", lines, len(rows))
	}
	for _, v := range variables() {
		r, ok := rows[v.name]
		if !ok {
			t.Errorf("%s is not in docs/ipamd.md", v.name)
			continue
		}
		delete(rows, v.name)
		if r.standard != v.standard {
			t.Errorf("docs/ipamd.md says that %s is %q unless it is set; it is %q", v.name, r.standard, v.standard)
		}
		if missing := stops(v); missing != strings.Contains(r.effect, "not there yet") && (v.standard == "true" || v.standard == "false") {
			t.Errorf("docs/ipamd.md says of %s %q; its other position stops the node: %v", v.name, r.effect, missing)
		}
	}
	for name := range rows {
		t.Errorf("docs/ipamd.md has %s, which is no setting", name)
	}
}

// stops says whether a switch's other position stops the node.
func stops(v variable) bool {
	other := map[string]string{"true": "false", "false": "true"}[v.standard]
	if other == "" {
		return false
	}
	_, problems := Read(func(name string) (string, bool) { return other, name == v.name })
	for _, p := range problems {
		if p.Variable == v.name && p.Stops {
			return true
		}
	}
	return false
}
