package kind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	// Faulty is the binary of sim/kind/faulty.
	Faulty func(ctx context.Context) ([]byte, error)
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
		Faulty: remembered(func(ctx context.Context) ([]byte, error) { return compileFaulty(ctx, dir) }),
	}
}

func imageOptions(dir string, laboratory bool) image.Options {
	o := image.Options{Platforms: []string{image.Host()}, Dir: dir, Laboratory: laboratory}
	if laboratory {
		o.Tag = "laboratory"
	}
	return o
}

func once(dir string, laboratory bool) func(context.Context) ([]byte, error) {
	return remembered(func(context.Context) ([]byte, error) {
		var b bytes.Buffer
		if err := image.Write(&b, imageOptions(dir, laboratory)); err != nil {
			return nil, err
		}
		return b.Bytes(), nil
	})
}

// remembered makes something once. What failed is tried again.
func remembered(make func(context.Context) ([]byte, error)) func(context.Context) ([]byte, error) {
	var mu sync.Mutex
	var made []byte
	return func(ctx context.Context) ([]byte, error) {
		mu.Lock()
		defer mu.Unlock()
		if made == nil {
			b, err := make(ctx)
			if err != nil {
				return nil, errors.Join(err, ctx.Err())
			}
			made = b
		}
		return made, ctx.Err()
	}
}

func compileFaulty(ctx context.Context, dir string) ([]byte, error) {
	scratch, err := os.MkdirTemp("", "enilab-faulty-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	to := filepath.Join(scratch, "faulty")
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", to, "./sim/kind/faulty")
	c.Dir, c.Env = dir, append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the faulty plugin: %w: %s", err, firstLine(string(out)))
	}
	return os.ReadFile(to)
}

// module is enilab's.
const module = "module github.com/enilab/enilab\n"

// Source finds enilab's own source, which the image is built from: in a folder or above it. The folders are tried in their order.
func Source(folders ...string) (string, error) {
	for _, dir := range folders {
		for ; dir != "" && dir != "."; dir = filepath.Dir(dir) {
			if data, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(data), module) {
				if _, err := exec.LookPath("go"); err != nil {
					return "", lacking("world kind builds the CNI's image, and there is no go in PATH: install Go")
				}
				return dir, nil
			}
			if dir == filepath.Dir(dir) {
				break
			}
		}
	}
	return "", lacking("world kind builds the CNI's image from enilab's source, which is not in %s: run it inside of a clone", strings.Join(folders, " or "))
}
