package gate_test

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/sim/vm"
)

// short is a scenario that takes seconds: pods of before live on when others are made.
const short = `# Pods come.
vary    change=20s
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 3 on node-1
at 40s  kube create more 3
at 40s  within 30s expect kube pods.ready == 6
finally converges within 30s
`

// forgetful is a version that looks for what it knew in another file.
const forgetful = `
versions:
  - {from: 1.0.0, before: 1.1.0}
  - from: 1.1.0
    daemon:
      argv: [/app/addressd, "${POD_RANGE}", /run/handout.sock, /var/lib/elsewhere.json]
`

// TestMachines: a version that cannot read what the one before wrote is fine alone, and red as an upgrade. Again, nothing is played; and from a version to
// itself nothing is red.
func TestMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("virtual machines take a quarter of a minute each")
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("needs qemu-system-x86_64 (apt-get install --no-install-recommends qemu-system-x86)")
	}
	if len(vm.Find()) == 0 {
		t.Skip("needs a kernel: " + vm.HowToGet())
	}
	dir := t.TempDir()
	for _, packages := range [][]string{{"../cmd/enilab", "../cmd/ipamd", "../cmd/aws-cni"},
		{"../docs/systems/addressd", "../docs/systems/ask", "github.com/containernetworking/plugins/plugins/main/ptp"}} {
		c := exec.Command("go", append([]string{"build", "-trimpath", "-tags", "grpcnotrace", "-o", dir + "/"}, packages...)...)
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	description, err := os.ReadFile("../docs/systems/handout.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"handout.yaml": string(description) + forgetful, "short.scn": short} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	run := func(from, to string) (*gate.Page, int, string) {
		t.Helper()
		var errs bytes.Buffer
		c := exec.Command(filepath.Join(dir, "enilab"), "gate", "--from", "handout.yaml@"+from+"=.", "--to", "handout.yaml@"+to+"=.", "--no-figures", "--json", "-", "--cache", "cache", "short.scn")
		c.Dir, c.Stderr = dir, &errs
		out, err := c.Output()
		if err != nil && c.ProcessState == nil {
			t.Fatal(err)
		}
		p := &gate.Page{}
		if err := json.Unmarshal(out, p); err != nil {
			t.Fatalf("%v: %s%s", err, out, errs.String())
		}
		return p, c.ProcessState.ExitCode(), errs.String()
	}
	p, code, errs := run("1.0.0", "1.1.0")
	if code != 1 || !p.Red {
		t.Fatalf("exit code %d: %+v\n%s", code, p.Verdict, errs)
	}
	at := slices.IndexFunc(p.Verdict.Findings, func(f gate.Finding) bool { return f.Check == "no address is in two live namespaces" })
	if at < 0 || p.Verdict.Findings[at].Kind != gate.Regression || !strings.HasPrefix(p.Verdict.Findings[at].Cause, "the change, in both directions") {
		t.Errorf("findings: %+v", p.Verdict.Findings)
	}
	again, code, _ := run("1.0.0", "1.1.0")
	if again.Took > 30e9 || code != 1 || len(again.Verdict.Findings) != len(p.Verdict.Findings) {
		t.Errorf("again: exit code %d after %v: %+v", code, again.Took, again.Verdict)
	}
	if p, code, errs := run("1.1.0", "1.1.0"); code != 0 || p.Red {
		t.Errorf("from a version to itself: exit code %d: %+v\n%s", code, p.Verdict, errs)
	}
}
