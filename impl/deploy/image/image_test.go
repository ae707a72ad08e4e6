package image

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/enilab/enilab/internal/must"
)

// toy stands for go build: texts that name platform and path.
func toy(_ context.Context, o *Options, p *v1.Platform, dir string) error {
	for folder, packages := range o.binaries() {
		to := filepath.Join(dir, folder)
		if err := os.MkdirAll(to, 0o700); err != nil {
			return err
		}
		for _, pkg := range packages {
			name := filepath.Join(to, filepath.Base(pkg))
			if err := os.WriteFile(name, []byte(p.String()+" "+filepath.Base(pkg)), 0o600); err != nil {
				return err
			}
		}
	}
	return nil
}

func written(t *testing.T, o Options, build builder) []byte {
	t.Helper()
	var b bytes.Buffer
	must.Do(t, write(t.Context(), &b, o, build))
	return b.Bytes()
}

// opened reads a layout back: the one image of index.json, which is an index.
func opened(t *testing.T, data []byte) (v1.Descriptor, v1.ImageIndex) {
	t.Helper()
	dir := t.TempDir()
	for _, f := range listed(t, bytes.NewReader(data)) {
		name := filepath.Join(dir, f.Name)
		must.Do(t, os.MkdirAll(filepath.Dir(name), 0o755))
		must.Do(t, os.WriteFile(name, []byte(f.text), 0o644))
	}
	top := must.Get(layout.ImageIndexFromPath(dir))(t)
	m := must.Get(top.IndexManifest())(t)
	if len(m.Manifests) != 1 || m.MediaType != types.OCIImageIndex || m.Manifests[0].MediaType != types.OCIImageIndex {
		t.Fatalf("index.json: expected one index, found %+v", m)
	}
	inner := must.Get(top.ImageIndex(m.Manifests[0].Digest))(t)
	return m.Manifests[0], inner
}

type entry struct {
	*tar.Header
	text string
}

func listed(t *testing.T, r io.Reader) (out []entry) {
	t.Helper()
	for tr := tar.NewReader(r); ; {
		h, err := tr.Next()
		if errors.Is(err, io.EOF) {
			return out
		}
		must.Do(t, err)
		data := must.Get(io.ReadAll(tr))(t)
		if !h.ModTime.Equal(made) || h.Uid != 0 || h.Gid != 0 || h.Uname != "" {
			t.Errorf("%s is of %v, owned by %d:%d %q", h.Name, h.ModTime, h.Uid, h.Gid, h.Uname)
		}
		out = append(out, entry{h, string(data)})
	}
}

// files are what an image's layers hold.
func files(t *testing.T, img v1.Image) (out []entry) {
	t.Helper()
	layers := must.Get(img.Layers())(t)
	for _, l := range layers {
		if m, err := l.MediaType(); err != nil || m != types.OCILayer {
			t.Errorf("a layer is %s, %v", m, err)
		}
		r := must.Get(l.Uncompressed())(t)
		out = append(out, listed(t, r)...)
		if err := r.Close(); err != nil {
			t.Errorf("a layer is not what its digest says: %v", err)
		}
	}
	return out
}

// images are an index's, by platform.
func images(t *testing.T, inner v1.ImageIndex) map[string]v1.Image {
	t.Helper()
	m := must.Get(inner.IndexManifest())(t)
	out := map[string]v1.Image{}
	for _, d := range m.Manifests {
		img := must.Get(inner.Image(d.Digest))(t)
		if d.MediaType != types.OCIManifestSchema1 || d.Platform == nil {
			t.Fatalf("%+v", d)
		}
		out[d.Platform.String()] = img
	}
	return out
}

