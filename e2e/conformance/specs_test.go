package main

import (
	"bytes"
	"io"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/runner"
)

// report is what Ginkgo writes: specs that were not asked for are skipped without a word.
const report = `<testsuites><testsuite>
<testcase name="[SynchronizedBeforeSuite]" status="passed"/>
<testcase name="[It] [sig-network] Services should serve [Conformance]" status="passed"/>
<testcase name="[It] [sig-network] DNS should resolve" status="failed"><failure message="" type="failed">[FAILED] timed out
after all</failure></testcase>
<testcase name="[It] [sig-network] Pods should stay" status="panicked"><error message="nil pointer">...</error></testcase>
<testcase name="[It] [sig-network] Zones should be three" status="skipped"><skipped message="skipped - Zone count is 1, only run for multi-zone clusters"/></testcase>
<testcase name="[It] [sig-storage] Volumes should mount" status="skipped"><skipped message="skipped"/></testcase>
</testsuite></testsuites>`

// TestReportIsRead: what passed is counted, what failed or was skipped has its name and the first line of why, and exit codes tell them apart.
func TestReportIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "junit_01.xml")
	must.Do(t, os.WriteFile(path, []byte(report), 0o600))
	f := &found{}
	must.Do(t, f.read(path))
	var b bytes.Buffer
	must.Do(t, f.tell(&b, "more"))
	want := `failed   [sig-network] DNS should resolve
         timed out
failed   [sig-network] Pods should stay
         nil pointer
skipped  [sig-network] Zones should be three
         Zone count is 1, only run for multi-zone clusters
more: 1 passed, 2 failed, 1 skipped in 0s
`
	if b.String() != want {
		t.Errorf("found\n%s\nexpected\n%s", b.String(), want)
	}
	for want, f := range map[int]*found{runner.ExitViolated: f, runner.ExitLacking: {}, runner.ExitHeld: {passed: 1}} {
		if got := f.code(); got != want {
			t.Errorf("%+v: exit code %d, expected %d", f, got, want)
		}
	}
}

// TestRequestsAreChecked: what the caller is to blame for is exit code 2, and what the machine lacks 3, each in a sentence, before anything is made.
func TestRequestsAreChecked(t *testing.T) {
	tool := filepath.Join(t.TempDir(), "tool")
	must.Do(t, os.WriteFile(tool, nil, 0o700))
	for _, c := range []struct {
		a    asked
		code int
		says string
	}{
		{asked{suite: "all"}, runner.ExitBad, "conformance or more"},
		{asked{suite: "more"}, runner.ExitBad, "-procs 0"},
		{asked{suite: "more", broken: "everything"}, runner.ExitBad, "no-udp"},
		{asked{suite: "more", procs: 1, control: true, kills: true}, runner.ExitBad, "-control"},
		{asked{suite: "more", procs: 1, kubectl: tool}, runner.ExitLacking, "E2E_TEST is not set"},
		{asked{suite: "more", procs: 1, kubectl: tool, tests: "/nowhere/e2e.test"}, runner.ExitLacking, "/nowhere/e2e.test"},
		{asked{suite: "more", procs: 1, kubectl: tool, tests: tool, images: "/nowhere.tar"}, runner.ExitLacking, "/nowhere.tar"},
	} {
		if code, err := c.a.run(t.Context()); code != c.code || err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: exit code %d, %v; expected %d and %q", c.a, code, err, c.code, c.says)
		}
	}
}

// TestProgressIsFollowed: a line of any length does not stop the specs.
func TestProgressIsFollowed(t *testing.T) {
	in := strings.NewReader("[sig-network] A\n• [1.2 seconds]\n" + strings.Repeat("x", 1<<25) + "\n• [FAILED] [3 seconds]\n")
	var log bytes.Buffer
	follow(io.TeeReader(in, &log), time.Now(), false, func(string, string) {})
	if log.Len() < 1<<25 {
		t.Errorf("%d bytes came through", log.Len())
	}
}

// TestASpecThatRunsHasNotPassed: what closes a step of the suite says nothing of the spec that begins after it.
func TestASpecThatRunsHasNotPassed(t *testing.T) {
	follow(strings.NewReader("• [0.1 seconds]\n[sig-network] A should hang [sig-network]\n"), time.Now(), false,
		func(name, outcome string) { t.Errorf("%s: %q", name, outcome) })
}

// TestSpecsThatRunAtOnceAreFollowed: each is told whole when it is over, and its name comes after what became of it.
func TestSpecsThatRunAtOnceAreFollowed(t *testing.T) {
	got := map[string]string{}
	follow(strings.NewReader(`Running in parallel across 2 processes
------------------------------
• [FAILED] [0.001 seconds]
[sig-network] DNS [It] should fail [sig-network]
/e2e/dns.go:6

  [FAILED] bad
  In [It] at: /e2e/dns.go:6
------------------------------
S [SKIPPED] [0.000 seconds]
[sig-network] DNS [It] should be skipped [sig-network]
------------------------------
• [1.001 seconds]
[sig-network] DNS should resolve [Conformance] [sig-network]
------------------------------
`), time.Now(), true, func(name, outcome string) { got[name] = outcome })
	want := map[string]string{"[sig-network] DNS should fail [sig-network]": "FAILED", "[sig-network] DNS should be skipped [sig-network]": "SKIPPED",
		"[sig-network] DNS should resolve [Conformance] [sig-network]": ""}
	if !maps.Equal(got, want) {
		t.Errorf("heard %v, expected %v", got, want)
	}
}

