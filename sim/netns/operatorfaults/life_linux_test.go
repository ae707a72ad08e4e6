package operatorfaults_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/enilab/enilab/impl/daemon"
	"github.com/enilab/enilab/internal/must"
)

// TestNoTrouble: the machine of these tests works.
func TestNoTrouble(t *testing.T) {
	m := serving(t)
	a, b := m.add("a"), m.add("b")
	m.answer(a, b)
	m.del(a)
	m.answer(b)
	m.term()
	m.answer(b)
}

// TestAsk: what an operator asks on the node.
func TestAsk(t *testing.T) {
	m := newMachine(t)
	m.init()
	if code, out := m.raw("/app/ipamd status"); code != 1 || out != "" {
		t.Errorf("status without a daemon: exit code %d: %s", code, out)
	}
	m.start()
	m.serves()
	a := m.add("a")
	if code, out := m.raw("/app/ipamd status"); code != 0 || out != "ready" {
		t.Errorf("status: exit code %d: %s", code, out)
	}
	var v daemon.Inspection
	if _, out := m.raw("/app/ipamd view"); json.Unmarshal([]byte(out), &v) != nil || v.View.Assigned != 1 || len(v.Rows) == 0 {
		t.Errorf("view: %s", out)
	}
	_, recording := m.raw("/app/ipamd record")
	file := t.TempDir() + "/node.rec"
	must.Do(m.t, os.WriteFile(file, []byte(strings.TrimRight(recording, "\n")+"\n"), 0o600))
	if out, err := exec.Command(binary(t, "enilab"), "replay", file).CombinedOutput(); err != nil || !strings.Contains(string(out), a.address.String()) {
		t.Errorf("replay: %v: %s", err, out)
	}
	m.term()
	m.start("ENABLE_IPv6=true")
	m.says("ENABLE_IPv6")
	if code, out := m.raw("/app/ipamd status"); code != 1 || !strings.HasPrefix(out, "not ready\n  ENABLE_IPv6: ") {
		t.Errorf("status: exit code %d: %s", code, out)
	}
}
