package calls_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/e2e/calls"
	"github.com/enilab/enilab/internal/must"
)

// call is a made-up call: verb, container ID, pod, UID; what is at CNI_NETNS; when it began and ended, in seconds.
type call struct {
	verb, id, pod, uid string
	netns              string // "1": a namespace; "gone"; ""
	began, ended       float64
	answer             string // stdout; empty: an empty result; "killed"
}

const busy = `{"code":11,"msg":"try again later"}`

// recording is what the recorder would have written.
func recording(made ...call) []byte {
	var lines []calls.Line
	for i, c := range made {
		run := fmt.Sprint("r", i)
		l := calls.Line{Run: run, At: int64(c.began * 1e9), Plugin: "/opt/cni/bin/aws-cni", Env: map[string]string{
			"CNI_COMMAND": c.verb, "CNI_CONTAINERID": c.id, "CNI_IFNAME": "eth0",
		}, Stdin: `{"cniVersion":"1.1.0"}`}
		if c.pod != "" {
			l.Env["CNI_ARGS"] = "IgnoreUnknown=1;K8S_POD_UID=" + c.uid + ";K8S_POD_NAME=" + c.pod + ";K8S_POD_NAMESPACE=default"
		}
		switch c.netns {
		case "1":
			l.Netns, l.Env["CNI_NETNS"] = 4026531840, "/var/run/netns/cni-1"
		case "gone":
			l.Env["CNI_NETNS"] = "/var/run/netns/cni-1"
		}
		if c.verb == "DEL" && c.netns == "1" {
			l.Stdin = `{"cniVersion":"1.1.0","prevResult":{"ips":[{"address":"10.0.0.7/32"}]}}`
		}
		lines = append(lines, l)
		end := calls.Line{Run: run, End: true, At: int64(c.ended * 1e9), Stdout: c.answer}
		if c.answer != "" {
			end.Exit = 1
		}
		if c.answer != "killed" {
			lines = append(lines, end)
		}
	}
	slices.SortStableFunc(lines, func(a, b calls.Line) int { return int(a.At - b.At) })
	var b bytes.Buffer
	for _, l := range lines {
		raw, err := json.Marshal(l)
		if err != nil {
			panic(err)
		}
		b.Write(append(raw, '\n'))
	}
	return b.Bytes()
}

func text(t *testing.T, made ...call) string {
	t.Helper()
	runs := must.Get(calls.Read(bytes.NewReader(recording(made...))))(t)
	return calls.Text(runs)
}

func tell(t *testing.T, got, want string) {
	t.Helper()
	var b strings.Builder
	for l := range strings.Lines(want) {
		if l = strings.TrimPrefix(l, "\t\t"); strings.TrimSpace(l) != "" {
			b.WriteString(strings.TrimRight(l, "\n") + "\n")
		}
	}
	if d := calls.Compare(b.String(), got); d != "" {
		t.Errorf("the text differs:\n%s", d)
	}
}

func TestText(t *testing.T) {
	tell(t, text(t,
		call{"ADD", "f00d", "web-0", "u1", "1", 1, 2, busy},
		call{"STATUS", "", "", "", "", 1.5, 1.6, ""},
		call{"DEL", "f00d", "web-0", "u1", "1", 2, 3, ""},
		call{"ADD", "beef", "web-0", "u1", "1", 13, 14, ""},
		call{"ADD", "cafe", "web-1", "u2", "1", 13, 14, "killed"},
		call{"DEL", "beef", "web-0", "u1", "1", 20, 21, "no JSON"},
		call{"DEL", "beef", "web-0", "u1", "gone", 33, 34, ""},
		call{"DEL", "beef", "web-0", "u1", "", 60, 61, ""},
		call{"DEL", "cafe", "web-1", "u2", "", 61, 62, ""},
	), `
		pod web-0
		  sandbox-1 of pod-1
		    ADD eth0 netns 1.1.0: error 11
		    DEL eth0 netns prev 1.1.0: ok
		  sandbox-2 of pod-1
		    ADD eth0 netns 1.1.0: ok
		    DEL eth0 netns prev 1.1.0: error 999
		    DEL eth0 gone 1.1.0: ok
		    DEL eth0 empty 1.1.0: ok
		pod web-1
		  sandbox-1 of pod-1
		    ADD eth0 netns 1.1.0: killed
		    DEL eth0 empty 1.1.0: ok`)
}

