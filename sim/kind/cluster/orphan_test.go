package cluster

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/registry"
)

// A cluster goes when its process is gone, and only then.
func TestOrphans(t *testing.T) {
	self, err := registry.Self()
	if err != nil {
		t.Skip(err)
	}
	child := exec.Command("true")
	must.Do(t, child.Run())
	dead := registry.Process{PID: child.Process.Pid, Begun: self.Begun}
	removed, folder := filepath.Join(t.TempDir(), "removed"), filepath.Join(t.TempDir(), folderName+"1")
	must.Do(t, os.Mkdir(folder, 0o700))
	t.Setenv("FOLDER", folder)
	bin := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(bin, "docker"), fmt.Appendf(nil, "#!/bin/sh\n"+`case "$*" in
"network ls"*=old*) echo "n-old $FOLDER";;
*--format*) printf '%%s\n' "old %s" "mine %s" "odd what" "";;
"container ps"*=old) echo c-old;;
"container rm"*|"network rm"*) echo "$*" >>%s;;
*) ;;
esac`, ownerText(dead), ownerText(self), removed), 0o700))
	t.Setenv("PATH", bin+":/usr/bin:/bin")
	var said []string
	must.Do(t, removeOrphans(context.Background(), func(s string) { said = append(said, s) }))
	data := must.Get(os.ReadFile(removed))(t)
	if got, want := string(data), "container rm --force --volumes c-old c-old\nnetwork rm n-old\n"; got != want {
		t.Errorf("removed:\n%s\nexpected:\n%s", got, want)
	}
	if _, err := os.Stat(folder); !os.IsNotExist(err) {
		t.Errorf("the dead process's folder is still there (%v)", err)
	}
	if len(said) != 1 || !strings.Contains(said[0], "cluster old") {
		t.Errorf("said %q; expected one line about the cluster old", said)
	}
}
