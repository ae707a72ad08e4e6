package process_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/swarm"
	"github.com/enilab/enilab/sim/swarm/process"
)

const scenario = `cluster nodes=1
start pods web 2 on node-1
maybe at 1m node-1 kill
maybe at 2m node-1 hold
at 3m node-1 unhold
at 4m within 6m expect kube pods.unready == 0
finally converges within 6m
`

// as is the variable that makes this test binary a program that a swarm runs; after it is what that says and does.
const as = "ENILAB_STUB"

func TestMain(m *testing.M) {
	switch how := os.Getenv(as); {
	case how == "":
		os.Exit(m.Run())
	case how == "hang":
		fmt.Fprintln(os.Stderr, "hanging")
		c := exec.Command("sleep", "600") // what a run started, and does not end
		_ = c.Start()
		_ = os.WriteFile(os.Getenv("ENILAB_STUB_PID"), []byte(strconv.Itoa(c.Process.Pid)), 0o600)
		time.Sleep(10 * time.Minute) // it dies by SIGINT
	default:
		code, text, _ := strings.Cut(how, " ")
		if text == "args" {
			text = strings.Join(os.Args[1:], " ")
		}
		fmt.Fprint(os.Stdout, text)
		fmt.Fprintln(os.Stderr, "a word\nabout it")
		n, _ := strconv.Atoi(code)
		os.Exit(n)
	}
}

func player(t *testing.T, how string) *process.Player {
	t.Helper()
	self := must.Get(os.Executable())(t)
	t.Setenv(as, how)
	return &process.Player{Program: self, Args: []string{"--on", "netns"}, On: "netns", Within: time.Minute}
}

func document(status, variant string) string {
	return `{"enilab":"run/1","files":[{"status":"` + status + `","events":7,"report":"it says\n so","skipped":[],"variants":[{` + variant + `}]}]}`
}

// TestOutcomes: what a run's document says is what the swarm is told; what says nothing is not known.
func TestOutcomes(t *testing.T) {
	for _, c := range []struct{ name, how, invariant, text, unknown string }{
		{"held", "0 " + document("held", `"maybe":[{"line":3,"struck":true},{"line":4,"struck":false}]`), "", "", ""},
		{"violated", "1 " + document("violated", `"broke":{"at":61.5,"node":1,"invariant":"nothing is leaked","text":"node-1 leaks: a rule"}`),
			"nothing is leaked", "node-1 leaks: a rule", ""},
		{"expectation", "1 " + document("violated", `"broke":{"at":61.5,"line":6,"text":"expected kube pods.unready == 0; it is 1"},"underWay":["node-1 x","pod web-1 waits"]`),
			swarm.Expectation, "expected kube pods.unready == 0; it is 1; in the end: pod web-1 waits", ""},
		{"crash", "1 " + document("violated", `"broke":{"at":61.5,"text":"node-1's ipamd ended by itself: exit 2"}`), swarm.Lives,
			"node-1's ipamd ended by itself: exit 2", ""},
		{"never starts", "2 " + document("bad", `"error":"the cluster was not ready after 10m"`), swarm.Started, "the cluster was not ready after 10m", ""},
		{"not settled", "7 " + document("not settled", `"ended":90,"underWay":["node-1 works"]`), swarm.Settled, "still under way at the end: node-1 works", ""},
		{"broken and not settled", "7 " + document("not settled", `"broke":{"at":1,"invariant":"nothing is leaked","text":"x"},"underWay":["y"]`), "nothing is leaked", "x", ""},
		{"missed", "5 " + document("not played", `"missed":[{"line":5}]`), "", "", ""},
		{"laboratory", "5 " + document("not played", `"error":"a node's helper ended"`), "", "", "the laboratory broke: a node's helper ended"},
		{"slow", "8 " + document("too slow", `"error":"late by 3s"`), "", "", "too slow: late by 3s"},
		{"skipped", "3 " + document("skipped", `"error":"this kernel lacks veth"`), "", "", "skipped: this kernel lacks veth"},
		{"disagrees", "1 " + document("violated", ``), "", "", "it says so"},
		{"garbage", "0 panic: oh", "", "", `the run ended with code 0: expected a JSON document, found "panic: oh"`},
		{"half", `1 {"enilab":"run/1","files":[`, "", "", "expected a JSON document"},
		{"another", `0 {"enilab":"run/2","files":[{}]}`, "", "", `expected a document "run/1", found "run/2"`},
		{"empty", `0 {"enilab":"run/1","files":[]}`, "", "", "the document has no file"},
		{"silent", "5 ", "", "", "it said: a word about it"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := must.Get(player(t, c.how).Play("x.scn", scenario, 1, nil))(t)
			switch {
			case c.invariant == "" && o.Broken != nil || c.invariant != "" && (o.Broken == nil || o.Broken.Invariant != c.invariant || o.Broken.Text != c.text):
				t.Errorf("expected %q by %q, found %+v (%s)", c.invariant, c.text, o.Broken, o.Unknown)
			case !strings.Contains(o.Unknown, c.unknown) || (c.unknown == "") != (o.Unknown == ""):
				t.Errorf("expected it to be unknown by %q, found %q", c.unknown, o.Unknown)
			case o.Cut:
				t.Error("interrupted")
			}
			switch c.name {
			case "held":
				if o.Struck["node kill"] != 1 || o.Struck["node hold"] != 0 || o.Struck["node unhold"] != 1 || o.Events != 7 {
					t.Errorf("struck %v in %d events", o.Struck, o.Events)
				}
			case "missed":
				if o.Struck["node unhold"] != 0 || o.Struck["node kill"] != 1 {
					t.Errorf("struck %v", o.Struck)
				}
			case "violated":
				if o.Broken.At != 61500*time.Millisecond || o.Broken.Node != 1 || o.Broken.Cause != "node-# leaks: a rule" {
					t.Errorf("found %+v", o.Broken)
				}
			}
		})
	}
}

