package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
)

// binaries are host paths of what is measured.
type binaries struct {
	Ipamd, Plugin  string
	PTP, HostLocal string

	dir string
}

// release is go build with the flags of a release.
var release = []string{"build", "-tags", "grpcnotrace", "-trimpath", "-ldflags", "-s -w"}

// build makes what was not given, all with the flags of a release.
func build(ctx context.Context, b binaries) (*binaries, error) {
	dir, err := os.MkdirTemp("", "enilab-bench-")
	if err != nil {
		return nil, err
	}
	b.dir = dir
	const plugins = "github.com/containernetworking/plugins/plugins/"
	for _, p := range []struct {
		path *string
		of   string
	}{
		{&b.Ipamd, "github.com/enilab/enilab/cmd/ipamd"},
		{&b.Plugin, "github.com/enilab/enilab/cmd/aws-cni"},
		{&b.PTP, plugins + "main/ptp"},
		{&b.HostLocal, plugins + "ipam/host-local"},
	} {
		if *p.path != "" {
			continue
		}
		*p.path = filepath.Join(dir, filepath.Base(p.of))
		cmd := exec.CommandContext(ctx, "go", slices.Concat(release, []string{"-o", *p.path, p.of})...)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			b.remove()
			return nil, fmt.Errorf("build %s: %w\n%s", p.of, err, out)
		}
	}
	return &b, nil
}

func (b *binaries) remove() { _ = os.RemoveAll(b.dir) }
