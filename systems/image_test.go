package systems

import (
	"archive/tar"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/enilab/enilab/internal/must"
)

// packed is an archive.
func packed(t *testing.T, headers []tar.Header, data [][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for i, h := range headers {
		h.Size = int64(len(data[i]))
		h.Mode = cmp.Or(h.Mode, 0o755)
		must.Do(t, w.WriteHeader(&h))
		must.Get(w.Write(data[i]))(t)
	}
	must.Do(t, w.Close())
	return b.Bytes()
}

// layerOf is a layer: names to contents. "-> x" is a symbolic link, "=> x" a hard one, "/" a folder, "device" one.
func layerOf(t *testing.T, entries ...string) v1.Layer {
	t.Helper()
	var headers []tar.Header
	var data [][]byte
	for i := 0; i < len(entries); i += 2 {
		h, d := tar.Header{Name: entries[i], Typeflag: tar.TypeReg}, []byte(entries[i+1])
		switch link, _ := strings.CutPrefix(entries[i+1], "-> "); {
		case link != entries[i+1]:
			h.Typeflag, h.Linkname, d = tar.TypeSymlink, link, nil
		case strings.HasPrefix(entries[i+1], "=> "):
			h.Typeflag, h.Linkname, d = tar.TypeLink, entries[i+1][3:], nil
		case entries[i+1] == "/":
			h.Typeflag, d = tar.TypeDir, nil
		case entries[i+1] == "device":
			h.Typeflag, d = tar.TypeChar, nil
		}
		headers, data = append(headers, h), append(data, d)
	}
	raw := packed(t, headers, data)
	l, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(raw)), nil })
	must.Do(t, err)
	return l
}

func imageOf(t *testing.T, arch, label string, layers ...v1.Layer) v1.Image {
	t.Helper()
	image := must.Get(mutate.ConfigFile(empty.Image, &v1.ConfigFile{OS: "linux", Architecture: arch, RootFS: v1.RootFS{Type: "layers"},
		Config: v1.Config{Labels: map[string]string{versionLabel: label}}}))(t)
	image = must.Get(mutate.AppendLayers(image, layers...))(t)
	return image
}

// amazon is an image as amazon-vpc-cni-k8s has it.
func amazon(t *testing.T, arch, label string) v1.Image {
	return imageOf(t, arch, label,
		layerOf(t, "app/aws-k8s-agent", "an older one", "app/portmap", string(program(arch)), "usr/", "/"),
		layerOf(t, "app/aws-k8s-agent", string(program(arch)), "app/.wh.portmap", "", "opt/aws-cni", string(program(arch)),
			"app/aws-cni", "-> ../opt/./aws-cni", "usr/sbin/xtables-nft-multi", "iptables", "usr/sbin/iptables", "-> xtables-nft-multi",
			"app/10-aws.conflist", `{"plugins": [{"type": "aws-cni", "mtu": "__MTU__"}, {"type": "portmap"}]}`))
}

func other() string {
	if runtime.GOARCH == "amd64" {
		return "arm64"
	}
	return "amd64"
}

