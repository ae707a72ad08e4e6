package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/scn"
)

// calm is a scenario that holds.
const calm = `# Nothing happens. Nobody minds.
# Source: a test.
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 2 on node-1
always  "nothing is leaked"
at 1m   node-1 restart
at 2m   expect node-1 addresses.assigned == 2
finally converges within 1m
`

// enilab runs a command line in dir.
func enilab(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = Run(args, strings.NewReader(""), &o, &e, nil)
	return code, o.String(), e.String()
}

// refuses runs a command line that is bad: it says what is wrong with it, and nothing on standard output.
func refuses(t *testing.T, args string, says ...string) {
	t.Helper()
	code, out, errs := enilab(t, strings.Fields(args)...)
	if code != runner.ExitBad || out != "" {
		t.Errorf("enilab %s: exit %d, want %d, and nothing on standard output\n%s", args, code, runner.ExitBad, out)
	}
	for _, s := range says {
		if !strings.Contains(errs, s) {
			t.Errorf("enilab %s: expected %q in\n%s", args, s, errs)
		}
	}
}

// in makes a folder with these files and goes there.
func in(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		must.Do(t, os.WriteFile(name, []byte(text), 0o644))
	}
}

// TestRefuses: bad input ends with code 2, says where and what to do, and starts nothing.
func TestRefuses(t *testing.T) {
	line := func(s string) string { return "cluster nodes=1\nstart pods web 1 on node-1\n" + s + "\n" }
	in(t, map[string]string{
		"verb.scn": line("at 0s node-1 restrat"), "node.scn": line("at 0s node-2 restart"), "mutant.scn": line(`against no-reapir breaks "nothing is leaked"`),
		"invariant.scn": line(`always "nothing is leeked"`), "duration.scn": line("at 5x node-1 restart"), "pod.scn": line("at 0s pod db-0 delete"),
		"setting.scn": line("config WARM_IP_TARGTE=1"), "metric.scn": line("at 0s expect node-1 adresses.free == 1"), "mark.scn": line("reaches eni-swebt"),
		"empty.scn": "", "binary.scn": "\x7fELF\x00\x01\x02", "big.scn": strings.Repeat("# a log\n", 10<<20/8), "calm.scn": calm,
		"event.scn": line(`event "x"`), "round.scn": line("at 0s node-1 restrat\nat 5x node-1 restart\nreaches eni-swebt\nevent \"x\"\nat 0s node-9 restart"),
		"ghost.scn": line("at 0s pod web-99 delete"),
		"room.scn":  "cluster nodes=1 subnet=10.0.0.0/28\nstart pods web 40 on node-1\nalways \"nothing is leaked\"\n",
	})
	for _, c := range []struct {
		args string
		says []string
	}{
		{"run verb.scn", []string{`verb.scn:3:14: node-1 cannot "restrat" (did you mean restart?)`, "nothing was run: 1 mistake"}},
		{"run node.scn", []string{"node.scn:3:7: there is no node-2", "raise nodes="}},
		{"run mutant.scn", []string{`mutant.scn:3:9: unknown mutant "no-reapir" (did you mean "no-repair"?)`}},
		{"run invariant.scn", []string{`invariant.scn:3:8: unknown invariant "nothing is leeked" (did you mean "nothing is leaked"?)`}},
		{"run duration.scn", []string{`duration.scn:3:4: "5x" is not a duration (such as 30s`}},
		{"run pod.scn", []string{`pod.scn:3:7: no workload of pod "db-0" was made before this line`, "there are web"}},
		{"run setting.scn", []string{`setting.scn:3:8: unknown setting "WARM_IP_TARGTE" (did you mean WARM_IP_TARGET?)`}},
		{"run metric.scn", []string{`node-1 has no metric "adresses.free" (did you mean "addresses.free"?)`}},
		{"run mark.scn", []string{`mark.scn:3:9: unknown coverage point "eni-swebt" (did you mean "eni-swept"?)`}},
		{"run event.scn", []string{`event.scn:3:1: unknown statement "event" (known: cluster, `, "nothing was run: 1 mistake"}},
		{"run round.scn", []string{`round.scn:3:14: node-1 cannot "restrat"`, `round.scn:4:4: "5x" is not a duration`, `round.scn:5:9: unknown coverage point`,
			`round.scn:6:1: unknown statement "event"`, `round.scn:7:7: there is no node-9`, "nothing was run: 5 mistakes"}},
		{"run ghost.scn", []string{"ghost.scn:3:7: there is never a pod web-99: workload web is scaled to 1 at most (the last one is web-0)"}},
		{"run empty.scn", []string{"empty.scn:1:1: the file is empty"}},
		{"run binary.scn", []string{"binary.scn:1:5: not a scenario: binary data at byte 4"}},
		{"run big.scn", []string{"big.scn: the file has 10485760 bytes", "is this a scenario?"}},
		{"run .", []string{".: it is a folder, not a scenario (name the files in it"}},
		{"run calmm.scn", []string{"calmm.scn: there is no such file (did you mean calm.scn?)"}},
		{"run nowhere/calm.scn", []string{"there is no folder nowhere either"}},
		{"run calm.scn verb.scn node.scn empty.scn", []string{"verb.scn:3:14", "node.scn:3:7", "empty.scn:1:1", "nothing was run: 3 mistakes"}},
		{"run -", []string{"-:1:1: the file is empty"}},
		{"run", []string{"run needs a scenario file"}},
		{"run --in vm calm.scn", []string{"--in vm plays world netns: use it with --on netns"}},
		{"run --in vm --on kind calm.scn", []string{"--in vm plays world netns", "world kind is not played in a virtual machine"}},
		{"run --in kvm --on netns calm.scn", []string{"--in: expected"}},
		{"run --on netns --in vm=calm.scn calm.scn", []string{"kernel calm.scn: ", "expected a vmlinuz or a Debian kernel package (.deb)", "enilab vm kernels"}},
		{"run --on netns --in vm=nothing calm.scn", []string{"kernel: open nothing: no such file", "enilab vm kernels"}},
		{"run --on netns --in vm verb.scn", []string{`verb.scn:3:14: node-1 cannot "restrat"`}},
		{"run --on netns --in vm --keep calm.scn", []string{"--keep leaves a laboratory up on this machine: leave --in out"}},
		{"run --on netns --twice calm.scn", []string{"--on netns --in vm"}},
		{"run --timeout 1m calm.scn", []string{"--timeout is for virtual machines"}},
		{"run --on netns --in vm --timeout 0s calm.scn", []string{"expected more than no time"}},
		{"run --on netns --arch " + another() + " calm.scn", []string{"--arch is for virtual machines: use it with --in vm"}},
		{"run --on netns --in vm --arch riscv64 calm.scn", []string{`--arch: expected amd64 or arm64, found "riscv64"`}},
		{"run --branch-at 1m calm.scn", []string{"--branch-at is what enilab gate gives to its virtual machines: leave it out"}},
		{"run --pause-at 1m calm.scn", []string{"--pause-at stops a virtual machine: use it with --on netns --in vm"}},
		{"run --on netns --pause-at 1m calm.scn", []string{"--pause-at stops a virtual machine: use it with --on netns --in vm"}},
		{"run --on netns --in vm --pause-at noon calm.scn", []string{"--pause-at: expected", "such as 3m5s"}},
		{"run --on netns --in vm --pause-at -1s calm.scn", []string{"--pause-at: expected", "such as 3m5s"}},
		{"run --on netns --in vm --pause-at 1000h calm.scn", []string{"--pause-at 1000h: no run gets there, the longest ends at "}},
		{"run --on netns --in vm --pause-at 1m --seeds 1-2 calm.scn", []string{"name a seed with --seed in place of --seeds"}},
		{"run --on netns --in vm --pause-at 1m --twice calm.scn", []string{"--pause-at gives one shell"}},
		{"run --on netns --in vm --pause-at 1m --json calm.scn", []string{"leave --json out"}},
		{"run --on netns --in vm --pause-at 1m --clock leap calm.scn", []string{"--clock leap jumps over it"}},
		{"run --on netns --in vm --pause-at 1m -", []string{"name the scenario's file in place of -"}},
		{"run --out x calm.scn", []string{"use it with --on netns"}},
		{"run --clock machine calm.scn", []string{"use it with --on netns"}},
		{"vm kernel", []string{`unknown command "kernel"`}},
		{"rnu calm.scn", []string{`unknown command "rnu" (did you mean "run"?)`}},
		{"help rnu", []string{`unknown command "rnu" (did you mean "run"?)`}},
		{"run --crash-evrywhere calm.scn", []string{"unknown flag: --crash-evrywhere (did you mean --crash-everywhere?)"}},
		{"run --seed x calm.scn", []string{`--seed: expected a whole number, found "x"`}},
		{"run --seed -1 calm.scn", []string{`--seed: expected a whole number`}},
		{"run --on smi calm.scn", []string{`unknown world "smi" (did you mean "sim"?)`}},
		{"run --on moon calm.scn", []string{`unknown world "moon" (there are sim, netns, kind)`}},
		{"run --on", []string{"--on lacks its value: expected --on WORLD"}},
		{"run --seeds 9-2 calm.scn", []string{`--seeds: seed range "9-2" runs backwards (write 2-9)`}},
		{"run --seeds some calm.scn", []string{`--seeds: seed range "some": "some" is not a whole number (write the first and the last seed, such as 1-200)`}},
		{"run --seeds 1-x calm.scn", []string{`"x" is not a whole number`}},
		{"swarm --seeds 9-2", []string{`seed range "9-2" runs backwards`}},
		{"shrink event.scn", []string{"event.scn:3:1", "nothing was run: 1 mistake"}},
		{"demo --on moon calm.scn", []string{`unknown world "moon" (there are sim, netns, all)`}},
		{"up --on moon", []string{`up cannot make a world "moon"`}},
		{"serve all --config .", []string{".: it is a folder, not a world file (name a file in it)"}},
		{"run --against no-reapir calm.scn", []string{`unknown mutant "no-reapir" (did you mean "no-repair"?)`}},
		{"run --update --seed 2 calm.scn", []string{"leave --seed"}},
		{"verbs now", []string{`enilab verbs takes no arguments, found "now"`}},
		{"demo .", []string{"verb.scn:3:14", "nothing was run"}},
		{"demo nowhere", []string{"there is no such file"}},
		{"record calm.scn --node 2", []string{"there is no node-2: the cluster of calm has nodes=1"}},
		{"record calm.scn --life 9", []string{"node-1 has no life 9 in calm: it has 2"}},
		{"record calm.scn verb.scn", []string{"takes one file, found 2"}},
		{"record room.scn", []string{"did not within 30m"}},
		{"replay nowhere.rec", []string{"nowhere.rec"}},
		{"replay .", []string{". is a folder, expected a recording"}},
		{"replay /dev/zero", []string{"/dev/zero: line 1 has more than 4194304 bytes"}},
		{"replay calm.scn", []string{"the header (line 1)", "nothing can be replayed"}},
		{"replay empty.scn", []string{"the header (line 1) is cut off"}},
	} {
		refuses(t, c.args, c.says...)
	}
	code, out, _ := enilab(t, "run", "room.scn")
	if code != 2 || !strings.Contains(out, "the cluster never started") || !strings.Contains(out, "larger subnet") {
		t.Errorf("no room: exit %d\n%s", code, out)
	}
}

