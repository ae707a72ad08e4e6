package image

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// importBound is how long a container with a containerd in it may take for all that the test asks of it. The container ends by itself
// after it, whatever became of the test.
const importBound = 60 * time.Second

// TestContainerdImportsTheImage: a real containerd takes the image under its name, with all platforms complete, as
// `kind load image-archive` has it do.
func TestContainerdImportsTheImage(t *testing.T) {
	if testing.Short() {
		t.Skip("it starts a container")
	}
	node := os.Getenv("KIND_NODE_IMAGE")
	if node == "" {
		t.Skip("needs KIND_NODE_IMAGE, an image with containerd")
	}
	ctx, cancel := context.WithTimeout(t.Context(), importBound)
	defer cancel()
	if out, err := docker(ctx, nil, "image", "inspect", "--format", "{{.Id}}", node); err != nil {
		t.Skipf("needs Docker with the image %s: %v: %s", node, err, out)
	}
	data := written(t, Options{Tag: "import-test", Roots: pemFile(t, 1)}, toy)
	id, err := docker(ctx, nil, "run", "--detach", "--rm", "--privileged", "--network", "none", "--tmpfs", "/run", "--tmpfs", "/tmp",
		"--tmpfs", "/var/lib/containerd", "--entrypoint", "/bin/sh", node, "-c", "containerd & exec sleep 60")
	if err != nil {
		t.Fatalf("start a container: %v: %s", err, id)
	}
	defer func() {
		if out, err := docker(context.WithoutCancel(ctx), nil, "kill", id); err != nil {
			t.Errorf("end the container %s: %v: %s", id, err, out)
		}
	}()
	const ready = "for i in $(seq 200); do ctr version >/dev/null 2>&1 && exit 0; sleep 0.1; done; echo containerd does not answer; exit 1"
	if out, err := docker(ctx, nil, "exec", id, "sh", "-c", ready); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := docker(ctx, bytes.NewReader(data), "exec", "-i", id, "ctr", "-n", "k8s.io", "images", "import", "--all-platforms", "--digests", "-"); err != nil {
		t.Fatalf("import: %v: %s", err, out)
	}
	out, err := docker(ctx, nil, "exec", id, "ctr", "-n", "k8s.io", "images", "check")
	if err != nil || !strings.Contains(out, "docker.io/enilab/cni:import-test") || !strings.Contains(out, "complete") {
		t.Errorf("images: %v:\n%s", err, out)
	}
	out, err = docker(ctx, nil, "exec", id, "ctr", "-n", "k8s.io", "images", "ls")
	if err != nil || !strings.Contains(out, "linux/amd64,linux/arm64") {
		t.Errorf("platforms: %v:\n%s", err, out)
	}
}

func docker(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "docker", args...)
	c.Stdin = stdin
	out, err := c.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}
