package gate

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/enilab/enilab/internal/must"
	"github.com/enilab/enilab/systems"
)

// TestDigestOfASystem: two versions of one name differ by what is played of them: of a folder its files, wherever links
// lead, and of an image all that it has.
func TestDigestOfASystem(t *testing.T) {
	write := func(name, text string) {
		t.Helper()
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, []byte(text), 0o755))
	}
	system := func(root, daemon, iptables string) *systems.System {
		dir := t.TempDir()
		write(filepath.Join(dir, "elsewhere", "daemon"), daemon)
		write(filepath.Join(dir, "mine", "root", "sbin", "iptables"), iptables)
		must.Do(t, os.Symlink("../elsewhere/daemon", filepath.Join(dir, "mine", "daemon")))
		return &systems.System{Name: "mine", Version: "1.0.0", Folder: filepath.Join(dir, "mine"), Root: root,
			Files: []systems.File{{From: "daemon", To: "/app/daemon"}}}
	}
	digest := func(s *systems.System) string {
		return must.Get(digestOf(s))(t)
	}
	folder, image := digest(system("", "a", "x")), digest(system("root", "a", "x"))
	for _, c := range []struct {
		what  string
		s     *systems.System
		like  string
		equal bool
	}{
		{"the same files", system("", "a", "x"), folder, true},
		{"another daemon behind the link", system("", "b", "x"), folder, false},
		{"a folder's files beside those that are named", system("", "a", "y"), folder, true},
		{"the same image", system("root", "a", "x"), image, true},
		{"another iptables in the image", system("root", "a", "y"), image, false},
	} {
		if got := digest(c.s); (got == c.like) != c.equal {
			t.Errorf("%s: the same digest: %t, expected %t", c.what, got == c.like, c.equal)
		}
	}
}