// ending is what a command line ends with, and something of what it says.
type ending struct {
	args string
	code int
	says string
}

func checkEndings(t *testing.T, rows []ending) {
	t.Helper()
	for _, c := range rows {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out+errs, c.says) {
			t.Errorf("enilab %s: exit code %d, want %d, with %q\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
	}
}

// TestCodes: what commands end with, and the beginning of what they say.
func TestCodes(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm, "wrong.scn": strings.Replace(calm, "== 2", "== 3", 1), "mute.scn": "cluster nodes=1\n",
		"rules.scn": "cluster nodes=1 type=m5.large\nstart pods web 14 on node-1\nat 1m node-1 flush-rules\nat 4m expect node-1 addresses.assigned == 14\n",
		"big.scn":   "cluster nodes=65\nalways \"nothing is leaked\"\n"})
	for _, c := range []ending{
		{"run calm.scn", 0, "held  calm  1 variant, 1 expectation judged, 0 skipped, "},
		{"run calm.scn --seed 9 --twice", 0, "held  calm"},
		{"run calm.scn --against no-sweep", 0, "; under mutant no-sweep\n"},
		{"run rules.scn --against no-repair", 1, "again: enilab run rules.scn --seed 1 --against no-repair\n"},
		{"run wrong.scn", 1, "violated  wrong  line 7, at 2m: expected node-1 addresses.assigned == 3; found 2\nwhat happened until then\n"},
		{"run mute.scn", 3, "skipped  mute"},
		{"run calm.scn wrong.scn mute.scn", 1, "3 files: 1 held, 1 violated, 1 skipped\n"},
		{"run calm.scn --crash-everywhere", 0, ", all settled like no crash\n"},
		{"run big.scn --crash-everywhere", 2, ""},
		{"run --on netns calm.scn", 3, ""},
		{"run --on lab calm.scn", 3, ""}, // its earlier name
		{"lab --help", 0, "enilab netns list"},
		{"run --on kind calm.scn", 3, ""},
		{"demo calm.scn", 0, "all held: 1 incident in virtual time; 0 of 0 mutants caught; "},
		{"demo calm.scn wrong.scn", 1, "1 of 2 held: 2 incidents in virtual time; "},
		{"version", 0, "records and protocol version 2"},
		{"--version", 0, "records and protocol version 2"},
		{"verbs", 0, "flush-routes"},
		{"invariants", 0, "I13"},
		{"mutants", 0, "socket-mismatch"},
		{"", 0, "enilab demo"},
		{"help run", 0, "--crash-everywhere"},
		{"run --help", 0, "storyDiffers {line, golden, now}"},
	} {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(out, c.says) {
			t.Errorf("enilab %s: exit %d, want %d, with %q\n%s%s", c.args, code, c.code, c.says, out, errs)
		}
		if strings.Contains(out+errs, "\x1b") {
			t.Errorf("enilab %s: colours or progress, and nobody looks", c.args)
		}
	}
}

