package calls

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// file makes a plugin's file in a folder below root.
func file(t *testing.T, path ...string) string {
	t.Helper()
	p := filepath.Join(path...)
	must.Do(t, os.MkdirAll(filepath.Dir(p), 0o755))
	must.Do(t, os.WriteFile(p, []byte(p), 0o755))
	return p
}

func TestNext(t *testing.T) {
	root := t.TempDir()
	one, two, real := file(t, root, "one", "aws-cni"), file(t, root, "two", "aws-cni"), file(t, root, "bin", "aws-cni")
	lonely := file(t, root, "two", "enilab-faulty")
	if err := os.MkdirAll(filepath.Join(root, "empty", "aws-cni"), 0o755); err != nil { // a folder of that name is no plugin
		t.Fatal(err)
	}
	must.Do(t, os.Symlink(filepath.Join(root, "one"), filepath.Join(root, "link")))
	list := func(names ...string) string {
		var l []string
		for _, n := range names {
			l = append(l, filepath.Join(root, n))
		}
		return strings.Join(l, string(filepath.ListSeparator))
	}
	for _, c := range []struct{ says, self, path, want string }{
		{"the next folder", one, list("one", "two", "bin"), two},
		{"the last shim", two, list("one", "two", "bin"), real},
		{"nothing behind", real, list("one", "two", "bin"), ""},
		{"no other of its name", lonely, list("one", "two", "bin"), ""},
		{"folders without it are passed by", one, list("one", "none", "empty", "bin"), real},
		{"its folder is not in the list", one, list("two", "bin"), two},
		{"its folder is in the list by another name", one, list("bin", "link", "two"), two},
		{"the list is empty", one, "", ""},
	} {
		got, ok := next(c.self, c.path)
		if got != c.want || ok != (c.want != "") {
			t.Errorf("%s: %q %v, expected %q", c.says, got, ok, c.want)
		}
	}
}

func TestFaultsAreCountedAndMatched(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, faultsFile)
	take := func(plugin, verb, pod string) string {
		t.Helper()
		f := must.Get(takeFault(path, plugin, verb, pod))(t)
		return f.Error
	}
	if got := take("ptp", "ADD", "a/web-0"); got != "" {
		t.Errorf("without a file: %q", got)
	}
	raw := must.Get(encodeFaults([]Fault{
		{Verb: "ADD", Pod: "a/web-0", Times: 2, Error: "two"}, {Plugin: "ptp", Verb: "DEL", Error: "for ever"}, {Pod: "a/web-0", Times: 1, Error: "any"},
	}))(t)
	must.Do(t, os.WriteFile(path, raw, 0o600))
	for i, c := range []struct{ plugin, verb, pod, want string }{
		{"ptp", "ADD", "a/web-1", ""},
		{"ptp", "ADD", "a/web-0", "two"},
		{"ptp", "DEL", "b/web-0", "for ever"},
		{"aws-cni", "DEL", "b/web-0", ""},
		{"aws-cni", "ADD", "a/web-0", "two"},
		{"aws-cni", "ADD", "a/web-0", "any"},
		{"aws-cni", "ADD", "a/web-0", ""},
		{"ptp", "DEL", "a/web-0", "for ever"},
	} {
		if got := take(c.plugin, c.verb, c.pod); got != c.want {
			t.Errorf("run %d, %+v: %q", i, c, got)
		}
	}
}

// Runs at once take no fault twice.
func TestFaultsAreTakenInTurns(t *testing.T) {
	path := filepath.Join(t.TempDir(), faultsFile)
	must.Do(t, os.WriteFile(path, []byte(`[{"times":10,"error":"x"}]`), 0o600))
	var wg sync.WaitGroup
	var mu sync.Mutex
	hit := 0
	for range 30 {
		wg.Go(func() {
			f, err := takeFault(path, "ptp", "ADD", "")
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if f.Error != "" {
				hit++
			}
		})
	}
	wg.Wait()
	if hit != 10 {
		t.Errorf("%d runs had the fault, expected 10", hit)
	}
}

func TestBadFaultsAreErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), faultsFile)
	for _, raw := range []string{"", "{", `{"verb":"ADD"}`, `[{"stall":"soon"}]`} {
		must.Do(t, os.WriteFile(path, []byte(raw), 0o600))
		if _, err := takeFault(path, "ptp", "ADD", ""); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v, expected an error that names the file", raw, err)
		}
	}
}

func TestAStallEndsWithItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), faultsFile)
	must.Do(t, os.WriteFile(path, nil, 0o600))
	began, done := time.Now(), make(chan struct{})
	go func() {
		f := Fault{Stall: "1m"}
		f.Wait(path)
		close(done)
	}()
	must.Do(t, os.Remove(path))
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatalf("it still stalls %v after its file went", time.Since(began))
	}
}

func TestPodOf(t *testing.T) {
	for args, want := range map[string]string{
		"": "", "IgnoreUnknown=1": "", "K8S_POD_NAME=web-0;K8S_POD_NAMESPACE=default": "default/web-0", ";;K8S_POD_NAME=a=b": "/a=b",
	} {
		if got := PodOf(args); got != want {
			t.Errorf("%q: %q, expected %q", args, got, want)
		}
	}
}

// Lines of many writers are whole.
func TestAppend(t *testing.T) {
	path := filepath.Join(t.TempDir(), "recording.jsonl")
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for range 20 {
				if err := (&Line{Run: string(rune('a' + i)), Stdin: strings.Repeat("x", 10_000)}).Append(path); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	raw := must.Get(os.ReadFile(path))(t)
	n := 0
	for line := range strings.Lines(string(raw)) {
		var l Line
		if err := json.Unmarshal([]byte(line), &l); err != nil || len(l.Stdin) != 10_000 {
			t.Fatalf("line %d: %v", n, err)
		}
		n++
	}
	if n != 400 {
		t.Errorf("%d lines, expected 400", n)
	}
	if err := (&Line{}).Append(filepath.Dir(path)); err == nil {
		t.Error("a folder was written to")
	}
}
