package report_test

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/report"
)

// hostile are texts that a system under test, or a scenario, may have for names.
var hostile = []string{`<script>document.title="taken"</script>`, `]]>`, `"><img src=x onerror=alert(1)>`, `</style></script><!--`, "\x00\x01\x1b[31m\x7f", "a\xffb\xc3", "\u202eevil\u2066",
	strings.Repeat("long ", 10_000), "&amp;&#0;", "javascript:alert(1)", "{{.}}", "\ufffe\uffff", "line\nbreak\ttab", "\ud7ff\u2028", ""}

// hostilePage has a hostile text wherever a text can be.
func hostilePage(say func() string) *report.Page {
	verdicts := []string{"held", "violated", "skipped", "not settled", "bad", say()}
	run := func(i int) report.Run {
		r := report.Run{Scenario: say(), File: say(), Headline: say(), Source: say(), Variant: say(), World: say(), System: say(), Play: say(), Mutant: say(), Verdict: verdicts[i%len(verdicts)],
			Claim: say(), Also: []string{say(), say()}, Remedy: say(), Command: say(), Ended: 3 * time.Minute, Nodes: 2, Others: say(), Meant: i%2 == 0,
			Timeline: []report.Event{{At: time.Second, Node: 1, Text: say()}, {At: 2 * time.Hour, Node: -1, Text: say()}},
			Lanes:    []report.Lane{{Node: 1, Kind: report.ENI, Name: say(), Spans: []report.Span{{From: 0, To: time.Minute, State: say(), Text: say()}}}, {Node: 2, Kind: report.LaneKind(say()), Name: say(), Spans: []report.Span{{State: "cut off"}}}},
			Curves:   []report.Curve{{Name: say(), Node: 1, Points: []report.Point{{At: time.Second, Value: 3}}}, {Name: "tokens of " + say(), Points: []report.Point{{Value: -1e300}}}},
			Faults:   []report.Fault{{From: time.Second, To: time.Minute, Kind: report.FaultKind(say()), Line: 3, Text: say(), Fate: say(), Did: say()}},
			Script:   []report.Line{{Number: 3, Text: say(), Mark: report.Broke}, {Number: 4, Text: say(), Mark: report.Mark(say())}},
			Looks:    []report.Look{{Invariant: say(), Times: 3, Why: say()}}, Skipped: []report.Skip{{Line: 1, Why: say()}}}
		if i%3 == 0 {
			r.First = &report.Break{At: time.Minute, Node: i, Invariant: say(), Line: 3, Text: say()}
		}
		return r
	}
	p := &report.Page{Title: say(), By: say(), Command: say(), Notes: []string{say()}, Checks: []report.Check{{Suite: say(), Name: say(), Verdict: say(), Text: say()}},
		Figures: []report.Figure{{Name: say(), Unit: say(), Old: 1, New: 2}}, Banner: &report.Banner{Word: say(), Class: report.Class(say()), Line: say(), Also: say()}, Columns: []string{say(), say()},
		Matrix:   []report.Row{{Name: say(), Cells: []report.Cell{{Class: report.Class(say()), Text: say(), Seeds: say()}, {}}}},
		Findings: []report.Finding{{Kind: say(), Class: report.Class(say()), Line: say(), Facts: []string{say()}, Text: say(), Command: say(), Pair: 1}, {Line: say(), Folded: true, Pair: 99}}}
	for i := range 6 {
		p.Runs = append(p.Runs, run(i))
		old, fresh := run(i), run(i+1)
		p.Pairs = append(p.Pairs, report.Pair{Scenario: say(), Play: say(), Change: []report.Change{report.Regression, report.Unknown, report.Same, report.Change(say())}[i%4], Why: say(), Old: &old, New: &fresh})
	}
	return p
}