// TestOneRound: what is wrong with a file is a line each, with its position and mostly what to do, and then one that counts them.
func TestOneRound(t *testing.T) {
	in(t, map[string]string{"round.scn": "cluster nodes=1\nstart pods web 1 on node-1\nevent \"x\"\nat 0s node-1 restrat\nreaches nowhere\n"})
	_, out, errs := enilab(t, "run", "round.scn")
	if want := `^(round\.scn:\d+:\d+: [^\n]+ \([^\n]+\)\n){3}enilab: nothing was run: 3 mistakes\n$`; !regexp.MustCompile(want).MatchString(errs) || out != "" {
		t.Errorf("got\n%s%s", out, errs)
	}
}

// TestDemo: a row for each incident with a column for each world, and one sentence at the end; which have ended is said where nobody looks at a
// terminal, too, and without carriage returns.
func TestDemo(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm, "rules.scn": "# Rules went.\ncluster nodes=1 type=m5.large\nstart pods web 14 on node-1\nalways \"every live pod is reachable\"\n" +
		"at 1m node-1 flush-rules\nat 4m expect node-1 addresses.assigned == 14\nagainst no-repair breaks \"every live pod is reachable\" by 5m\n",
		"unproven.scn": calm + "against no-repair breaks \"nothing is leaked\"\n"})
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"demo --on sim calm.scn rules.scn", 0, []string{"INCIDENT ", "  SIM ", "  MUTANTS CAUGHT\n", "calm              Nothing happens. ", "held, 1", "no-repair at 2m",
			"\nall held: 2 incidents in virtual time; 1 of 1 mutant caught; "}},
		{"demo --on sim unproven.scn calm.scn", 6, []string{"UNPROVEN,", "no-repair was NOT", "\nunproven  unproven  line 9: ", "\n1 of 2 held: "}},
		{"demo calm.scn", 0, []string{"  SIM ", "  KERNEL ", "\nnot replayed on a real kernel: "}},
	} {
		code, out, errs := enilab(t, strings.Fields(c.args)...)
		for _, s := range c.says {
			if !strings.Contains(out, s) {
				t.Errorf("%s: expected %q in\n%s", c.args, s, out)
			}
		}
		if code != c.code || strings.Count(out, "INCIDENT") != 1 || strings.ContainsAny(out+errs, "\r\x1b") {
			t.Errorf("%s: exit %d, want %d, and one table\n%s%s", c.args, code, c.code, out, errs)
		}
		last := strings.Split(strings.TrimSuffix(errs, "\n"), "\n")
		if n := len(strings.Fields(c.args)); !regexp.MustCompile(`^sim: (\d) of \d incidents? over: \w+ \w+$`).MatchString(last[len(last)-1]) || len(last) > n {
			t.Errorf("%s said on standard error:\n%s", c.args, errs)
		}
	}
}