func TestLayout(t *testing.T) {
	var said []string
	data := written(t, Options{Tag: "v1", Roots: pemFile(t, 2), Log: func(line string) { said = append(said, line) }}, toy)
	if !bytes.HasSuffix(data, make([]byte, 1024)) { // tar(5)
		t.Error("the archive does not end with two empty records")
	}
	d, inner := opened(t, data)
	const name = "docker.io/enilab/cni:v1"
	if d.Annotations["io.containerd.image.name"] != name || d.Annotations["org.opencontainers.image.ref.name"] != name {
		t.Errorf("the image is called %v", d.Annotations)
	}
	all := images(t, inner)
	if len(all) != 2 {
		t.Fatalf("platforms: %v", all)
	}
	for p, img := range all {
		checkImage(t, p, img)
	}
	if text := strings.Join(said, "\n"); !strings.Contains(text, "linux/arm64: 8 files") || !strings.Contains(text, "sha256:") {
		t.Errorf("it said:\n%s", text)
	}
}

func checkImage(t *testing.T, platform string, img v1.Image) {
	t.Helper()
	c := must.Get(img.ConfigFile())(t)
	if c.OS+"/"+c.Architecture != platform || !slices.Equal(c.Config.Entrypoint, []string{"/ipamd"}) || c.Config.User != "" || !c.Created.Time.Equal(made) {
		t.Errorf("%s: %+v", platform, c)
	}
	m, err := img.Manifest()
	if err != nil || m.MediaType != types.OCIManifestSchema1 || m.Config.MediaType != types.OCIConfigJSON {
		t.Errorf("%s: %+v, %v", platform, m, err)
	}
	want := []string{"cni/ 755", "cni/aws-cni 755", "cni/bandwidth 755", "cni/host-local 755", "cni/loopback 755", "cni/portmap 755", "cni/tuning 755",
		"etc/ 755", "etc/ssl/ 755", "etc/ssl/certs/ 755", "etc/ssl/certs/ca-certificates.crt 644", "ipamd 755"}
	var have []string
	for _, f := range files(t, img) {
		have = append(have, fmt.Sprintf("%s %o", f.Name, f.Mode))
		if strings.HasPrefix(f.Name, "cni/a") && f.text != platform+" aws-cni" {
			t.Errorf("%s holds %q", f.Name, f.text)
		}
	}
	if !slices.Equal(have, want) {
		t.Errorf("%s holds %v, expected %v", platform, have, want)
	}
}

// TestWeightOfAnImage: each file, from the disk or not, all of them, and what is sent over the net.
func TestWeightOfAnImage(t *testing.T) {
	disk := filepath.Join(t.TempDir(), "ipamd")
	must.Do(t, os.WriteFile(disk, nil, 0o644))
	must.Do(t, os.Truncate(disk, 3<<20))
	var said []string
	o := Options{Log: func(line string) { said = append(said, line) }}
	p := must.Get(v1.ParsePlatform("linux/arm64"))(t)
	img := must.Get(random.Image(1<<20, 2))(t) // no layer of it becomes smaller by compression
	list := []file{{at: "/ipamd", from: disk}, {at: "/roots", text: make([]byte, 1<<19)}, {at: "/gone", from: disk + "-2"}}
	must.Do(t, o.say(p, list[:2], img))
	want := []string{"3.0 MiB /ipamd", "0.5 MiB /roots", "linux/arm64: 2 files, 3.5 MiB, compressed 2.0 MiB, sha256:"}
	for i, line := range said {
		if line = strings.Join(strings.Fields(line), " "); i >= len(want) || !strings.HasPrefix(line, want[i]) {
			t.Errorf("line %d is %q, expected %q", i, line, want)
		}
	}
	if len(said) != len(want) {
		t.Errorf("it said %q", said)
	}
	if err := o.say(p, list, img); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file that is gone weighs something: %v", err)
	}
}

func TestOnePlatformOfTheLaboratory(t *testing.T) {
	data := written(t, Options{Platforms: []string{"linux/arm64"}, Laboratory: true, Roots: pemFile(t, 1)}, toy)
	d, inner := opened(t, data)
	if d.Annotations["io.containerd.image.name"] != "docker.io/enilab/cni:dev" {
		t.Errorf("without a tag it is called %v", d.Annotations)
	}
	all := images(t, inner)
	if len(all) != 1 || all["linux/arm64"] == nil {
		t.Fatalf("platforms: %v", all)
	}
	if !slices.ContainsFunc(files(t, all["linux/arm64"]), func(f entry) bool { return f.Name == "enilab" && f.Mode == 0o755 }) {
		t.Error("the laboratory is not there")
	}
}

