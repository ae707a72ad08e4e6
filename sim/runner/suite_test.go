package runner

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/fakes/ec2"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/timeline"
	"github.com/enilab/enilab/sim/virtual"
)

// quiet is a scenario in which a third party flushes rules, and the daemon puts them back.
const quiet = `# Somebody flushes the rules. Pods on the second ENI are cut off.
# Source: a test.
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 14 on node-1
always  "every live pod is reachable"
at 1m   node-1 flush-rules
at 4m   expect node-1 addresses.assigned == 14
finally converges within 2m
`

func load(t *testing.T, text string) *Case {
	t.Helper()
	return must.Get(Load(Sim(), "dir/test.scn", []byte(text)))(t)
}

func run(t *testing.T, text string, o Options) *Result {
	t.Helper()
	o.Seed = cmp.Or(o.Seed, DefaultSeed)
	return load(t, text).Run(o)
}

// TestStatus: how files end, and what the report says of them.
func TestStatus(t *testing.T) {
	noRepair, _ := mutants.ByName("no-repair")
	noSweep, _ := mutants.ByName("no-sweep")
	againstIt := func(claim string) string { return quiet + "against no-repair breaks " + claim + "\n" }
	for name, c := range map[string]struct {
		text   string
		o      Options
		status Status
		says   []string
	}{
		"held":                        {quiet, Options{}, Held, []string{"held  test  1 variant, 1 expectation judged, 0 skipped"}},
		"held, with its mutant":       {againstIt(`"every live pod is reachable" by 4m`), Options{}, Held, []string{`; mutants: no-repair broke "every live pod is reachable" at 2m3`}},
		"held in two variants":        {quiet + "vary t=1,2\nat 3m node-1 interrupt-dumps times=$t\n", Options{}, Held, []string{"2 variants, 2 expectations judged"}},
		"a netns line is skipped":     {quiet + "[netns] at 1m expect node-1 enis == 77\n", Options{}, Held, []string{"1 skipped", "(line 9: the line is not for world sim)"}},
		"expectation":                 {strings.Replace(quiet, "assigned == 14", "assigned == 4", 1), Options{}, Violated, []string{"violated  test  line 7, at 4m: expected node-1 addresses.assigned == 4; found 14", "flush-rules", "again: enilab run dir/test.scn --seed 1\n"}},
		"mark":                        {quiet + "reaches eni-swept\n", Options{}, Violated, []string{"line 9, at 6m: the run never came through eni-swept", "  reaches eni-swept\n"}},
		"mutant, nothing broken":      {quiet + "against no-sweep breaks \"nothing is leaked\"\n", Options{}, Unproven, []string{`line 9: the CNI held, but mutant no-sweep was not caught: expected "nothing is leaked" to break first; found that it broke no invariant until the end at 6m`}},
		"mutant, another":             {againstIt(`"nothing is leaked"`), Options{}, Unproven, []string{`expected "nothing is leaked" to break first; found that it broke "every live pod is reachable" first, at 2m3`, "what happened until then"}},
		"mutant, too late":            {againstIt(`"every live pod is reachable" by 90s`), Options{}, Unproven, []string{"only, later than 1m30s"}},
		"one mutant alone":            {quiet, Options{Against: &noRepair}, Violated, []string{`"every live pod is reachable" broke at 2m3`, " on node-1: ", "--seed 1 --against no-repair\n"}},
		"story":                       {quiet + "-- story --\nonce upon a time\n", Options{}, Violated, []string{"line 1 of the timeline is not the golden one", "  golden  once upon a time\n", "  now     "}},
		"story of another seed":       {quiet + "-- story --\nonce upon a time\n", Options{Seed: 2}, Held, nil},
		"story to be rewritten":       {quiet + "-- story --\nonce upon a time\n", Options{NoStory: true}, Held, nil},
		"nothing judged":              {"cluster nodes=1\nat 1s kube create web 1\n", Options{}, Skipped, []string{"skipped  test  ", "nothing was judged"}},
		"elsewhere, and it varies":    {"vary t=1,2\n[netns] cluster nodes=1\n[netns] at 1s node-1 interrupt-dumps times=$t\n", Options{}, Skipped, []string{"its lines are not for world sim"}},
		"judged elsewhere only":       {"cluster nodes=1\n[netns] always \"nothing is leaked\"\n", Options{}, Skipped, nil},
		"no room":                     {"cluster nodes=1 subnet=10.0.0.0/28\nstart pods web 40 on node-1\nalways \"nothing is leaked\"\n", Options{}, Bad, []string{"the cluster never started", "InsufficientFreeAddressesInSubnet", "larger subnet"}},
		"twice":                       {quiet, Options{Twice: true}, Held, nil},
		"an action that misses":       {quiet + "at 2m kube scale web 14\n", Options{}, NotPlayed, []string{"not played  test  line 9, at 2m: the action missed: workload web has 14 replicas already"}},
		"an action that nobody meets": {quiet + "at 2m node-1 fail-dels\n", Options{}, NotPlayed, []string{"line 9, at 2m: the action missed: no DEL was run"}},
		"an action that is undone":    {quiet + "at 2m node-1 lose-records\nat 130s kube roll web 1\nat 3m node-1 kill\n", Options{}, NotPlayed, []string{"line 9, at 2m: the action missed: no daemon has started without records since"}},
		"an action that misses once":  {quiet + "at 2m every 1m until 3m kube scale web 13\n", Options{}, Violated, []string{"line 9, at 3m: the action missed: workload web has 13 replicas already (1 of 2 times)"}},
		"an action that may miss":     {quiet + "maybe at 2m kube scale web 14\n", Options{}, Held, nil},
		"of several nodes":            {strings.Replace(quiet, "nodes=1", "nodes=2", 1) + "at 2m node-* flush-routes table=2\n", Options{}, NotPlayed, []string{"the action missed: node-2 flush-routes: there are no routes to remove"}},
		"something under way":         {strings.Replace(quiet, "within 2m", "within 5s", 1) + "at 4m5s kube roll web 2\n", Options{}, NotSettled, []string{"not settled  test  something is still under way at 4m10s: "}},
		"swept later":                 {abandoned, Options{}, NotSettled, []string{"not settled  test  something is still under way at 22m: ENI eni-", " is available, and is deleted by 43m42s at the latest"}},
		"swept by nobody":             {strings.Replace(abandoned, "config  ", "config  DISABLE_LEAKED_ENI_CLEANUP=true ", 1), Options{}, Violated, []string{"is available and nobody will delete it"}},
		"swept by a mutant, never":    {abandoned, Options{Against: &noSweep}, Violated, []string{"is available and nobody will delete it"}},
		"under way, as it says":       {strings.Replace(quiet, "within 2m", "within 5s", 1) + "at 4m5s kube roll web 2\nnever settles \"pods are rolled at the end\"\n", Options{}, Held, nil},
		"it does settle":              {quiet + "never settles \"the subnet stays full\"\n", Options{}, Violated, []string{"expected that it never settles (the subnet stays full); found nothing under way"}},
		"interrupted":                 {quiet, Options{Interrupted: func() bool { return true }}, Interrupted, []string{"interrupted  test  before it began"}},
		"another cluster in netns":    {"[netns] cluster nodes=9\n[!netns] cluster nodes=1\n[sim] at 0s expect kube pods.total == 0\n", Options{}, Held, nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := run(t, c.text, c.o)
			report := r.Report()
			if r.Status != c.status {
				t.Errorf("%v, want %v:\n%s", r.Status, c.status, report)
			}
			for _, s := range c.says {
				if !strings.Contains(report, s) {
					t.Errorf("expected %q in\n%s", s, report)
				}
			}
			if c.o.Twice && !r.Runs[0].Twice {
				t.Error("it was run once")
			}
		})
	}
}