// What is there of earlier sandboxes of the name when another one begins.
func TestWhatIsStillThere(t *testing.T) {
	for _, c := range []struct {
		want    string
		earlier []call
	}{
		{"", []call{{"ADD", "a", "web-0", "u1", "1", 1, 2, ""}, {"DEL", "a", "web-0", "u1", "1", 3, 4, ""}}},
		{"", []call{{"ADD", "a", "web-0", "u1", "1", 1, 2, ""}, {"DEL", "a", "web-0", "u1", "1", 3, 4, ""}, {"DEL", "a", "web-0", "u1", "", 5, 9, busy}}},
		{", sandbox-1 still up", []call{{"ADD", "a", "web-0", "u1", "1", 1, 2, ""}, {"DEL", "a", "web-0", "u1", "1", 11, 12, ""}}},
		{", sandbox-1 still up, its ADD under way", []call{{"ADD", "a", "web-0", "u1", "1", 1, 12, ""}}},
		{", sandbox-1 still up, its ADD failed", []call{{"ADD", "a", "web-0", "u1", "1", 1, 2, busy}}},
		{", sandbox-1 still up, its ADD killed", []call{{"ADD", "a", "web-0", "u1", "1", 1, 0, "killed"}}},
		{", sandbox-1 still up, its DEL under way", []call{{"ADD", "a", "web-0", "u1", "1", 1, 2, ""}, {"DEL", "a", "web-0", "u1", "1", 9, 12, ""}}},
		{", sandbox-1 still up, its DEL failed", []call{{"ADD", "a", "web-0", "u1", "1", 1, 2, ""}, {"DEL", "a", "web-0", "u1", "1", 3, 4, busy}}},
		{", sandbox-1 still up, its DEL killed", []call{{"ADD", "a", "web-0", "u1", "1", 1, 2, ""}, {"DEL", "a", "web-0", "u1", "1", 3, 0, "killed"}}},
		{", sandbox-1 still without a call", []call{{"CHECK", "a", "web-0", "u1", "1", 1, 2, ""}}},
		{", sandbox-2 still up", []call{
			{"ADD", "a", "web-0", "u1", "1", 1, 2, ""}, {"DEL", "a", "web-0", "u1", "1", 3, 4, ""}, {"ADD", "b", "web-0", "u1", "1", 5, 6, ""},
		}},
	} {
		got := text(t, append(c.earlier, call{"ADD", "z", "web-0", "u2", "1", 10, 11, ""})...)
		if last := got[strings.LastIndex(got, "  sandbox-"):]; !strings.Contains(last, " of pod-2"+c.want+"\n") {
			t.Errorf("%+v:\n%s\nexpected %q", c.earlier, got, c.want)
		}
	}
}

func TestCallsOfOneSandboxAtOnce(t *testing.T) {
	tell(t, text(t,
		call{"ADD", "a", "web-0", "u1", "1", 1, 5, ""},
		call{"DEL", "a", "web-0", "u1", "1", 3, 4, ""},
		call{"DEL", "a", "web-0", "u1", "", 6, 7, ""},
	), `
		pod web-0
		  sandbox-1 of pod-1
		    ADD eth0 netns 1.1.0: ok
		    DEL eth0 netns prev 1.1.0 (beside the one before): ok
		    DEL eth0 empty 1.1.0: ok`)
}

// The same life of many pods at once, in whatever order their calls come, is the same text.
func TestParallelPodsAreNoFlake(t *testing.T) {
	want := ""
	for seed := range uint64(50) {
		r := rand.New(rand.NewPCG(seed, 0))
		var made []call
		for p := range 5 {
			at, id, uid, pod := r.Float64(), fmt.Sprint("c", r.Uint32()), fmt.Sprint("u", r.Uint32()), fmt.Sprint("web-", p)
			for _, verb := range []string{"ADD", "DEL", "DEL"} {
				took := r.Float64()
				made = append(made, call{verb, id, pod, uid, "1", at, at + took, ""})
				at += took + r.Float64()
			}
		}
		got := text(t, made...)
		want = cmp.Or(want, got)
		if d := calls.Compare(want, got); d != "" {
			t.Fatalf("seed %d tells it otherwise:\n%s", seed, d)
		}
	}
	if strings.Count(want, "DEL") != 10 {
		t.Errorf("%s", want)
	}
}

func TestPolls(t *testing.T) {
	var made []call
	for i := range 5 {
		at := float64(5*i) + 0.01
		made = append(made, call{"STATUS", "", "", "", "", at, at + 0.1, ""})
	}
	made[3].answer = `{"code":50,"msg":"not available"}`
	made = append(made, call{"ADD", "a", "web-0", "u1", "1", 1, 2, ""}, call{"GC", "", "", "", "", 3, 4, ""})
	runs := must.Get(calls.Read(bytes.NewReader(recording(made...))))(t)
	if got, want := calls.Polls(runs), "STATUS 1.1.0: 5 times, about 5s apart: ok, error 50\nGC 1.1.0: 1 times: ok\n"; got != want {
		t.Errorf("%q, expected %q", got, want)
	}
}

