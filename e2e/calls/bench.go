package calls

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"
)

// Bench is a node of a kind cluster on which lives are lived.
type Bench struct {
	// API asks the cluster's API server, as client-go's REST client does. This package does not link client-go, for the shim has this package.
	API     func(ctx context.Context, verb, uri, contentType string, body []byte) (answer []byte, err error)
	Node    string                      // the node's name, which is also its container's
	Plugin  string                      // whose calls are recorded: the type of the conflist's first plugin
	Restart func(context.Context) error // restarts the node's machine; nil: docker restart
	Image   string                      // of the pods, with a shell; default docker.io/library/busybox:1.35
	Log     func(string)                // told what happens; nil: nobody is
}

// Where the shims are, in the order in which containerd looks: what the runtime calls is recorded, then faults happen, then it is
// recorded what of it reached the real plugin. All of it outlives a restart of the node container, as /run does not.
const (
	root       = "/opt/enilab-bench"
	outerDir   = root + "/1-" + RecorderFolder
	faultDir   = root + "/2-faulty"
	innerDir   = root + "/3-" + RecorderFolder
	realDir    = "/opt/cni/bin"
	configFile = "/etc/containerd/config.toml"
)

// Member is the type of a plugin that Install puts beside the shims: a conflist that names it, before or behind the real plugin, has a
// member that does nothing but what Faults say of it.
const Member = "enilab-faulty"

// containerdConfig is appended to containerd's configuration, which is of version 2 in kind's node images.
const containerdConfig = `
[plugins."io.containerd.grpc.v1.cri".cni]
  bin_dirs = ["` + outerDir + `", "` + faultDir + `", "` + innerDir + `", "` + realDir + `"]
`

func (b *Bench) log(format string, args ...any) {
	if b.Log != nil {
		b.Log(fmt.Sprintf(format, args...))
	}
}

func (b *Bench) image() string {
	if b.Image != "" {
		return b.Image
	}
	return "docker.io/library/busybox:1.35"
}

// Exec runs a command in the node container.
func (b *Bench) Exec(ctx context.Context, stdin io.Reader, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "docker", append([]string{"exec", "-i", b.Node}, args...)...)
	c.Stdin, c.WaitDelay = stdin, 5*time.Second
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return "", fmt.Errorf("%s: %s: %w: %s", b.Node, strings.Join(args, " "), err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}

// Put replaces a file in the node. By rename: a plugin may be running, and nobody reads half a file.
func (b *Bench) Put(ctx context.Context, data []byte, path, mode string) error {
	script := `mkdir -p "${1%/*}" && cat >"$1.new" && chmod "$2" "$1.new" && mv "$1.new" "$1"`
	_, err := b.Exec(ctx, bytes.NewReader(data), "sh", "-c", script, "sh", path, mode)
	return err
}

// Shim is the program that stands before a plugin, for Compile.
const Shim = "github.com/enilab/enilab/e2e/calls/shim"

// Compile builds a program for nodes. It needs Go and the module.
func Compile(ctx context.Context, program string) ([]byte, error) {
	dir, err := os.MkdirTemp("", "enilab-compile-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", dir+"/program", program)
	c.Env = append(c.Environ(), "CGO_ENABLED=0", "GOOS=linux")
	if out, err := c.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compile %s: %w: %s", program, err, out)
	}
	return os.ReadFile(dir + "/program")
}

// Install puts the compiled shim into the node and, the first time, tells containerd of it, which is restarted for it.
func (b *Bench) Install(ctx context.Context, shim []byte) error {
	for _, f := range []struct{ dir, name string }{{outerDir, b.Plugin}, {faultDir, b.Plugin}, {innerDir, b.Plugin}, {faultDir, Member}} {
		if err := b.Put(ctx, shim, f.dir+"/"+f.name, "755"); err != nil {
			return err
		}
	}
	config, err := b.Exec(ctx, nil, "cat", configFile)
	if err != nil {
		return err
	}
	if strings.Contains(config, outerDir) {
		return nil
	}
	if !strings.Contains(config, "version = 2") || strings.Contains(config, ".cni]") {
		return fmt.Errorf("%s: %s: expected version 2 and no section for CNI, to add bin_dirs", b.Node, configFile)
	}
	if _, err := b.Exec(ctx, strings.NewReader(containerdConfig), "sh", "-c", "cat >>"+configFile); err != nil {
		return err
	}
	_, err = b.Exec(ctx, nil, "systemctl", "restart", "containerd")
	return err
}

// Uninstall takes the shims away: the runtime finds the real plugin behind where they were.
func (b *Bench) Uninstall(ctx context.Context) error {
	// Out of the way first: a recorder that runs just now would write into a folder that is being removed.
	script := `for d; do if [ -e "$d" ]; then rm -rf "$d.gone" && mv "$d" "$d.gone" && rm -rf "$d.gone" || exit; fi; done`
	_, err := b.Exec(ctx, nil, "sh", "-c", script, "sh", outerDir, faultDir, innerDir)
	return err
}

// Faults replaces what goes wrong from now on; none ends all of it, also what is stalled.
func (b *Bench) Faults(ctx context.Context, faults ...Fault) error {
	file := faultDir + "/" + faultsFile
	if len(faults) == 0 {
		_, err := b.Exec(ctx, nil, "rm", "-f", file)
		return err
	}
	raw, err := encodeFaults(faults)
	if err != nil {
		return err
	}
	return b.Put(ctx, raw, file, "600")
}

// restart restarts the machine.
func (b *Bench) restart(ctx context.Context) error {
	if b.Restart != nil {
		return b.Restart(ctx)
	}
	if out, err := exec.CommandContext(ctx, "docker", "restart", b.Node).CombinedOutput(); err != nil {
		return fmt.Errorf("docker restart %s: %w: %s", b.Node, err, bytes.TrimSpace(out))
	}
	return nil
}

// wait asks until the answer is yes. What it waits for is in the error of one that waited in vain.
func (b *Bench) wait(ctx context.Context, limit time.Duration, what string, done func(context.Context) (bool, error)) error {
	began, last := time.Now(), error(nil)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("waited %v for %s", limit, what))
	defer cancel()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		ok, err := done(ctx)
		if ok {
			b.log("%s: after %v", what, time.Since(began).Round(100*time.Millisecond))
			return nil
		}
		if err != nil && ctx.Err() == nil {
			last = err
		}
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), last)
		case <-tick.C:
		}
	}
}