// abandoned ends long before the sweep that will find what a terminated instance leaves.
const abandoned = `cluster nodes=2 type=m5.large subnet=192.168.128.0/24 runtime=containerd
config  WARM_ENI_TARGET=1
start   pods web 4 on node-*
always  "nothing is leaked"
at 10m  node-1 kill-at CreateNetworkInterface when=after
at 10m  kube create last 14 node=1
at 10m1s node-1 hold
at 10m20s node-1 terminate
at 20m  expect ec2 enis.available == 1
finally converges within 2m
`

// missing is what a machine lacks.
type missing struct{ text string }

func (m *missing) Error() string { return m.text }
func (m *missing) Lacks()        {}

// TestLacking: a world that this machine cannot have is not the file's fault, and one that was interrupted while it started is nobody's.
func TestLacking(t *testing.T) {
	never := &Place{Name: "elsewhere", Open: func(*sim.Cluster, uint64, *mutants.Mutant) (World, error) {
		return nil, fmt.Errorf("open it: %w", &missing{"there is no Docker"})
	}}
	c := must.Get(Load(never, "dir/test.scn", []byte(quiet)))(t)
	r := c.Run(Options{Seed: DefaultSeed})
	if report := r.Report(); r.Status != Skipped || r.Status.Exit() != ExitLacking || report != "skipped  test  open it: there is no Docker\n" {
		t.Errorf("%v: %s", r.Status, report)
	}
	asked := 0
	r = c.Run(Options{Seed: DefaultSeed, Interrupted: func() bool { asked++; return asked > 1 }})
	if r.Status != Interrupted || len(r.Runs) != 1 {
		t.Errorf("%v after %d runs: %s", r.Status, len(r.Runs), r.Report())
	}
}

