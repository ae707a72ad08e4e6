package install

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/enilab/enilab/internal/must"
)

// soon bounds every wait of a test.
const soon = 30 * time.Second

// folder is a folder with these files, none of which anybody may start.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		must.Do(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// contents are those of a folder's files, all of which have to be programs.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	list := must.Get(os.ReadDir(dir))(t)
	out := map[string]string{}
	for _, e := range list {
		data := must.Get(os.ReadFile(filepath.Join(dir, e.Name())))(t)
		if st, err := e.Info(); err != nil || st.Mode() != mode {
			t.Errorf("%s has mode %v, %v", e.Name(), st.Mode(), err)
		}
		out[e.Name()] = string(data)
	}
	return out
}

func inode(t *testing.T, path string) uint64 {
	t.Helper()
	var st syscall.Stat_t
	must.Do(t, syscall.Stat(path, &st))
	return st.Ino
}

func TestPlugins(t *testing.T) {
	long := string(bytes.Repeat([]byte("x"), 3*block+17))
	image := map[string]string{"aws-cni": "new", "loopback": long, "portmap": "same", "tuning": "right contents, wrong mode"}
	from, to := folder(t, image), folder(t, map[string]string{"aws-cni": "old", "loopback": long[1:] + "y", "portmap": "same", "tuning": image["tuning"],
		"istio-cni": "somebody else's", prefix + "123": "half a plug"})
	for _, name := range []string{"portmap", "istio-cni", "aws-cni"} {
		must.Do(t, os.Chmod(filepath.Join(to, name), mode))
	}
	must.Do(t, os.Mkdir(filepath.Join(from, "a-folder"), 0o755))
	before := inode(t, filepath.Join(to, "portmap"))
	changed, err := Plugins(from, to)
	if want := []string{"aws-cni", "loopback", "tuning"}; err != nil || !slices.Equal(changed, want) {
		t.Fatalf("changed %v, %v; expected %v", changed, err, want)
	}
	want := maps.Clone(image)
	want["istio-cni"] = "somebody else's"
	if got := contents(t, to); !maps.Equal(got, want) {
		t.Errorf("%v", slices.Collect(maps.Keys(got)))
	}
	if inode(t, filepath.Join(to, "portmap")) != before {
		t.Error("a plugin that is there already was written anew")
	}
	if changed, err := Plugins(from, to); err != nil || len(changed) > 0 {
		t.Errorf("the second time %v, %v", changed, err)
	}
}

// TestRunningPluginKeepsItsBinary: a plugin that runs goes on as what it is, and the next that starts is the new one.
func TestRunningPluginKeepsItsBinary(t *testing.T) {
	cat, err := exec.LookPath("cat")
	if err != nil {
		t.Skip("needs cat, as a program that can be run")
	}
	program := must.Get(os.ReadFile(cat))(t)
	to := t.TempDir()
	there := filepath.Join(to, "aws-cni")
	must.Do(t, os.WriteFile(there, program, mode))
	cmd := exec.Command(there)
	in := must.Get(cmd.StdinPipe())(t)
	out := must.Get(cmd.StdoutPipe())(t)
	must.Do(t, cmd.Start())
	defer func() { _ = cmd.Process.Kill() }()
	must.Get(Plugins(folder(t, map[string]string{"aws-cni": "#!/bin/sh\necho new\n"}), to))(t)
	must.Get(io.WriteString(in, "still here"))(t)
	in.Close()
	if got, err := io.ReadAll(out); err != nil || string(got) != "still here" {
		t.Errorf("the running plugin says %q, %v", got, err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if got, err := exec.Command(there).Output(); err != nil || string(got) != "new\n" {
		t.Errorf("the next one says %q, %v", got, err)
	}
}

// TestNeverHalf: whoever starts a plugin while it is installed, again and again by several, finds a whole one.
func TestNeverHalf(t *testing.T) {
	to := t.TempDir()
	versions := []string{string(bytes.Repeat([]byte("a"), 1<<20)), string(bytes.Repeat([]byte("b"), 1<<20+1))}
	var from []string
	for _, v := range versions {
		from = append(from, folder(t, map[string]string{"aws-cni": v, "portmap": v}))
	}
	must.Get(Plugins(from[0], to))(t)
	var installers sync.WaitGroup
	for i := range 4 {
		installers.Go(func() {
			for range 5 {
				if _, err := Plugins(from[i%2], to); err != nil {
					t.Error(err)
				}
			}
		})
	}
	ended := make(chan struct{})
	go func() { installers.Wait(); close(ended) }()
	for looks := 0; ; looks++ {
		for _, name := range []string{"aws-cni", "portmap"} {
			if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || !slices.Contains(versions, string(got)) {
				t.Fatalf("after %d looks %s has %d bytes, %v", looks, name, len(got), err)
			}
		}
		select {
		case <-ended:
			if got := contents(t, to); len(got) != 2 {
				t.Errorf("files %v", slices.Collect(maps.Keys(got)))
			}
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// TestRefusedInstallChangesNothing: nothing is changed, and nothing is left behind.
func TestRefusedInstallChangesNothing(t *testing.T) {
	good, to := folder(t, map[string]string{"aws-cni": "new", "zz": "new"}), folder(t, map[string]string{"aws-cni": "old"})
	var missing *Missing
	gone := filepath.Join(t.TempDir(), "gone")
	for _, c := range []struct{ from, to, folder string }{{gone, to, gone}, {good, gone, gone}, {good, filepath.Join(to, "aws-cni"), filepath.Join(to, "aws-cni")}} {
		if _, err := Plugins(c.from, c.to); !errors.As(err, &missing) || missing.Folder != c.folder || err.Error() == "" {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
		}
	}
	if _, err := Plugins(t.TempDir(), to); err == nil || errors.As(err, &missing) && missing.Folder == to {
		t.Errorf("an empty image: %v", err)
	}
	dangling := folder(t, map[string]string{"aws-cni": "new"})
	must.Do(t, os.Symlink("/nowhere/at/all", filepath.Join(dangling, "portmap")))
	if _, err := Plugins(dangling, to); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("half an image: %v", err)
	}
	if data, err := os.ReadFile(filepath.Join(to, "aws-cni")); err != nil || string(data) != "old" {
		t.Errorf("the plugin that was there is %q, %v", data, err)
	}
	// A folder where the program should be: what could be installed is, and the copy that could not is gone.
	must.Do(t, os.Mkdir(filepath.Join(to, "zz"), 0o755))
	if changed, err := Plugins(good, to); err == nil || !slices.Equal(changed, []string{"aws-cni"}) {
		t.Errorf("changed %v, %v", changed, err)
	}
	if list, err := os.ReadDir(to); err != nil || len(list) != 2 {
		t.Errorf("%v %v", list, err)
	}
}

// TestInstallersTakeTurns: while another installer has the folder, this one waits.
func TestInstallersTakeTurns(t *testing.T) {
	from, to := folder(t, map[string]string{"aws-cni": "new"}), t.TempDir()
	other := must.Get(hold(to))(t)
	done := make(chan error, 1)
	go func() { _, err := Plugins(from, to); done <- err }()
	select {
	case err := <-done:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(3 * lockPause):
	}
	other.Close()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(soon):
		t.Fatalf("it waits %v after the other has ended", soon)
	}
}