func TestImage(t *testing.T) {
	o := place(t)
	requests := 0
	inner := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		inner.ServeHTTP(w, r)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	push := func(ref string, what remote.Taggable) {
		t.Helper()
		r, err := name.ParseReference(host + "/" + ref)
		must.Do(t, err)
		switch w := what.(type) {
		case v1.Image:
			err = remote.Write(r, w)
		case v1.ImageIndex:
			err = remote.WriteIndex(r, w)
		}
		must.Do(t, err)
	}
	one, two := amazon(t, runtime.GOARCH, ""), amazon(t, other(), "")
	index := mutate.AppendManifests(empty.Index,
		mutate.IndexAddendum{Add: two, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: other()}}},
		mutate.IndexAddendum{Add: one, Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: runtime.GOARCH}}})
	push("cni:v1.23.0", index)
	push("cni:latest", amazon(t, runtime.GOARCH, "v1.22.4"))
	push("cni:unlabelled", one)
	push("cni:foreign", two)
	push("cni:v9.0.0", one)

	s := find(t, "amazon-vpc-cni-k8s@"+host+"/cni:v1.23.0", o)
	if s.Version != "1.23.0" || !slices.Equal(s.Plugins, []string{"aws-cni"}) || !strings.Contains(strings.Join(s.Notes, " "), "sha256:") {
		t.Errorf("found %s, plugins %v, notes %v", s.Version, s.Plugins, s.Notes)
	}
	if _, err := os.Stat(filepath.Join(s.Folder, "portmap")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the upper layer took portmap away: %v", err)
	}
	before := requests
	if again := find(t, "amazon-vpc-cni-k8s@"+host+"/cni:v1.23.0", o); again.Folder != s.Folder || requests-before > 4 {
		t.Errorf("the cache was not used: %s, %d requests", again.Folder, requests-before)
	}
	foreign := o
	foreign.Arch = other()
	if f := find(t, "amazon-vpc-cni-k8s@"+host+"/cni:v1.23.0", foreign); f.Folder == s.Folder {
		t.Errorf("two platforms, one folder: %s", f.Folder)
	}
	digest := must.Get(one.Digest())(t)
	for ref, want := range map[string]string{"cni:latest": "1.22.4", "1.20.0=cni:unlabelled": "1.20.0", "1.21.0=cni@" + digest.String(): "1.21.0"} {
		where := host + "/" + ref
		if said, rest, ok := strings.Cut(ref, "="); ok {
			where = said + "=" + host + "/" + rest
		}
		if s := find(t, "amazon-vpc-cni-k8s@"+where, o); s.Version != want {
			t.Errorf("%s: expected %s, found %s", ref, want, s.Version)
		}
	}
	refused(t, "amazon-vpc-cni-k8s@"+host+"/cni:unlabelled", o, "does not say its version", versionLabel)
	refused(t, "amazon-vpc-cni-k8s@1.23.0="+host+"/cni:foreign", o, "expected an image for linux/"+runtime.GOARCH, "found one for linux/"+other())
	refused(t, "amazon-vpc-cni-k8s@"+host+"/cni:v9.0.0", o, "is in no range")
	refused(t, "amazon-vpc-cni-k8s@"+host+"/cni:nowhere", o, "MANIFEST_UNKNOWN")
	refused(t, "amazon-vpc-cni-k8s@"+host+"/CNI:v1", o, "expected an image's reference")
}

