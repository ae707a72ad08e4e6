package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

// TestFindings: an executable and a large file are found where git tracks them, and nowhere else.
func TestFindings(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	root := t.TempDir()
	elf, large := "\x7fELF\x02\x01\x01", strings.Repeat("x", maxFile+1)
	for name, text := range map[string]string{
		"main.go": "package main\n", "bin/enilab": elf, "with space": elf, "docs/large.svg": large, "docs/just.svg": large[1:], "short": "\x7fE", "empty": "",
		"a/testdata/tool": elf, "a/testdata/b/large": large, "testdata2/tool": elf, "untracked": elf, "gone": elf,
	} {
		path := filepath.Join(root, name)
		must.Do(t, os.MkdirAll(filepath.Dir(path), 0o755))
		must.Do(t, os.WriteFile(path, []byte(text), 0o644))
	}
	must.Do(t, os.Symlink("untracked", filepath.Join(root, "link")))
	git := func(args ...string) {
		t.Helper()
		c := exec.Command("git", args...)
		c.Dir = root
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
	}
	git("init", "-q")
	git("add", "--all")
	git("rm", "-q", "--cached", "untracked")
	must.Do(t, os.Remove(filepath.Join(root, "gone")))
	found := must.Get(findings(root))(t)
	want := []string{"bin/enilab: it is an ELF file of 7 bytes", "docs/large.svg: it has 1048577 bytes, and a tracked file at most 1048576", "testdata2/tool: it is an ELF file",
		"with space: it is an ELF file"}
	if len(found) != len(want) {
		t.Fatalf("expected %d findings, found %d: %s", len(want), len(found), strings.Join(found, "\n"))
	}
	for i, w := range want {
		if !strings.HasPrefix(found[i], w) {
			t.Errorf("expected %q, found %q", w, found[i])
		}
	}
	if _, err := findings(t.TempDir()); err == nil || !strings.Contains(err.Error(), "list the files that git tracks") {
		t.Errorf("a folder that is no repository: expected an error, found %v", err)
	}
}

// TestLintAsks: make lint runs this program, so that its findings are the target's.
func TestLintAsks(t *testing.T) {
	data := must.Get(os.ReadFile(filepath.Join("..", "..", "..", "Makefile")))(t)
	_, target, _ := strings.Cut(string(data), "\nlint: ")
	target, _, _ = strings.Cut(target, "\n\n")
	if !strings.Contains(target, "\n\t@go run ./internal/purity/tracked\n") {
		t.Errorf("the target lint of the Makefile does not run ./internal/purity/tracked:\n%s", target)
	}
}
