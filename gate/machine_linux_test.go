package gate_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/internal/must"
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

// TestMachines: a version that cannot read what the one before wrote is fine alone, and red as an upgrade. Again,
// nothing is played; the command of what was found plays that play once more, byte for byte; and from a version to
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
	description := must.Get(os.ReadFile("../docs/systems/handout.yaml"))(t)
	t.Chdir(dir)
	for name, text := range map[string]string{"handout.yaml": string(description) + forgetful, "short.scn": short} {
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	}
	run := func(from, to string) *gate.Page {
		t.Helper()
		p := must.Get(gate.Run(t.Context(), gate.Config{From: "handout.yaml@" + from + "=.",
			To: "handout.yaml@" + to + "=.", Scenarios: []string{"short.scn"}, NoFigures: true, Cache: "cache",
			Out: "out", Program: filepath.Join(dir, "enilab"), Tell: func(p gate.Progress) { t.Logf("%+v", p) }}))(t)
		return p
	}
	p := run("1.0.0", "1.1.0")
	if o := p.Outcome(); o.Exit != 1 || !p.Red {
		t.Fatalf("%+v: %+v", o, p.Verdict)
	}
	at := slices.IndexFunc(p.Verdict.Findings, func(f gate.Finding) bool { return f.Check == "no address is in two live namespaces" })
	if at < 0 || p.Verdict.Findings[at].Kind != gate.Regression || !strings.HasPrefix(p.Verdict.Findings[at].Cause, "the change, in both directions") {
		t.Fatalf("findings: %+v", p.Verdict.Findings)
	}
	if again := run("1.0.0", "1.1.0"); again.Played > 0 || again.Exit != 1 ||
		len(again.Verdict.Findings) != len(p.Verdict.Findings) {
		t.Errorf("again: %d runs were played, %+v", again.Played, again.Verdict)
	}
	playAgain(t, &p.Verdict.Findings[at])
	if p := run("1.1.0", "1.1.0"); p.Exit != 0 || p.Red {
		t.Errorf("from a version to itself: %+v", p.Verdict)
	}
}

// playAgain carries out the command of a finding without what is known of earlier plays, and compares what came of it
// with what came before.
func playAgain(t *testing.T, f *gate.Finding) {
	t.Helper()
	c := exec.Command("sh", "-c", f.Again+" --cache - --out again")
	c.Env = append(os.Environ(), "PATH=.:"+os.Getenv("PATH"))
	text, err := c.CombinedOutput()
	if c.ProcessState == nil || c.ProcessState.ExitCode() != 1 {
		t.Fatalf("%s: expected exit code 1, found %v: %s", f.Again, err, text)
	}
	for _, play := range []gate.Play{gate.Old, f.Plays[0]} {
		for _, ending := range []string{"scn", "txt"} {
			name := fmt.Sprintf("%s.%s.%d.%s", f.Scenario, play, f.Seed, ending)
			before, err := os.ReadFile(filepath.Join("out", name))
			after, err2 := os.ReadFile(filepath.Join("again", name))
			if err != nil || err2 != nil || len(before) == 0 || !bytes.Equal(before, after) {
				t.Errorf("%s: %s is another one: %v, %v\n%s\nbefore:\n%s", f.Again, name, err, err2, after, before)
			}
		}
	}
}