// timid flushes no rules, and says so when somebody asks where their repair was.
type timid struct{ *virtual.World }

func (timid) Can(l *scn.Line) error {
	if at, ok := l.Stmt.(*scn.At); ok && at.Action != nil && at.Action.Verb == "flush-rules" {
		return errors.New("rules are dear to it")
	}
	return nil
}

func (t timid) Capabilities() sim.Capabilities { return sim.Capabilities{Excuse: t.excuse} }

func (timid) excuse(mark string, left []*scn.Action) error {
	if len(left) == 1 && left[0].Verb == "flush-rules" && mark == "drift-repaired" {
		return errors.New("nothing drifted")
	}
	return nil
}

// TestExcuse: a mark to which skipped lines lead is skipped too, and any other is missed.
func TestExcuse(t *testing.T) {
	place := &Place{Name: "sim", Open: func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (World, error) {
		w, err := virtual.Open(c, seed, m)
		return timid{w}, err
	}}
	for mark, want := range map[string]Status{"drift-repaired": Held, "eni-swept": Violated} {
		c := must.Get(Load(place, "dir/test.scn", []byte(quiet+"reaches "+mark+"\n")))(t)
		r := c.Run(Options{Seed: DefaultSeed})
		if r.Status != want || want == Held && !strings.Contains(r.Report(), "2 skipped") {
			t.Errorf("%s: %v: %s", mark, r.Status, r.Report())
		}
	}
}

// mortal is a world whose daemon ends by itself.
type mortal struct{ *virtual.World }

func (mortal) Capabilities() sim.Capabilities {
	return sim.Capabilities{Crashes: func() []sim.Failure {
		return []sim.Failure{{At: 90 * time.Second, Text: "node-1's ipamd ended by itself: exit status 2"}}
	}}
}

// breathy is a world that does not keep up.
type breathy struct {
	*virtual.World
	late error
}

func (b breathy) Capabilities() sim.Capabilities {
	return sim.Capabilities{TooSlow: func() error { return b.late }}
}

// late is such a world's error.
type late struct{}

func (late) Error() string { return "this machine did not keep up" }
func (late) TooSlow()      {}

// playedIn runs a scenario in a world that is more than the simulator's.
func playedIn(t *testing.T, text string, wrap func(*virtual.World) World) *Result {
	t.Helper()
	c := must.Get(Load(&Place{Name: "elsewhere", Open: func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (World, error) {
		w, err := virtual.Open(c, seed, m)
		return wrap(w), err
	}}, "dir/test.scn", []byte(text)))(t)
	return c.Run(Options{Seed: DefaultSeed})
}

// TestDaemonCrashes: a daemon that ends by itself is never held, although everything else holds.
func TestDaemonCrashes(t *testing.T) {
	r := playedIn(t, quiet, func(w *virtual.World) World { return mortal{w} })
	if report := r.Report(); r.Status != Violated || !strings.HasPrefix(report, "violated  test  at 1m30s: node-1's ipamd ended by itself: exit status 2\n") ||
		!strings.Contains(report, "flush-rules") {
		t.Errorf("%v: %s", r.Status, report)
	}
}

// TestTooSlow: what fails where the machine did not keep up is that machine's fault, a mutant that is not caught too. What holds there holds.
func TestTooSlow(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		late error
		slow bool
	}{
		"an expectation fails":      {strings.Replace(quiet, "assigned == 14", "assigned == 4", 1), late{}, true},
		"a mutant is not caught":    {quiet + "against no-sweep breaks \"nothing is leaked\"\n", late{}, true},
		"everything holds":          {quiet, late{}, false},
		"it fails, and is in time":  {strings.Replace(quiet, "assigned == 14", "assigned == 4", 1), nil, false},
		"a mutant is caught anyhow": {quiet + "against no-repair breaks \"every live pod is reachable\"\n", late{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := playedIn(t, c.text, func(w *virtual.World) World { return breathy{w, c.late} })
			var errs []error
			for i := range r.Runs {
				errs = append(errs, r.Runs[i].Err)
			}
			for i := range r.Bites {
				errs = append(errs, r.Bites[i].Outcome.Err)
			}
			if _, slow := errors.AsType[late](errors.Join(errs...)); slow != c.slow {
				t.Errorf("too slow: %v, expected %v: %s", slow, c.slow, r.Report())
			}
			if c.slow && (r.Status == Held || !strings.Contains(r.Report(), "did not keep up")) {
				t.Errorf("%v: %s", r.Status, r.Report())
			}
		})
	}
}

