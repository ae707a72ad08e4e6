package mutation

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

const root = "../.."

func patches(t *testing.T) []Patch {
	t.Helper()
	return must.Get(ReadPatches(filepath.Join(root, "testdata", "patches")))(t)
}

// TestPatchesApply: a patch whose old text is gone tests nothing any more. It is put right, or gets a successor.
func TestPatchesApply(t *testing.T) {
	for _, p := range patches(t) {
		if p.What == "" {
			t.Errorf("testdata/patches/%s.txt does not begin with a sentence that says what is wrong", p.Name)
		}
		if _, err := p.Apply(root); err != nil {
			t.Errorf("testdata/patches/%s.txt does not apply any more: %v", p.Name, err)
		}
	}
}

// TestReadPatches: a file has one patch or several, and line breaks at the ends of their texts count.
func TestReadPatches(t *testing.T) {
	dir := t.TempDir()
	text := "Wrong.\n\nfile   a.go\nkilled a TestA\n-- old --\none\n\n-- new --\ntwo\n\n" +
		"-- next --\nkilled b b.row\nfile b.go\n-- old --\nthree\n-- new --\n\n"
	must.Do(t, os.WriteFile(filepath.Join(dir, "both.txt"), []byte(text), 0o600))
	found, err := ReadPatches(dir)
	expected := []Patch{
		{Name: "both", What: "Wrong.", Change: Change{File: "a.go", Old: "one\n", New: "two\n"}, Package: "a", Test: "TestA"},
		{Name: "both", Change: Change{File: "b.go", Old: "three"}, Package: "b", Test: "b.row"},
	}
	if err != nil || !slices.Equal(found, expected) {
		t.Errorf("expected %q, found %q, %v", expected, found, err)
	}
}

// TestPatches: the test that a patch names turns red under it, and is green without. ENILAB_PATCHES=NAME is one of them (make patches: all).
func TestPatches(t *testing.T) {
	if testing.Short() {
		t.Skip("builds five packages' tests")
	}
	only := os.Getenv("ENILAB_PATCHES")
	byPackage := map[string][]int{}
	var order []string
	all := patches(t)
	for i, p := range all {
		if only != "" && only != p.Name {
			continue
		}
		if byPackage[p.Package] == nil {
			order = append(order, p.Package)
		}
		byPackage[p.Package] = append(byPackage[p.Package], i)
	}
	if len(order) == 0 {
		t.Fatalf("ENILAB_PATCHES=%s: there is no such patch", only)
	}
	for _, pkg := range order {
		t.Run(pkg, func(t *testing.T) { killed(t, pkg, all, byPackage[pkg]) })
	}
}

// killed builds a package's tests with all patches that it is to kill, and runs each one's test.
func killed(t *testing.T, pkg string, all []Patch, list []int) {
	var set Set
	alone := map[int]*Mutant{}
	for _, i := range list {
		m, err := all[i].Apply(root)
		if err != nil {
			continue // TestPatchesApply says so
		}
		if ok, err := set.Add(i+1, m); err != nil {
			t.Fatal(err)
		} else if !ok {
			alone[i] = m
		}
	}
	together := build(t, pkg, set.Overlay())
	for _, i := range list {
		p := &all[i]
		if out, err := try(t, together, pkg, p.Test, 0); err != nil || !bytes.Contains(out, []byte("--- PASS: "+p.Test)) {
			t.Errorf("%s: without the patch %s %s is not passed, %v:\n%s", p.Name, pkg, p.Test, err, out)
			continue
		}
		binary, number := together, i+1
		if m := alone[i]; m != nil {
			binary, number = build(t, pkg, m.Alone()), 0
		}
		if out, err := try(t, binary, pkg, p.Test, number); err == nil {
			t.Errorf("testdata/patches/%s.txt survives %s %s: %s\n%s", p.Name, pkg, p.Test, p.What, out)
		}
	}
}

// tests are a package's, built with patches.
type tests struct{ binary, overlay string }

func build(t *testing.T, pkg string, overlay map[string]string) tests {
	t.Helper()
	dir := t.TempDir()
	binary := filepath.Join(dir, "patched.test")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	file := must.Get(BuildTest(ctx, dir, root, "./"+pkg, binary, overlay))(t)
	return tests{binary, file}
}

func try(t *testing.T, built tests, pkg, test string, number int) ([]byte, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, built.binary, "-test.short", "-test.v", "-test.run", "^"+test+"$", "-test.timeout", "4m")
	c.Dir = filepath.Join(root, pkg)
	c.Env = append(os.Environ(), fmt.Sprintf("%s=%d", Env, number), "GOFLAGS="+os.Getenv("GOFLAGS")+" -overlay="+built.overlay) // the last word counts
	return c.CombinedOutput()
}
