package mutation

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

const sample = `package p

func f(a, b int, log interface{ Info(string) }) (n int, ok bool) {
	for i := 0; i < a; i++ {
		if i == b && a != 3 {
			continue
		}
		n = n + i
		log.Info("a" + "b")
	}
	return n, true
}
`

// TestCandidates: what is thought of for a small function, in order; what only a log says is left alone.
func TestCandidates(t *testing.T) {
	root := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "p.go"), []byte(sample), 0o600))
	all := must.Get(Candidates(root, "p.go"))(t)
	var have []string
	keys := map[string]bool{}
	for i := range all {
		have = append(have, all[i].String())
		keys[all[i].Key] = true
		m := all[i].Mutant()
		if m.Now == m.Was {
			t.Errorf("%s changes nothing", have[i])
		}
		var set Set
		if ok, err := set.Add(1, m); err != nil || !ok {
			t.Errorf("%s: cannot be chosen at run time: %v, %v", have[i], ok, err)
		}
	}
	want := []string{
		"p.go:4 f: boundary: i < a → i <= a",
		"p.go:4 f: contrary: i < a → i >= a",
		"p.go:4 f: count: i++ → i--",
		"p.go:5 f: never: i == b && a != 3 → false && (i == b && a != 3)",
		"p.go:5 f: always: i == b && a != 3 → true || (i == b && a != 3)",
		"p.go:5 f: logic: i == b && a != 3 → i == b || a != 3",
		"p.go:5 f: contrary: i == b → i != b",
		"p.go:5 f: contrary: a != 3 → a == 3",
		"p.go:6 f: loop: continue → break",
		"p.go:8 f: less: n = n + i → _ = n + i",
		"p.go:8 f: arithmetic: n + i → n - i",
		"p.go:11 f: truth: true → false",
	}
	if len(keys) != len(all) {
		t.Error("two candidates have one key")
	}
	if len(have) != len(want) {
		t.Fatalf("expected %d candidates, found %d:\n%q", len(want), len(have), have)
	}
	for i := range want {
		if have[i] != want[i] {
			t.Errorf("expected %q, found %q", want[i], have[i])
		}
	}
}

// TestChange: a change whose old text is gone, or there twice, or which changes nothing, is none.
func TestChange(t *testing.T) {
	root := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(root, "p.go"), []byte(sample), 0o600))
	if m, err := (Change{"p.go", "i == b", "i == a"}).Apply(root); err != nil || m.Now == m.Was {
		t.Errorf("%v", err)
	}
	for _, c := range []Change{{"p.go", "i == c", "x"}, {"p.go", "a", "b"}, {"p.go", "i == b", "i == b"}, {"p.go", "{\n\t\tif", "("}, {"q.go", "a", "b"}} {
		if _, err := c.Apply(root); err == nil {
			t.Errorf("%+v applies", c)
		}
	}
}

// TestWhatRecoversIsBuiltAlone: behind a switch it would not be what was deferred, and would recover nothing.
func TestWhatRecoversIsBuiltAlone(t *testing.T) {
	root := t.TempDir()
	source := strings.Replace(sample, "func f(", "func g() { if r := recover(); r != nil { panic(1) } }\n\nfunc f(", 1)
	must.Do(t, os.WriteFile(filepath.Join(root, "p.go"), []byte(source), 0o600))
	m := must.Get((Change{"p.go", "r != nil", "r == nil"}).Apply(root))(t)
	var set Set
	if ok, err := set.Add(1, m); ok || err != nil {
		t.Errorf("it can be chosen at run time: %v, %v", ok, err)
	}
}