// twin is a world that keeps a book, as one in real time does.
type twin struct {
	*virtual.World
	book   *timeline.Book
	unlike string
}

func (t twin) Capabilities() sim.Capabilities {
	return sim.Capabilities{Book: func() *timeline.Book { return t.book }, Incomparable: func() string { return t.unlike }}
}

// TestCompared: a world in which something else was done than in virtual time contradicts it; where nobody can know, that is said.
func TestCompared(t *testing.T) {
	grows := strings.Replace(quiet, "at 1m   node-1 flush-rules", "at 1m   kube create more 8", 1)
	for name, c := range map[string]struct {
		text   string
		seed   uint64
		unlike string
		extra  bool // an ENI that nobody made in virtual time
		status Status
		says   string
	}{
		"the same":               {grows, 1, "", false, Held, ""},
		"an ENI more":            {grows, 1, "", true, Violated, "contradicts the simulator: timeline: "},
		"another seed":           {grows, 2, "", true, Held, "not compared with the simulator: only seed 1 is"},
		"faults that are drawn":  {grows + "maybe at 2m ec2 draw 5\n", 1, "", true, Held, "not compared with the simulator: it draws faults"},
		"faults drawn elsewhere": {grows + "[kind] maybe at 2m ec2 draw 5\n", 1, "", true, Violated, "contradicts the simulator"},
		"somebody meddled":       {grows, 1, "somebody did", true, Held, "not compared with the simulator: somebody did"},
		"it does not hold":       {strings.Replace(grows, "assigned == 14", "assigned == 4", 1), 1, "", true, Violated, "expected node-1 addresses.assigned == 4"},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(c.text, "assigned == 14", "assigned == 22", 1)
			place := &Place{Name: "elsewhere", Open: func(cl *sim.Cluster, seed uint64, m *mutants.Mutant) (World, error) {
				book := timeline.NewBook()
				w, err := virtual.OpenWith(cl, seed, m, book)
				if c.extra {
					book.Call(1, &ec2.Request{Action: ec2.AttachNetworkInterface, ENI: "eni-more"}, &ec2.Response{})
				}
				return twin{w, book, c.unlike}, err
			}}
			file := must.Get(Load(place, "dir/test.scn", []byte(text)))(t)
			r := file.Run(Options{Seed: c.seed})
			if r.Status != c.status || !strings.Contains(r.Report(), c.says) {
				t.Errorf("%v, expected %v and %q:\n%s", r.Status, c.status, c.says, r.Report())
			}
			if c.says == "" && strings.Contains(r.Report(), "not compared") {
				t.Errorf("it was not compared: %s", r.Report())
			}
		})
	}
}

// TestBreak: a break says what led to it and nothing of what came after.
func TestBreak(t *testing.T) {
	r := run(t, strings.Replace(quiet, "assigned == 14", "assigned == 4\nat 3m node-1 interrupt-dumps\nat 5m node-1 restart", 1), Options{})
	b := r.Runs[0].Break
	if b == nil || b.At != 4*time.Minute || b.Pos.Line != 7 {
		t.Fatalf("got %+v", b)
	}
	script, before := strings.Join(b.Script, "\n"), strings.Join(b.Before, "\n")
	for _, want := range []string{"cluster nodes=1", "start   pods", "flush-rules", "interrupt-dumps", "assigned == 4"} {
		if !strings.Contains(script, want) {
			t.Errorf("the script lacks %q:\n%s", want, script)
		}
	}
	if strings.Contains(script, "restart") || strings.Contains(before, "restart") {
		t.Errorf("it tells what came later:\n%s\n%s", script, before)
	}
	if !strings.Contains(before, "interrupt-dumps") || len(b.Before) > storyShown {
		t.Errorf("the story until then, %d lines:\n%s", len(b.Before), before)
	}
}