func TestArchive(t *testing.T) {
	o := place(t)
	one := amazon(t, runtime.GOARCH, "1.22.4")

	saved := filepath.Join(o.Folder, "saved.tar")
	tag := must.Get(name.NewTag("example.com/cni:v1.23.0"))(t)
	must.Do(t, tarball.WriteToFile(saved, tag, one))
	if s := find(t, "amazon-vpc-cni-k8s@saved.tar", o); s.Version != "1.23.0" || !slices.Equal(s.Plugins, []string{"aws-cni"}) {
		t.Errorf("found %s, %v", s.Version, s.Plugins)
	}

	dir := filepath.Join(o.Folder, "layout")
	l := must.Get(layout.Write(dir, mutate.AppendManifests(empty.Index, mutate.IndexAddendum{Add: amazon(t, other(), ""),
		Descriptor: v1.Descriptor{Platform: &v1.Platform{OS: "linux", Architecture: other()}}})))(t)
	tarOf := func(file string) string {
		var headers []tar.Header
		var data [][]byte
		must.Do(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, _ := filepath.Rel(dir, p)
			raw, err := os.ReadFile(p)
			headers, data = append(headers, tar.Header{Name: "./" + rel, Mode: 0o644}), append(data, raw)
			return err
		}))
		headers, data = append(headers, tar.Header{Name: "blobs/../../outside"}, tar.Header{Name: "/etc/outside"}), append(data, []byte("x"), []byte("y"))
		write(t, filepath.Join(o.Folder, file), packed(t, headers, data), 0o644)
		return file
	}
	refused(t, "amazon-vpc-cni-k8s@"+tarOf("foreign.tar"), o, "expected an image for linux/"+runtime.GOARCH, "found linux/"+other())
	must.Do(t, l.AppendImage(one, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: runtime.GOARCH})))
	if s := find(t, "amazon-vpc-cni-k8s@./"+tarOf("layout.tar"), o); s.Version != "1.22.4" {
		t.Errorf("found %s", s.Version)
	}
	must.Do(t, l.ReplaceImage(one, func(d v1.Descriptor) bool { return d.Platform.Architecture == runtime.GOARCH }, layout.WithPlatform(v1.Platform{OS: "linux",
		Architecture: runtime.GOARCH}), layout.WithAnnotations(map[string]string{refName: "v1.21.0"})))
	if s := find(t, "amazon-vpc-cni-k8s@"+tarOf("tagged.tar"), o); s.Version != "1.21.0" {
		t.Errorf("found %s", s.Version)
	}

	write(t, filepath.Join(o.Folder, "no.tar"), []byte("no archive"), 0o644)
	refused(t, "amazon-vpc-cni-k8s@no.tar", o, "no.tar: expected an image")
	write(t, filepath.Join(o.Folder, "plain.tar"), packed(t, []tar.Header{{Name: "a"}}, [][]byte{nil}), 0o644)
	refused(t, "amazon-vpc-cni-k8s@plain.tar", o, "found neither index.json nor manifest.json")
	refused(t, "amazon-vpc-cni-k8s@nowhere.tar", o, "no folder or file nowhere.tar")
}

// TestExtract: layers, links and whiteouts, and what hostile images try.
func TestExtract(t *testing.T) {
	root := []string{"a", "the file"}
	for _, c := range []struct {
		name   string
		layers [][]string
		path   string
		want   string // a content; "": not there; "!": an error with the rest
	}{
		{"plain", [][]string{root}, "/a", "the file"},
		{"not there", [][]string{root}, "/b", ""},
		{"written with a dot", [][]string{{"./a", "x"}}, "/a", "x"},
		{"the upper layer wins", [][]string{root, {"a", "newer"}}, "/a", "newer"},
		{"whiteout", [][]string{root, {".wh.a", ""}}, "/a", ""},
		{"there, and a whiteout of what was", [][]string{root, {"a", "again", ".wh.a", ""}}, "/a", "again"},
		{"whiteout of a folder", [][]string{{"d/a", "x"}, {".wh.d", ""}}, "/d/a", ""},
		{"opaque", [][]string{{"d/a", "x", "e", "y"}, {"d/b", "z", "d/.wh..wh..opq", ""}}, "/d/a", ""},
		{"opaque keeps its own", [][]string{{"d/a", "x"}, {"d/b", "z", "d/.wh..wh..opq", ""}}, "/d/b", "z"},
		{"opaque root", [][]string{root, {".wh..wh..opq", "", "b", "z"}}, "/a", ""},
		{"a file where a folder was", [][]string{{"d/", "/", "d/a", "x"}, {"d", "file"}}, "/d/a", ""},
		{"symbolic link", [][]string{root, {"d/l", "-> ../a"}}, "/d/l", "the file"},
		{"absolute link is of the image", [][]string{root, {"d/l", "-> /a"}}, "/d/l", "the file"},
		{"link to a folder", [][]string{{"d/a", "x", "l", "-> d"}}, "/l/a", "x"},
		{"link out of the image is none", [][]string{{"etc/passwd", "the image's", "l", "-> ../../../../etc/passwd"}}, "/l", ""},
		{"link to nowhere", [][]string{{"l", "-> nowhere"}}, "/l", ""},
		{"links in a circle", [][]string{{"l", "-> m", "m", "-> l"}}, "/l", "!more than 40 symbolic links"},
		{"link to itself and on", [][]string{{"l", "-> l/l"}}, "/l", "!more than 40 symbolic links"},
		{"hard link", [][]string{root, {"h", "=> a"}}, "/h", "the file"},
		{"hard link out of the image", [][]string{{"h", "=> ../../etc/passwd"}}, "/h", ""},
		{"folder", [][]string{{"d/", "/"}}, "/d", "!expected a file, found a folder or a device"},
		{"device", [][]string{{"null", "device"}}, "/null", "!expected a file, found a folder or a device"},
		{"a name that climbs is refused", [][]string{{"../../a", "x"}}, "/a", "!unsafe tar path"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var layers []v1.Layer
			for _, l := range c.layers {
				layers = append(layers, layerOf(t, l...))
			}
			dir := t.TempDir()
			err := extract(imageOf(t, runtime.GOARCH, "", layers...), map[string]string{"out/file": c.path}, nil, dir)
			if words, bad := strings.CutPrefix(c.want, "!"); bad {
				if err == nil || !strings.Contains(err.Error(), words) {
					t.Errorf("expected an error with %q, found %v", words, err)
				}
				return
			}
			must.Do(t, err)
			got, err := os.ReadFile(filepath.Join(dir, "out", "file"))
			if errors.Is(err, fs.ErrNotExist) && c.want == "" {
				return
			}
			if err != nil || string(got) != c.want {
				t.Errorf("expected %q, found %q, %v", c.want, got, err)
			}
		})
	}
}

