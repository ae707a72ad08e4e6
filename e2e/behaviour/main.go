// Command behaviour writes down what the project does, as one text: trace hashes of every shipped scenario, variant and mutant with
// seeds 1 to 20, crash points and forks, specs and tests, sizes of the binaries. A commit that only moves code leaves the text as it is;
// one that changes a line says why.
//
//	make behaviour      writes testdata/behaviour.txt; git diff shows what has changed
package main

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"

	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/virtual"
)

// seeds are how many of each run are written down, from 1.
const seeds = 20

// crashes are those of TestCrashEverywhere, one in ten: this is a record of what they come to, and no proof.
var crashes = virtual.CrashOptions{Distance: 2_500_000, Every: 10}

func main() {
	if err := write(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "behaviour:", err)
		os.Exit(1)
	}
}

func write(w io.Writer) error {
	fmt.Fprintln(w, "# What the project does; written by `make behaviour`. A commit that changes a line says why.")
	names, err := fs.Glob(scenarios.Files, "*.scn")
	if err != nil {
		return err
	}
	var cases []*runner.Case
	for _, name := range names {
		data, err := fs.ReadFile(scenarios.Files, name)
		if err != nil {
			return err
		}
		c, err := runner.Load(runner.Sim(), name, data)
		if err != nil {
			return err
		}
		cases = append(cases, c)
	}
	fmt.Fprintf(w, "\n# trace SCENARIO (VARIANT) MUTANT: hashes of seeds 1 to %d\n", seeds)
	for _, line := range each(tracesOf(cases)) {
		fmt.Fprintln(w, line)
	}
	fmt.Fprintln(w, "\n# crash SCENARIO: points and forks, all variants, seed 1; one point in ten")
	for _, c := range cases {
		if c.Crashable() != nil {
			continue
		}
		points, forks, status := 0, 0, runner.Held
		for i := range c.Variants {
			open := func() (*sim.Run, *virtual.World, error) { return c.Variants[i].OpenSim(runner.DefaultSeed, nil) }
			report, err := virtual.CrashEverywhere(open, crashes)
			if err != nil || len(report.Broken) > 0 {
				status = runner.Violated
			}
			points, forks = points+report.Points, forks+report.Forks
		}
		fmt.Fprintf(w, "crash %s %s: %d points, %d forks\n", c.Name(), status, points, forks)
	}
	if err := tests(w); err != nil {
		return err
	}
	return sizes(w)
}

// trace is one line to be.
type trace struct {
	label   string
	variant *runner.Variant
	mutant  *mutants.Mutant
}

func tracesOf(cases []*runner.Case) []trace {
	var out []trace
	for _, c := range cases {
		for i := range c.Variants {
			v := &c.Variants[i]
			label := fmt.Sprintf("trace %s (%s) ", c.Name(), v.Name)
			out = append(out, trace{label + "sound", v, nil})
			for j := range c.Against {
				out = append(out, trace{label + c.Against[j].Mutant.Name, v, &c.Against[j].Mutant})
			}
		}
	}
	return out
}

// each runs the traces, as many at once as there are cores; the lines are in their order.
func each(traces []trace) []string {
	lines := make([]string, len(traces))
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				lines[i] = traces[i].String()
			}
		})
	}
	for i := range traces {
		next <- i
	}
	close(next)
	wg.Wait()
	return lines
}

func (t *trace) String() string {
	s := t.label + ":"
	for seed := uint64(1); seed <= seeds; seed++ {
		r, w, err := t.variant.OpenSim(seed, t.mutant)
		if err != nil {
			s += " no-start"
			continue
		}
		r.Finish(nil)
		s += fmt.Sprintf(" %08x", uint32(w.Hash()))
	}
	return s
}

var (
	declared = regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Za-z0-9_]*)\(`)
	spec     = regexp.MustCompile(`(?m)^\s*(?:It|Entry)\(`)
)

// tests counts test functions by package, and the specs on kind as they are written down.
func tests(w io.Writer) error {
	fmt.Fprintln(w, "\n# tests PACKAGE: functions that tests, fuzzers and benchmarks begin with")
	count, order := map[string]int{}, []string{}
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		dir := filepath.Dir(path)
		if _, known := count[dir]; !known {
			order = append(order, dir)
		}
		count[dir] += len(declared.FindAll(text, -1))
		return nil
	})
	if err != nil {
		return err
	}
	for _, dir := range order {
		fmt.Fprintf(w, "tests %s: %d\n", dir, count[dir])
	}
	specs := 0
	paths, err := filepath.Glob("e2e/*_test.go")
	if err != nil {
		return err
	}
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		specs += len(spec.FindAll(text, -1))
	}
	fmt.Fprintf(w, "specs e2e: %d\n", specs)
	return nil
}

// sizes are of the binaries as `make build` makes them.
func sizes(w io.Writer) error {
	fmt.Fprintln(w, "\n# size BINARY: MB, as make build makes them")
	for _, name := range []string{"aws-cni", "enilab", "enilab-kind", "ipamd"} {
		info, err := os.Stat(filepath.Join("bin", name))
		if err != nil {
			return fmt.Errorf("%w (make build makes it)", err)
		}
		fmt.Fprintf(w, "size %s: %.1f\n", name, float64(info.Size())/1e6)
	}
	return nil
}
