package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
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
		{"up --zones 0", "a node is in a zone"},
		{"down enilab", `enilab down takes no arguments, found "enilab"`},
		{"hold", "use up"},
		{"manifest now", "takes no arguments"},
		{"run --name x calm.scn", "use it with --on kind"},
		{"run --keep calm.scn", "--on netns or --on kind"},
		{"run --mutants calm.scn", "in world sim they are played anyway"},
		{"run --on kind --mutants --against no-cool-down calm.scn", "leave one of them out"},
		{"run --on kind --twice calm.scn", "use --on sim"},
		{"run --on kind --update calm.scn", "use --on sim"},
	} {
		refuses(t, c.args, c.says)
	}
	if code, _, errs := enilab(t, "manifest", "--image", "a b"); code != runner.ExitBad || !strings.Contains(errs, `the image is "a b"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// TestKindElsewhere: without world kind this binary says what it looked for, where, and what to do.
func TestKindElsewhere(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm})
	t.Setenv("PATH", t.TempDir())
	for _, args := range []string{"up", "down", "run --on kind calm.scn"} {
		code, out, errs := enilab(t, strings.Fields(args)...)
		if code != runner.ExitLacking || strings.Count(errs, "\n") != 1 || out != "" {
			t.Errorf("enilab %s: exit %d, want 3 and one sentence:\n%s%s", args, code, errs, out)
		}
		for _, says := range []string{"enilab: world kind needs", "enilab-kind", os.TempDir(), "nor in PATH", "make build", "go install"} {
			if !strings.Contains(errs, says) {
				t.Errorf("enilab %s: expected %q in %s", args, says, errs)
			}
		}
	}
}

// TestKindFound: the neighbour goes before PATH.
func TestKindFound(t *testing.T) {
	beside, path := t.TempDir(), t.TempDir()
	t.Setenv("PATH", path)
	for _, dir := range []string{path, beside} {
		want := filepath.Join(dir, kindBinary)
		must.Do(t, os.WriteFile(want, nil, 0o700))
		if got, err := findKind(beside); got != want || err != nil {
			t.Errorf("found %q, %v, expected %q", got, err, want)
		}
	}
}

// asEnilab makes the test binary enilab.
const asEnilab = "ENILAB_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asEnilab) != "" {
		Main(nil)
	}
	os.Exit(m.Run())
}

// TestKindTakesOver: the binary that has world kind becomes this process, with its arguments, streams and exit code.
func TestKindTakesOver(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, kindBinary), []byte("#!/bin/sh\necho $$ \"$@\"\ncat >&2\nexit 7\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	self := must.Get(os.Executable())(t)
	c := exec.CommandContext(t.Context(), self, "run", "--on", "kind", "a b.scn")
	c.Env = append(os.Environ(), asEnilab+"=1", "PATH="+dir+":"+os.Getenv("PATH"))
	c.Stdin = strings.NewReader("what was said")
	var out, errs bytes.Buffer
	c.Stdout, c.Stderr = &out, &errs
	_ = c.Run()
	if want := fmt.Sprintln(c.Process.Pid, "run --on kind a b.scn"); out.String() != want || errs.String() != "what was said" || c.ProcessState.ExitCode() != 7 {
		t.Errorf("exit %d, expected 7; standard output %q, expected %q; standard error %q", c.ProcessState.ExitCode(), &out, want, &errs)
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
			must.Do(t, err)
			must.Get(w.WriteString(c.says))(t)
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
	must.Do(t, err)
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
