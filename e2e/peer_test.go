package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/enilab/enilab/sim/kind/cluster"
)

// buildProgram builds e2e/peer, which pods run, or e2e/broken.
func buildProgram(ctx context.Context, name string) (binary []byte, err error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "enilab-e2e-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, name)
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-tags=grpcnotrace", "-ldflags=-s -w", "-o", file, "./e2e/"+name)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build e2e/%s: %w: %s", name, err, out)
	}
	return os.ReadFile(file)
}

// putProgram puts one on a node, where pods mount it. None of the folders is a symbolic link, which would lead into the host's own.
func putProgram(n *cluster.Node, at string, binary []byte) error {
	at = filepath.Join(n.Root(), at)
	if err := os.MkdirAll(filepath.Dir(at), 0o755); err != nil {
		return err
	}
	return os.WriteFile(at, binary, 0o755)
}
