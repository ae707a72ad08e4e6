package actions

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
)

// Every verb of the cloud and of the API server has a handler on the models, and every handler is a verb's.
func TestVerbsOnModels(t *testing.T) {
	var have []verb
	for v := range cloudVerbs {
		have = append(have, v)
	}
	for v := range apiVerbs {
		have = append(have, v)
	}
	for _, v := range sim.Verbs() {
		for _, k := range v.On {
			on := verb{k, v.Name}
			switch k {
			case scn.EC2, scn.IMDS, scn.Kube:
				if !slices.Contains(have, on) {
					t.Errorf("%s: no handler", v.Name)
				}
			}
			have = slices.DeleteFunc(have, func(x verb) bool { return x == on })
		}
	}
	if len(have) > 0 {
		t.Errorf("handlers of no verb: %v", have)
	}
}

// A table with a hole, and one with something over, are told.
func TestGaps(t *testing.T) {
	var node, pod []string
	for _, v := range sim.Verbs() {
		if slices.Contains(v.On, scn.Node) {
			node = append(node, v.Name)
		}
		if slices.Contains(v.On, scn.Pod) {
			pod = append(pod, v.Name)
		}
	}
	if gaps := Gaps("sim", node, pod); len(gaps) > 0 {
		t.Errorf("a whole table: %q", gaps)
	}
	for name, gaps := range map[string][]string{
		"kill":  Gaps("sim", slices.DeleteFunc(slices.Clone(node), func(s string) bool { return s == "kill" }), pod),
		"dance": Gaps("sim", append(slices.Clone(node), "dance"), pod),
		"gc":    Gaps("kind", node, pod), // it is skipped there
	} {
		if !slices.ContainsFunc(gaps, func(s string) bool { return strings.HasPrefix(s, name) }) {
			t.Errorf("%s is not told: %q", name, gaps)
		}
	}
}

// docs/skips.md has the table of skips, row by row.
func TestSkipsManual(t *testing.T) {
	text, err := os.ReadFile("../../docs/skips.md")
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, "|"); len(cells) == 5 && strings.Contains(cells[2], "`") {
			rows = append(rows, strings.TrimSpace(cells[1])+"|"+strings.Trim(cells[2], " `")+"|"+strings.TrimSpace(cells[3]))
		}
	}
	var want []string
	for _, s := range sim.Skips() {
		want = append(want, s.World+"|"+s.Line+"|"+s.Why)
	}
	if !slices.Equal(rows, want) {
		t.Errorf("docs/skips.md has\n%s\nand the code\n%s", strings.Join(rows, "\n"), strings.Join(want, "\n"))
	}
}
