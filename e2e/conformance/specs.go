package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/enilab/enilab/sim/runner"
)

// found is what a run of the specs found.
type found struct {
	passed          int
	failed, skipped []verdict
	took            time.Duration
	killed          int
	cut             bool        // the limit was reached before all were over
	before          int         // how many of both are of the run that was interrupted
	without         []exclusion // what was left out by name
}

// verdict is a spec that did not pass, and why.
type verdict struct{ name, why string }

// junit is as much of a report as is read.
type junit struct {
	Cases []struct {
		Name    string `xml:"name,attr"`
		Status  string `xml:"status,attr"`
		Skipped *struct {
			Message string `xml:"message,attr"`
		} `xml:"skipped"`
		Failure *reason `xml:"failure"`
		Error   *reason `xml:"error"`
	} `xml:"testsuite>testcase"`
}

// reason is why a spec failed: in a word or two, or in the text alone.
type reason struct {
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

func (r *reason) line() string {
	return firstLine(cmp.Or(strings.TrimSpace(r.Message), strings.TrimPrefix(strings.TrimSpace(r.Text), "[FAILED] ")))
}

// grace is how long e2e.test may take to clean up once it is told to end.
const grace = time.Minute

// specs runs e2e.test, whose output goes to a file and whose progress is told.
func (a *asked) specs(ctx context.Context, c *cluster, past *past) (*found, error) {
	dir := a.dir()
	s := suites[a.suite]
	which := []string{"v", "no-color", "timeout=" + (a.limit + 2*grace).String(), "focus=" + s.focus(a.focus)}
	for _, e := range s.skip {
		which = append(which, "skip="+e.pattern)
	}
	f := past.found()
	f.without = s.skip
	for name := range past.over {
		which = append(which, "skip="+regexp.QuoteMeta(name)+"$")
	}
	program, args, err := a.command(ctx, which)
	if err != nil {
		return nil, err
	}
	args = append(args, "--provider=skeleton", "--kubeconfig="+c.kubeconfig, "--kubectl-path="+a.kubectl, "--disable-log-dump", "--report-dir="+dir)
	log, err := os.Create(filepath.Join(dir, "log.txt"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	limited, stop := context.WithTimeout(ctx, a.limit)
	defer stop()
	cmd := exec.CommandContext(limited, program, args...)
	cmd.Cancel = func() error { // Ginkgo's own limit would take the spec that runs for one that failed
		f.cut = ctx.Err() == nil
		return cmd.Process.Signal(syscall.SIGTERM)
	}
	cmd.WaitDelay = grace
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	cmd.Stderr = log
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	killing, enough := context.WithCancel(ctx)
	done := make(chan int, 1)
	if a.kills {
		go func() { done <- killDaemons(killing, c.ours) }()
	}
	follow(io.TeeReader(out, log), began, a.procs > 1, past.note)
	err = cmd.Wait()
	enough()
	if a.kills {
		f.killed = <-done
	}
	f.took = time.Since(began)
	if e, ok := errors.AsType[*exec.ExitError](err); err != nil && (!ok || e.ExitCode() < 0) {
		return nil, fmt.Errorf("%s: %w; %s has what it said", a.tests, err, log.Name())
	}
	reports, _ := filepath.Glob(filepath.Join(dir, "junit*.xml")) // the pattern is good
	if len(reports) == 0 {
		return nil, fmt.Errorf("%s wrote no report (%v); %s has what it said", a.tests, err, log.Name())
	}
	for _, r := range reports {
		if err := f.read(r); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// command is what runs the specs with these flags of Ginkgo's: e2e.test by itself, or Ginkgo's own runner, several of it at once.
func (a *asked) command(ctx context.Context, flags []string) (program string, args []string, err error) {
	if a.procs == 1 {
		for _, f := range flags {
			args = append(args, "--ginkgo."+f)
		}
		return a.tests, args, nil
	}
	program = filepath.Join("bin", "ginkgo")
	build := exec.CommandContext(ctx, "go", "build", "-o", program, "github.com/onsi/ginkgo/v2/ginkgo")
	if out, err := build.CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("%v: %w: %s", build, err, out)
	}
	args = []string{fmt.Sprintf("--procs=%d", a.procs)}
	for _, f := range flags {
		args = append(args, "--"+f)
	}
	return program, append(args, a.tests, "--"), nil
}

// ended is the line with which Ginkgo closes a spec: what became of it, unless it passed. The spec's name is before it; where several run
// at once, it is after it.
var ended = regexp.MustCompile(`^[•S] \[([A-Z]*)`)

// follow reads what the specs say, one after the other or several at once, notes what became of each, and tells how many have ended when it is
// half a minute since it last did.
func follow(r io.Reader, began time.Time, atOnce bool, note func(name, outcome string)) {
	const period = 30 * time.Second
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	over, bad, told := 0, 0, time.Now()
	name, outcome := "", (*string)(nil) // of a spec whose other line is still to come
	for lines.Scan() {
		line := lines.Text()
		m, named := ended.FindStringSubmatch(line), strings.HasPrefix(line, "[sig-network]")
		switch {
		case m != nil:
			over++
			outcome = &m[1]
		case named && atOnce: // of one that failed it says where
			name = strings.Replace(line, " [It]", "", 1)
		case named:
			name = line
		}
		if outcome != nil && (!atOnce || named) {
			if name != "" { // not a step of the suite
				note(name, *outcome)
				switch *outcome {
				case "", "SKIPPED", interrupted:
				default:
					bad++
					say("failed: %s", name)
				}
			}
			name, outcome = "", nil
		}
		if time.Since(told) >= period {
			told = time.Now()
			say("%d specs are over after %v, %d of them failed", over, time.Since(began).Round(time.Second), bad)
		}
	}
	_, _ = io.Copy(io.Discard, r) // a line that is longer than any: the rest is in the log all the same
}

// read adds what a JUnit report says. Specs that were not asked for are in it too, without a reason.
func (f *found) read(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var j junit
	if err := xml.Unmarshal(data, &j); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	for _, c := range j.Cases {
		name := strings.TrimPrefix(c.Name, "[It] ")
		if !strings.HasPrefix(name, "[sig-") && c.Failure == nil && c.Error == nil {
			continue // the suite's own steps
		}
		switch {
		case c.Status == strings.ToLower(interrupted):
		case c.Failure != nil:
			f.failed = append(f.failed, verdict{name, c.Failure.line()})
		case c.Error != nil:
			f.failed = append(f.failed, verdict{name, c.Error.line()})
		case c.Skipped != nil || c.Status == "skipped":
			if c.Skipped != nil && strings.Contains(c.Skipped.Message, " ") && c.Skipped.Message != "skipped" {
				f.skipped = append(f.skipped, verdict{name, firstLine(strings.TrimPrefix(c.Skipped.Message, "skipped - "))})
			}
		case c.Status == "passed":
			f.passed++
		}
	}
	return nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// code is the exit code: a run in which nothing passed proves nothing.
func (f *found) code() int {
	switch {
	case len(f.failed) > 0:
		return runner.ExitViolated
	case f.passed == 0:
		return runner.ExitLacking
	}
	return runner.ExitHeld
}

// tell prints what was found.
func (f *found) tell(w io.Writer, name string) error {
	var b strings.Builder
	for _, list := range []struct {
		word string
		of   []verdict
	}{{"failed", f.failed}, {"skipped", f.skipped}} {
		slices.SortFunc(list.of, func(a, b verdict) int { return strings.Compare(a.name, b.name) })
		for _, v := range list.of {
			fmt.Fprintf(&b, "%-8s %s\n         %s\n", list.word, v.name, v.why)
		}
	}
	for _, e := range f.without {
		fmt.Fprintf(&b, "left out %s: %s\n", e.pattern, e.why)
	}
	fmt.Fprintf(&b, "%s: %d passed, %d failed, %d skipped in %v", name, f.passed, len(f.failed), len(f.skipped), f.took.Round(time.Second))
	if f.before > 0 {
		fmt.Fprintf(&b, ", %d of them before it was interrupted", f.before)
	}
	if f.cut {
		b.WriteString("; the others did not come to run")
	}
	if f.killed > 0 {
		fmt.Fprintf(&b, ", while aws-node was deleted by force %d times", f.killed)
	}
	if f.passed+len(f.failed) == 0 {
		b.WriteString(": nothing ran, which proves nothing")
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}
