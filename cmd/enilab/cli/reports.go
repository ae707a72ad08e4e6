package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/report"
	"github.com/enilab/enilab/sim/runner"
)

const reportManual = `--html FILE writes one page for people, which needs nothing beside itself: what broke, where and when, lanes of daemons, ENIs and pods, the script
with its line. --junit FILE writes JUnit's XML: a testsuite a file, a testcase a variant, seed and mutant. Both can be given beside --json.`

// reports are the files that a command writes about what it has played, beside what it prints.
type reports struct {
	html, junit string
	// data is --runs, inside of a virtual machine: what reports are made of, for the process that started the machine.
	data string
}

// flags adds --html and --junit to a command.
func (r *reports) flags(c *cobra.Command) {
	c.Flags().StringVar(&r.html, "html", "", "write a page for people into this file")
	c.Flags().StringVar(&r.junit, "junit", "", "write JUnit's XML into this file")
}

// wanted says whether there is anything to write.
func (r *reports) wanted() bool { return r.html != "" || r.junit != "" || r.data != "" }

// detailed says whether runs have to be followed.
func (r *reports) detailed() bool { return r.html != "" || r.data != "" }

// output is a file that a flag names.
type output struct{ flag, name string }

// check finds out whether the files can be written, and those of other flags, before anything is played. Inputs are files that a report must not
// replace.
func (r *reports) check(inputs []string, others ...output) error {
	all := append([]output{{"--html", r.html}, {"--junit", r.junit}}, others...)
	for i, x := range all {
		if x.name == "" {
			continue
		}
		for _, y := range all[:i] {
			if y.name != "" && sameFile(x.name, y.name) {
				return usage("%s and %s: both name %s: name two files", y.flag, x.flag, x.name)
			}
		}
		for _, in := range inputs {
			if in == x.name || sameFile(in, x.name) {
				return usage("%s %s: it is one of the scenarios: name another file", x.flag, x.name)
			}
		}
		if err := writable(x.name); err != nil {
			return usage("%s: the report cannot be written: %v (name a file in a folder that you can write to)", x.flag, err)
		}
	}
	return nil
}

// sameFile says whether two names are of one file.
func sameFile(a, b string) bool {
	if filepath.Clean(a) == filepath.Clean(b) {
		return true
	}
	x, errX := os.Stat(a)
	y, errY := os.Stat(b)
	return errX == nil && errY == nil && os.SameFile(x, y)
}

// writable tries to make a file beside the one that is to be written: what is there now stays until the report is whole.
func writable(name string) error {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a folder", name)
	case err == nil && !info.Mode().IsRegular():
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return f.Close()
	case err != nil && !errors.Is(err, os.ErrNotExist):
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), ".enilab-*")
	if p, ok := errors.AsType[*os.PathError](err); ok {
		return fmt.Errorf("%s: %w", name, p.Err)
	}
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// indented writes a value as JSON for people and programs.
func indented(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// writeJSON writes a document and ends with the code.
func (l *cli) writeJSON(v any, code int) error {
	if err := indented(l.out, v); err != nil {
		return &exit{runner.ExitLacking, "write JSON: " + err.Error()}
	}
	return ended(code)
}

// write writes what is wanted of a page.
func (r *reports) write(p *report.Page) error {
	var errs []error
	if r.html != "" {
		errs = append(errs, put(r.html, func(w io.Writer) error { return report.HTML(w, p) }))
	}
	if r.junit != "" {
		errs = append(errs, put(r.junit, func(w io.Writer) error { return report.JUnit(w, p) }))
	}
	if r.data != "" {
		errs = append(errs, os.MkdirAll(filepath.Dir(r.data), 0o755), put(r.data, func(w io.Writer) error { return json.NewEncoder(w).Encode(p.Runs) }))
	}
	if err := errors.Join(errs...); err != nil {
		return &exit{runner.ExitLacking, "write the report: " + err.Error()}
	}
	return nil
}

// put writes a file as a whole or not at all. What is no ordinary file is written to.
func put(name string, write func(io.Writer) error) error {
	if info, err := os.Stat(name); err == nil && !info.Mode().IsRegular() {
		f, err := os.OpenFile(name, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		return errors.Join(write(f), f.Close())
	}
	return replace(name, 0o644, write)
}

// named says where the page is, as the last line of what a command prints.
func (l *cli) named(r *reports) {
	if r.html != "" {
		fmt.Fprintf(l.out, "report: %s\n", r.html)
	}
}

// page is an empty page of this command line.
func (l *cli) page(title string) *report.Page {
	p := &report.Page{Title: title, By: "enilab " + built(), Command: report.CommandLine(l.args)}
	return p
}

// notPlayed are runs of files that were not: a machine broke, or the run was interrupted.
func notPlayed(cases []*runner.Case, seed uint64, status runner.Status, why string) []report.Run {
	var out []report.Run
	for _, c := range cases {
		out = append(out, report.Run{Scenario: c.Name(), File: c.File.Name, Headline: c.File.Headline(), World: c.Place.Name, System: c.Place.System, Seed: seed,
			Verdict: status.String(), Also: []string{why}})
	}
	return out
}
