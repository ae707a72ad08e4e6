package cli

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/swarm"
)

// flushed breaks: nobody repairs the machine's own routes.
const flushed = `# A stranger flushed the main table.
cluster nodes=2 type=m5.large
start   pods web 4 on node-*
at 1m   node-1 restart
at 2m7s node-1 flush-routes
at 3m   kube roll web 2
finally converges within 20m
`

// TestSwarmRefuses: bad seeds and files that cannot be shrunk end with code 2, a sentence that says what to do, and nothing is run.
func TestSwarmRefuses(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm, "bad.scn": "cluster nodes=1\nat 0s node-1 restrat\n", "flushed.scn": flushed, "file": "",
		"full.scn": "cluster nodes=1 subnet=10.0.0.0/28\nstart pods web 40 on node-1\nfinally converges within 1m\n"})
	for _, c := range []struct{ args, says string }{
		{"swarm", "swarm needs seeds (such as: enilab swarm --seeds 1-500)"},
		{"swarm --seeds 9-2", `seed range "9-2" runs backwards (write 2-9)`},
		{"swarm --seeds one-two", `"one" is not a whole number`},
		{"swarm --seeds -3", `seed range "-3": "" is not a whole number`},
		{"swarm --seeds 1-", `seed range "1-": "" is not a whole number`},
		{"swarm --seeds 1-100001", "100,000"},
		{"swarm --seeds 0-18446744073709551615", "100,000"},
		{"swarm --seeds 1-2 --print", "--print writes the scenario of one seed"},
		{"swarm --seeds 1-2 --known", "--known plays the list and nothing else"},
		{"swarm --seeds 1 --keep file/x", "--keep needs a folder"},
		{"swarm now", "takes no arguments"},
		{"swarm --seeds 1 --on kind", "a swarm plays in world sim or netns: found --on kind"},
		{"swarm --seeds 1 --in vm", "use them with --on netns"},
		{"swarm --seeds 1 --without-books", "use them with --on netns"},
		{"swarm --seeds 1 --on netns --in qemu", "--in: expected vm or vm=KERNEL, found \"qemu\""},
		{"swarm --seeds 1 --on netns --in vm=", "--in: expected vm or vm=KERNEL"},
		{"swarm --seeds 1 --on netns --in vm --cni nobodys@1.2.3", "nobodys"},
		{"swarm --seeds 1 --on netns --in vm --cni ptp@1.9.1 --against no-cool-down", "--against plays one of our mutants"},
		{"swarm --seeds 1 --against no-cool-dwon", "did you mean \"no-cool-down\"?"},
		{"swarm --seeds 1 --for -1m", "--for and --limit are durations"},
		{"swarm --known --against no-cool-down", "--known plays the list and nothing else"},
		{"shrink calm.scn --tries -1", "--tries and --times are numbers of runs"},
		{"shrink calm.scn --times 0", "--tries and --times are numbers of runs"},
		{"shrink calm.scn --cni ptp@1.9.1", "use them with --on netns"},
		{"shrink", "shrink needs one scenario file"},
		{"shrink calm.scn flushed.scn", "shrink needs one scenario file"},
		{"shrink .", ".: it is a folder, not a scenario"},
		{"shrink clam.scn", "clam.scn: there is no such file (did you mean calm.scn?)"},
		{"shrink bad.scn", `bad.scn:2:14: node-1 cannot "restrat" (did you mean restart?)`},
		{"shrink calm.scn", "shrink calm.scn: it holds with seed 1, and there is nothing to shrink (name a seed with which it breaks: --seed N)"},
		{"shrink full.scn", "shrink full.scn: it never came to run"},
		{"shrink flushed.scn -o ./flushed.scn", "would write over the scenario itself"},
	} {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		if code != 2 || !strings.Contains(errs, c.says) || out != "" {
			t.Errorf("%s: exit %d, expected %q in %s%s", c.args, code, c.says, errs, out)
		}
	}
}