// TestBreakOfAWorldThatDoesNotRepeat: what cannot be run again tells what led to a break all the same, and not what came last.
func TestBreakOfAWorldThatDoesNotRepeat(t *testing.T) {
	place := Sim()
	place.Repeatable = false
	c, err := Load(place, "dir/test.scn", []byte(strings.Replace(quiet, "assigned == 14", "assigned == 4\nat 3m node-1 interrupt-dumps\nat 5m node-1 restart", 1)))
	must.Do(t, err)
	b := c.Run(Options{Seed: DefaultSeed}).Runs[0].Break
	if before := strings.Join(b.Before, "\n"); strings.Contains(before, "restart") || !strings.Contains(before, "interrupt-dumps") {
		t.Errorf("the story until then:\n%s", before)
	}
}

// TestInterrupted: the run ends between two events, and says when.
func TestInterrupted(t *testing.T) {
	asked := 0
	r := run(t, quiet+"at 8h expect node-1 addresses.assigned == 14\n", Options{Interrupted: func() bool { asked++; return asked > 5 }})
	if r.Status != Interrupted || r.Runs[0].Verdict.Ended <= 0 || r.Runs[0].Verdict.Ended >= 8*time.Hour {
		t.Errorf("%v at %v", r.Status, r.Runs[0].Verdict.Ended)
	}
	if want := "interrupted  test  " + Instant(r.Runs[0].Verdict.Ended); !strings.HasPrefix(r.Report(), want) {
		t.Errorf("want %q: %s", want, r.Report())
	}
}

// TestProgress: every run is announced, with its number.
func TestProgress(t *testing.T) {
	var got []string
	run(t, quiet+"vary t=1,2\nat 3m node-1 interrupt-dumps times=$t\n"+"against no-repair breaks \"every live pod is reachable\"\n",
		Options{Progress: func(p Progress) {
			if p.Events == 0 {
				got = append(got, fmt.Sprintf("%d/%d %s %s", p.Run, p.Runs, p.Variant, p.Doing))
			}
		}})
	want := []string{"1/4 t=1 ", "2/4 t=2 ", "3/4 t=1 mutant no-repair", "4/4 t=2 mutant no-repair"}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got %q", got)
	}
}

// TestLoad: every mistake at once, each once, in the file's order.
func TestLoad(t *testing.T) {
	_, err := Load(Sim(), "f", []byte("cluster nodes=1\nvary x=1,2\nat 0s node-$x restart\nat 0s node-1 restrat\nagainst no-reapir breaks \"nothing is leaked\"\nat 0s node-1 gc valid=$y\n"))
	var list scn.ErrorList
	if !errors.As(err, &list) {
		t.Fatalf("got %v", err)
	}
	_, err = Load(Sim(), "f", []byte("cluster nodes=1\nvary x=all,most\nat 0s node-1 gc valid=$x\nat 0s node-1 restrat\nagainst no-reapir breaks \"nothing is leaked\"\n"))
	if !errors.As(err, &list) || len(list) != 3 || list[0].Pos.Line != 3 || list[1].Pos.Line != 4 || list[2].Pos.Line != 5 {
		t.Errorf("got %v", err)
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		codes []int
		want  int
	}{{nil, 0}, {[]int{0, 3, 0}, 3}, {[]int{1, 3}, 1}, {[]int{1, 4, 0}, 4}, {[]int{4, 2, 1}, 2}, {[]int{2, 130}, 130}} {
		if got := Worst(c.codes...); got != c.want {
			t.Errorf("of %v: %d, want %d", c.codes, got, c.want)
		}
	}
}

