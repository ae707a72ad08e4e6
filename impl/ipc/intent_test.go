package ipc

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/enilab/enilab/impl/ipam"
	"github.com/enilab/enilab/internal/must"
)

func of(id string) Intent {
	return Intent{ipam.Attachment{Network: "aws-cni", ContainerID: id, IfName: "eth0"}, ipam.Pod{Namespace: "default", Name: "web", UID: "u"}, 2}
}

func write(t *testing.T, dir string, in Intent) {
	t.Helper()
	must.Do(t, WriteIntent(dir, in))
}

func read(t *testing.T, dir string) ([]IntentFile, []Unreadable) {
	t.Helper()
	es, bad, err := ReadIntents(dir)
	must.Do(t, err)
	return es, bad
}

func TestRoundTrip(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "del")
	if es, bad := read(t, dir); es != nil || bad != nil {
		t.Fatalf("a folder that is not there has %v, %v", es, bad)
	}
	write(t, dir, of("a"))
	write(t, dir, of("a"))
	write(t, dir, of("b"))
	es, bad := read(t, dir)
	if len(es) != 2 || len(bad) != 0 {
		t.Fatalf("%d intents and %v, expected 2: a repeated DEL is one file", len(es), bad)
	}
	want := map[string]Intent{"a": of("a"), "b": of("b")}
	for _, e := range es {
		if !reflect.DeepEqual(e.Intent, want[e.Attachment.ContainerID]) {
			t.Errorf("read %+v", e.Intent)
		}
		must.Do(t, RemoveIntent(dir, e))
		if err := RemoveIntent(dir, e); err != nil {
			t.Errorf("removed again: %v", err)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Parts of one attachment do not run into each other.
func TestNamesDiffer(t *testing.T) {
	a := name(ipam.Attachment{Network: "n", ContainerID: "ab", IfName: "c"})
	b := name(ipam.Attachment{Network: "n", ContainerID: "a", IfName: "bc"})
	if a == b {
		t.Error("two attachments have one name")
	}
}

func TestRemoveSparesANewerOne(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, of("a"))
	es, _ := read(t, dir)
	write(t, dir, of("a"))
	must.Do(t, RemoveIntent(dir, es[0]))
	again, _ := read(t, dir)
	if len(again) != 1 || again[0].Name != es[0].Name {
		t.Fatalf("the newer intent is gone: %v", again)
	}
	must.Do(t, RemoveIntent(dir, again[0]))
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A daemon that died in Remove has its intent again, and can remove it.
func TestRemoveThatDidNotEnd(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, of("a"))
	n := name(of("a").Attachment)
	must.Do(t, os.Rename(filepath.Join(dir, n), filepath.Join(dir, "."+n+leaving)))
	es, _ := read(t, dir)
	if len(es) != 1 {
		t.Fatalf("lost: %v", es)
	}
	must.Do(t, RemoveIntent(dir, es[0]))
	if left, _ := os.ReadDir(dir); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestReadReportsWhatItCannotRead(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, of("a"))
	for n, body := range map[string]string{
		"truncated.json": `{"version":2,"netw`,
		"empty.json":     ``,
		"null.json":      `null`,
		"half.json":      `{"network":"aws-cni","containerID":"c"}`,
		"spaces.json":    `{"network":"aws cni","containerID":"c","ifName":"eth0"}`,
		"large.json":     `{"network":"` + strings.Repeat("x", maxFile) + `"}`,
		"other.txt":      `not an intent`,
		".hidden":        `not an intent`,
		".new.json1.tmp": `{`,
		".old.json1.tmp": `{`,
	} {
		must.Do(t, os.WriteFile(filepath.Join(dir, n), []byte(body), 0o600))
	}
	os.Mkdir(filepath.Join(dir, "folder.json"), 0o700)
	os.Symlink("/dev/zero", filepath.Join(dir, "link.json"))
	old := time.Now().Add(-2 * abandoned)
	os.Chtimes(filepath.Join(dir, ".old.json1.tmp"), old, old)

	es, bad := read(t, dir)
	if len(es) != 1 {
		t.Errorf("intents: %v", es)
	}
	var names []string
	for _, b := range bad {
		names = append(names, b.Name)
		if b.Err == nil {
			t.Errorf("%s: no reason", b.Name)
		}
	}
	want := []string{"empty.json", "folder.json", "half.json", "large.json", "link.json", "null.json", "spaces.json", "truncated.json"}
	if !reflect.DeepEqual(names, want) {
		t.Errorf("unreadable: %v, expected %v", names, want)
	}
	for n, want := range map[string]bool{".old.json1.tmp": false, ".new.json1.tmp": true, "truncated.json": true} {
		if _, err := os.Lstat(filepath.Join(dir, n)); (err == nil) != want {
			t.Errorf("%s: there %v, expected %v", n, err == nil, want)
		}
	}
}

func TestWriteFails(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	os.WriteFile(file, nil, 0o600)
	if err := WriteIntent(file, of("a")); err == nil {
		t.Error("wrote into a file")
	}
	if err := WriteIntent(filepath.Join(file, "del"), of("a")); err == nil {
		t.Error("wrote below a file")
	}
	if err := WriteIntent(dir, Intent{}); err == nil {
		t.Error("wrote an intent about nothing")
	}
	if err := WriteIntent(dir, of("a b")); err == nil {
		t.Error("wrote a name that no plugin is called with")
	}
	if _, _, err := ReadIntents(file); err == nil {
		t.Error("read a file as a folder")
	}
	// A folder where the file should be: rename fails, and nothing is left.
	os.Mkdir(filepath.Join(dir, name(of("a").Attachment)), 0o700)
	if err := WriteIntent(dir, of("a")); err == nil {
		t.Error("replaced a folder")
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

// FuzzIntent: any file is an intent that is written again the same, or an error.
func FuzzIntent(f *testing.F) {
	raw := must.Get(encode(of("a")))(f)
	f.Add(raw)
	f.Add([]byte(`{"version":99,"network":"n","containerID":"c","ifName":"i","later":{"x":[]}}`))
	f.Add([]byte(`{"network":"\u0000"}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		in, err := decode(raw)
		if err != nil {
			return
		}
		out, err := encode(in)
		if err != nil {
			if len(raw) < maxFile/8 { // escapes make it longer
				t.Fatalf("%s was read and cannot be written: %v", raw, err)
			}
			return
		}
		again, err := decode(out)
		if err != nil || again != in {
			t.Fatalf("%+v became %+v: %v", in, again, err)
		}
		out2, _ := encode(again)
		if !bytes.Equal(out, out2) || filepath.Base(name(in.Attachment)) != name(in.Attachment) {
			t.Fatal("not the same again")
		}
	})
}

func BenchmarkWrite(b *testing.B) {
	dir := b.TempDir()
	in := of("a")
	for b.Loop() {
		must.Do(b, WriteIntent(dir, in))
	}
}