// TestReproducible: another run, another folder, the same bytes.
func TestReproducible(t *testing.T) {
	o := Options{Roots: pemFile(t, 2)}
	a := written(t, o, toy)
	t.Setenv("TMPDIR", t.TempDir())
	if b := written(t, o, toy); !bytes.Equal(a, b) {
		t.Error("two runs gave two images")
	}
	if c := written(t, Options{Roots: pemFile(t, 1)}, toy); bytes.Equal(a, c) {
		t.Error("other root certificates gave the same image")
	}
}

func TestAssembleRefusesBadInput(t *testing.T) {
	roots := pemFile(t, 1)
	garbage := filepath.Join(t.TempDir(), "garbage")
	must.Do(t, os.WriteFile(garbage, []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"), 0o644))
	for want, o := range map[string]Options{
		`tag is "a b"`:              {Tag: "a b"},
		`tag is "` + long:           {Tag: long},
		`platform is "linux/s390x"`: {Platforms: []string{"linux/s390x"}},
		`platform is "windows"`:     {Platforms: []string{"windows"}},
		`is there twice`:            {Platforms: []string{"linux/amd64", "linux/amd64"}},
		`has no PEM certificate`:    {Roots: garbage},
		`root certificates: open`:   {Roots: garbage + "-2"},
		`root certificates: read`:   {Roots: t.TempDir()},
	} {
		o.Roots = cmp.Or(o.Roots, roots)
		err := write(t.Context(), io.Discard, o, toy)
		if err == nil || !strings.HasPrefix(err.Error(), "image: ") || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("expected one sentence with %q, found %v", want, err)
		}
	}
}

var long = strings.Repeat("x", 129)

// TestNothingIsLeft: whatever fails, its folder goes.
func TestNothingIsLeft(t *testing.T) {
	o := Options{Roots: pemFile(t, 1)}
	scratch := t.TempDir()
	t.Setenv("TMPDIR", scratch)
	broken := errors.New("does not compile")
	build := func(ctx context.Context, o *Options, p *v1.Platform, dir string) error {
		if p.Architecture == "arm64" {
			return broken
		}
		return toy(ctx, o, p, dir)
	}
	if err := write(t.Context(), io.Discard, o, build); !errors.Is(err, broken) || err.Error() != "image: linux/arm64: does not compile" {
		t.Errorf("a failed build: %v", err)
	}
	for n := range 4 {
		if err := write(t.Context(), &fullDisk{left: n * 700}, o, toy); !errors.Is(err, errFull) {
			t.Errorf("a disk that is full after %d bytes: %v", n*700, err)
		}
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if err := write(ended, io.Discard, o, compile); !errors.Is(err, context.Canceled) {
		t.Errorf("a context that has ended: %v", err)
	}
	if left, err := os.ReadDir(scratch); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}

var errFull = errors.New("no space left on device")

type fullDisk struct{ left int }

func (d *fullDisk) Write(b []byte) (int, error) {
	n := min(len(b), d.left)
	if d.left -= n; n < len(b) {
		return n, errFull
	}
	return n, nil
}

// TestFailedWriteLeavesNoImage: a layer or a layout that could not be written is no image.
func TestFailedWriteLeavesNoImage(t *testing.T) {
	if _, err := os.Stat("/dev/full"); err != nil {
		t.Skip("this machine has no device that is always full")
	}
	if err := writeLayer("/dev/full", nil); err == nil {
		t.Error("a layer's end was written to a full disk")
	}
	if err := writeLayer("/dev/full", []file{{at: "/a/b", text: []byte("x"), mode: 0o644}}); err == nil || strings.HasPrefix(err.Error(), "/a/b") {
		t.Errorf("a folder was written to a full disk: %v", err)
	}
	if err := writeLayer(filepath.Join(t.TempDir(), "no", "folder"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a layer was written into a folder that is not there: %v", err)
	}
	name := filepath.Join(t.TempDir(), "file")
	must.Do(t, os.WriteFile(name, nil, 0o644))
	if err := writeLayout(io.Discard, name, empty.Index); err == nil {
		t.Error("a layout was written into what is no folder")
	}
}
