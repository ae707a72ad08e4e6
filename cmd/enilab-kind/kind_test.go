package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/enilab/enilab/cmd/enilab/cli"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/kind/cluster"
	"github.com/enilab/enilab/sim/runner"
)

// calm is a scenario that would hold.
const calm = "cluster nodes=1\nstart pods web 1 on node-1\nalways \"nothing is leaked\"\n"

// enilab runs a command line.
func enilab(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = cli.Run(args, strings.NewReader(""), &o, &e, world{})
	return code, o.String(), e.String()
}

// TestKindLacking: a machine without Docker, or without root, says so in one sentence.
func TestKindLacking(t *testing.T) {
	t.Chdir(t.TempDir())
	must.Do(t, os.WriteFile("calm.scn", []byte(calm), 0o600))
	t.Setenv("PATH", t.TempDir())
	for _, args := range []string{"up", "down", "run --on kind calm.scn"} {
		code, out, errs := enilab(t, strings.Fields(args)...)
		if code != runner.ExitLacking || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, "world kind needs") && !strings.Contains(errs, "world kind: needs") || out != "" {
			t.Errorf("enilab %s: exit %d, want 3 and one sentence:\n%s%s", args, code, errs, out)
		}
	}
}

// TestKindRefused: what stands in the way of every cluster is said once, in one sentence, and not of every file that was to run.
func TestKindRefused(t *testing.T) {
	const version = `case "$1 $2" in "version --format") echo amd64;; "network ls") ;; `
	for name, c := range map[string]struct {
		script, says string
		code         int
	}{
		"name taken": {version + `"container ps") echo 0123;; *) exit 9;; esac`, "a cluster named t is already there", runner.ExitBad},
		"no image": {version + `"container ps") ;; "image inspect") echo "Error: No such image" >&2; exit 1;; "pull --quiet") echo "no such host" >&2; exit 1;; *) exit 9;; esac`,
			"cannot be pulled", runner.ExitLacking},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			must.Do(t, os.WriteFile(dir+"/docker", []byte("#!/bin/sh\n"+c.script), 0o700))
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			if err := cluster.Available(t.Context()); err != nil {
				t.Skip(err)
			}
			scenario := t.TempDir() + "/calm.scn"
			must.Do(t, os.WriteFile(scenario, []byte(calm), 0o600))
			code, out, errs := enilab(t, "run", "--on", "kind", "--name", "t", scenario, scenario)
			if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, c.says) != 1 || out != "" {
				t.Errorf("exit %d, want %d and %q once:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}
