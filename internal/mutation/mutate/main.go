// Command mutate asks the quick tests whether they notice a sample of all changes of impl: make mutation. A run can be ended and gone on with:
// what was found is in a file, by keys that hold until the function is edited.
//
//	go run ./internal/mutation/mutate --state bin/mutation.json --sample 400 --seed 1      # goes on, or begins
//	go run ./internal/mutation/mutate --state bin/mutation.json --report                   # what is known
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/enilab/enilab/internal/mutation"
)

func main() {
	var r run
	flag.StringVar(&r.file, "state", "bin/mutation.json", "what is known, kept between runs")
	flag.IntVar(&r.sample, "sample", 400, "how many changes")
	flag.Uint64Var(&r.seed, "seed", 1, "which")
	flag.StringVar(&r.below, "below", "impl", "the folder whose source is changed")
	flag.IntVar(&r.jobs, "jobs", 2, "how many run at once")
	report := flag.Bool("report", false, "only say what is known")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	err := r.begin()
	if err == nil && !*report {
		err = r.judge(ctx)
	}
	if err == nil || errors.Is(err, context.Canceled) {
		r.report()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// Verdicts. A change that does not compile is replaced by the next one.
const (
	killed   = "killed"
	survived = "survived"
	open     = "open" // survived so far
	invalid  = "does not compile"
)

// finding is what is known of a change.
type finding struct {
	Verdict string   `json:"verdict"`
	Change  string   `json:"change"`
	By      string   `json:"by,omitempty"` // the first test that failed
	Seconds float64  `json:"seconds,omitempty"`
	Asked   []string `json:"asked,omitempty"` // the packages whose tests have run
}

type run struct {
	file, below, temp string
	sample            int
	seed              uint64
	all               []mutation.Candidate // in the order of the sample
	types             checker
	jobs              int

	mu    sync.Mutex
	known map[string]finding
}

// begin lists all changes, in an order that the seed gives and that the edit of one function changes for its own alone.
func (r *run) begin() error {
	r.known = map[string]finding{}
	if data, err := os.ReadFile(r.file); err == nil {
		if err := json.Unmarshal(data, &r.known); err != nil {
			return fmt.Errorf("read %s: %w; remove it to begin again", r.file, err)
		}
	}
	files, err := sources(r.below)
	if err != nil {
		return err
	}
	for _, f := range files {
		list, err := mutation.Candidates(".", f)
		if err != nil {
			return err
		}
		r.all = append(r.all, list...)
	}
	rank := func(c *mutation.Candidate) uint64 {
		sum := sha256.Sum256(fmt.Appendf(nil, "%d %s", r.seed, c.Key))
		return binary.BigEndian.Uint64(sum[:8])
	}
	slices.SortFunc(r.all, func(a, b mutation.Candidate) int {
		if x, y := rank(&a), rank(&b); x != y {
			if x < y {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Key, b.Key)
	})
	return nil
}

// sources are the files that this machine builds, without tests and what only tests use.
func sources(below string) ([]string, error) {
	out, err := exec.Command("go", "list", "-f", `{{$d := .Dir}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`, "./"+below+"/...").Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	root, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var files []string
	for _, f := range strings.Fields(string(out)) {
		if rel, err := filepath.Rel(root, f); err == nil && !strings.HasSuffix(filepath.Dir(f), "test") {
			files = append(files, filepath.ToSlash(rel))
		}
	}
	return files, nil
}

// chosen are the changes of the sample: the first so many that compile.
func (r *run) chosen() (out []*mutation.Candidate, err error) {
	for i := range r.all {
		if len(out) == r.sample {
			break
		}
		c := &r.all[i]
		f, ok := r.known[c.Key]
		if !ok {
			compiles, err := r.types.compiles(c.Mutant())
			if err != nil {
				return nil, err
			}
			if !compiles {
				f = finding{Verdict: invalid, Change: c.String()}
				r.known[c.Key] = f
			}
		}
		if f.Verdict != invalid {
			out = append(out, c)
		}
	}
	return out, r.save()
}

func (r *run) save() error {
	data, err := json.MarshalIndent(r.known, "", " ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(r.file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(r.file+".new", append(data, '\n'), 0o644); err != nil {
		return err
	}
	return os.Rename(r.file+".new", r.file)
}

// judge finds out what is not known yet: first each package's own tests are asked, then those further away, about all packages at once.
func (r *run) judge(ctx context.Context) error {
	list, err := r.chosen()
	if err != nil {
		return err
	}
	r.temp, err = os.MkdirTemp("", "mutate")
	if err != nil {
		return err
	}
	defer os.RemoveAll(r.temp)
	own := map[string][]*mutation.Candidate{}
	for _, c := range list {
		p := packageOf(c)
		own[p] = append(own[p], c)
	}
	for _, p := range slices.Sorted(maps.Keys(own)) {
		if err := r.ask(ctx, p, own[p]); err != nil {
			return err
		}
	}
	for _, name := range distant {
		var about []*mutation.Candidate
		for _, c := range list {
			if slices.Contains(further(packageOf(c)), name) {
				about = append(about, c)
			}
		}
		if err := r.ask(ctx, name, about); err != nil {
			return err
		}
	}
	for _, c := range list {
		if f := r.known[c.Key]; f.Verdict == open {
			f.Verdict = survived
			r.known[c.Key] = f
		}
	}
	return r.save()
}

func packageOf(c *mutation.Candidate) string { return filepath.ToSlash(filepath.Dir(c.File)) }

// distant are tests of other packages that are asked, the quickest first.
var distant = []string{"impl/ipam", "internal/kernelcheck", "scenarios", "sim/swarm", "impl/plugin", "impl/daemon"}

// further are the distant tests that a package's changes meet when its own have not noticed: the first of the table that is a folder above.
func further(p string) []string {
	for _, t := range []struct {
		below string
		tests []string
	}{
		{"impl/ipam", []string{"scenarios", "sim/swarm"}},
		{"impl/dataplane/linux", []string{"internal/kernelcheck", "impl/plugin", "impl/daemon"}},
		{"impl/dataplane", []string{"impl/ipam", "internal/kernelcheck", "scenarios"}},
		{"impl/plugin", nil},
		{"impl/deploy", nil},
		{"impl/daemon", []string{"impl/plugin"}},
		{"impl/clock", []string{"impl/daemon"}},
		{"impl", []string{"impl/plugin", "impl/daemon"}},
	} {
		if p == t.below || strings.HasPrefix(p, t.below+"/") {
			return t.tests
		}
	}
	return nil
}

// ask runs the tests of a package with each of the changes that no test has noticed yet and that it was not run with.
func (r *run) ask(ctx context.Context, name string, all []*mutation.Candidate) error {
	var list []*mutation.Candidate
	for _, c := range all {
		if f := r.known[c.Key]; f.Verdict == "" || f.Verdict == open && !slices.Contains(f.Asked, name) {
			list = append(list, c)
		}
	}
	if len(list) == 0 {
		return nil
	}
	var set mutation.Set
	alone := map[int]bool{}
	for i, c := range list {
		ok, err := set.Add(i+1, c.Mutant())
		if err != nil {
			return err
		}
		alone[i] = !ok
	}
	fmt.Printf("%s is asked about %d changes\n", name, len(list))
	t, err := r.build(ctx, name, set.Overlay())
	if err != nil {
		return fmt.Errorf("the tests of %s: %w", name, err)
	}
	if t != nil {
		if err := t.reach(ctx, r.jobs); err != nil {
			return err
		}
	}
	return each(r.jobs, len(list), func(i int) error {
		f := finding{Verdict: survived}
		if t != nil {
			here, number, names := t, i+1, t.reaching(i+1)
			if alone[i] {
				var err error
				if here, err = r.build(ctx, name, list[i].Mutant().Alone()); err != nil {
					return err
				}
				here.took, number, names = t.took, 0, t.names
			}
			var err error
			if f, err = here.try(ctx, number, names); err != nil {
				return err
			}
			fmt.Printf("%-8s %s (%d tests, %.1f s): %s %s\n", f.Verdict, name, len(names), f.Seconds, list[i], f.By)
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		before := r.known[list[i].Key]
		f.Change, f.Seconds, f.Asked = list[i].String(), f.Seconds+before.Seconds, append(before.Asked, name)
		if f.Verdict != killed {
			f.Verdict = open
		}
		r.known[list[i].Key] = f
		return r.save()
	})
}

// each runs f for 0 to n-1, so many at a time, until one fails.
func each(jobs, n int, f func(i int) error) error {
	var g sync.WaitGroup
	var mu sync.Mutex
	var failed error
	next := 0
	for range jobs {
		g.Go(func() {
			for {
				mu.Lock()
				i := next
				next++
				stop := failed != nil || i >= n
				mu.Unlock()
				if stop {
					return
				}
				if err := f(i); err != nil {
					mu.Lock()
					failed = errors.Join(failed, err)
					mu.Unlock()
				}
			}
		})
	}
	g.Wait()
	return failed
}

// tests are a package's, with mutants.
type tests struct {
	binary, overlay, dir string
	names                []string
	took                 map[string]time.Duration // as the source stands
	reached              map[string]map[int]bool  // by test: the mutants whose functions it calls
}

// build builds tests; nil when there are none.
func (r *run) build(ctx context.Context, name string, overlay map[string]string) (*tests, error) {
	dir, err := os.MkdirTemp(r.temp, "tests")
	if err != nil {
		return nil, err
	}
	t := &tests{binary: filepath.Join(dir, "mutants.test"), dir: name}
	if t.overlay, err = mutation.BuildTest(ctx, r.temp, ".", "./"+name, t.binary, overlay); err != nil {
		return nil, err
	}
	if _, err := os.Stat(t.binary); errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	c := t.command(ctx, "-test.list", ".")
	out, err := c.Output()
	if err != nil {
		return nil, fmt.Errorf("list the tests of %s: %w", name, err)
	}
	for _, n := range strings.Fields(string(out)) {
		if strings.HasPrefix(n, "Test") || strings.HasPrefix(n, "Fuzz") || strings.HasPrefix(n, "Example") {
			t.names = append(t.names, n)
		}
	}
	return t, nil
}

func (t *tests) command(ctx context.Context, args ...string) *exec.Cmd {
	c := exec.CommandContext(ctx, t.binary, args...)
	c.Dir, c.Env = t.dir, append(os.Environ(), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+t.overlay)
	c.WaitDelay = 5 * time.Second
	return c
}

// slowest is for how long a test may run as the source stands.
const slowest = 5 * time.Minute

// reach runs every test alone, as the source stands. One that fails so, or is skipped for all that is known, says nothing about a change.
func (t *tests) reach(ctx context.Context, jobs int) error {
	t.took, t.reached = map[string]time.Duration{}, map[string]map[int]bool{}
	var mu sync.Mutex
	return each(jobs, len(t.names), func(i int) error {
		name, file := t.names[i], fmt.Sprintf("%s.%d", t.binary, i)
		c := t.command(ctx, "-test.short", "-test.run", "^"+name+"$", "-test.timeout", slowest.String())
		c.Env = append(c.Env, mutation.Reached+"="+file)
		began := time.Now()
		out, err := c.CombinedOutput()
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			fmt.Printf("left out: %s %s fails without any change: %v\n%s\n", t.dir, name, err, tail(out))
			return nil
		}
		t.took[name], t.reached[name] = time.Since(began), map[int]bool{}
		data, _ := os.ReadFile(file) // a test that reaches nothing writes none
		for _, n := range strings.Fields(string(data)) {
			if n, err := strconv.Atoi(n); err == nil {
				t.reached[name][n] = true
			}
		}
		return nil
	})
}

func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	return strings.Join(lines[max(0, len(lines)-8):], "\n")
}

// reaching are the tests that call a mutant's function, the quickest first.
func (t *tests) reaching(number int) (out []string) {
	for _, n := range t.names {
		if t.reached[n][number] {
			out = append(out, n)
		}
	}
	slices.SortStableFunc(out, func(a, b string) int { return cmp.Compare(t.took[a], t.took[b]) })
	return out
}

// try runs tests with a change until one fails: first those that take no second, then the others. Tests that hang have noticed.
func (t *tests) try(ctx context.Context, number int, names []string) (finding, error) {
	quick := 0
	for quick < len(names) && t.took[names[quick]] < time.Second {
		quick++
	}
	f, err := t.some(ctx, number, names[:quick])
	if err != nil || f.Verdict == killed {
		return f, err
	}
	more, err := t.some(ctx, number, names[quick:])
	more.Seconds += f.Seconds
	return more, err
}

func (t *tests) some(ctx context.Context, number int, names []string) (finding, error) {
	f := finding{Verdict: survived}
	if len(names) == 0 {
		return f, nil
	}
	bound := 30 * time.Second
	for _, n := range names {
		bound += 4 * t.took[n]
	}
	ctx, cancel := context.WithTimeoutCause(ctx, bound, errHangs)
	defer cancel()
	c := t.command(ctx, "-test.short", "-test.failfast", "-test.run", "^("+strings.Join(names, "|")+")$", "-test.timeout", bound.String())
	c.Env = append(c.Env, fmt.Sprintf("%s=%d", mutation.Env, number))
	began := time.Now()
	out, err := c.CombinedOutput()
	f.Seconds = float64(time.Since(began).Milliseconds()) / 1000
	if err == nil {
		return f, nil
	}
	if cause := context.Cause(ctx); cause != nil && cause != errHangs {
		return f, cause
	}
	f.Verdict, f.By = killed, t.dir+" hangs or panics"
	for line := range strings.SplitSeq(string(out), "\n") {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "--- FAIL: "); ok {
			f.By = t.dir + " " + strings.Fields(name)[0]
			break
		}
	}
	return f, nil
}

var errHangs = errors.New("the tests hang")

// report says what is known of the sample.
func (r *run) report() {
	var died, lived, judged, seen int
	var rest []string
	perPackage := map[string][2]int{}
	for i := range r.all {
		f, ok := r.known[r.all[i].Key]
		if ok && f.Verdict == invalid {
			continue
		}
		if seen++; seen > r.sample {
			break
		}
		if !ok {
			continue
		}
		judged++
		p := packageOf(&r.all[i])
		n := perPackage[p]
		n[1]++
		if f.Verdict == killed {
			n[0]++
			died++
		} else {
			lived++
			rest = append(rest, f.Verdict+" "+r.all[i].String())
		}
		perPackage[p] = n
	}
	slices.Sort(rest)
	for _, s := range rest {
		fmt.Println(s)
	}
	names := slices.Sorted(maps.Keys(perPackage))
	for _, p := range names {
		fmt.Printf("%-24s %3d of %3d\n", p, perPackage[p][0], perPackage[p][1])
	}
	rate := 0.0
	if judged > 0 {
		rate = 100 * float64(died) / float64(judged)
	}
	fmt.Printf("seed %d: of %d possible changes %d are the sample, %d judged: %d killed, %d survived, %.1f %%\n", r.seed, len(r.all), r.sample, judged, died, lived, rate)
}