func TestShort(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "0s", 3 * time.Millisecond: "3ms", 20 * time.Minute: "20m", time.Hour: "1h", 90 * time.Minute: "1h30m",
		time.Hour + 20*time.Second: "1h0m20s", 18340 * time.Millisecond: "18.3s", 20*time.Second + time.Microsecond: "20s", 10 * time.Minute: "10m"} {
		if got := Short(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
	if Instant(-3*time.Second) != "3s before t=0" {
		t.Error(Instant(-3 * time.Second))
	}
	if Number(0)+Number(999)+Number(1000)+Number(1234567) != "09991,0001,234,567" {
		t.Error(Number(1234567))
	}
}

// TestTwice: about a twentieth is run twice, always the same ones, and other seeds choose others.
func TestTwice(t *testing.T) {
	chosen := map[uint64]int{}
	for seed := range uint64(2) {
		o := Options{Seed: seed}
		for i := range 2000 {
			if o.twice("f", fmt.Sprint(i)) {
				chosen[seed]++
			}
		}
	}
	again := 0
	for i := range 2000 {
		o := Options{}
		if o.twice("f", fmt.Sprint(i)) {
			again++
		}
	}
	if again != chosen[0] {
		t.Errorf("%d and then %d: chosen by chance", chosen[0], again)
	}
	if chosen[0] < 60 || chosen[0] > 140 || chosen[0] == chosen[1] {
		t.Errorf("chosen %v of 2000", chosen)
	}
}

// TestSame: two runs are the same only in everything.
func TestSame(t *testing.T) {
	one := Outcome{Hash: 1, Events: 2, Verdict: &sim.Verdict{Story: "a"}}
	if !same(&one, &one) {
		t.Error("a run is not itself")
	}
	for _, other := range []Outcome{
		{Hash: 9, Events: 2, Verdict: one.Verdict}, {Hash: 1, Events: 3, Verdict: one.Verdict}, {Hash: 1, Events: 2, Verdict: &sim.Verdict{Story: "b"}}, {Err: errors.New("x")},
	} {
		if same(&one, &other) {
			t.Errorf("%+v is the same", other)
		}
	}
	r := &Result{Case: load(t, quiet), Seed: 7}
	r.add(Outcome{Verdict: &sim.Verdict{Judged: 1}, Differs: true})
	if r.Status != Unrepeatable || r.Status.Exit() != ExitUnrepeatable || !strings.Contains(r.Report(), "two runs with seed 7 were not the same") {
		t.Errorf("%v: %s", r.Status, r.Report())
	}
}

// TestCrash: the daemon is killed at every event of a short scenario.
func TestCrash(t *testing.T) {
	r := run(t, "cluster nodes=1 type=m5.large subnet=10.0.10.0/24\nstart pods web 2 on node-1\nalways \"nothing is leaked\"\nat 2s kube scale web 3\nat 40s expect node-1 addresses.assigned == 3\n", Options{Crash: true})
	if len(r.Crashes) != 1 || r.Crashes[0].Report.Points < 3 || r.Crashes[0].Report.Forks < r.Crashes[0].Report.Points {
		t.Fatalf("%v: %s", r.Status, r.Report())
	}
	if r.Status == Held && !strings.Contains(r.Report(), "all settled like no crash") || !r.Runs[0].Twice {
		t.Error(r.Report())
	}
	big := load(t, "cluster nodes=65\n")
	if err := big.Crashable(); err == nil || !strings.Contains(err.Error(), "65 nodes") {
		t.Errorf("65 nodes: %v", err)
	}
}

// TestCatalogueLoads: the binary's own scenarios are without mistakes.
func TestCatalogueLoads(t *testing.T) {
	entries, err := scenarios.Files.ReadDir(".")
	if err != nil || len(entries) == 0 {
		t.Fatalf("%d scenarios: %v", len(entries), err)
	}
	for _, e := range entries {
		data, err := scenarios.Files.ReadFile(e.Name())
		if err == nil {
			_, err = Load(Sim(), e.Name(), data)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

// blind is a world without books.
type blind struct {
	*virtual.World
	audit *judge.Auditor
}

func (b blind) Audit() *judge.Auditor { return b.audit }

// TestNotJudged: what a world lacks a source for is counted and named, and is never held.
func TestNotJudged(t *testing.T) {
	place := &Place{Name: "elsewhere", Without: judge.Books, Open: func(c *sim.Cluster, seed uint64, m *mutants.Mutant) (World, error) {
		w, err := virtual.Open(c, seed, m)
		return blind{w, judge.New(judge.Config{Nodes: c.Nodes, Without: judge.Books})}, err
	}}
	play := func(text string) *Result {
		t.Helper()
		c := must.Get(Load(place, "dir/test.scn", []byte(text)))(t)
		return c.Run(Options{Seed: DefaultSeed})
	}
	r := play(quiet + "always \"the address books balance\"\nalways \"nothing is leaked\"\n")
	report := r.Report()
	if r.Status != Held || !strings.Contains(report, `; not judged without books: 6 invariants, 1 of which the file expects always (line 9: always "the address books balance"; "every assigned`) {
		t.Errorf("%v: %s", r.Status, report)
	}
	if r = play("cluster nodes=1\nalways \"the address books balance\"\n"); r.Status != Skipped || !strings.Contains(r.Report(), "nothing was judged") {
		t.Errorf("%v: %s", r.Status, r.Report())
	}
}
