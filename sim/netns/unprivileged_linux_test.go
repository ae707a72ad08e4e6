package netns_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/runner"
)

// nobody is the user and group that own nothing.
const nobody = 65534

// Without root a laboratory ends before it begins: exit code 3, and one sentence that says what to do.
func TestWithoutRoot(t *testing.T) {
	dir := must.Get(binaries())(t)
	scenario := filepath.Join(dir, "holds.scn")
	must.Do(t, os.WriteFile(scenario, []byte(holds), 0o644))
	for _, args := range []string{"run --on netns " + scenario, "run --on netns --keep " + scenario, "run --json --on netns " + scenario, "lab clean", "lab list", "lab exec node-1 -- true"} {
		var out, errs bytes.Buffer
		c := exec.Command(filepath.Join(dir, "enilab"), strings.Fields(args)...)
		c.Dir, c.Stdout, c.Stderr = "/", &out, &errs
		if os.Geteuid() == 0 {
			c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		}
		_ = c.Run()
		if code := c.ProcessState.ExitCode(); code != runner.ExitLacking {
			t.Errorf("enilab %s: exit code %d, expected %d", args, code, runner.ExitLacking)
		}
		if text := errs.String(); !strings.HasPrefix(text, "enilab: the laboratory needs root") || strings.Count(text, "\n") != 1 || out.Len() > 0 {
			t.Errorf("enilab %s: expected one sentence that says it needs root, found:\n%s%s", args, &out, text)
		}
	}
}
