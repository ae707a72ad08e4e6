package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
)

// past is what became of a run's specs so far, in a file of its folder until the run comes to its end: what it rests
// on, and then a line for each spec.
type past struct {
	f    *os.File
	over map[string]string // by the spec's name: passed, or in which way it failed
}

// interrupted is what Ginkgo says of the spec that ran when it was told to end.
const interrupted = "INTERRUPTED"

// stamp is what the specs' outcomes rest on: their program and the CNI.
func (a *asked) stamp() (string, error) {
	h := sha256.New()
	h.Write(a.archive) // never fails
	f, err := os.Open(a.tests)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if _, err := io.Copy(h, f); err != nil {
		return "", fmt.Errorf("%s: %w", a.tests, err)
	}
	return fmt.Sprintf("%x", h.Sum(nil)), nil
}

// begin empties the folder of a run, or reads what it has of one that was interrupted.
func begin(dir, stamp string, resume bool) (p *past, err error) {
	p = &past{over: map[string]string{}}
	path := filepath.Join(dir, "over.txt")
	if resume {
		data, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, usage("-resume: no run of these flags was interrupted: %s is not there", path)
		}
		if err == nil {
			err = p.read(data, stamp)
		}
		if err != nil {
			return nil, usage("-resume: %s: %w", path, err)
		}
		p.f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
		return p, err
	}
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	if p.f, err = os.Create(path); err == nil {
		_, err = fmt.Fprintln(p.f, stamp)
	}
	return p, err
}

// line is what over.txt says of a spec.
var line = regexp.MustCompile(`^(\S+) (.+)$`)

// read takes over what a run that was interrupted knew.
func (p *past) read(data []byte, stamp string) error {
	lines := bufio.NewScanner(bytes.NewReader(data))
	if !lines.Scan() || lines.Text() != stamp {
		return errors.New("the run was of another build of the CNI or of e2e.test: begin it anew, without -resume")
	}
	for lines.Scan() {
		m := line.FindStringSubmatch(lines.Text())
		if m == nil {
			return fmt.Errorf("expected an outcome and a name, found %q", lines.Text())
		}
		p.over[m[2]] = m[1]
	}
	return lines.Err()
}

// labels are at the end of a spec's name where Ginkgo prints it, and are no part of what it compares.
var labels = regexp.MustCompile(` \[[^\]]*\]$`)

// note keeps what became of a spec. One that was skipped, or was interrupted itself, runs again.
func (p *past) note(name, outcome string) {
	switch outcome {
	case "SKIPPED", interrupted:
		return
	case "":
		outcome = "passed"
	}
	if _, err := fmt.Fprintln(p.f, outcome, labels.ReplaceAllString(name, "")); err != nil {
		say("what became of %s cannot be kept: %v", name, err)
	}
}

// found is what the run that was interrupted found.
func (p *past) found() *found {
	f := &found{before: len(p.over)}
	for name, outcome := range p.over {
		if outcome == "passed" {
			f.passed++
		} else {
			f.failed = append(f.failed, verdict{name, outcome + ", before the run was interrupted"})
		}
	}
	return f
}

// end: the run has come to its end, and is not resumed.
func (p *past) end() error { return os.Remove(p.f.Name()) }

// Close closes the file.
func (p *past) Close() error { return p.f.Close() }
