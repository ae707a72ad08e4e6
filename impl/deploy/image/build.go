package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// Modules that the binaries come from.
const (
	module  = "github.com/enilab/enilab"
	plugins = "github.com/containernetworking/plugins"
)

// Folders of the image.
const (
	rootDir   = "/"
	pluginDir = "/cni" // `ipamd init` copies what is in it to the node
)

// chained are the plugins of others that stand beside aws-cni in a conflist. ptp is a laboratory's.
var chained = []string{"ipam/host-local", "main/loopback", "meta/bandwidth", "meta/portmap", "meta/tuning"}

// binaries are the packages to build, by folder of the image.
func (o *Options) binaries() map[string][]string {
	out := map[string][]string{rootDir: {module + "/cmd/ipamd"}, pluginDir: {module + "/cmd/aws-cni"}}
	for _, p := range chained {
		out[pluginDir] = append(out[pluginDir], plugins+"/plugins/"+p)
	}
	if o.Laboratory {
		out[rootDir] = append(out[rootDir], module+"/cmd/enilab")
	}
	return out
}

// compile runs go build, once for each folder of the image.
func compile(ctx context.Context, o *Options, p *v1.Platform, dir string) error {
	version, err := o.goCommand(ctx, p, "list", "-m", "-f", "{{.Version}}", plugins)
	if err != nil {
		return fmt.Errorf("expected a folder of module %s: %w", module, err)
	}
	for _, folder := range []string{rootDir, pluginDir} {
		to := filepath.Join(dir, folder)
		if err := os.MkdirAll(to, 0o755); err != nil {
			return err
		}
		args := []string{"build", "-trimpath", "-buildvcs=false", "-tags", "grpcnotrace",
			"-ldflags", "-s -w -X " + plugins + "/pkg/utils/buildversion.BuildVersion=" + version, "-o", to + string(filepath.Separator)}
		if _, err := o.goCommand(ctx, p, append(args, o.binaries()[folder]...)...); err != nil {
			return err
		}
	}
	return nil
}

// waitDelay is how long an interrupted go command may take to end.
const waitDelay = 10 * time.Second

// goCommand runs the go command for a platform and returns what it prints. The environment is the caller's, for its proxy and caches,
// without what would make another binary of the same source.
func (o *Options) goCommand(ctx context.Context, p *v1.Platform, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = o.Dir
	c.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+p.OS, "GOARCH="+p.Architecture, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-trimpath", "GOEXPERIMENT=", "GOWORK=off")
	c.Cancel = func() error { return c.Process.Signal(os.Interrupt) } // so that it ends its compilers, too
	c.WaitDelay = waitDelay
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err != nil {
		return "", fmt.Errorf("go %s in %s: %w%s", args[0], o.folder(), err, excerpt(stderr.String()))
	}
	return strings.TrimSpace(stdout.String()), nil
}

// folder is where go runs, in words.
func (o *Options) folder() string {
	if o.Dir == "" {
		return "the working directory"
	}
	return o.Dir
}

// maxExcerpt is how much of a compiler's complaints an error has.
const maxExcerpt = 500

// excerpt is a text as the end of one sentence.
func excerpt(text string) string {
	text = strings.Join(strings.FieldsFunc(strings.TrimSpace(text), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	if len(text) > maxExcerpt {
		text = text[:maxExcerpt] + "…"
	}
	if text != "" {
		text = ": " + text
	}
	return text
}
