package vm

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/ulikunitz/xz"

	"github.com/enilab/enilab/internal/must"
)

// listed reads an initramfs as a kernel does: a line for each entry.
func listed(t *testing.T, b []byte) (out []string) {
	t.Helper()
	field := func(at int) int {
		n := must.Get(strconv.ParseUint(string(b[at:at+8]), 16, 32))(t)
		return int(n)
	}
	for {
		if string(b[:6]) != "070701" {
			t.Fatalf("expected a header, found %q", b[:6])
		}
		mode, size, name := field(14), field(54), field(94)
		title := string(b[110 : 110+name-1])
		b = b[(110+name+3)&^3:]
		if title == "TRAILER!!!" {
			return out
		}
		out = append(out, fmt.Sprintf("%s %o %s", title, mode, b[:size]))
		b = b[(size+3)&^3:]
	}
}

// TestImage: an initramfs has what was put there, folders before what is in them, the same bytes each time.
func TestImage(t *testing.T) {
	host := t.TempDir()
	for name, text := range map[string]string{"real/tool": "#!/bin/sh\n", "real/more/data": "abc"} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(host, name)), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(host, name), []byte(text), 0o755))
	}
	must.Do(t, os.Symlink("real", filepath.Join(host, "alias")))
	make := func() []byte {
		m := NewImage()
		m.AddData("/modules/000-x.ko", 0o644, []byte("12345"))
		m.AddLink("/init", "/opt/x")
		must.Do(t, m.AddProgram(filepath.Join(host, "alias/tool")))
		must.Do(t, m.AddHost(filepath.Join(host, "real/more")))
		var b bytes.Buffer
		must.Do(t, m.Write(&b))
		return b.Bytes()
	}
	first := make()
	if !bytes.Equal(first, make()) {
		t.Error("two images of the same files are not the same")
	}
	got := listed(t, first)
	base := strings.TrimPrefix(host, "/")
	for _, want := range []string{"modules/000-x.ko 100644 12345", "init 120777 /opt/x", base + "/alias 120777 real", base + "/real/tool 100755 #!/bin/sh\n", base + "/real/more/data 100755 abc"} {
		if !slices.Contains(got, want) {
			t.Errorf("expected the entry %q, found %q", want, got)
		}
	}
	if !slices.IsSorted(got) {
		t.Errorf("expected folders before what is in them: %q", got)
	}
	if err := NewImage().AddHost(filepath.Join(host, "nothing")); err == nil {
		t.Error("a file that is not there was added")
	}
}

// deb makes a Debian package of files.
func deb(t *testing.T, files map[string]string) []byte {
	t.Helper()
	var data bytes.Buffer
	z := must.Get(xz.NewWriter(&data))(t)
	w := tar.NewWriter(z)
	for name, text := range files {
		must.Do(t, w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: int64(len(text)), Mode: 0o644}))
		must.Get(w.Write([]byte(text)))(t)
	}
	must.Do(t, w.Close())
	must.Do(t, z.Close())
	out := []byte("!<arch>\n")
	for _, m := range []struct{ name, body string }{{"debian-binary", "2.0"}, {"control.tar.xz", "odd"}, {"data.tar.xz", data.String()}} {
		out = fmt.Appendf(out, "%-16s%-12d%-6d%-6d%-8s%-10d`\n%s", m.name, 0, 0, 0, "100644", len(m.body), m.body)
		if len(m.body)%2 == 1 {
			out = append(out, '\n')
		}
	}
	return out
}

