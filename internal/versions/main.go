// Command versions plays incidents against released versions of a system that are at hand, each in a virtual machine of its own, and writes which
// held and which broke as docs/versions.md.
//
//	make versions                              what ENILAB_SYSTEMS has of 1.3.2, 1.5.3, 1.12.1 and 1.23.0
//	make versions VERSIONS="1.5.4 1.5.5"       others
//
// A result stays in bin/versions, and what was played by the same commit is not played again; with -keep, what any commit has played is not, and the
// file names them all. Why something breaks is said by notes.yaml, by hand; a note of something that does not break any more is told, and ends the
// command with exit code 1.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// incidents are the five write-ups of docs/incidents.md and the public ones that need nothing of enilab's own.
var incidents = []string{"socket-mismatch", "upgrade", "force-delete", "statefulset-name-reuse", "del-retries", "eni-leak", "subnet-exhausted", "subnet-full", "failed-add"}

// system is whose versions are played.
const system = "amazon-vpc-cni-k8s"

// notYet is why a cell is empty that -none leaves so.
const notYet = "not yet"

// patience is how long a run may take on this computer, with others beside it.
const patience = 30 * time.Minute

func main() {
	versions := flag.String("versions", "1.3.2 1.5.3 1.12.1 1.23.0", "versions to play, with spaces or commas between them")
	only := flag.String("incidents", strings.Join(incidents, " "), "incidents to play")
	workers := flag.Int("j", 2, "machines at once")
	keep := flag.Bool("keep", false, "take what other commits have played, too")
	none := flag.Bool("none", false, "play nothing, write what was played")
	to := flag.String("to", "docs/versions.md", "file to write")
	results := flag.String("results", "bin/versions", "folder of results")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	t := &table{System: system, Versions: words(*versions), Incidents: words(*only), Results: *results, Keep: *keep, None: *none}
	if err := t.run(ctx, *workers, *to); err != nil {
		fmt.Fprintln(os.Stderr, "versions:", err)
		os.Exit(1)
	}
}

func words(s string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
}

// run plays what has to be played and writes the file.
func (t *table) run(ctx context.Context, workers int, to string) error {
	switch {
	case workers < 1:
		return fmt.Errorf("-j %d: expected at least one machine", workers)
	case len(t.Versions) == 0 || len(t.Incidents) == 0:
		return errors.New("expected at least one version and one incident")
	}
	if why := lacking(); why != "" {
		fmt.Println("skipped: " + why)
		return nil
	}
	notes, err := readNotes(filepath.Join("internal", "versions", "notes.yaml"))
	if err != nil {
		return err
	}
	if t.Commit, err = commit(); err != nil {
		return err
	}
	if t.QEMU, err = qemu(); err != nil {
		return err
	}
	t.play(ctx, workers)
	text, stale := t.text(notes)
	if err := os.WriteFile(to, []byte(text), 0o644); err != nil {
		return err
	}
	if len(stale) > 0 {
		return errors.New("notes.yaml has notes of what does not break any more: " + strings.Join(stale, "; ") + ": take them out, or see what has changed")
	}
	return ctx.Err()
}

// lacking is why nothing can be played here.
func lacking() string {
	if os.Getenv("ENILAB_SYSTEMS") == "" {
		return "ENILAB_SYSTEMS names no folder with binaries of released versions (docs/systems.md says what is in one)"
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		return "there is no qemu-system-x86_64 (Debian: apt-get install --no-install-recommends qemu-system-x86)"
	}
	return ""
}

// play fills the cells, several at once. One that cannot be played says why, and the others go on.
func (t *table) play(ctx context.Context, workers int) {
	type job struct{ version, incident string }
	jobs := make(chan job)
	var wait sync.WaitGroup
	var mu sync.Mutex
	t.cells = map[string]*cell{}
	for range workers {
		wait.Go(func() {
			for j := range jobs {
				c := t.cell(ctx, j.version, j.incident)
				mu.Lock()
				t.cells[j.version+" "+j.incident] = c
				fmt.Printf("%-24s %-8s %s\n", j.incident, j.version, c.brief())
				mu.Unlock()
			}
		})
	}
	for _, i := range t.Incidents {
		for _, v := range t.Versions {
			jobs <- job{v, i}
		}
	}
	close(jobs)
	wait.Wait()
}

// cell plays an incident, or reads what came of it before.
func (t *table) cell(ctx context.Context, version, incident string) *cell {
	base := filepath.Join(t.Results, system+"@"+version, incident)
	if c, err := readCell(base); err == nil && (t.Keep || t.None || c.Commit == t.Commit) {
		return c
	}
	if t.None {
		return &cell{Why: notYet}
	}
	if ctx.Err() != nil {
		return &cell{Why: "interrupted"}
	}
	if _, err := os.Stat(filepath.Join(os.Getenv("ENILAB_SYSTEMS"), system, version)); err != nil {
		return &cell{Why: "ENILAB_SYSTEMS has no " + version}
	}
	if err := os.MkdirAll(filepath.Dir(base), 0o755); err != nil {
		return &cell{Why: err.Error()}
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	var out, diag strings.Builder
	c := exec.CommandContext(ctx, "bin/enilab", "run", "--on", "netns", "--in", "vm", "--json", "--cni", system+"@"+version, "scenarios/"+incident+".scn")
	c.Env, c.Stdout, c.Stderr = append(os.Environ(), "ENILAB_VERBOSE=1"), &out, &diag
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, time.Minute
	err := c.Run()
	switch {
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		return &cell{Why: "it was not over in " + patience.String()}
	case ctx.Err() != nil:
		return &cell{Why: "interrupted"}
	}
	if out.Len() == 0 {
		return &cell{Why: fmt.Sprintf("%v: %s", err, lastLine(diag.String()))}
	}
	if err := errors.Join(os.WriteFile(base+".json", []byte(out.String()), 0o644), os.WriteFile(base+".err", []byte(diag.String()), 0o644),
		os.WriteFile(base+".commit", []byte(t.Commit+"\n"), 0o644)); err != nil {
		return &cell{Why: err.Error()}
	}
	read, err := readCell(base)
	if err != nil {
		return &cell{Why: err.Error()}
	}
	return read
}

func lastLine(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	return lines[len(lines)-1]
}

// commit is that of the working folder; its changes, if it has any, are said.
func commit() (string, error) {
	out, err := exec.Command("git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*").Output()
	if err != nil {
		return "", fmt.Errorf("which commit is it: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

func qemu() (string, error) {
	out, err := exec.Command("qemu-system-x86_64", "--version").Output()
	if err != nil {
		return "", fmt.Errorf("which QEMU is it: %w", err)
	}
	f := strings.Fields(string(out))
	if len(f) < 4 {
		return "", fmt.Errorf("which QEMU is it: expected \"QEMU emulator version N\", found %q", out)
	}
	return f[3], nil
}
