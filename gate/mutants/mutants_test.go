package mutants_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/gate"
	"github.com/enilab/enilab/gate/mutants"
	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/sim/vm"
	"github.com/enilab/enilab/systems"
)

const root = "../.."

// TestOverlays: a mutant whose old text is gone is none any more. It is put right, or gets a successor.
func TestOverlays(t *testing.T) {
	names := map[string]bool{}
	red, silent := 0, 0
	about := must.Get(os.ReadFile(filepath.Join(root, "systems", "enilab.yaml")))(t)
	for _, m := range mutants.All() {
		d, err := systems.Parse(m.Name+".yaml", []byte(m.Describe(string(about))))
		if err == nil {
			_, err = d.Of(mutants.To)
		}
		if err != nil {
			t.Error(err)
		}
		if _, err := m.Overlay(root); err != nil {
			t.Error(err)
		}
		if names[m.Name] || m.What == "" {
			t.Errorf("%s: expected a name of its own and a sentence", m.Name)
		}
		names[m.Name] = true
		if m.Silent() {
			silent++
		} else {
			red++
		}
	}
	if red < 15 || silent < 6 {
		t.Errorf("%d mutants and %d that are none: expected at least 15 and 6", red, silent)
	}
}

// TestMutants gates each version that is made for it: a mutant is red, for the reason that it names, and what is none is silent with five seeds.
//
//	ENILAB_GATE_MUTANTS=all           the gate's own scenario: an hour or so of one core; what was played before is in ENILAB_GATE_CACHE
//	ENILAB_GATE_MUTANTS=quick         a short one, and one seed, whatever it shows
//	ENILAB_GATE_MUTANTS=quick:NAME,…  only these; all:NAME,… likewise
func TestMutants(t *testing.T) {
	how, only, some := strings.Cut(os.Getenv("ENILAB_GATE_MUTANTS"), ":")
	if how == "" {
		t.Skip("gates twenty versions, in virtual machines, for an hour: make gate-mutants")
	}
	if how != "all" && how != "quick" {
		t.Fatalf("ENILAB_GATE_MUTANTS=%s: expected all or quick, and perhaps :NAME,NAME", how)
	}
	if _, err := exec.LookPath("qemu-system-x86_64"); err != nil {
		t.Skip("needs qemu-system-x86_64 (apt-get install --no-install-recommends qemu-system-x86)")
	}
	if len(vm.Find()) == 0 {
		t.Skip("needs a kernel: " + vm.HowToGet())
	}
	var names []string
	if some {
		names = strings.Split(only, ",")
	}
	for _, n := range names {
		if !slices.ContainsFunc(mutants.All(), func(m mutants.Mutant) bool { return m.Name == n }) {
			t.Fatalf("there is no mutant %s", n)
		}
	}
	b := &bench{dir: t.TempDir(), cache: os.Getenv("ENILAB_GATE_CACHE"), quick: how == "quick"}
	b.cache = cmp.Or(b.cache, filepath.Join(b.dir, "cache"))
	b.prepare(t)
	for _, m := range mutants.All() {
		if !some || slices.Contains(names, m.Name) {
			t.Run(m.Name, func(t *testing.T) { b.gate(t, &m) })
		}
	}
}

// bench is where versions are gated.
type bench struct {
	dir, cache string
	quick      bool
	about      string // the description of enilab
}

func (b *bench) prepare(t *testing.T) {
	t.Helper()
	c := exec.Command("go", "build", "-trimpath", "-tags", "grpcnotrace", "-ldflags=-s -w", "-o", b.dir+"/", "./cmd/enilab", "./cmd/ipamd", "./cmd/aws-cni")
	c.Dir, c.Env = root, append(os.Environ(), "CGO_ENABLED=0")
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	about := must.Get(os.ReadFile(filepath.Join(root, "systems", "enilab.yaml")))(t)
	b.about = string(about)
	for _, name := range []string{"quick.scn", filepath.Join("..", gate.Change)} {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(b.dir, filepath.Base(name)), data, 0o644)
		}
		must.Do(t, err)
	}
	base := mutants.Mutant{Name: "base"}
	must.Do(t, base.Build(t.Context(), root, b.folder("base")))
}

