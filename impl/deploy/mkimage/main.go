// Command mkimage makes the container image: an OCI image layout as a tar, which `ctr images import`, `kind load image-archive`,
// `skopeo copy oci-archive:` and `crane push` take.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/enilab/enilab/impl/deploy/image"
)

func main() { os.Exit(run(os.Args[1:], os.Stderr)) }

// Exit codes.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2
)

func run(args []string, stderr io.Writer) int {
	o, out, err := parse(args, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return exitOK
	case err != nil:
		fmt.Fprintln(stderr, "mkimage:", err)
		return exitUsage
	}
	o.Log = func(line string) { fmt.Fprintln(stderr, line) }
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := writeFile(ctx, out, o); err != nil {
		fmt.Fprintln(stderr, "mkimage:", err)
		return exitFailed
	}
	fmt.Fprintln(stderr, o.Reference()+" is in "+out)
	return exitOK
}

func parse(args []string, stderr io.Writer) (o image.Options, out string, err error) {
	set := flag.NewFlagSet("mkimage", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.StringVar(&out, "out", "bin/enilab-cni.tar", "`file` to write")
	set.StringVar(&o.Tag, "tag", "", "the image's tag; without one, "+o.Reference())
	set.Func("platform", "`linux/ARCH`, once for each; without any, "+strings.Join(image.Platforms(), " and "), func(p string) error {
		o.Platforms = append(o.Platforms, p)
		return nil
	})
	set.BoolVar(&o.Laboratory, "laboratory", false, "with enilab beside the daemon, to play mutants in its place")
	set.StringVar(&o.Dir, "dir", "", "the module's `folder`; without one, this folder")
	set.StringVar(&o.Roots, "roots", "", "PEM `file` of the root certificates to trust; without one, this machine's")
	if err := set.Parse(args); err != nil {
		return o, out, err
	}
	if set.NArg() > 0 {
		return o, out, fmt.Errorf("unexpected argument %q; see mkimage --help", set.Arg(0))
	}
	return o, out, nil
}

// writeFile leaves a whole image, or what was there before.
func writeFile(ctx context.Context, name string, o image.Options) (err error) {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(name), filepath.Base(name)+".*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreGone(os.Remove(f.Name())))
		}
	}()
	if err := errors.Join(image.WriteContext(ctx, f, o), f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), name)
}

func ignoreGone(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
