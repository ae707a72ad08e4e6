package image

import (
	"archive/tar"
	"io"
	"io/fs"
	"path/filepath"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// Annotations that name an image in a layout: the OCI's, which is a tag to some readers, and containerd's, which wins there.
const (
	refName       = "org.opencontainers.image.ref.name"
	containerName = "io.containerd.image.name"
)

// index is the layout's index.json: one image of that name, which is an index of the platforms' images. With the platforms in
// index.json itself, each under the same name, an import would end with the last one alone.
func index(o *Options, platforms []*v1.Platform, images []v1.Image) v1.ImageIndex {
	all := mutate.IndexMediaType(empty.Index, types.OCIImageIndex)
	for i, img := range images {
		all = mutate.AppendManifests(all, mutate.IndexAddendum{Add: img, Descriptor: v1.Descriptor{Platform: platforms[i]}})
	}
	return mutate.AppendManifests(mutate.IndexMediaType(empty.Index, types.OCIImageIndex), mutate.IndexAddendum{Add: all,
		Descriptor: v1.Descriptor{Annotations: map[string]string{refName: o.Reference(), containerName: o.Reference()}}})
}

// writeLayout writes an OCI image layout (image-spec, image-layout.md) as a tar. dir is a folder to make it in.
func writeLayout(w io.Writer, dir string, index v1.ImageIndex) error {
	if _, err := layout.Write(dir, index); err != nil {
		return err
	}
	t := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error { // in lexical order
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		return copyInto(t, name, filepath.ToSlash(rel))
	})
	if err != nil {
		return err
	}
	return t.Close()
}

func copyInto(t *tar.Writer, from, name string) error {
	f := file{at: "/" + name, from: from, mode: 0o644}
	return f.write(t)
}