// TestHelpSpeaks: no help shows a type of the flag library, and each flag that takes a value has a name for it.
func TestHelpSpeaks(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			name, text := pflag.UnquoteUsage(f)
			if f.Value.Type() != "bool" && (name == "" || name != strings.ToUpper(name)) || text != f.Usage {
				t.Errorf("%s --%s takes %q: %s", c.CommandPath(), f.Name, name, f.Usage)
			}
		})
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&cli{}).root())
	if _, out, _ := enilab(t, "serve", "--help"); !strings.Contains(out, "--listen ADDR ") || !strings.Contains(out, "(default 127.0.0.1:4567)") {
		t.Errorf("serve --help:\n%s", out)
	}
	if _, out, _ := enilab(t, "help"); !strings.Contains(out, "6  unproven") {
		t.Errorf("help has no verdicts:\n%s", out)
	}
}

// TestUpdate: the story is rewritten, only it, only when the run held; and then it has to be told again.
func TestUpdate(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm + "-- notes --\nkept\n", "wrong.scn": strings.Replace(calm, "== 2", "== 3", 1)})
	must.Do(t, os.Chmod("calm.scn", 0o600))
	must.Do(t, os.Symlink("calm.scn", "link.scn"))
	if code, out, _ := enilab(t, "run", "--update", "link.scn"); code != 0 || !strings.Contains(out, "the timeline in link.scn is new") {
		t.Fatalf("exit %d: %s", code, out)
	}
	text := read(t, "calm.scn")
	if !strings.HasPrefix(text, calm+"-- notes --\nkept\n-- story --\n") || !strings.Contains(text, "node-1") {
		t.Errorf("the file is now\n%s", text)
	}
	if info, err := os.Lstat("link.scn"); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Error("the link is a file now")
	}
	if info, err := os.Stat("calm.scn"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if code, out, _ := enilab(t, "run", "calm.scn"); code != 0 {
		t.Errorf("the story is not told again: %s", out)
	}
	if err := os.WriteFile("calm.scn", []byte(strings.Replace(text, "-- story --\n", "-- story --\nonce\n", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, _ := enilab(t, "run", "calm.scn"); code != 1 || !strings.Contains(out, "golden  once\n") {
		t.Errorf("exit %d for another story: %s", code, out)
	}
	if code, _, _ := enilab(t, "run", "--update", "wrong.scn"); code != 1 || strings.Contains(read(t, "wrong.scn"), "story") {
		t.Errorf("a violated run gave a story: exit %d", code)
	}
	if left, _ := filepath.Glob(".story*"); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	if err := rewrite("calm.scn", "another text", "x"); err == nil || read(t, "calm.scn") == "x" {
		t.Error("a file that changed meanwhile was overwritten")
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	return string(must.Get(os.ReadFile(name))(t))
}

// TestInterrupted: what held is reported, what was cut, and what was never begun.
func TestInterrupted(t *testing.T) {
	long := strings.Replace(calm, "at 2m   expect", "at 0s every 10s until 200h expect", 1)
	in(t, map[string]string{"calm.scn": calm, "long.scn": long, "never.scn": calm})
	asked := 0
	var out, errs bytes.Buffer
	l := &cli{in: strings.NewReader(""), out: &out, err: &errs, interrupted: func() bool { asked++; return asked > 200 }}
	if code := l.run([]string{"run", "calm.scn", "long.scn", "never.scn"}); code != 130 {
		t.Errorf("exit %d", code)
	}
	want := `(?s)^held  calm  [^\n]*\ninterrupted  long  at \S+ of 200h1m, run 1 of 1; until then \d+ expectations judged\n` +
		`until then  line 7, at 1m: expected node-1 addresses\.assigned == 2; .*3 files: 1 held, 1 interrupted, 1 not run\n$`
	if !regexp.MustCompile(want).MatchString(out.String()) {
		t.Errorf("got\n%s", out.String())
	}
}

// TestTimeline: all that happened is printed, of each variant by its name, held or not, and of a mutant's run too.
func TestTimeline(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm + "vary n=5,6\nat 10s node-1 interrupt-dumps times=$n\n",
		"broken.scn": strings.Replace(calm, "assigned == 2", "assigned == 3", 1)})
	for _, c := range []struct {
		args string
		code int
		says []string
	}{
		{"calm.scn", 0, []string{"timeline of calm (n=5), seed 1\n", "interrupt-dumps 5: ", "timeline of calm (n=6), seed 1\n", "node-1 restart: "}},
		{"broken.scn --seed 4", 1, []string{"timeline of broken, seed 4\n"}},
		{"calm.scn --against no-repair", 0, []string{"timeline of calm (n=5) under mutant no-repair, seed 1\n"}},
	} {
		code, out, errs := enilab(t, append([]string{"run", "--timeline"}, strings.Fields(c.args)...)...)
		if code != c.code {
			t.Errorf("%s: exit %d: %s%s", c.args, code, out, errs)
		}
		for _, want := range c.says {
			if !strings.Contains(out, want) {
				t.Errorf("%s: expected %q in\n%s", c.args, want, out)
			}
		}
	}
	var d struct {
		Files []struct{ Variants []struct{ Timeline []string } }
	}
	_, out, _ := enilab(t, "run", "--json", "--timeline", "calm.scn")
	must.Do(t, json.Unmarshal([]byte(out), &d))
	for i, v := range d.Files[0].Variants {
		if !strings.Contains(strings.Join(v.Timeline, "\n"), fmt.Sprintf("interrupt-dumps %d", 5+i)) {
			t.Errorf("variant %d: %q", i, v.Timeline)
		}
	}
}

// interrupter raises SIGINT when the scenario is read from it.
type interrupter struct{ *strings.Reader }

func (r interrupter) Read(p []byte) (int, error) {
	if r.Len() > 0 {
		if err := syscall.Kill(os.Getpid(), syscall.SIGINT); err != nil {
			return 0, err
		}
	}
	return r.Reader.Read(p)
}

func TestControlC(t *testing.T) {
	long := strings.Replace(calm, "at 2m   expect", "at 0s every 10s until 200h expect", 1)
	var out, errs bytes.Buffer
	if code := Run([]string{"run", "-"}, interrupter{strings.NewReader(long)}, &out, &errs, nil); code != 130 {
		t.Errorf("exit %d\n%s%s", code, &out, &errs)
	}
}

// TestJSON: one document, with the fields that the help names, also for files with mistakes.
func TestJSON(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm + "against no-repair breaks \"nothing is leaked\"\n", "bad.scn": "cluster nodes=1\nat 1x node-1 restart\n"})
	var d struct {
		Enilab string
		Exit   int
		Errors []struct {
			File, Message, Hint string
			Line, Column        int
		}
		Files []struct {
			Name, Status, Report, Headline string
			Judged                         int
			Variants                       []struct{ Hash string }
			Mutants                        []struct {
				Mutant, Why string
				Proved      bool
			}
		}
	}
	code, out, _ := enilab(t, "run", "--json", "calm.scn")
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if code != 6 || d.Exit != 6 || d.Enilab != "run/1" || len(d.Files) != 1 {
		t.Fatalf("exit %d: %+v", code, d)
	}
	f := d.Files[0]
	if f.Name != "calm" || f.Status != "unproven" || f.Judged != 1 || f.Headline != "Nothing happens." || len(f.Variants[0].Hash) != 16 || f.Mutants[0].Proved || f.Mutants[0].Why == "" {
		t.Errorf("got %+v", f)
	}
	code, out, errs := enilab(t, "run", "--json", "bad.scn", "calm.scn")
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v:\n%s", err, out)
	}
	if code != 2 || len(d.Errors) != 1 || d.Errors[0].Line != 2 || d.Errors[0].File != "bad.scn" || d.Errors[0].Hint == "" || errs != "" {
		t.Errorf("exit %d: %+v %s", code, d.Errors, errs)
	}
	for _, c := range []string{"verbs", "invariants", "mutants"} {
		if _, out, _ := enilab(t, c, "--json"); !json.Valid([]byte(out)) || !strings.Contains(out, `"doc"`) {
			t.Errorf("%s --json: %s", c, out)
		}
	}
}

// endless repeats a text.
type endless string

func (e endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], e)
	}
	return n, nil
}

// TestEndlessRecordings: a device, or a writer that never ends, is read no further than a recording can go, and the bound is named.
func TestEndlessRecordings(t *testing.T) {
	b := bounds{size: 1 << 20, line: 100 << 10, inputs: 20_000}
	for name, c := range map[string]struct {
		from io.Reader
		says string
	}{
		"one line":    {endless("\x00"), "f: line 1 has more than 102400 bytes"},
		"later lines": {io.MultiReader(strings.NewReader("{}\n"), endless("x")), "f: line 2 has more than 102400 bytes"},
		"inputs":      {endless("{}\n"), "f has more than 20000 inputs"},
		"size":        {endless(strings.Repeat("x", 1023) + "\n"), "f has more than 1048576 bytes"},
	} {
		if data, err := b.read("f", c.from); err == nil || data != nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d bytes, %v; expected an error with %q", name, len(data), err, c.says)
		}
	}
	whole := strings.Repeat("x", b.line) + "\n" + strings.Repeat("{}\n", b.inputs)
	if data, err := b.read("f", strings.NewReader(whole)); err != nil || string(data) != whole {
		t.Errorf("all that is allowed: %d of %d bytes are read, %v", len(data), len(whole), err)
	}
}