func (b *bench) folder(name string) string { return filepath.Join(b.dir, "of", name) }

// gate gates a mutant.
func (b *bench) gate(t *testing.T, m *mutants.Mutant) {
	folder := b.folder(m.Name)
	must.Do(t, m.Build(t.Context(), root, folder))
	if m.Name == "other-file-times" {
		for _, f := range []string{"ipamd", "aws-cni"} {
			then := time.Date(2020, time.February, 3, 4, 5, 6, 0, time.UTC)
			must.Do(t, os.Chtimes(filepath.Join(folder, f), then, then))
		}
	}
	description := filepath.Join(b.dir, m.Name+".yaml")
	must.Do(t, os.WriteFile(description, []byte(m.Describe(b.about)), 0o644))
	scenario := gate.Change
	if b.quick {
		scenario = "quick.scn"
	}
	args := []string{"gate", "--from", description + "@" + mutants.From + "=" + b.folder("base"), "--to", description + "@" + mutants.To + "=" + folder, "--json", "-", "--cache", b.cache}
	switch {
	case m.Load:
		args = append(args, "--plays", "new")
	case len(m.Plays) > 0:
		args = append(args, "--no-figures", "--plays", strings.Join(m.Plays, ","))
	case !b.quick:
		args = append(args, "--seeds", "1-5")
	}
	if b.quick {
		args = append(args, "--no-doubt")
	}
	args = append(args, scenario)
	var errs bytes.Buffer
	c := exec.CommandContext(t.Context(), filepath.Join(b.dir, "enilab"), args...)
	c.Dir, c.Stderr = b.dir, &errs
	out, err := c.Output()
	if err != nil && c.ProcessState == nil {
		t.Fatal(err)
	}
	p := &gate.Page{}
	if err := json.Unmarshal(out, p); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs.String())
	}
	t.Logf("%s exit code %d in %v", m.What, c.ProcessState.ExitCode(), p.Took.Round(time.Second))
	told := say(p.Verdict)
	if m.Silent() {
		if c.ProcessState.ExitCode() != 0 || p.Red {
			t.Errorf("%s: expected silence, found\n%s", m.What, told)
		}
		return
	}
	if c.ProcessState.ExitCode() != 1 || !seen(m, p.Verdict) {
		t.Errorf("%s: expected exit code 1, and %q red with the cause %q; found\n%s\n%s", m.What, m.Red, m.Cause, told, errs.String())
	}
	t.Log(told)
}

// seen says whether a verdict is red for what a mutant names.
func seen(m *mutants.Mutant, v *gate.Verdict) bool {
	for _, f := range v.Findings {
		if f.Kind == gate.Regression && strings.Contains(f.Cause, m.Cause) && slices.ContainsFunc(m.Red, func(c string) bool { return f.Check == c || strings.HasSuffix(c, " ") && strings.HasPrefix(f.Check, c) }) {
			return true
		}
	}
	return slices.ContainsFunc(v.Dearer(), func(f gate.Figure) bool { return slices.Contains(m.Red, f.Name) })
}

func say(v *gate.Verdict) string {
	var out strings.Builder
	for _, f := range v.Findings {
		fmt.Fprintf(&out, "  %s: %s in %v, seeds %v, at %.0f s: %s: %.300s\n", f.Kind, f.Check, f.Plays, f.Seeds, f.At, f.Cause, f.Text)
	}
	for _, f := range v.Dearer() {
		fmt.Fprintf(&out, "  %v\n", f)
	}
	for _, u := range v.Unknown {
		fmt.Fprintf(&out, "  not known: %s\n", u)
	}
	for _, n := range v.Notes {
		fmt.Fprintf(&out, "  %.200s\n", n)
	}
	return out.String()
}
