package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/campaign"
	"github.com/enilab/enilab/internal/must"
)

const diag = "virtual machine: kernel 6.12.117+deb12-cloud-amd64, first line after 8.7 s, 42 s of CPU, 49 s in all; 526.7 s of its own time\n"

func TestCell(t *testing.T) {
	c := cellOf(&campaign.Result{Stderr: []byte(diag), Stdout: []byte(`{"files": [{"status": "violated", "unknown": [{"line": 5, "settings": ["MAX_ENI"]}], "variants": [
		{"broke": {"at": 185.2, "invariant": "nothing is leaked", "text": "a rule"}, "unjudged": [{"line": 15}]},
		{"broke": {"at": 186, "invariant": "nothing is leaked", "text": "another"}},
		{"broke": {"at": 60, "line": 9, "text": "expected 3"}}]}]}`)})
	if c.Why != "" {
		t.Fatal(c.Why)
	}
	if c.Kernel != "6.12.117+deb12-cloud-amd64" || c.CPU != 42*time.Second || c.Unjudged != 1 {
		t.Errorf("found %+v", c)
	}
	const want = `violated, "nothing is leaked" at 3:05, "line 9" at 1:00 (42s of CPU)`
	if c.brief() != want {
		t.Errorf("expected %s\nfound %s", want, c.brief())
	}
	if c := cellOf(&campaign.Result{Stdout: []byte(`{"files": [], "errors": [{"message": "unknown verb"}]}`)}); c.Why != "unknown verb" {
		t.Errorf("a refused run: %+v", c)
	}
	for _, bad := range []string{"", "{}", "[]"} {
		if c := cellOf(&campaign.Result{Stdout: []byte(bad)}); c.Why == "" {
			t.Errorf("%q was taken", bad)
		}
	}
}

// A break without a note says so, a note of what holds is stale, one of what was not played is not.
func TestText(t *testing.T) {
	tab := &table{System: "cni", Versions: []string{"1.0.0", "2.0.0"}, Incidents: []string{"drift", "reboot"}, QEMU: "7.2", cells: map[string]*cell{
		"1.0.0 drift":  {Status: "violated", Kernel: "6.12", Build: "abc", CPU: 4 * time.Minute, Breaks: []breaks{{"nothing is leaked", 65 * time.Second, "a rule"}}},
		"2.0.0 drift":  {Status: "violated", Kernel: "6.12", Breaks: []breaks{{"line 15", time.Second, "expected 2"}}},
		"1.0.0 reboot": {Status: "held", Kernel: "6.12", Unknown: []string{"MAX_ENI"}, Unjudged: 2},
		"2.0.0 reboot": {Why: "ENILAB_SYSTEMS has no 2.0.0"},
	}}
	text, stale := tab.text([]note{
		{[]string{"1.0.0"}, "drift", []string{"nothing is leaked"}, "it forgets"},
		{[]string{"1.0.0", "2.0.0"}, "reboot", []string{"nothing is leaked"}, "it forgot"},
	})
	for _, want := range []string{
		"Linux 6.12, QEMU 7.2, seed 1, enilab of abc.",
		`| [drift](../scenarios/drift.scn) | **broke** "nothing is leaked" at 1:05 (1) | **broke** line 15 at 0:01 (2) |`,
		`| held; 2 not judged (3) | ENILAB_SYSTEMS has no 2.0.0 |`,
		"1. it forgets\n2. not explained yet: expected 2\n3. it does not know MAX_ENI",
		"drift with 1.0.0, 4m0s.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	if got := strings.Join(stale, "; "); got != `1.0.0, reboot, "nothing is leaked"` {
		t.Errorf("stale: %s", got)
	}
}

func TestNotes(t *testing.T) {
	if _, err := readNotes(filepath.Join("..", "..", notesPath)); err != nil {
		t.Error(err)
	}
	path := filepath.Join(t.TempDir(), "notes.yaml")
	for _, bad := range []string{"- {incident: drift}\n", "- {versions: [1], incident: a, breaks: [b], why: c, more: d}\n", "a: [\n"} {
		must.Do(t, os.WriteFile(path, []byte(bad), 0o644))
		if _, err := readNotes(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: expected an error that names the file, found %v", bad, err)
		}
	}
	// Each incident is a scenario.
	for _, i := range incidents {
		if _, err := os.Stat("../../scenarios/" + i + ".scn"); err != nil {
			t.Error(err)
		}
	}
}