// TestRecording: what a simulated daemon went through is stepped again with the same effects, in every life; damage is found.
func TestRecording(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm})
	for _, life := range []string{"0", "1", "2"} {
		if code, out, errs := enilab(t, "record", "calm.scn", "--life", life); code != 0 || !strings.Contains(out, "calm-node-1.rec: node-1, life") {
			t.Fatalf("life %s: exit %d: %s%s", life, code, out, errs)
		}
		code, out, errs := enilab(t, "replay", "calm-node-1.rec")
		if code != 0 || !regexp.MustCompile(`\ngood up to line \d+, t=\S+: \d+ inputs?\n$`).MatchString("\n"+out) {
			t.Errorf("life %s: exit %d: %s%s", life, code, out, errs)
		}
	}
	text := read(t, "calm-node-1.rec")
	lines := strings.SplitAfter(text, "\n")
	if _, out, _ := enilab(t, "replay", "-v", "calm-node-1.rec"); !strings.Contains(out, `{"Start":{`) || !strings.Contains(out, `{"Look":{`) {
		t.Errorf("in full: %.300s", out)
	}
	outOf := regexp.MustCompile(`"out":"(.)`)
	flip := func(s string) string { return outOf.ReplaceAllString(s, `"out":"x`) }
	for name, bad := range map[string]struct{ text, says string }{
		"cut off":         {text[:len(text)-7], "it is cut off; the recording is good up to line"},
		"other effects":   {strings.Join(lines[:2], "") + flip(lines[2]) + strings.Join(lines[3:], ""), "line 3: the effects at"},
		"another version": {strings.Replace(text, "recording/1", "recording/9", 1), `expected format "recording/1", found "recording/9"`},
		"another policy":  {strings.Replace(text, `"policy":"sound"`, `"policy":"wild"`, 1), `policy "wild" is unknown`},
	} {
		must.Do(t, os.WriteFile("bad.rec", []byte(bad.text), 0o644))
		if code, _, errs := enilab(t, "replay", "bad.rec"); code != 2 || !strings.Contains(errs, bad.says) {
			t.Errorf("%s: exit %d, expected %q in %s", name, code, bad.says, errs)
		}
	}
	if code, out, _ := enilab(t, "record", "calm.scn", "--out", "-"); code != 0 || out != read(t, "calm-node-1.rec") {
		t.Errorf("to standard output: exit %d, %d bytes", code, len(out))
	}
}

