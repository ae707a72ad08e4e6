package ipam_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/dataplane"
	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

func sound(name string) (*ipam.Policy, bool) { return ipam.Sound(), name == "sound" }

// tape records what a small troubled world does to its node, from step skip on.
func tape(t testing.TB, seed uint64, skip, steps int) []byte {
	w := newWalker(t, seed)
	for range skip {
		w.do()
	}
	r := must.Get(ipam.NewRecording(w.node, "sound"))(t)
	out := bytes.Clone(r.Header())
	w.tap = func(in ipam.Input, effs []ipam.Effect) {
		if _, next := in.(ipam.Start); next { // another life is another recording
			w.tap = nil
			return
		}
		out = append(out, must.Get(r.Line(w.now, in, effs))(t)...)
	}
	for range steps {
		w.do()
	}
	return out
}

func TestReplay(t *testing.T) {
	for seed := range uint64(8) {
		data := tape(t, seed, 200*int(seed), 400)
		lines, until := 0, time.Duration(0)
		done, err := ipam.Replay(data, sound, func(line int, at time.Duration, in ipam.Input, effs []ipam.Effect) {
			lines++
			if until = at; line != lines+1 {
				t.Fatalf("line %d after %d", line, lines)
			}
		})
		if err != nil || done.Lines != lines || done.Until != until || lines != bytes.Count(data, []byte("\n"))-1 {
			t.Fatalf("seed %d: %+v of %d lines, error %v", seed, done, lines, err)
		}
	}
}

func TestReplaySaysHowFarARecordingIsGood(t *testing.T) {
	data := tape(t, 1, 0, 60)
	lines := bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	if len(lines) < 20 {
		t.Fatalf("%d lines", len(lines))
	}
	text := func(change func(l [][]byte) [][]byte) string {
		l := make([][]byte, len(lines))
		copy(l, lines)
		return string(bytes.Join(change(l), nil)) + "\n"
	}
	at := func(i int, line string) func([][]byte) [][]byte {
		return func(l [][]byte) [][]byte { l[i] = []byte(line + "\n"); return l }
	}
	whole := string(data)
	header := string(lines[0])
	for _, c := range []struct {
		name, data string
		lines      int
		says       string
	}{
		{"empty", "", 0, "the header (line 1) is cut off"},
		{"cut in the header", whole[:30], 0, "the header (line 1) is cut off after 30 bytes"},
		{"another file", "{}\n", 0, `expected format "recording/1", found ""`},
		{"another format", strings.Replace(header, "recording/1", "recording/9", 1), 0, `found "recording/9"; use the enilab that wrote it`},
		{"another version", strings.Replace(header, `"version":2`, `"version":3`, 1), 0, "expected version 2, found 3; use the enilab that wrote it"},
		{"another policy", strings.Replace(header, `"sound"`, `"mine"`, 1), 0, `policy "mine" is unknown`},
		{"another node", strings.Replace(header, `enilab-node/`, `enilab-node/9`, 1), 0, "use the enilab that wrote it"},
		{"the header alone", header, 0, ""},
		{"a member of another core that holds nothing", strings.Replace(whole, `"State":{`, `"State":{"Amnesia":false,`, 1), len(lines) - 1, ""},
		{"a member of another core", strings.Replace(whole, `"State":{`, `"State":{"Amnesia":true,`, 1), 0, `unknown field "Amnesia"`},
		{"cut in a line", whole[:len(whole)-5], len(lines) - 2, "it is cut off; the recording is good up to line"},
		{"no line", text(at(9, "nonsense")), 8, "line 10: invalid character"},
		{"no time", text(at(9, `{"in":{"Tick":{}},"out":""}`)), 8, "it has no time"},
		{"an unknown input", text(at(9, `{"at":999999999999,"in":{"Jump":{}},"out":""}`)), 8, "no input has this tag"},
		{"an unknown member", text(at(9, `{"at":999999999999,"in":{"Stop":{"x":1}},"out":""}`)), 8, "unknown field"},
		{"two inputs", text(at(9, `{"at":999999999999,"in":{"Stop":{},"Tick":{}},"out":""}`)), 8, "expected one tag, found 2"},
		{"backwards", text(at(9, `{"at":1,"in":{"Tick":{}},"out":""}`)), 8, "time runs backwards"},
		{"other effects", text(at(9, `{"at":999999999999,"in":{"Tick":{}},"out":"0000000000000000"}`)), 8, "the effects at 16m39.999999999s differ"},
	} {
		done, err := ipam.Replay([]byte(c.data), sound, nil)
		if c.says == "" && err == nil {
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.says) || done.Lines != c.lines {
			t.Errorf("%s: %+v, error %v; want %d lines and %q", c.name, done, err, c.lines, c.says)
		}
	}
}