// TestHugeFile: a file that says that it is huge is not read.
func TestHugeFile(t *testing.T) {
	tr := tree{"a": {kind: tar.TypeReg, size: maxBinary + 1}}
	if _, err := tr.resolve("/a"); err == nil || !strings.Contains(err.Error(), fmt.Sprint(maxBinary)) {
		t.Errorf("found %v", err)
	}
}

// TestImageWithoutATool: a description whose tools contradict its image is refused, and leaves nothing in the cache.
func TestImageWithoutATool(t *testing.T) {
	for _, c := range []struct {
		entries []string
		want    string // in the error; empty: none
	}{
		{[]string{"bin", "-> usr/bin", "usr/bin/tool", "x"}, ""},
		{[]string{"usr/bin/tool", "-> ../../bin/busybox", "bin/busybox", "x"}, ""},
		{[]string{"opt/tool", "x"}, "executes tool, which its image has in none of /usr/local/sbin"},
		{[]string{"usr/bin/tool", "-> /nowhere"}, "executes tool"},
	} {
		err := extract(imageOf(t, runtime.GOARCH, "", layerOf(t, c.entries...)), nil, []string{"tool"}, t.TempDir())
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%q: expected %q, found %v", c.entries, c.want, err)
		}
	}
	o := place(t)
	write(t, filepath.Join(o.Folder, "systems", "mine.yaml"), []byte("name: mine\nexecutes: [nft]\nfiles: [{from: mine, to: /opt/cni/bin/mine, image: /mine}]\n"+
		"conflist: {name: 1.conflist, words: '{\"plugins\": [{\"type\": \"mine\"}]}'}\n"), 0o644)
	file := filepath.Join(o.Folder, "mine.tar")
	if err := tarball.WriteToFile(file, name.MustParseReference("mine:v1.0.0"), imageOf(t, runtime.GOARCH, "", layerOf(t, "mine", string(native())))); err != nil {
		t.Fatal(err)
	}
	refused(t, "mine@mine.tar", o, "executes nft, which its image has in none of")
	if left, err := filepath.Glob(filepath.Join(o.Cache, "images", "*")); err != nil || len(left) > 0 {
		t.Errorf("expected nothing in the cache, found %q, %v", left, err)
	}
}
