package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

	"github.com/enilab/enilab/sim/kind"
)

// buildPeer builds what pods run.
func buildPeer(ctx context.Context) (binary []byte, err error) {
	root, err := moduleRoot()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "enilab-e2e-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "peer")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./e2e/peer")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH="+runtime.GOARCH)
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build e2e/peer: %w: %s", err, out)
	}
	return os.ReadFile(file)
}

// installPeer puts peer on a node, where pods mount it. None of the folders is a symbolic link, which would lead into the host's own.
func installPeer(n *kind.Node, binary []byte) error {
	dir := filepath.Join(n.Root(), peerDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(n.Root(), peer), binary, 0o755)
}