func TestInputsComeBack(t *testing.T) {
	w := newWorld(t, ipam.Sound())
	o := w.kernel.Observe()
	for _, in := range []ipam.Input{
		nil,
		ipam.Start{Boot: "b", Rebooted: true, Seed: 1 << 63, Rows: append(someRows(), someIntents()...), Settings: ipam.Defaults(), Wall: bootWall},
		ipam.Set{Settings: ipam.Defaults()},
		ipam.Add{Req: 1, Att: att("c"), Pod: ipam.Pod{Namespace: "n", Name: "p", UID: "u"}, Netns: 4026531840, Deadline: time.Second, Version: 2, Tries: 1},
		ipam.Del{Req: 2, Att: att("c"), Intent: true},
		ipam.Check{Req: 3, Att: att("c")},
		ipam.GC{Req: 4, Network: "n", Valid: []ipam.Attachment{att("c")}, Absent: true},
		ipam.Gone{Req: 5},
		ipam.Seen{ID: 6, What: ipam.LookKernel, Complete: true, Kernel: &o},
		w.look(&ipam.Look{ID: 7, What: ipam.LookIMDS}),
		ipam.Called{ID: 8, Result: ipam.Result{Class: ipam.Throttled, Code: "x"}},
		ipam.Applied{ID: 9, Done: 3, Err: &dataplane.Error{Kind: dataplane.Exists, Op: 3, Text: "x"}},
		ipam.Saved{Store: ipam.LibStore, Seq: 10, Err: "disk full"},
		ipam.Stop{},
	} {
		data := must.Get(ipam.MarshalInput(in))(t)
		got := must.Get(ipam.UnmarshalInput(data))(t)
		if again := must.Get(ipam.MarshalInput(got))(t); !bytes.Equal(again, data) || reflect.TypeOf(got) != reflect.TypeOf(in) {
			t.Errorf("%s\ncame back as\n%s", data, again)
		}
	}
}

// FuzzReplay: no file makes a replay panic, and no Node that was decoded panics when it is stepped.
func FuzzReplay(f *testing.F) {
	for seed := range uint64(3) {
		f.Add(tape(f, seed, 100, 12))
		f.Add(tape(f, seed, 3000, 4))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		_, _ = ipam.Replay(data, sound, nil)
		head, rest, _ := bytes.Cut(data, []byte("\n"))
		n, ok := decodeHead(head)
		if !ok {
			return
		}
		now := time.Duration(0)
		for _, line := range bytes.Split(rest, []byte("\n")) { // whatever the fingerprints say
			in, err := inputOf(line)
			if err != nil {
				continue
			}
			now += time.Second
			n.Step(now, in)
			n.Clone().Step(now+time.Hour, nil)
		}
		n.Step(now+time.Minute, ipam.Stop{})
	})
}

func decodeHead(head []byte) (*ipam.Node, bool) {
	_, node, ok := bytes.Cut(head, []byte(`"node":`))
	if !ok {
		return nil, false
	}
	n, err := ipam.Decode(bytes.TrimSuffix(node, []byte("}")), ipam.Sound())
	return n, err == nil
}

func inputOf(line []byte) (ipam.Input, error) {
	_, in, _ := bytes.Cut(line, []byte(`"in":`))
	in, _, _ = bytes.Cut(in, []byte(`,"out":`))
	return ipam.UnmarshalInput(in)
}