// TestSwarmIsPlayed: a batch is summed up, for people and as JSON, and its seeds can be had as files.
func TestSwarmIsPlayed(t *testing.T) {
	in(t, nil)
	code, out, errs := enilab(t, "swarm", "--seeds", "1-8")
	if code != 0 || !strings.Contains(out, "held  seeds 1-8: ") || !strings.Contains(out, " coverage points; ") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	var d swarmJSON
	code, out, _ = enilab(t, "swarm", "--seeds", "1-8", "--json")
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if code != 0 || d.Enilab != "swarm/1" || d.Runs != 8 || d.First != 1 || d.Last != 8 || d.Events == 0 || len(d.Struck) == 0 || len(d.Unreached) == 0 {
		t.Errorf("exit %d: %+v", code, d)
	}
	if _, out, _ := enilab(t, "swarm", "--seeds", "17", "--print"); out != swarm.Draw(17) {
		t.Errorf("printed: %s", out)
	}
	if code, out, _ := enilab(t, "swarm", "--known"); code != 0 || !strings.Contains(out, "each as the list says") {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestSwarmTellsWhatIsNew: a violation that is not in the list is red, shrunk to a file that breaks, and told with a line for the list; a
// verb that a large batch never played is red too.
func TestSwarmTellsWhatIsNew(t *testing.T) {
	in(t, nil)
	out := &strings.Builder{}
	l := &cli{out: out, err: &strings.Builder{}, interrupted: func() bool { return false }}
	tally := swarm.NewTally(nil)
	tally.Add(17, &swarm.Outcome{Broken: &swarm.Broken{Invariant: "nothing is leaked", Cause: "node-# leaks: x", Text: "node-1 leaks: x", Node: 1}})
	r := swarmResult{Seeds: runner.Seeds{From: 1, To: 600}, venue: &venue{venueFlags: &venueFlags{on: "sim"}}, tally: tally}
	r.unknown, r.known = tally.Findings()
	r.shrunk = map[*swarm.Finding]keptFile{r.unknown[0]: {File: "found/swarm-17.scn", Seed: 2, Lines: 3, From: 20,
		entry: swarm.Entry{File: "swarm-17.scn", Seed: 2, Invariant: "nothing is leaked", Cause: "node-# leaks: x"}}}
	l.tellSwarm(&r)
	for _, says := range []string{"violated  seed 17  \"nothing is leaked\" broke at 0s on node-1: node-1 leaks: x\n", "1 seed broke so: 17",
		"found/swarm-17.scn has 3 of its 20 lines", "for the list: swarm-17.scn | 2 | nothing is leaked | node-# leaks: x\n",
		"again: enilab swarm --seeds 17 --print > swarm-17.scn && enilab run swarm-17.scn --seed 17\n",
		`not played  "node kill", which the swarm draws, struck in no seed of 1`, "violated  seeds 1-600: 0 held, 1 violated in 0 known ways and 1 new one"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("expected %q in\n%s", says, out)
		}
	}
	if r.exit() != 1 {
		t.Errorf("exit %d", r.exit())
	}
}

// TestShrinkWritesAFile: the small file has a headline, and breaks as the large one did.
func TestShrinkWritesAFile(t *testing.T) {
	in(t, map[string]string{"flushed.scn": flushed})
	code, out, errs := enilab(t, "shrink", "flushed.scn")
	if code != 0 || !strings.Contains(out, "shrunk  flushed.scn: 4 lines of 6 after ") || !strings.Contains(out, "again: enilab run flushed-small.scn --seed 1\n") {
		t.Fatalf("exit %d: %s%s", code, out, errs)
	}
	small, err := os.ReadFile("flushed-small.scn")
	if err != nil || !strings.HasPrefix(string(small), `# "every live pod is reachable" broke at `) || !strings.Contains(string(small), "Shrunk from flushed.scn with seed 1: 4 lines of 6.") {
		t.Errorf("%v: %s", err, small)
	}
	if code, out, _ := enilab(t, "run", "flushed-small.scn"); code != 1 || !strings.Contains(out, "every live pod is reachable") {
		t.Errorf("the small one: exit %d: %s", code, out)
	}
	if _, out, errs := enilab(t, "shrink", "flushed.scn", "-o", "-"); out != string(small) || !strings.Contains(errs, "shrunk  flushed.scn") {
		t.Errorf("to standard output:\n%s%s", out, errs)
	}
}

// TestSwarmForAnybody: on a kernel other scenarios are drawn, short ones for any CNI; where it is named, only for what it knows.
func TestSwarmForAnybody(t *testing.T) {
	in(t, nil)
	_, ours, _ := enilab(t, "swarm", "--seeds", "7", "--print")
	code, any, errs := enilab(t, "swarm", "--on", "netns", "--in", "vm", "--seeds", "7", "--print")
	if code != 0 || any != swarm.Ours().Draw(7) || any == ours || !strings.HasPrefix(any, "# Drawn by enilab swarm for any CNI from seed 7.\n") {
		t.Errorf("exit %d: %s%s", code, any, errs)
	}
}

// TestSwarmAgainst: a mutant is found in virtual time, shrunk with the same mutant, and told with it.
func TestSwarmAgainst(t *testing.T) {
	in(t, nil)
	code, out, errs := enilab(t, "swarm", "--seeds", "1-4", "--against", "no-cool-down", "--keep", "found", "--json")
	var d swarmJSON
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 1 {
		t.Fatalf("exit %d: %v %s", code, err, errs)
	}
	if d.World != "sim" || d.Against != "no-cool-down" || len(d.Violations) == 0 {
		t.Fatalf("%+v", d)
	}
	v := d.Violations[0]
	if v.Shrunk == nil || v.Shrunk.Again != 2 || v.Shrunk.Of != 2 || !strings.HasSuffix(v.Shrunk.Command, " --against no-cool-down") {
		t.Fatalf("%+v", v.Shrunk)
	}
	if code, out, _ = enilab(t, strings.Fields(v.Shrunk.Command)[1:]...); code != 1 || !strings.Contains(out, v.Invariant) {
		t.Errorf("%s: exit %d: %s", v.Shrunk.Command, code, out)
	}
}

// TestSwarmFor: as many seeds are played as fit, and only those are told of.
func TestSwarmFor(t *testing.T) {
	in(t, nil)
	code, out, errs := enilab(t, "swarm", "--seeds", "3", "--for", "1s", "--json")
	var d swarmJSON
	if err := json.Unmarshal([]byte(out), &d); err != nil || code != 0 {
		t.Fatalf("exit %d: %v %s", code, err, errs)
	}
	if d.First != 3 || d.Last < 3 || d.Runs < 1 || d.Runs > int(d.Last-d.First)+1 {
		t.Errorf("seeds %d to %d, %d runs", d.First, d.Last, d.Runs)
	}
}

// TestSwarmIsUnknown: what nobody knows is neither held nor violated, and is told.
func TestSwarmIsUnknown(t *testing.T) {
	out := &strings.Builder{}
	l := &cli{out: out, err: &strings.Builder{}, interrupted: func() bool { return false }}
	tally := swarm.TallyFor(swarm.Ours())
	tally.Add(2, &swarm.Outcome{Unknown: "too slow: late by 3s"})
	r := swarmResult{Seeds: runner.Seeds{From: 2, To: 2},
		venue: &venue{venueFlags: &venueFlags{on: "netns", in: machineFlag{given: true, kernel: "/boot/vmlinuz"}}},
		tally: tally}
	l.tellSwarm(&r)
	for _, says := range []string{"unknown  seed 2: too slow: late by 3s\n", "nothing known of 1 run"} {
		if !strings.Contains(out.String(), says) {
			t.Errorf("expected %q in\n%s", says, out)
		}
	}
	if d := r.document(); r.exit() != runner.ExitNotPlayed || d.Unknown != 1 || d.Kernel != "/boot/vmlinuz" || d.World != "netns" {
		t.Errorf("exit %d: %+v", r.exit(), d)
	}
}

// TestSwarmOnNetns plays our own daemon on this machine's kernel.
func TestSwarmOnNetns(t *testing.T) {
	if err := netnsworld.Available(); err != nil {
		t.Skip(err)
	}
	program := binaries(t)
	out, err := exec.Command(program, "swarm", "--on", "netns", "--without-books", "--seeds", "1-2", "--json").Output()
	var d swarmJSON
	if jsonErr := json.Unmarshal(out, &d); jsonErr != nil {
		t.Fatalf("%v, %v: %s", err, jsonErr, out)
	}
	if d.Runs+d.Unknown != 2 || len(d.Violations) > 0 || d.Runs > 0 && len(d.Struck) == 0 { // a machine that does not keep up knows nothing
		t.Errorf("%+v", d)
	}
}

// TestVerbsSaySurvivable: what no CNI survives is told with its reason.
func TestVerbsSaySurvivable(t *testing.T) {
	_, out, _ := enilab(t, "verbs", "--json")
	var d struct {
		Verbs []struct{ Name, Survivable, Why string }
	}
	must.Do(t, json.Unmarshal([]byte(out), &d))
	words := map[string]string{}
	for _, v := range d.Verbs {
		words[v.Name] = v.Survivable
		if (v.Survivable == "yes") != (v.Why == "") {
			t.Errorf("%s: %s, because %q", v.Name, v.Survivable, v.Why)
		}
	}
	for name, word := range map[string]string{"unassign": "no", "remove": "no", "draw": "no", "flush-routes": "partly", "detach": "partly", "kill": "yes"} {
		if words[name] != word {
			t.Errorf("%s: expected %q, found %q", name, word, words[name])
		}
	}
	if _, out, _ := enilab(t, "verbs"); !strings.Contains(out, "SURVIVABLE") {
		t.Errorf("no column: %s", out)
	}
}

// binaries are enilab and, beside it, what it plays on a kernel.
func binaries(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it builds and plays for half a minute")
	}
	dir := t.TempDir()
	c := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags", "-s -w", "-o", dir+"/",
		"github.com/enilab/enilab/cmd/enilab", "github.com/enilab/enilab/cmd/ipamd", "github.com/enilab/enilab/cmd/aws-cni")
	c.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return filepath.Join(dir, "enilab")
}
