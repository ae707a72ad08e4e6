package vm_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
)

// forked is short, with something that happens later and can be something else.
const forked = `cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 2 on node-1
always  "nothing is leaked"
at 30s  kube create early 1
at 1m   node-1 restart
at 2m   expect node-1 addresses.assigned == 3
finally converges within 1m
`

// TestBranchesAreTheSameBytes: what branches off a trunk is the same bytes whenever it is played, from that trunk or
// another one, and what it brings decides how it goes on.
func TestBranchesAreTheSameBytes(t *testing.T) {
	lab := &vm.Laboratory{Program: filepath.Join(binaries(t), "enilab")}
	must.Do(t, lab.Open())
	defer lab.Close()
	grow := func(at time.Duration) *vm.LabTrunk {
		t.Helper()
		trunk := must.Get(lab.Trunk(t.Context(), &vm.Play{Seed: 3, Flags: []string{"--clock", "machine", "--json", "--timeline"}, Names: []string{"forked.scn"},
			Files: []vm.JobFile{{Path: "forked.scn", Data: []byte(forked)}}, Out: true}, at))(t)
		t.Cleanup(func() { _ = trunk.Close() })
		return trunk
	}
	play := func(trunk *vm.LabTrunk, text string) *vm.Played {
		t.Helper()
		return must.Get(trunk.Play(t.Context(), &vm.Branch{Scenario: text}))(t)
	}
	told := func(p *vm.Played) string {
		t.Helper()
		d := &runner.Document{}
		must.Do(t, p.Document(d))
		if len(d.Files) != 1 || len(d.Files[0].Variants) != 1 || d.Files[0].Status != "held" {
			t.Fatalf("expected one run that holds, found %+v", d)
		}
		return strings.Join(d.Files[0].Variants[0].Timeline, "\n")
	}
	one, other := grow(time.Minute), grow(time.Minute)
	first := play(one, forked)
	killed := strings.Replace(forked, "node-1 restart", "node-1 kill", 1)
	second := play(one, killed)
	a, b := told(first), told(second)
	past, _, _ := strings.Cut(a, "1:00.0")
	if strings.Contains(a, "killed") || !strings.Contains(b, "killed") || !strings.HasPrefix(b, past+"1:00.0") {
		t.Errorf("expected that the two differ in what happens at 1m, found\n%s\n\n%s", a, b)
	}
	for _, again := range []struct{ was, is *vm.Played }{{first, play(one, forked)}, {second, play(other, killed)}} {
		if d := vm.Difference(again.was, again.is); d != "" {
			t.Errorf("a branch is not the same when it is played again:\n%s", d)
		}
	}
	late := play(one, strings.Replace(forked, "create early 1", "create early 2", 1))
	if text := string(late.Stdout) + string(late.Stderr); late.Code != runner.ExitLacking && late.Code == 0 || !strings.Contains(text, "only actions that are still to come can be exchanged") {
		t.Errorf("a branch whose past is another one: expected that it is refused, found exit code %d, %s", late.Code, text)
	}
	whole := grow(time.Hour)
	if whole.Over == nil {
		t.Fatal("a run that ends before it branches: expected that the trunk is all of it")
	}
	told(play(whole, killed))
}
