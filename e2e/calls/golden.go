package calls

import (
	"embed"
	"fmt"
	"path"
	"strings"
)

// testdata are the golden texts, NAME.golden, and where chance decides between several, NAME.2.golden and so on. They were recorded
// by e2e/calls/record, together with the recordings that they tell, with kubelet 1.34.2 and containerd 2.1.5.
//
//go:embed testdata/*.golden
var testdata embed.FS

// Goldens are the texts that a life may have; none when nobody has recorded it.
func Goldens(life string) (texts []string) {
	for n := 1; ; n++ {
		name := life + ".golden"
		if n > 1 {
			name = fmt.Sprintf("%s.%d.golden", life, n)
		}
		raw, err := testdata.ReadFile(path.Join("testdata", name))
		if err != nil {
			return texts
		}
		texts = append(texts, string(raw))
	}
}

// Differs compares the text of a life with what it may be. It is empty when it is one of them, else the difference from the one that is
// closest.
func Differs(life, got string) string {
	best := ""
	for _, golden := range Goldens(life) {
		d := Compare(golden, got)
		if d == "" {
			return ""
		}
		if best == "" || changes(d) < changes(best) {
			best = d
		}
	}
	if best == "" {
		return fmt.Sprintf("life %s was never recorded: go run ./e2e/calls/record -lives '^%s$' makes its golden text", life, life)
	}
	return best
}

// changes counts the lines that only one side has.
func changes(diff string) (n int) {
	for l := range strings.Lines(diff) {
		if strings.HasPrefix(l, "-") || strings.HasPrefix(l, "+") {
			n++
		}
	}
	return n
}
