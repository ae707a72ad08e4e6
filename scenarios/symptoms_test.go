package scenarios

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestSymptoms: each symptom names scenarios that there are, nothing is listed twice, and README.md has the table.
func TestSymptoms(t *testing.T) {
	var table strings.Builder
	table.WriteString("| What is seen | Scenarios |\n|---|---|\n")
	seen := map[string]bool{}
	for _, s := range Symptoms() {
		if seen[s.Seen] || s.Seen == "" || len(s.Scenarios) == 0 {
			t.Errorf("%q is listed twice, or names no scenario", s.Seen)
		}
		seen[s.Seen] = true
		var links []string
		for _, name := range s.Scenarios {
			if _, err := Files.ReadFile(name + ".scn"); err != nil {
				t.Errorf("%q names %s, and there is no such scenario: %v", s.Seen, name, err)
			}
			links = append(links, fmt.Sprintf("[%s](scenarios/%[1]s.scn)", name))
		}
		fmt.Fprintf(&table, "| %s | %s |\n", s.Seen, strings.Join(links, ", "))
	}
	readme := must.Get(os.ReadFile(filepath.Join("..", "README.md")))(t)
	_, found, _ := strings.Cut(string(readme), "<!-- symptoms: checked by scenarios -->\n")
	found, _, _ = strings.Cut(found, "<!-- end -->")
	if found != table.String() {
		t.Errorf("README.md: expected between its marks\n%sfound\n%s", table.String(), found)
	}
}

// TestFindSymptoms: all words count, their case does not, and one that is nearly right is found.
func TestFindSymptoms(t *testing.T) {
	for _, c := range []struct{ words, first string }{
		{"failed to assign an IP address to container", "subnet-exhausted"},
		{"containercreating AWS-NODE restarted", "upgrade"},
		{"ContainerCraeting restarted", "upgrade"},
		{"enis available", "eni-leak"},
		{"no route to host restarted", "socket-mismatch"},
		{"requestlimitexceeded", "fleet-burst"},
		{"UnauthorizedOperation:", "least-privilege"},
		{"force-delete", "force-delete"},
		{"efa", "hands-off"},
		{"", "subnet-exhausted"},
		{"container zebra", ""},
		{"xyz", ""},
	} {
		found := FindSymptoms(strings.Fields(c.words))
		first := ""
		if len(found) > 0 {
			first = found[0].Scenarios[0]
		}
		if first != c.first {
			t.Errorf("%q: expected %q first, found %v", c.words, c.first, found)
		}
	}
	if all := FindSymptoms(nil); len(all) != len(Symptoms()) {
		t.Errorf("no words: expected all, found %d", len(all))
	}
	if found := FindSymptoms([]string{"no route to host"}); !slices.ContainsFunc(found, func(s Symptom) bool { return s.Scenarios[0] == "drift" }) {
		t.Errorf("one quoted phrase: found %v", found)
	}
}