// TestPackage: of a Debian package comes the kernel with its modules, and nothing outside of the folder.
func TestPackage(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	image := append(make([]byte, 0x200), "\x00\x00HdrS"...)
	image = append(image, make([]byte, 0x230-len(image))...)
	image[0x20e] = 0x20 // version string at 0x220
	copy(image[0x220:], "6.99-cloud-amd64 (x) #1\x00")
	name := filepath.Join(dir, "linux-image-6.99-cloud-amd64_6.99-1_amd64.deb")
	write := func(data []byte) {
		t.Helper()
		must.Do(t, os.WriteFile(name, data, 0o644))
	}
	write(deb(t, map[string]string{"./boot/vmlinuz-6.99-cloud-amd64": string(image), "./usr/lib/modules/6.99-cloud-amd64/modules.builtin": "kernel/net/veth.ko\n",
		"./etc/other": "x", "./../../boot/vmlinux-evil": "x"}))
	k := must.Get(Open(name, "amd64"))(t)
	if k.Version != "6.99-cloud-amd64" || k.Arch != "amd64" || !strings.HasPrefix(k.Image, Cache()) || !strings.HasSuffix(k.Modules, "/lib/modules/6.99-cloud-amd64") {
		t.Errorf("found %+v", k)
	}
	if again, err := Open(name, "amd64"); err != nil || again.Image != k.Image {
		t.Errorf("the second time: %+v, %v", again, err)
	}
	for _, x := range []struct {
		data []byte
		says string
	}{{[]byte("PK\x03\x04 no package"), "no Debian package"}, {[]byte("!<arch>\n"), "no data.tar"}, {deb(t, nil), "expected one boot/vmlinuz"}, {deb(t, nil)[:150], "Debian package"}} {
		write(x.data)
		if _, err := Open(name, "amd64"); err == nil || !strings.Contains(err.Error(), x.says) {
			t.Errorf("expected an error with %q, found %v", x.says, err)
		}
	}
	plain := filepath.Join(dir, "notes.txt")
	must.Do(t, os.WriteFile(plain, []byte("hello"), 0o644))
	for _, bad := range []string{plain, dir, filepath.Join(dir, "nothing")} {
		if _, err := Open(bad, "amd64"); err == nil {
			t.Errorf("%s was taken for a kernel", bad)
		}
	}
}

// TestNewest: versions are compared by their numbers.
func TestNewest(t *testing.T) {
	list := []string{"vmlinuz-6.1.0-9-cloud-amd64", "vmlinuz-6.12.9-cloud-amd64", "vmlinuz-6.1.0-56-cloud-amd64", "vmlinuz-6.12.117-cloud-amd64"}
	slices.SortFunc(list, newest)
	if got := strings.Join(list, " "); got != "vmlinuz-6.12.117-cloud-amd64 vmlinuz-6.12.9-cloud-amd64 vmlinuz-6.1.0-56-cloud-amd64 vmlinuz-6.1.0-9-cloud-amd64" {
		t.Error(got)
	}
}

// ko is a module that says what it depends on: an ELF file with nothing but .modinfo and the names of sections.
func ko(depends string) []byte {
	info := "license=GPL\x00depends=" + depends + "\x00name=x\x00"
	names := "\x00.modinfo\x00.shstrtab\x00"
	b := make([]byte, 64, 512)
	copy(b, "\x7fELF\x02\x01\x01")
	put := func(at, size int, v uint64) {
		for i := range size {
			b[at+i] = byte(v >> (8 * i))
		}
	}
	infoAt := len(b)
	b = append(b, info...)
	namesAt := len(b)
	b = append(b, names...)
	table := len(b)
	b = append(b, make([]byte, 3*64)...)
	put(16, 2, 1)             // relocatable
	put(18, 2, 62)            // x86-64
	put(20, 4, 1)             // version
	put(40, 8, uint64(table)) // sections
	put(52, 2, 64)            // size of this header
	put(58, 2, 64)            // and of a section's
	put(60, 2, 3)             // sections
	put(62, 2, 2)             // that of the names
	section := func(i, name, kind, at, size int) {
		put(table+64*i, 4, uint64(name))
		put(table+64*i+4, 4, uint64(kind))
		put(table+64*i+24, 8, uint64(at))
		put(table+64*i+32, 8, uint64(size))
	}
	section(1, 1, 1, infoAt, len(info))
	section(2, 10, 3, namesAt, len(names))
	return b
}

