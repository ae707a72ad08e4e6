package netns_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/runner"
)

// TestMain is also what a laboratory executes this binary as, a node's helper or a mutant, and what a test does, a machine.
// The registry of laboratories is in TMPDIR, so the tests have one of their own: they must not clean what else runs here.
func TestMain(m *testing.M) {
	role := ""
	if len(os.Args) > 1 {
		role = os.Args[1]
	}
	switch role {
	case "node":
		end(node.Main())
	case "play":
		os.Exit(netns.PlayDaemon(os.Args[2:]))
	case "strange":
		end(strange(os.Args[2]))
	case "machine":
		end(machine(os.Args[2:]))
	}
	dir, err := os.MkdirTemp("", "enilab-test-")
	if err == nil {
		err = errors.Join(os.Chmod(dir, 0o755), os.Setenv("TMPDIR", dir)) // others may execute what is built there
	}
	if err != nil {
		end(err)
	}
	code := m.Run()
	if err := os.RemoveAll(dir); err != nil {
		end(err)
	}
	os.Exit(code)
}

// end ends a process that is no test.
func end(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// folderVariable names the folder with the binaries for a test that runs in a process of its own.
const folderVariable = "ENILAB_TEST_BINARIES"

// binaries are the real ones, built once, as `make build` does.
var binaries = sync.OnceValues(func() (string, error) {
	if dir := os.Getenv(folderVariable); dir != "" {
		return dir, nil
	}
	dir := filepath.Join(os.TempDir(), "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	build := exec.Command("go", "build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w", "-o", dir+"/",
		"github.com/enilab/enilab/cmd/enilab", "github.com/enilab/enilab/cmd/ipamd", "github.com/enilab/enilab/cmd/aws-cni")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(build.Args, " "), err, out)
	}
	return dir, nil
})

// needLab skips where there can be no laboratory.
func needLab(t testing.TB) {
	t.Helper()
	if err := netns.Available(); err != nil {
		t.Skip(err)
	}
}

// needTime is needLab for what mostly waits, for its worlds are in real time: beside others, and not in -short.
func needTime(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("a minute of real time")
	}
	needLab(t)
	t.Parallel()
}

// parts are what the tests' laboratories are made of; a test that cannot have one is skipped.
func parts(t testing.TB) netns.Parts {
	t.Helper()
	needLab(t)
	dir := must.Get(binaries())(t)
	return must.Get(netns.PartsIn(dir))(t)
}

// open makes the laboratory that a scenario's cluster asks for; its lines are not carried out.
func open(t testing.TB, text string) *netns.World {
	t.Helper()
	w, _ := begin(t, text)
	return w
}

// begin makes a scenario's laboratory, and the run through it. When the test ends, nothing may have contradicted the core or the model.
func begin(t testing.TB, text string) (*netns.World, *sim.Run) {
	t.Helper()
	c := must.Get(runner.Load(netns.Place(parts(t)), t.Name()+".scn", []byte(text)))(t)
	r, sw, err := c.Variants[0].Open(runner.DefaultSeed, nil)
	must.Do(t, err)
	w := sw.(*netns.World)
	t.Cleanup(func() {
		for _, d := range w.Disagreements() {
			t.Error(d)
		}
		for _, c := range w.Crashes() {
			t.Errorf("%v %s", c.At, c.Text)
		}
		for _, err := range []error{w.Err(), w.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return w, r
}