func TestBareAndOf(t *testing.T) {
	runs, err := calls.Read(bytes.NewReader(recording(call{"DEL", "a", "web-0", "u1", "1", 1, 2, ""}, call{"STATUS", "", "", "", "", 1, 2, ""})))
	must.Do(t, err)
	tell(t, calls.Text(calls.Bare(runs)), `
		pod web-0
		  sandbox-1 of pod-1
		    DEL eth0 netns: ok`)
	if runs[0].Version != "1.1.0" {
		t.Error("Bare changed what it was given")
	}
	if got := calls.Of(runs, "default"); len(got) != 1 || got[0].Verb != "DEL" || got[0].Ended.Sub(got[0].Began) != time.Second {
		t.Errorf("%+v", got)
	}
	if got := calls.Of(runs, "other"); len(got) != 0 {
		t.Errorf("%+v", got)
	}
}

func TestCut(t *testing.T) {
	raw := recording(
		call{"STATUS", "", "", "", "", 1, 2, ""},
		call{"ADD", "a", "web-0", "u1", "1", 3, 4, ""},
		call{"ADD", "a", "web-0", "u1", "1", 3, 4, ""},
		call{"STATUS", "", "", "", "", 5, 6, ""},
		call{"ADD", "b", "web-1", "u1", "1", 7, 8, "killed"},
	)
	raw = bytes.Replace(raw, []byte("K8S_POD_NAMESPACE=default"), []byte("K8S_POD_NAMESPACE=other"), 1)
	runs, err := calls.Read(bytes.NewReader(calls.Cut(raw, "default", time.Unix(5, 0))))
	if err != nil || len(runs) != 2 || runs[0].Verb != "STATUS" || runs[0].Killed() || runs[1].Pod != "web-1" || !runs[1].Killed() {
		t.Errorf("%v: %+v", err, runs)
	}
	if _, err := calls.Read(bytes.NewReader(calls.Cut(append(raw, "garbage\n"...), "default", time.Time{}))); err == nil {
		t.Error("garbage was cut out")
	}
}

func TestBadRecordings(t *testing.T) {
	for raw, want := range map[string]string{
		"{":                                  "line 1",
		`{"at":1}`:                           "names no run",
		`{"run":"a","end":true}`:             "did not begin",
		`{"run":"a"}` + "\n" + `{"run":"a"}`: "begins twice",
		strings.Repeat("x", 5<<20):           "too long",
	} {
		if _, err := calls.Read(strings.NewReader(raw)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, expected %q", raw, err, want)
		}
	}
	if runs, err := calls.Read(strings.NewReader("")); err != nil || len(runs) != 0 || calls.Text(runs) != "" {
		t.Errorf("an empty recording: %v %v", runs, err)
	}
	// A call that is itself no good is recorded like any other.
	if runs, err := calls.Read(strings.NewReader(`{"run":"a","env":{"CNI_ARGS":"=;;K8S_POD_NAME"},"stdin":"{"}`)); err != nil || len(runs) != 1 || runs[0].Version != "" {
		t.Errorf("%v %+v", err, runs)
	}
}

func TestCompare(t *testing.T) {
	for _, c := range []struct{ golden, got, want string }{
		{"a\nb\n", "a\nb\n", ""},
		{"a\nb\nc\n", "a\nc\n", "  a\n- b\n  c\n"},
		{"a\nc\n", "a\nb\nc\n", "  a\n+ b\n  c\n"},
		{"a\nb\n", "a\nx\n", "  a\n- b\n+ x\n"},
		{"a\n", "a", "  a\n"}, // a missing last newline
		{"", "a\n", "-\n+ a\n"},
	} {
		if got := calls.Compare(c.golden, c.got); got != c.want {
			t.Errorf("%q against %q: %q, expected %q", c.golden, c.got, got, c.want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add(recording(call{"ADD", "a", "web-0", "u1", "1", 1, 2, busy}, call{"DEL", "a", "web-0", "u1", "", 1, 2, "killed"}))
	f.Add([]byte(`{"run":"a","at":-1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		runs, err := calls.Read(bytes.NewReader(raw))
		if err != nil {
			return
		}
		one, other := calls.Text(runs), calls.Text(slices.Clone(runs))
		if one != other {
			t.Errorf("told in two ways:\n%s\n%s", one, other)
		}
		_ = calls.Polls(runs)
	})
}
