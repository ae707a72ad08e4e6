package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// Lacking is an error that this machine, and not the request, is to blame for.
type Lacking struct{ Text string }

func (e *Lacking) Error() string { return e.Text }

// Lacks says that the error is about this machine, for sim/runner.
func (e *Lacking) Lacks() {}

// Lackingf is a Lacking.
func Lackingf(format string, args ...any) error { return &Lacking{fmt.Sprintf(format, args...)} }

// docker runs Docker's client and returns what it printed, without the last newline.
func docker(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "docker", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // a terminal's Control-C is for who asks Docker
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return "", &dockerError{strings.Join(args[:min(2, len(args))], " "), firstLine(errOut.String()), err}
	}
	return strings.TrimRight(out.String(), "\n"), nil
}

// dockerMakes is docker for what makes something: it hears the answer although ctx ends, for Docker goes on when its client has ended, and what it has
// made then nobody knows of.
func dockerMakes(ctx context.Context, args ...string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeLimit)
	defer cancel()
	_, err := docker(ctx, args...)
	return err
}

// restartContainer restarts a container. Docker gives up ten seconds after it has killed one, which on a busy machine a node's many processes do
// not end in: then it is started once it has ended.
func restartContainer(ctx context.Context, name string) error {
	_, err := docker(ctx, "restart", name)
	if err == nil || !strings.Contains(err.Error(), "did not receive an exit event") {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, endLimit)
	defer cancel()
	if _, end := docker(ctx, "wait", name); end != nil {
		return errors.Join(err, end)
	}
	_, err = docker(ctx, "start", name)
	return err
}

// endLimit is how long a container that was killed may take to end.
const endLimit = 2 * time.Minute

type dockerError struct {
	op, text string
	err      error
}

func (e *dockerError) Error() string {
	if e.text == "" {
		return fmt.Sprintf("docker %s: %v", e.op, e.err)
	}
	return fmt.Sprintf("docker %s: %s", e.op, e.text)
}

func (e *dockerError) Unwrap() error { return e.err }

// firstLine is what matters of what Docker says.
func firstLine(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	return strings.TrimPrefix(strings.TrimPrefix(s, "docker: "), "Error response from daemon: ")
}

// missing says whether Docker does not know what it was asked about.
func missing(err error) bool {
	var d *dockerError
	return errors.As(err, &d) && (strings.Contains(strings.ToLower(d.text), "no such") || strings.Contains(strings.ToLower(d.text), "not found"))
}

// refusedFor says whether Docker has refused something with these words.
func refusedFor(err error, words string) bool {
	var d *dockerError
	return errors.As(err, &d) && strings.Contains(d.text, words)
}

// askDocker finds out whether Docker answers, and the architecture of its machine.
func askDocker(ctx context.Context) (arch string, err error) {
	if _, err := exec.LookPath("docker"); err != nil {
		return "", Lackingf("world kind needs Docker, and there is no docker in PATH: install Docker Engine")
	}
	arch, err = docker(ctx, "version", "--format", "{{.Server.Arch}}")
	var d *dockerError
	switch {
	case err == nil:
		return arch, nil
	case errors.As(err, &d) && strings.Contains(d.text, "permission denied"):
		return "", Lackingf("world kind needs Docker, and this user may not talk to it (%s): run as root, or join the group of its socket", d.text)
	}
	return "", Lackingf("world kind needs Docker, and it does not answer (%v): start Docker Engine", err)
}

// nodeImage makes sure that the nodes' image is there and for this machine.
func nodeImage(ctx context.Context, image, arch string, log func(string)) error {
	have, err := docker(ctx, "image", "inspect", "--format", "{{.Architecture}}", image)
	if missing(err) {
		log("pulling " + image)
		if _, err := docker(ctx, "pull", "--quiet", image); err != nil {
			return Lackingf("the node image %s is not here and cannot be pulled (%v): name another one with KIND_NODE_IMAGE, or with --image of enilab up", image, err)
		}
		have, err = docker(ctx, "image", "inspect", "--format", "{{.Architecture}}", image)
	}
	if err != nil {
		return err
	}
	if have != arch {
		return fmt.Errorf("the node image %s is for %s, and this machine is %s: name an image for %[3]s", image, have, arch)
	}
	return nil
}
