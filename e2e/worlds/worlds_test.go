package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/campaign"
	"github.com/enilab/enilab/internal/must"
)

// TestTableSaysWhatCameOfEachRun: verdict, mutants and skipped lines, and what is no verdict is none.
func TestTableSaysWhatCameOfEachRun(t *testing.T) {
	table := table{incidents: []string{"upgrade"}, cells: map[string]cell{}}
	for name, r := range map[string]campaign.Result{
		"sim": {Build: "v1", Stdout: []byte(`{"files":[{"status":"held","judged":9,"mutants":[{"proved":true},{"proved":true}]}]}`)},
		"netns": {Build: "v1", Stdout: []byte(`{"files":[{"status":"unproven","judged":8,"mutants":[{"proved":true},{"proved":false}],
			"skipped":[{"line":3,"why":"no clock"},{"line":4,"why":"no clock"}]}]}`)},
		"vm":   {Stdout: []byte(`{"errors":[{"message":"there is no qemu"}]}`)},
		"kind": {Why: campaign.NotYet},
	} {
		table.cells[name+"/upgrade"] = cellOf(&r)
	}
	text := table.text()
	for _, want := range []string{
		"| held, 9 judged, 2 of 2 mutants red | unproven, 8 judged, 1 of 2 mutants red (1) | there is no qemu | not played yet |",
		"\n1. no clock\n", "enilab of v1.",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("expected %q in\n%s", want, text)
		}
	}
	// Elsewhere there are no results: what the file says stays, whatever else is played.
	old := table.cells
	table.cells, table.builds = kept(text)
	table.cells["kind/upgrade"] = old["kind/upgrade"]
	table.cells["vm/upgrade"] = cellOf(&campaign.Result{Build: "v2", Stdout: []byte(`{"files":[{"status":"held","judged":7,"skipped":[{"line":3,"why":"no root"}]}]}`)})
	again := table.text()
	for _, want := range []string{
		"| held, 9 judged, 2 of 2 mutants red | unproven, 8 judged, 1 of 2 mutants red (1) | held, 7 judged (2) | not played yet |",
		"\n1. no clock\n2. no root\n", "enilab of v1, v2.",
	} {
		if !strings.Contains(again, want) {
			t.Errorf("expected %q in\n%s", want, again)
		}
	}
	table.cells, table.builds = old, nil
	for _, bad := range []string{"", "[]", `{"files":[]}`, `{"files":[{},{}]}`} {
		if c := cellOf(&campaign.Result{Stdout: []byte(bad)}); c.why == "" {
			t.Errorf("a run that wrote %q is %q", bad, c.brief())
		}
	}
}

// TestIncidentsAreThoseOfKind: a file that the suite on kind begins to play has a row.
func TestIncidentsAreThoseOfKind(t *testing.T) {
	data := must.Get(os.ReadFile(filepath.Join("..", "..", "e2e", "files_test.go")))(t)
	var played []string
	for _, m := range regexp.MustCompile(`(?m)^\t\{name: "([a-z-]+)"`).FindAllSubmatch(data, -1) {
		played = append(played, string(m[1]))
	}
	rows := strings.Fields(incidents)
	slices.Sort(played)
	slices.Sort(rows)
	if !slices.Equal(played, rows) {
		t.Errorf("make e2e plays %q, and the table has %q", played, rows)
	}
}
