package cluster

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/enilab/enilab/impl/deploy/image"
)

// Parts are what a cluster's nodes run of enilab. They are built once, when they are first asked for; a Parts may be shared.
type Parts struct {
	// Image is the container image, an archive, and its name. One of a laboratory also plays mutants.
	Image func(ctx context.Context, laboratory bool) (archive []byte, name string, err error)
}

// PartsIn builds the parts from the module in a folder, with Go.
func PartsIn(dir string) Parts {
	ours, laboratory := once(dir, false), once(dir, true)
	return Parts{
		Image: func(ctx context.Context, lab bool) ([]byte, string, error) {
			o := imageOptions(dir, lab)
			if lab {
				archive, err := laboratory(ctx)
				return archive, o.Reference(), err
			}
			archive, err := ours(ctx)
			return archive, o.Reference(), err
		},
	}
}

func imageOptions(dir string, laboratory bool) image.Options {
	o := image.Options{Platforms: []string{image.Host()}, Dir: dir, Laboratory: laboratory}
	if laboratory {
		o.Tag = "laboratory"
	}
	return o
}

// once makes an image once. What failed is tried again.
func once(dir string, laboratory bool) func(context.Context) ([]byte, error) {
	var mu sync.Mutex
	var made []byte
	return func(ctx context.Context) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if made == nil {
			var b bytes.Buffer
			if err := image.Write(&b, imageOptions(dir, laboratory)); err != nil {
				return nil, errors.Join(err, ctx.Err())
			}
			made = b.Bytes()
		}
		return made, ctx.Err()
	}
}

// module is enilab's.
const module = "module github.com/enilab/enilab\n"

// Source finds enilab's own source, which the image is built from: in a folder or above it. The folders are tried in their order.
func Source(folders ...string) (string, error) {
	for _, dir := range folders {
		for ; dir != "" && dir != "."; dir = filepath.Dir(dir) {
			if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(data), module) {
				if _, err := exec.LookPath("go"); err != nil {
					return "", Lackingf("world kind builds the CNI's image, and there is no go in PATH: install Go")
				}
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", Lackingf("world kind builds the CNI's image from enilab's source, which is not in %s: run it inside of a clone", strings.Join(folders, " or "))
}