// TestCannotPlay: a machine that lacks something, a program that is not there and a scenario that is refused are errors.
func TestCannotPlay(t *testing.T) {
	p := player(t, "3 ")
	_, err := p.Play("x.scn", scenario, 1, nil)
	if lack, ok := errors.AsType[*process.Lacking](err); !ok || lack.Error() != "a word about it" {
		t.Errorf("exit 3: %v", err)
	}
	p.Program = filepath.Join(t.TempDir(), "none")
	if _, err = p.Play("x.scn", scenario, 1, nil); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("no program: %v", err)
	}
	refused := player(t, `2 {"enilab":"run/1","exit":2,"errors":[{"line":3,"message":"node-1 cannot \"kil\"","hint":"did you mean kill?"}],"files":[]}`)
	if _, err = refused.Play("x.scn", scenario, 1, nil); err == nil || err.Error() != `line 3: node-1 cannot "kil" did you mean kill?` {
		t.Errorf("refused: %v", err)
	}
	if _, err = refused.Play("x.scn", "cluster nodes=", 1, nil); err == nil {
		t.Error("what does not parse is played")
	}
}

// TestArguments: the run gets the flags, the seed, and the scenario as its input; and the command that shows it again has them too;
// where runs repeat it is the same command.
func TestArguments(t *testing.T) {
	p := player(t, "0 args")
	p.Args = []string{"--on", "netns", "--in", "vm"}
	o, err := p.Play("x.scn", scenario, 12, nil)
	if err != nil || !strings.Contains(o.Unknown, `found "run --on netns --in vm --json --stop-at-first --seed 12 -"`) {
		t.Errorf("%+v, %v", o, err)
	}
	if again := p.Again("small.scn", 12); again != "enilab run --on netns --in vm small.scn --seed 12" {
		t.Errorf("again: %s", again)
	}
	p.Same = true
	if again := p.Again("small.scn", 12); again != "enilab run --on netns --in vm --json --stop-at-first --seed 12 - < small.scn" {
		t.Errorf("where runs repeat, again: %s", again)
	}
}
