package image

import (
	"archive/tar"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// made is the time of everything in the image: it says nothing, and is the same in every build.
var made = time.Unix(0, 0).UTC()

// file is one of the image: from the disk, or its text.
type file struct {
	at   string // path in the image
	from string // path on the disk; empty: text
	text []byte
	mode int64
}

// assemble makes the image of one platform. The archive is a file for its layer, which is read when the layout is written.
func (o *Options) assemble(p *v1.Platform, archive string, files []file) (v1.Image, error) {
	if err := writeLayer(archive, files); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromFile(archive, tarball.WithMediaType(types.OCILayer), tarball.WithCompressionLevel(gzip.DefaultCompression))
	if err != nil {
		return nil, err
	}
	img := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	img, err = mutate.Append(img, mutate.Addendum{Layer: layer, MediaType: types.OCILayer,
		History: v1.History{Created: v1.Time{Time: made}, CreatedBy: module + "/impl/deploy/image"}})
	if err != nil {
		return nil, err
	}
	config, err := img.ConfigFile()
	if err != nil {
		return nil, err
	}
	config.OS, config.Architecture, config.Created = p.OS, p.Architecture, v1.Time{Time: made}
	config.Config = v1.Config{
		Entrypoint: []string{"/ipamd"},
		Env:        []string{"PATH=" + rootDir}, // for kubectl exec … ipamd status
		WorkingDir: rootDir,
		Labels: map[string]string{"org.opencontainers.image.title": "enilab's CNI: ipamd, aws-cni and the plugins that are chained",
			"org.opencontainers.image.licenses": "Apache-2.0", "org.opencontainers.image.version": o.Tag},
	}
	return mutate.ConfigFile(img, config)
}

// built are the binaries in a folder.
func built(dir string) (out []file, err error) {
	err = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		out = append(out, file{at: "/" + filepath.ToSlash(rel), from: name, mode: 0o755})
		return err
	})
	return out, err
}

// writeLayer writes files as a tar: sorted, with the folders above them, all root's.
func writeLayer(archive string, files []file) error {
	slices.SortFunc(files, func(a, b file) int { return strings.Compare(a.at, b.at) })
	f, err := os.Create(archive)
	if err != nil {
		return err
	}
	defer f.Close()
	t := tar.NewWriter(f)
	there := map[string]bool{"/": true}
	for _, file := range files {
		if err := writeFolders(t, path.Dir(file.at), there); err != nil {
			return err
		}
		if err := file.write(t); err != nil {
			return fmt.Errorf("%s: %w", file.at, err)
		}
	}
	if err := t.Close(); err != nil {
		return err
	}
	return f.Close()
}

func writeFolders(t *tar.Writer, dir string, there map[string]bool) error {
	if there[dir] {
		return nil
	}
	there[dir] = true
	if err := writeFolders(t, path.Dir(dir), there); err != nil {
		return err
	}
	return t.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: strings.TrimPrefix(dir, "/") + "/", Mode: 0o755, ModTime: made})
}

func (f *file) write(t *tar.Writer) error {
	h := tar.Header{Typeflag: tar.TypeReg, Name: strings.TrimPrefix(f.at, "/"), Mode: f.mode, Size: int64(len(f.text)), ModTime: made}
	if f.from == "" {
		if err := t.WriteHeader(&h); err != nil {
			return err
		}
		_, err := t.Write(f.text)
		return err
	}
	r, err := os.Open(f.from)
	if err != nil {
		return err
	}
	defer r.Close()
	st, err := r.Stat()
	if err != nil {
		return err
	}
	h.Size = st.Size()
	if err := t.WriteHeader(&h); err != nil {
		return err
	}
	_, err = io.Copy(t, r)
	return err
}

// say logs what an image weighs.
func (o *Options) say(p *v1.Platform, files []file, img v1.Image) error {
	layers, err := img.Layers()
	if err != nil {
		return err
	}
	var compressed int64
	for _, l := range layers {
		n, err := l.Size()
		if err != nil {
			return err
		}
		compressed += n
	}
	digest, err := img.Digest()
	if err != nil {
		return err
	}
	var whole int64
	for _, f := range files {
		n := int64(len(f.text))
		if f.from != "" {
			st, err := os.Stat(f.from)
			if err != nil {
				return err
			}
			n = st.Size()
		}
		whole += n
		o.Log(fmt.Sprintf("  %8.1f MiB  %s", mib(n), f.at))
	}
	o.Log(fmt.Sprintf("%s: %d files, %.1f MiB, compressed %.1f MiB, %s", p, len(files), mib(whole), mib(compressed), digest))
	return nil
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }
