package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"

	"github.com/enilab/enilab/impl/deploy"
)

// Platforms are what an image is made for by default: those of EC2's instances.
func Platforms() []string { return []string{"linux/amd64", "linux/arm64"} }

// Host is the platform of a container on this machine.
func Host() string { return "linux/" + runtime.GOARCH }

// Options of an image.
type Options struct {
	Tag        string       // of deploy.Repository; empty: deploy.DefaultTag
	Platforms  []string     // empty: Platforms()
	Laboratory bool         // also /enilab, which plays mutants in the daemon's place
	Dir        string       // a folder of this module, where go build runs; empty: the working directory
	Roots      string       // PEM file of the root certificates to trust; empty: this machine's
	Log        func(string) // progress and sizes, a line each; nil: nothing is said
}

// Reference is the image's name: repository and tag.
func (o Options) Reference() string {
	o.Tag = cmp.Or(o.Tag, deploy.DefaultTag)
	return deploy.Repository + ":" + o.Tag
}

// tagged is a tag as the distribution specification has it.
var tagged = regexp.MustCompile(`^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$`)

// check fills the defaults in, or says what cannot be.
func (o *Options) check() ([]*v1.Platform, error) {
	o.Tag = cmp.Or(o.Tag, deploy.DefaultTag)
	if !tagged.MatchString(o.Tag) {
		return nil, fmt.Errorf("image: the tag is %q: expected up to 128 letters, digits and . _ -", o.Tag)
	}
	if len(o.Platforms) == 0 {
		o.Platforms = Platforms()
	}
	if o.Log == nil {
		o.Log = func(string) {}
	}
	var out []*v1.Platform
	for i, text := range o.Platforms {
		if !slices.Contains(Platforms(), text) {
			return nil, fmt.Errorf("image: the platform is %q: expected one of %s", text, strings.Join(Platforms(), ", "))
		}
		if slices.Contains(o.Platforms[:i], text) {
			return nil, fmt.Errorf("image: the platform %s is there twice", text)
		}
		p, err := v1.ParsePlatform(text)
		if err != nil {
			return nil, fmt.Errorf("image: %w", err)
		}
		out = append(out, p)
	}
	return out, nil
}

// Write writes the image: an OCI image layout as a tar, with an index of all platforms. The same sources, Go release and root
// certificates give the same bytes. It is WriteContext without a deadline.
func Write(w io.Writer, o Options) error { return WriteContext(context.Background(), w, o) }

// WriteContext is Write until the context ends.
func WriteContext(ctx context.Context, w io.Writer, o Options) error {
	return write(ctx, w, o, compile)
}

// builder makes the binaries of one platform in a folder, at the paths that they have in the image.
type builder func(ctx context.Context, o *Options, p *v1.Platform, dir string) error

func write(ctx context.Context, w io.Writer, o Options, build builder) (err error) {
	platforms, err := o.check()
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = fmt.Errorf("image: %w", err)
		}
	}()
	roots, err := readRoots(o.Roots)
	if err != nil {
		return err
	}
	scratch, err := os.MkdirTemp("", "enilab-image-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(scratch)) }()
	var images []v1.Image
	for _, p := range platforms {
		img, err := o.platform(ctx, p, filepath.Join(scratch, p.Architecture), roots, build)
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
		images = append(images, img)
	}
	return writeLayout(w, filepath.Join(scratch, "layout"), index(&o, platforms, images))
}

func (o *Options) platform(ctx context.Context, p *v1.Platform, dir string, roots []byte, build builder) (v1.Image, error) {
	o.Log("building for " + p.String())
	if err := build(ctx, o, p, dir); err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	files, err := built(dir)
	if err != nil {
		return nil, err
	}
	files = append(files, file{at: rootsPath, text: roots, mode: 0o644})
	img, err := o.assemble(p, dir+".tar", files)
	if err != nil {
		return nil, err
	}
	return img, o.say(p, files, img)
}