// Recordings of production are stepped with this build: what it decides otherwise is listed by kind, with the input, and fails.
func TestRecordings(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm})
	must.Do(t, errors.Join(os.Mkdir("tapes", 0o755), os.WriteFile("tapes/notes.txt", []byte("no recording"), 0o644)))
	refuses(t, "gate --recordings tapes", "no file in it is a recording")
	if code, _, errs := enilab(t, "record", "calm.scn", "--out", "tapes/good.rec"); code != 0 {
		t.Fatal(errs)
	}
	if code, out, errs := enilab(t, "gate", "--recordings", "tapes"); code != 0 || !strings.HasPrefix(out, "1 recording, ") || !strings.Contains(out, "1 stepped to their end") {
		t.Errorf("exit code %d: %s%s", code, out, errs)
	}
	lines := strings.SplitAfter(read(t, "tapes/good.rec"), "\n")
	at := strings.LastIndex(lines[1], `"out":"`) + len(`"out":"`)
	lines[1] = lines[1][:at] + "0123456789abcdef" + lines[1][at+16:]
	for _, name := range []string{"tapes/one.rec", "tapes/two.rec"} {
		must.Do(t, os.WriteFile(name, []byte(strings.Join(lines, "")), 0o644))
	}
	code, out, errs := enilab(t, "gate", "--recordings", "tapes")
	for _, part := range []string{"1 stepped to their end with the same decisions, 2 decide otherwise", "(2 recordings)", "tapes/one.rec line 2, t=", "also tapes/two.rec line 2"} {
		if code != 1 || !strings.Contains(out, part) {
			t.Errorf("exit code %d, expected %q in %s%s", code, part, out, errs)
		}
	}
	for args, says := range map[string]string{"--recordings tapes --from enilab": "takes --then and nothing else", "--then ./enilab": "is for --recordings", "--recordings tapes calm.scn": "plays no scenario",
		"--recordings nowhere": "no such file", "--recordings tapes --then nowhere/enilab": "the version that recorded"} {
		refuses(t, "gate "+args, says)
	}
}

// TestSilenceIsBroken: where there is no terminal, a run that takes long says where it is, in a line each time, until it ends.
func TestSilenceIsBroken(t *testing.T) {
	r, w := io.Pipe()
	p := newProgress(w)
	p.tell(runner.Progress{Scenario: "upgrade", Run: 1, Runs: 7, Now: time.Minute, End: time.Hour})
	stop := p.breaks(time.Millisecond)
	lines := bufio.NewScanner(r)
	for range 2 {
		if lines.Scan(); lines.Text() != "upgrade, run 1 of 7, 1m of 1h" {
			t.Errorf("got %q", lines.Text())
		}
	}
	go func() { _, _ = io.Copy(io.Discard, r) }()
	stop()
	p.on = true
	p.breaks(time.Millisecond)()
}

// TestProgress: a line on a terminal only, after some time only, never wider than one, and gone in the end.
func TestProgress(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b)
	x := runner.Progress{Scenario: strings.Repeat("long ", 40), Run: 1, Runs: 3, Now: time.Minute, End: time.Hour, Events: 12345}
	p.began = time.Now().Add(-time.Hour)
	p.tell(x)
	if p.clear(); b.Len() != 0 {
		t.Errorf("no terminal, and %q", b.String())
	}
	p.on = true
	if p.tell(x); b.Len() != 0 {
		t.Errorf("at once: %q", b.String())
	}
	p.began = time.Now().Add(-time.Hour)
	p.tell(x)
	p.tell(x)
	p.clear()
	got := b.String()
	if !strings.HasPrefix(got, "\r\x1b[Krun 1 of 3, 1m of 1h, 12,345 events: long") || !strings.HasSuffix(got, "\r\x1b[K") || len(got) > progressWide+8 {
		t.Errorf("got %q", got)
	}
}

// TestTables: no line is wider than the page, whatever stands in the cells.
func TestTables(t *testing.T) {
	in(t, map[string]string{"a-name-that-is-longer-than-its-column-could-ever-be.scn": "# " + strings.Repeat("veryveryvery", 30) + " 踩坑踩坑踩坑踩坑踩坑踩坑踩坑踩坑踩坑踩坑踩坑踩坑踩坑.\n" +
		"# Source: https://example.org/" + strings.Repeat("x", 200) + "\n" + calm})
	for _, args := range []string{"demo .", "demo a-name-that-is-longer-than-its-column-could-ever-be.scn", "verbs", "invariants", "mutants", "systems"} {
		_, out, _ := enilab(t, strings.Fields(args)...)
		for l := range strings.Lines(out) {
			if w := columns(strings.TrimSuffix(l, "\n")); w > pageWidth {
				t.Errorf("%s: %d columns: %s", args, w, l)
			}
		}
	}
}