// TestHostileNames: whatever names there are, the page stays one page, and the XML stays XML.
func TestHostileNames(t *testing.T) {
	for i, text := range hostile {
		try(t, fmt.Sprint(i), hostilePage(func() string { return text }))
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range 20 {
		try(t, fmt.Sprint("random ", i), hostilePage(func() string {
			if rng.IntN(2) == 0 {
				return hostile[rng.IntN(len(hostile))]
			}
			b := make([]byte, rng.IntN(200))
			for j := range b {
				b[j] = byte(rng.IntN(256))
			}
			return string(b)
		}))
	}
}

func try(t *testing.T, name string, p *report.Page) {
	t.Helper()
	text := html(t, p)
	if len(text) > 2<<20 {
		t.Errorf("%s: the page has %d bytes", name, len(text))
	}
	if !utf8.Valid(text) || bytes.ContainsAny(text, "\x00\x01\x1b\x7f") || bytes.ContainsRune(text, '\u202e') {
		t.Errorf("%s: the page has characters that it must not have", name)
	}
	for what, most := range map[string]int{"<script": 1, "</script": 1, "<style": 1, "</style": 1, "<img": 0, "<!--": 0, "<html": 1} {
		if n := bytes.Count(bytes.ToLower(text), []byte(what)); n != most {
			t.Errorf("%s: %d times %s, expected %d", name, n, what, most)
		}
	}
	if strings.Contains(string(text), `href="javascript`) {
		t.Errorf("%s: a link that runs a script", name)
	}
	var b bytes.Buffer
	if err := report.JUnit(&b, p); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	strict(t, name, b.Bytes())
}

// TestHostileInABrowser: nothing of it runs.
func TestHostileInABrowser(t *testing.T) {
	b := openChromium(t)
	i := 0
	b.open(html(t, hostilePage(func() string { i++; return hostile[i%7] })))
	if got := b.text("document.title"); got == "taken" {
		t.Error("a name ran as a script")
	}
	if c := b.complaints(); len(c) > 0 {
		t.Errorf("the browser complains: %q", c)
	}
}

// element says what may stand in one of JUnit's elements, as the schemas of Jenkins and Ant have it: attributes, those that have to be there with a
// mark, and children.
var elements = map[string]struct{ attributes, children string }{
	"testsuites": {"name tests failures errors time", "testsuite"},
	"testsuite":  {"name! tests! failures! errors! skipped time", "testcase"},
	"testcase":   {"name! classname time", "skipped error failure system-out"},
	"skipped":    {"message", ""},
	"error":      {"message type", ""},
	"failure":    {"message type", ""},
	"system-out": {"", ""},
}

// strict parses XML and holds it to the common schema: elements, attributes, order, and sums.
func strict(t *testing.T, name string, text []byte) {
	t.Helper()
	d := xml.NewDecoder(bytes.NewReader(text))
	var path []string
	sums, said := map[string]int{}, map[string]int{}
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			e, known := elements[x.Name.Local]
			if !known {
				t.Fatalf("%s: there is no element %s", name, x.Name.Local)
			}
			if n := len(path); n > 0 && !strings.Contains(" "+elements[path[n-1]].children+" ", " "+x.Name.Local+" ") {
				t.Errorf("%s: %s stands in %s", name, x.Name.Local, path[n-1])
			}
			path = append(path, x.Name.Local)
			given := map[string]string{}
			for _, a := range x.Attr {
				given[a.Name.Local] = a.Value
				if !strings.Contains(" "+strings.ReplaceAll(e.attributes, "!", "")+" ", " "+a.Name.Local+" ") {
					t.Errorf("%s: %s has no attribute %s", name, x.Name.Local, a.Name.Local)
				}
			}
			for _, a := range strings.Fields(e.attributes) {
				if named, yes := strings.CutSuffix(a, "!"); yes && given[named] == "" && named != "name" {
					t.Errorf("%s: %s lacks %s", name, x.Name.Local, named)
				}
			}
			if s := given["time"]; s != "" {
				if _, err := strconv.ParseFloat(s, 64); err != nil {
					t.Errorf("%s: time %q", name, s)
				}
			}
			sums[x.Name.Local]++
			if x.Name.Local == "testsuite" {
				for _, a := range []string{"tests", "failures", "errors", "skipped"} {
					n, err := strconv.Atoi(given[a])
					if err != nil {
						t.Errorf("%s: %s=%q", name, a, given[a])
					}
					said[a] += n
				}
			}
		case xml.EndElement:
			path = path[:len(path)-1]
		}
	}
	for a, e := range map[string]string{"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"} {
		if said[a] != sums[e] {
			t.Errorf("%s: the suites say %d %s, and there are %d", name, said[a], a, sums[e])
		}
	}
}

// TestJUnit: a suite a file, a case a run, and a failure's text has the first line, what to do, and the command.
func TestJUnit(t *testing.T) {
	p := red(t)
	p.Runs = append(p.Runs, green(t).Runs...)
	var b bytes.Buffer
	must.Do(t, report.JUnit(&b, p))
	strict(t, "red and green", b.Bytes())
	for _, want := range []string{`<testsuite name="scenarios/socket-mismatch.scn" tests="3" failures="3" errors="0" skipped="0"`, `<testsuite name="scenarios/drift.scn" tests="4" failures="0"`,
		`<testcase name="seed 1, wrong=absent, mutant recover-from-runtime-only on sim" classname="socket-mismatch"`, `<failure message="VIOLATED 3:02.2 node-1: no eni is freed`,
		"what to do: read what happened", "again: enilab run scenarios/socket-mismatch.scn --seed 1 --against recover-from-runtime-only", "3:02.2  DetachNetworkInterface eni-B: ok"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("expected %q in\n%s", want, b.String())
		}
	}
}