// TestModules: what a module depends on is loaded before it, once; what is built in is not; what is missing is named.
func TestModules(t *testing.T) {
	dir := t.TempDir()
	signed := append(ko(""), "signature----\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x0d~Module signature appended~\n"...)
	var packed bytes.Buffer
	z := must.Get(xz.NewWriter(&packed))(t)
	must.Get(z.Write(ko("nf-conntrack,nf_defrag")))(t)
	must.Do(t, z.Close())
	for name, data := range map[string][]byte{"modules.builtin": []byte("kernel/net/nf_defrag.ko\n"), "a/nf_nat.ko.xz": packed.Bytes(), "b/nf-conntrack.ko": signed,
		"b/veth.ko": ko("nf_conntrack"), "b/torn.ko": []byte("\x7fELF"), "b/needy.ko": ko("gone"), "b/new.ko.zst": nil} {
		must.Do(t, os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755))
		must.Do(t, os.WriteFile(filepath.Join(dir, name), data, 0o644))
	}
	tree := must.Get(openModules(dir))(t)
	list := must.Get(tree.order([]string{"nf_nat", "veth", "nf_defrag"}, []string{"dummy"}))(t)
	var names []string
	for _, m := range list {
		names = append(names, m.name)
		if m.name == "nf_conntrack" && !bytes.Equal(m.data, ko("")) {
			t.Error("the signature is still there")
		}
	}
	if got := strings.Join(names, " "); got != "nf_conntrack nf_nat veth" {
		t.Errorf("found the order %s", got)
	}
	for name, says := range map[string]string{"dummy": "the kernel has no dummy", "torn": "torn.ko", "needy": "needs gone", "new": ".zst"} {
		if _, err := tree.order([]string{name}, nil); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: expected an error with %q, found %v", name, says, err)
		}
	}
}

// TestArchitectures: a kernel for another architecture is found, and never taken for this computer's.
func TestArchitectures(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv(KernelVariable, "")
	var want []string
	for _, other := range others() {
		name := filepath.Join(Cache(), other, "linux-image-6.99-cloud-"+other+"_6.99-1_"+other+".deb")
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, nil, 0o644))
		want = append(want, name)
		if _, err := Busybox(other); err == nil || !strings.Contains(err.Error(), "busybox-static") {
			t.Errorf("expected that busybox-static is missing, found %v", err)
		}
	}
	var got []string
	for _, k := range Find() {
		if k.Package != "" {
			got = append(got, k.Package)
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("expected the packages %q, found %q", want, got)
	}
	for _, k := range findFor(runtime.GOARCH) {
		if k.Arch != "" && k.Arch != runtime.GOARCH {
			t.Errorf("%s is for %s and was taken for %s", k.String(), k.Arch, runtime.GOARCH)
		}
	}
}

// TestTar: what is put into a machine that has paused gets there, and what is there already stays.
func TestTar(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(from, "tool"), []byte("tool"), 0o755))
	m := NewImage()
	m.AddData("/usr/bin/old", 0o755, []byte("new"))
	m.AddLink("/bin", "usr/bin")
	must.Do(t, m.AddFile("/usr/bin/tool", filepath.Join(from, "tool")))
	must.Do(t, os.MkdirAll(filepath.Join(to, "usr/bin"), 0o755))
	must.Do(t, os.WriteFile(filepath.Join(to, "usr/bin/old"), []byte("old"), 0o644))
	var b bytes.Buffer
	must.Do(t, m.WriteTar(&b))
	must.Do(t, unpackTar(to, &b))
	for name, want := range map[string]string{"bin/tool": "tool", "bin/old": "old"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: expected %q, found %q (%v)", name, want, got, err)
		}
	}
	if info, err := os.Stat(filepath.Join(to, "bin/tool")); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("bin/tool: expected mode 0755, found %v (%v)", info, err)
	}
}

// TestTreeBehindALink: a path that is named is what it leads to, as where a folder has links to binaries elsewhere.
func TestTreeBehindALink(t *testing.T) {
	dir := t.TempDir()
	must.Do(t, os.WriteFile(filepath.Join(dir, "tool"), []byte("abc"), 0o755))
	must.Do(t, os.Symlink("tool", filepath.Join(dir, "alias")))
	m := NewImage()
	must.Do(t, m.AddTree("/app/tool", filepath.Join(dir, "alias")))
	var b bytes.Buffer
	must.Do(t, m.Write(&b))
	if got := listed(t, b.Bytes()); !slices.Contains(got, "app/tool 100755 abc") {
		t.Errorf("expected the file, found %q", got)
	}
}
