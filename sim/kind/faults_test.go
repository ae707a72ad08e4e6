package kind

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestFaulty: as many DELs fail as the file says, also at the same time, and whatever else is called reaches the plugin.
func TestFaulty(t *testing.T) {
	if _, err := exec.LookPath("flock"); err != nil {
		t.Skip("needs flock, as node images have it")
	}
	dir := t.TempDir()
	real, shim, file := filepath.Join(dir, "real"), filepath.Join(dir, "aws-cni"), dir+failsFile
	for path, text := range map[string]string{real: "#!/bin/sh\necho $CNI_COMMAND; cat\n", shim: string(faultyPlugin(real)), file: "3 60000000000\n",
		dir + protocolFile: "1\n"} {
		must.Do(t, os.WriteFile(path, []byte(text), 0o700))
	}
	const told = `{"a":{"b":1},"localProtocol":1}` + "\n"
	call := func(verb string) string {
		c := exec.CommandContext(t.Context(), shim)
		c.Env, c.Stdin = append(os.Environ(), "CNI_COMMAND="+verb), strings.NewReader(`{"a":{"b":1}}`+"\n")
		out, err := c.Output()
		if failed := strings.Contains(string(out), `"code":11,`); failed != (err != nil) {
			t.Errorf("%s: %v: %s", verb, err, out)
		}
		return string(out)
	}
	left := func() string {
		raw := must.Get(os.ReadFile(file))(t)
		return string(raw)
	}
	if got := call("ADD"); got != "ADD\n"+told || left() != "3 60000000000\n" {
		t.Errorf("ADD: %q, left %q", got, left())
	}
	done := make(chan string)
	go func() { done <- call("DEL") }()
	for end := t.Context(); left() != "2 60000000000\n"; { // it waits now
		if end.Err() != nil {
			return
		}
	}
	must.Do(t, os.Remove(file))
	if got := <-done; !strings.Contains(got, `"msg"`) {
		t.Errorf("a DEL that waited: %q", got)
	}
	if got := call("DEL"); got != "DEL\n"+told {
		t.Errorf("a DEL without a fault: %q", got)
	}
	must.Do(t, os.WriteFile(file, []byte("5 1\n"), 0o600))
	var all sync.WaitGroup
	got := make([]string, 12)
	for i := range got {
		all.Go(func() { got[i] = call("DEL") })
	}
	all.Wait()
	if n := strings.Count(strings.Join(got, ""), `"code":11,`); n != 5 || left() != "0 1\n" {
		t.Errorf("%d DELs failed, expected 5; left %q", n, left())
	}
}