func TestWrap(t *testing.T) {
	for _, c := range []struct {
		text string
		want string
	}{{"", ""}, {"a b c", "a b|c"}, {"abcdef", "abc|def"}, {"a-bcd", "a-|bcd"}, {"ab cdefg h", "ab|cde|fg|h"}, {"踩坑坑", "踩|坑|坑"}, {"a\nb", "a|b"}} {
		if got := strings.Join(wrap(c.text, 3), "|"); got != c.want {
			t.Errorf("%q: %q, want %q", c.text, got, c.want)
		}
	}
	if len(wrap(strings.Repeat("坑", 5), 1)) == 0 { // wider than any column: it must end all the same
		t.Error("nothing")
	}
}

// TestVerbsAreComplete: what the tables are made of is what the checker knows.
func TestVerbsAreComplete(t *testing.T) {
	_, out, _ := enilab(t, "verbs", "--json")
	for _, k := range []scn.SubjectKind{scn.EC2, scn.IMDS, scn.Kube} {
		if !strings.Contains(out, `"`+scn.Subject{Kind: k}.String()+`"`) {
			t.Errorf("no verb of %v", k)
		}
	}
}

// TestVerdictTable: docs/scenarios.md, run --help and --json have one table.
func TestVerdictTable(t *testing.T) {
	readme := must.Get(os.ReadFile("../../../docs/scenarios.md"))(t)
	in(t, map[string]string{"calm.scn": calm})
	_, help, _ := enilab(t, "run", "--help")
	_, document, _ := enilab(t, "run", "--json", "calm.scn")
	var d struct {
		Verdict  string
		Verdicts []struct {
			Verdict, Means string
			Exit           int
		}
	}
	must.Do(t, json.Unmarshal([]byte(document), &d))
	if d.Verdict != "held" || len(d.Verdicts) != len(runner.Meanings()) {
		t.Errorf("the document says %q and has %d verdicts", d.Verdict, len(d.Verdicts))
	}
	for i, m := range runner.Meanings() {
		if row := fmt.Sprintf("| %d | %s | %s |\n", m.Exit, m.Word, m.Doc); !strings.Contains(string(readme), row) {
			t.Errorf("docs/scenarios.md lacks %q", row)
		}
		if row := fmt.Sprintf("  %3d  %-18s %s\n", m.Exit, m.Word, m.Doc); !strings.Contains(help, row) {
			t.Errorf("run --help lacks %q", row)
		}
		if v := d.Verdicts[i]; v.Verdict != m.Word || v.Exit != m.Exit || v.Means != m.Doc {
			t.Errorf("the document has %+v, want %+v", v, m)
		}
	}
}

// TestReports: --html and --junit write whole files beside what is printed; what cannot be written is refused before anything is played, and what is there stays.
func TestReports(t *testing.T) {
	in(t, map[string]string{"calm.scn": calm, "file": "mine"})
	for _, command := range []string{"run", "demo --on sim"} {
		args := append(strings.Fields(command), "--html", "r.html", "--junit", "r.xml", "calm.scn")
		if code, out, errs := enilab(t, args...); code != 0 || !strings.HasSuffix(out, "report: r.html\n") {
			t.Errorf("%s: exit code %d, %s%s", command, code, out, errs)
		}
		if page := read(t, "r.html"); !strings.Contains(page, "HELD") || strings.Contains(page, "src=") {
			t.Errorf("%s: %s", command, page)
		}
		var suites struct {
			Tests    int `xml:"tests,attr"`
			Failures int `xml:"failures,attr"`
		}
		if err := xml.Unmarshal([]byte(read(t, "r.xml")), &suites); err != nil || suites.Tests != 1 || suites.Failures != 0 {
			t.Errorf("%s: %v, %+v", command, err, suites)
		}
		if err := errors.Join(os.Remove("r.html"), os.Remove("r.xml")); err != nil {
			t.Error(err)
		}
	}
	for args, says := range map[string]string{
		"--html file/r.html calm.scn":          "--html: the report cannot be written: ",
		"--html nowhere/r.html calm.scn":       "no such file or directory",
		"--junit . calm.scn":                   "--junit: the report cannot be written: . is a folder",
		"--html r --junit ./r calm.scn":        "--html and --junit: both name",
		"--html calm.scn calm.scn":             "--html calm.scn: it is one of the scenarios",
		"--html calm.scn ./calm.scn":           "it is one of the scenarios",
		"--html r.html --seeds 1-2 nobody.scn": "nobody.scn: there is no such file",
	} {
		code, out, errs := enilab(t, append([]string{"run"}, strings.Fields(args)...)...)
		if code != 2 || !strings.Contains(errs, says) || out != "" {
			t.Errorf("run %s: exit code %d, expected %q in %s%s", args, code, says, errs, out)
		}
	}
	if left, err := filepath.Glob("*"); err != nil || strings.Join(left, " ") != "calm.scn file" || read(t, "file") != "mine" || read(t, "calm.scn") != calm {
		t.Errorf("left %v, %v", left, err)
	}
}

// another is an architecture of virtual machines that this computer's is not.
func another() string {
	if runtime.GOARCH == "arm64" {
		return "amd64"
	}
	return "arm64"
}
