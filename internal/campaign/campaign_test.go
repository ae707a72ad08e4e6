package campaign

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// program writes an enilab that carries out a script, with the two that are beside it, and gives its path.
func program(t *testing.T, script string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range map[string]string{"enilab": "#!/bin/sh\n[ \"$1\" = version ] && { echo 'enilab v1, records'; exit; }\n" + script, "ipamd": "", "aws-cni": ""} {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755))
	}
	return filepath.Join(dir, "enilab")
}

func open(t *testing.T, folder, program string) *Campaign {
	t.Helper()
	return must.Get(Open(folder, program))(t)
}

// jobs are two, whose results rest on a file.
func jobs(t *testing.T, c *Campaign, file string) (out []Job) {
	t.Helper()
	for _, name := range []string{"a/one", "a/two"} {
		args := []string{"run", name}
		stamp := must.Get(c.Stamp(args, file))(t)
		out = append(out, Job{Name: name, Args: args, Stamp: stamp, Limit: time.Minute})
	}
	return out
}

func words(results []*Result) string {
	var out []string
	for _, r := range results {
		if r.Why != "" {
			out = append(out, r.Why)
			continue
		}
		out = append(out, fmt.Sprintf("%s %d", strings.TrimSpace(string(r.Stdout)), r.Exit))
	}
	return strings.Join(out, "; ")
}

// A result is taken again until something that it rests on is another: the file, the program.
func TestResultsAreTakenAgain(t *testing.T) {
	dir := t.TempDir()
	file, count := filepath.Join(dir, "file"), filepath.Join(dir, "count")
	prog := program(t, "echo x >>"+count+"; echo $2 $(grep -c x "+count+"); exit 1\n")
	write := func(path, text string) {
		t.Helper()
		must.Do(t, os.WriteFile(path, []byte(text), 0o755))
	}
	run := func(set func(*Campaign)) string {
		t.Helper()
		c := open(t, dir, prog)
		set(c)
		return words(c.Run(t.Context(), jobs(t, c, file), 1, func(int, *Result) {}))
	}
	none := func(*Campaign) {}
	write(file, "a")
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: expected %s\nfound %s", what, want, got)
		}
	}
	expect("nothing is to be played", run(func(c *Campaign) { c.None = true }), NotYet+"; "+NotYet)
	expect("first", run(none), "a/one 1 1; a/two 2 1")
	expect("again", run(none), "a/one 1 1; a/two 2 1")
	write(file, "b")
	expect("another file, kept", run(func(c *Campaign) { c.Keep = true }), "a/one 1 1; a/two 2 1")
	expect("another file", run(none), "a/one 3 1; a/two 4 1")
	write(filepath.Join(filepath.Dir(prog), "ipamd"), "another")
	expect("another daemon", run(none), "a/one 5 1; a/two 6 1")
	must.Do(t, os.Remove(filepath.Join(dir, "a/one"+recordFile)))
	expect("without its record a result is none", run(none), "a/one 7 1; a/two 6 1")
}

// What was interrupted is no result, what had ended stays one, and the rest is played the next time.
func TestInterrupted(t *testing.T) {
	dir := t.TempDir()
	ctx, cancel := context.WithCancel(t.Context())
	// The second one ends the campaign, and waits for its own end: exec, so that the signal finds what waits.
	prog := program(t, "echo $2\n[ $2 = a/one ] || [ -e "+dir+"/go ] || { touch "+dir+"/begun; exec sleep 600; }\n")
	c := open(t, dir, prog)
	all := jobs(t, c, dir+"/file")
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(dir + "/begun"); err == nil {
				cancel()
			}
		}
	}()
	if got, want := words(c.Run(ctx, all, 1, func(int, *Result) {})), "a/one 0; "+NotYet; got != want {
		t.Fatalf("interrupted: expected %s, found %s", want, got)
	}
	must.Do(t, os.WriteFile(dir+"/go", nil, 0o644))
	var told []int
	if got, want := words(c.Run(t.Context(), all, 1, func(i int, _ *Result) { told = append(told, i) })), "a/one 0; a/two 0"; got != want {
		t.Errorf("then: expected %s, found %s", want, got)
	}
	if !slices.Equal(told, []int{0, 1}) {
		t.Errorf("told: %v", told)
	}
}

// One that cannot be carried out, wrote nothing, takes too long, or is not done says so; and the others go on.
func TestWithoutResult(t *testing.T) {
	dir := t.TempDir()
	c := open(t, dir, program(t, `case $2 in silent) echo "enilab: why" >&2; echo "what to do" >&2; exit 2;; slow) exec sleep 600;; esac; echo $2`))
	runs := 0
	all := []Job{
		{Name: "missing", Args: []string{"run", "missing"}, Missing: "there is none", Limit: time.Minute},
		{Name: "silent", Args: []string{"run", "silent"}, Limit: time.Minute},
		{Name: "slow", Args: []string{"run", "slow"}, Limit: 100 * time.Millisecond},
		{Name: "good", Args: []string{"run", "good"}, Limit: time.Minute, Done: func(*Result) bool { runs++; return false }},
	}
	for range 2 { // what is not done is carried out again
		if got, want := words(c.Run(t.Context(), all, 2, func(int, *Result) {})), "there is none; exit status 2: why; it was not over in 100ms; good 0"; got != want {
			t.Errorf("expected %s\nfound %s", want, got)
		}
	}
	if runs != 1 {
		t.Errorf("the result of before was asked about %d times", runs)
	}
}

// A folder without programs is refused, and so is one whose program does not say what it is.
func TestOpenRefuses(t *testing.T) {
	if _, err := Open(t.TempDir(), filepath.Join(t.TempDir(), "enilab")); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("no program: %v", err)
	}
	prog := program(t, "")
	must.Do(t, os.WriteFile(prog, []byte("#!/bin/sh\nexit 3\n"), 0o755))
	if _, err := Open(t.TempDir(), prog); err == nil || !strings.Contains(err.Error(), "version") {
		t.Errorf("a program that does not say what it is: %v", err)
	}
}

func TestAtHand(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("ENILAB_SYSTEMS", dir)
	for _, v := range []string{"1.9.3", "1.22.0", "1.22.10", "1.22.4", "1.23.0.new", "src", "1.24"} {
		must.Do(t, os.MkdirAll(filepath.Join(dir, "cni", v), 0o755))
	}
	got, err := AtHand("cni")
	if want := []string{"1.9.3", "1.22.0", "1.22.4", "1.22.10"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("expected %v, found %v, %v", want, got, err)
	}
	if _, err := AtHand("other"); err == nil {
		t.Error("versions of what is not there were found")
	}
	if Minor("1.22.10") != "1.22" || Compare("1.9.3", "1.22.0") >= 0 {
		t.Error("versions are ordered by their numbers")
	}
}

func TestParagraph(t *testing.T) {
	got := Paragraph("* ", strings.Repeat("twelve chars ", 12))
	lines := strings.Split(strings.TrimSuffix(got, "\n"), "\n")
	if len(lines) != 2 || len(lines[0]) > column || !strings.HasPrefix(lines[0], "* twelve") || !strings.HasPrefix(lines[1], "  ") {
		t.Errorf("found %q", lines)
	}
	if got := Cell("a|b\nc"); got != "a/b c" {
		t.Errorf("a cell: %q", got)
	}
	if got := Clock(-65 * time.Second); got != "-1:05" {
		t.Errorf("a clock: %s", got)
	}
}
