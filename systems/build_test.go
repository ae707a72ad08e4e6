package systems

import (
	"archive/zip"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/enilab/enilab/internal/must"
)

const (
	miniMod  = "module example.com/mini\n\ngo 1.21\n"
	miniMain = "package main\n\nfunc main() { println(%q) }\n"
)

func miniDescription(git string) []byte {
	return []byte("name: mini\nbuild: {module: example.com/mini, packages: {mini: cmd/mini}" + git + "}\nfiles: [{from: mini, to: /opt/cni/bin/mini}]\n" +
		`conflist: {name: 10-mini.conflist, words: '{"plugins": [{"type": "mini"}]}'}` + "\n")
}

func onLinux(t *testing.T) {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: what is built is for nodes")
	}
}

// says is what a program prints.
func says(t *testing.T, s *System) string {
	t.Helper()
	out := must.Get(exec.Command(filepath.Join(s.Folder, "mini")).CombinedOutput())(t)
	return strings.TrimSpace(string(out))
}

func TestCommit(t *testing.T) {
	needs(t, "git")
	onLinux(t)
	o := place(t)
	repository := o.Folder
	git := func(args ...string) string {
		t.Helper()
		c := exec.Command("git", append([]string{"-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"}, args...)...)
		c.Dir = repository
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	save := func(word string) {
		write(t, filepath.Join(repository, "cmd", "mini", "main.go"), []byte(strings.Replace(miniMain, "%q", `"`+word+`"`, 1)), 0o644)
	}
	git("init", "-q")
	write(t, filepath.Join(repository, "go.mod"), []byte(miniMod), 0o644)
	write(t, filepath.Join(repository, "systems", "mini.yaml"), miniDescription(", git: true"), 0o644)
	save("one")
	git("add", "-A")
	git("commit", "-qm", "one")
	git("tag", "v1")
	save("two")
	git("commit", "-qam", "two")
	save("three")

	inside := o
	inside.Folder = repository
	first := find(t, "mini@v1", inside)
	if first.Version != git("rev-parse", "v1")[:12] || says(t, first) != "one" {
		t.Errorf("v1: version %s, it says %q", first.Version, says(t, first))
	}
	if s := find(t, "mini@HEAD", inside); says(t, s) != "two" {
		t.Errorf("HEAD says %q", says(t, s))
	}
	for _, where := range []string{"mini", "mini@."} {
		if s := find(t, where, inside); says(t, s) != "three" {
			t.Errorf("%s: the working tree says %q", where, says(t, s))
		}
	}
	told := false
	inside.Tell = func(string) { told = true }
	if s := find(t, "mini@v1", inside); s.Folder != first.Folder || told {
		t.Errorf("built anew: %v, in %s", told, s.Folder)
	}
	refused(t, "mini@v2", inside, "has no commit or tag v2")
	refused(t, "mini@--output=x", inside, "has no commit or tag")
	write(t, filepath.Join(repository, "cmd", "mini", "main.go"), []byte("package main\n\nfunc main() { nothing }\n"), 0o644)
	refused(t, "mini@.", inside, "go build", "undefined: nothing")
	write(t, filepath.Join(repository, "go.mod"), []byte("module example.com/else\n"), 0o644)
	refused(t, "mini@.", inside, "expected the module example.com/mini, found example.com/else")
	if left, err := filepath.Glob(filepath.Join(o.Cache, "builds", ".new-*")); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}

	outside := o
	outside.Folder = t.TempDir()
	write(t, filepath.Join(outside.Folder, "systems", "mini.yaml"), miniDescription(", git: true"), 0o644)
	refused(t, "mini@v1", outside, "the working folder is in none")
}

// TestModule: a version is built from what the Go module proxy has; here it is a folder.
func TestModule(t *testing.T) {
	onLinux(t)
	o := place(t)
	write(t, filepath.Join(o.Folder, "systems", "mini.yaml"), miniDescription(""), 0o644)
	proxy := t.TempDir()
	versions := filepath.Join(proxy, "example.com", "mini", "@v")
	var archive bytes.Buffer
	z := zip.NewWriter(&archive)
	for name, text := range map[string]string{"go.mod": miniMod, "cmd/mini/main.go": strings.Replace(miniMain, "%q", `"of the module"`, 1)} {
		w := must.Get(z.Create("example.com/mini@v1.2.3/" + name))(t)
		must.Get(w.Write([]byte(text)))(t)
	}
	must.Do(t, z.Close())
	write(t, filepath.Join(versions, "list"), []byte("v1.2.3\n"), 0o644)
	write(t, filepath.Join(versions, "v1.2.3.info"), []byte(`{"Version": "v1.2.3"}`), 0o644)
	write(t, filepath.Join(versions, "v1.2.3.mod"), []byte(miniMod), 0o644)
	write(t, filepath.Join(versions, "v1.2.3.zip"), archive.Bytes(), 0o644)
	t.Setenv("GOPROXY", "file://"+proxy)
	t.Setenv("GONOSUMDB", "*")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Setenv("GOFLAGS", strings.TrimSpace(os.Getenv("GOFLAGS")+" -modcacherw"))

	s := find(t, "mini@1.2.3", o)
	if s.Version != "1.2.3" || says(t, s) != "of the module" {
		t.Errorf("version %s, it says %q", s.Version, says(t, s))
	}
	if s := find(t, "mini@1.2", o); s.Version != "1.2.3" {
		t.Errorf("the newest of 1.2: found %s", s.Version)
	}
	refused(t, "mini@1.2.4", o, "example.com/mini in version 1.2.4")
	refused(t, "mini", o, "a version such as 1.2.3 is built from the Go module example.com/mini")
}
