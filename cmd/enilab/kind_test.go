package main

import (
	"bytes"
	"errors"
	"os"
	"strings"
	"testing"

	kindworld "github.com/enilab/enilab/sim/kind"
	"github.com/enilab/enilab/sim/runner"
)

// TestKindUsage: what is asked wrongly is said before anything is made.
func TestKindUsage(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm})
	for _, c := range []struct {
		args string
		says string
	}{
		{"up now", `enilab up takes no arguments, found "now"`},
		{"up --on netns", "enilab run --on netns --keep FILE"},
		{"up --on knid", `did you mean "kind"?`},
		{"up --nodes 0", "pods need a worker"},
		{"up --nodes x", `--nodes: expected a whole number, found "x"`},
		{"up --config a.yaml --nodes 2", "leave --nodes and --proxy out"},
		{"up --nam x", "did you mean --name?"},
		{"down enilab", `enilab down takes no arguments, found "enilab"`},
		{"hold", "use up"},
		{"manifest now", "takes no arguments"},
		{"run --name x calm.scn", "use it with --on kind"},
		{"run --keep calm.scn", "--on netns or --on kind"},
		{"run --on kind --twice calm.scn", "use --on sim"},
		{"run --on kind --update calm.scn", "use --on sim"},
	} {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		if code != runner.ExitBad || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("enilab %s: exit %d, want 2, and %q in\n%s%s", c.args, code, c.says, errs, out)
		}
	}
	if code, _, errs := enilab(t, "manifest", "--image", "a b"); code != runner.ExitBad || !strings.Contains(errs, `the image is "a b"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestKindLacking: a machine without Docker, or without root, says so in one sentence.
func TestKindLacking(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm})
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
			if err := os.WriteFile(dir+"/docker", []byte("#!/bin/sh\n"+c.script), 0o700); err != nil {
				t.Fatal(err)
			}
			t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
			if err := kindworld.Available(t.Context()); err != nil {
				t.Skip(err)
			}
			scenario := t.TempDir() + "/calm.scn"
			if err := os.WriteFile(scenario, []byte(calm), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := enilab(t, "run", "--on", "kind", "--name", "t", scenario, scenario)
			if code != c.code || !strings.Contains(errs, c.says) || strings.Count(errs, c.says) != 1 || out != "" {
				t.Errorf("exit %d, want %d and %q once:\n%s%s", code, c.code, c.says, out, errs)
			}
		})
	}
}

// TestManifest: the DaemonSet is printed with the image.
func TestManifest(t *testing.T) {
	code, out, errs := enilab(t, "manifest", "--image", "registry.example/cni:7")
	if code != 0 || errs != "" || !strings.Contains(out, "kind: DaemonSet") || strings.Count(out, "image: registry.example/cni:7\n") != 2 {
		t.Errorf("exit %d: %s%s", code, errs, out)
	}
}

// TestListen: what the process that holds a cluster says is passed on, and its end is understood.
func TestListen(t *testing.T) {
	for name, c := range map[string]struct {
		says, kubeconfig, told, fails string
		code                          int
	}{
		"ready":             {says: "say creating\nready /tmp/a b/kubeconfig\n", kubeconfig: "/tmp/a b/kubeconfig", told: "creating\n"},
		"lacking":           {says: "say creating\nfail 3 no Docker\n", told: "creating\n", fails: "no Docker", code: 3},
		"bad":               {says: "fail 2 it is there already\n", fails: "it is there already", code: 2},
		"killed":            {says: "say creating\n", told: "creating\n", fails: "was killed", code: 3},
		"not its parent's":  {says: "hello\nready x\n", kubeconfig: "x"},
		"no number":         {says: "fail badly\n", fails: "", code: 3},
		"nothing more said": {says: "", fails: "was killed", code: 3},
	} {
		t.Run(name, func(t *testing.T) {
			r, w, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.WriteString(c.says); err != nil {
				t.Fatal(err)
			}
			_ = w.Close()
			var errs bytes.Buffer
			l := &cli{err: &errs}
			kubeconfig, err := l.listen(r)
			if kubeconfig != c.kubeconfig || errs.String() != c.told {
				t.Errorf("%q, told %q", kubeconfig, errs.String())
			}
			e, _ := errors.AsType[*exit](err)
			if (c.code == 0) != (err == nil) || e != nil && (e.code != c.code || !strings.Contains(e.text, c.fails)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestHolder: every word is a line, whatever it says, and nobody is told anything after the last one.
func TestHolder(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	h := &holder{to: w, log: &bytes.Buffer{}}
	h.say("two\nlines")
	h.ready("/k")
	h.say("later")
	h.fail(&exit{runner.ExitLacking, "broken"})
	var errs bytes.Buffer
	if kubeconfig, err := (&cli{err: &errs}).listen(r); err != nil || kubeconfig != "/k" || errs.String() != "two lines\n" {
		t.Errorf("%q, %v, told %q", kubeconfig, err, errs.String())
	}
}
