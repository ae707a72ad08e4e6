package cli

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"
)

// lucky holds with seed 1 and not with others: which pod is rolled first is drawn.
const lucky = `# A rule goes, and only the pods behind the second interface miss it.
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 3 on node-1
always  "nothing is leaked"
at 1m   expect node-1 addresses.assigned == 3
against no-repair breaks "nothing is leaked"
`

// TestSeeds: a line for each file, the first failing seed whole with the command that shows it again, and the exit codes put together.
func TestSeeds(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm, "never.scn": lucky, "mute.scn": "cluster nodes=1\n"})
	for _, c := range []struct {
		args, says string
		code       int
	}{
		{"run calm.scn --seeds 1-4", `^held  calm  4 seeds, 1 variant, 0 mutants, [\d,]+ events in 12m\n$`, 0},
		{"run calm.scn --seeds 7", `^held  calm  1 seed, `, 0},
		{"run calm.scn --seeds 7-7 --twice", `^held  calm  1 seed, `, 0},
		{"run calm.scn --seeds 1-2 --against no-sweep", `^held  calm  2 seeds, 1 variant, under mutant no-sweep, `, 0},
		{"run mute.scn --seeds 1-2", `^skipped  mute  2 seeds, .*nothing was judged`, 3},
		{"run never.scn --seeds 3-20", `; 18 seeds failed: 3, 4, 5, 6, 7, 8, 9, 10, 11, 12 and 8 more\nseed 3:\n(?s:.*)\nagain: enilab run never.scn --seed 3\n$`, 6},
		{"run calm.scn never.scn mute.scn --seeds 2-3", `\n3 files, seeds 2-3: 1 held, 1 unproven, 1 skipped; 2 of 6 runs failed\n$`, 6},
	} {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		if code != c.code || !regexp.MustCompile(c.says).MatchString(out) || errs != "" {
			t.Errorf("enilab %s: exit %d, want %d and %s\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
	}
}

// TestSeedsRefuses: bad input is one sentence with a remedy, and nothing is run.
func TestSeedsRefuses(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm, "bad.scn": "cluster nodes=1\nat 1x node-1 restart\n"})
	for args, says := range map[string]string{
		"run calm.scn --seeds 20-1":                   `--seeds: seed range "20-1" runs backwards (write 1-20)`,
		"run calm.scn --seeds x":                      `--seeds: seed range "x": "x" is not a whole number (write the first and the last seed, such as 1-200)`,
		"run calm.scn --seeds 1-":                     `"" is not a whole number`,
		"run calm.scn --seeds=-5":                     `"" is not a whole number`,
		"run calm.scn --seeds 1-2-3":                  `"2-3" is not a whole number`,
		"run calm.scn --seeds=":                       `--seeds: the seed range is empty (write`,
		"run calm.scn --seeds 1-100001":               `has more than 100,000 seeds (take part of it, such as 1-100000)`,
		"run calm.scn --seeds 0-18446744073709551615": `has more than 100,000 seeds`,
		"run calm.scn --seeds 1-2 --seed 1":           "--seed is one run and --seeds a range: leave one of them out",
		"run calm.scn --seeds 1-2 --update":           "leave --seeds out",
		"run calm.scn --seeds 1-2 --crash-everywhere": "leave --seeds out",
		"run calm.scn --seeds 1-2 --keep --on netns":  "leave --seeds out",
		"run bad.scn --seeds 1-2":                     "bad.scn:2:4:",
		"run calm.scn --seeds 1-2 --against nobody":   `unknown mutant "nobody"`,
	} {
		refuses(t, args, says)
	}
}

// TestSeedsJSON: one small document, also for files with mistakes.
func TestSeedsJSON(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm, "never.scn": lucky, "bad.scn": "cluster nodes=1\nat 1x node-1 restart\n"})
	var d struct {
		Enilab   string
		From, To uint64
		Exit     int
		Errors   []struct{ Line int }
		Files    []struct {
			Name   string
			Ran    int
			Failed []uint64
			First  *struct{ Command string }
		}
	}
	code, out, _ := enilab(t, "run", "--json", "calm.scn", "never.scn", "--seeds", "2-3")
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if code == 0 || d.Exit != code || d.Enilab != "seeds/1" || d.From != 2 || d.To != 3 || len(d.Files) != 2 {
		t.Fatalf("exit %d: %+v", code, d)
	}
	if f := d.Files[0]; f.Name != "calm" || f.Ran != 2 || f.Failed == nil || len(f.Failed) != 0 || f.First != nil {
		t.Errorf("got %+v", f)
	}
	if f := d.Files[1]; len(f.Failed) != 2 || f.First == nil || f.First.Command != "enilab run never.scn --seed 2" {
		t.Errorf("got %+v", f)
	}
	code, out, errs := enilab(t, "run", "--json", "bad.scn", "--seeds", "1-2")
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 2 || d.Exit != 2 || len(d.Errors) != 1 || d.Errors[0].Line != 2 || errs != "" {
		t.Errorf("exit %d, %v: %s%s", code, err, out, errs)
	}
}