// TestARunThatWasInterruptedGoesOn: what passed or failed in it stands, and what was under way or skipped runs again.
// Of another build nothing stands, and a run that came to its end is none that goes on.
func TestARunThatWasInterruptedGoesOn(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "conformance")
	if _, err := begin(dir, "this build", true); err == nil || !strings.Contains(err.Error(), "no run of these flags") {
		t.Errorf("nothing was interrupted: %v", err)
	}
	p := must.Get(begin(dir, "this build", false))(t)
	follow(strings.NewReader(`[SynchronizedBeforeSuite] PASSED [0.1 seconds]
[sig-network] DNS should resolve [Conformance] [sig-network, Conformance]
• [1.2 seconds]
[sig-network] DNS should fail (often) [sig-network]
• [TIMEDOUT] [35.262 seconds]
[sig-network] DNS [It] should fail (often) [sig-network]
[sig-network] DNS should wait [sig-network]
S [SKIPPED] [0.1 seconds]
[sig-network] DNS should be slow [sig-network]
• [INTERRUPTED] [7.1 seconds]
`), time.Now(), false, p.note)
	must.Do(t, p.Close())
	if _, err := begin(dir, "that build", true); err == nil || !strings.Contains(err.Error(), "another build") {
		t.Errorf("of another build: %v", err)
	}
	p = must.Get(begin(dir, "this build", true))(t)
	want := map[string]string{"[sig-network] DNS should resolve [Conformance]": "passed", "[sig-network] DNS should fail (often)": "TIMEDOUT"}
	if !maps.Equal(p.over, want) {
		t.Errorf("what stands is %v, expected %v", p.over, want)
	}
	if f := p.found(); f.passed != 1 || len(f.failed) != 1 || f.before != 2 || f.code() != runner.ExitViolated {
		t.Errorf("found %+v", f)
	}
	must.Do(t, p.end())
	must.Do(t, p.Close())
	if _, err := begin(dir, "this build", true); err == nil {
		t.Error("a run that came to its end goes on")
	}
}

// TestTheLimitIsNoVerdict: of the spec that runs when the time is over nothing is known, and a run goes on with it.
func TestTheLimitIsNoVerdict(t *testing.T) {
	dir := t.TempDir()
	const script = `#!/bin/sh
end() {
	echo "[sig-network] A should pass [Conformance] [sig-network, Conformance]"
	echo "• [1.000 seconds]"
	echo "[sig-network] B should take long [Conformance] [sig-network, Conformance]"
	echo "• [INTERRUPTED] [9.000 seconds]"
	cat > "${0%/*}/conformance/junit_01.xml" <<EOF
<testsuites><testsuite>
<testcase name="[It] [sig-network] A should pass [Conformance]" status="passed"></testcase>
<testcase name="[It] [sig-network] B should take long [Conformance]" status="interrupted"><error message="interrupted"/></testcase>
</testsuite></testsuites>
EOF
	exit 1
}
trap end TERM
while :; do sleep 0.01; done
`
	a := &asked{suite: "conformance", procs: 1, tests: filepath.Join(dir, "e2e.test"), results: dir, limit: time.Second}
	must.Do(t, os.WriteFile(a.tests, []byte(script), 0o755))
	p := must.Get(begin(a.dir(), "this build", false))(t)
	defer p.Close()
	f := must.Get(a.specs(t.Context(), &cluster{}, p))(t)
	if !f.cut || f.passed != 1 || len(f.failed) > 0 {
		t.Errorf("found %+v", f)
	}
	again := must.Get(begin(a.dir(), "this build", true))(t)
	defer again.Close()
	if want := map[string]string{"[sig-network] A should pass [Conformance]": "passed"}; !maps.Equal(again.over, want) {
		t.Errorf("what stands is %v, expected %v", again.over, want)
	}
}

// TestFocus: a part of the name narrows a suite, and never widens it.
func TestFocus(t *testing.T) {
	const conformant, other = "[sig-network] DNS should resolve [Conformance]", "[sig-network] DNS should follow"
	for _, c := range []struct {
		suite, part, name string
		want              bool
	}{
		{"conformance", "", conformant, true}, {"conformance", "", other, false},
		{"conformance", "DNS|Proxy", conformant, true}, {"conformance", "Proxy|DNS", other, false}, {"conformance", "Proxy", conformant, false},
		{"more", "DNS|Proxy", other, true}, {"more", "Proxy", other, false}, {"more", "DNS", "[sig-node] DNS", false},
	} {
		s := suites[c.suite]
		if got := regexp.MustCompile(s.focus(c.part)).MatchString(c.name); got != c.want {
			t.Errorf("%s with %q runs %q: %v", c.suite, c.part, c.name, got)
		}
	}
}
