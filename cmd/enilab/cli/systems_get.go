package cli

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/systems"
)

// getFlags are what `enilab systems get` was asked for.
type getFlags struct{ from, image, arch string }

func (l *cli) systemsGetCommand() *cobra.Command {
	var f getFlags
	c := &cobra.Command{
		Use:   "get NAME@VERSION...",
		Short: "fetches versions that are not at hand",
		Long: `get fetches what the description of a system names for a version, into NAME/VERSION of $ENILAB_SYSTEMS (without it, of enilab/systems in your cache
folder, where run and gate look as well): built with go from the sources that the Go module proxy has, with the linker flags of a release, or copied
out of the released image, with the credentials that docker login left. The folder is there whole or not at all. What is at hand already, or is a
folder, an image or a commit, is left as it is.

NAME alone says which versions can be had.

Exit codes: 0 all are at hand, 2 there is no such version or what was fetched is not whole, 3 a registry, the proxy, go or the disk failed,
130 interrupted.`,
		Example: `  enilab systems get amazon-vpc-cni-k8s
  enilab systems get amazon-vpc-cni-k8s@1.23.1 amazon-vpc-cni-k8s@1.23.2
  enilab systems get amazon-vpc-cni-k8s@1.18.0 --from image --image registry.example.com/mirror/amazon-k8s-cni:v'${VERSION}'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usage("%s needs NAME@VERSION (enilab systems lists names)", c.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error { return l.getSystems(&f, args) },
	}
	c.Flags().StringVar(&f.from, "from", "", "image or source; left out: the sources, or the image where they are not to be had")
	c.Flags().StringVar(&f.image, "image", "", "an image's reference in place of the description's, ${VERSION} in it stands for the version")
	c.Flags().StringVar(&f.arch, "arch", "", "what the machine that runs it is, amd64 or arm64; left out: this one's")
	return c
}

func (l *cli) getSystems(f *getFlags, names []string) error {
	from := systems.Origin(f.from)
	if from != systems.FromAny && from != systems.FromImage && from != systems.FromSource {
		return usage("--from: expected image or source, found %q", f.from)
	}
	if f.image != "" && from == systems.FromSource {
		return usage("--image names an image, and --from %s takes none: leave one of them out", f.from)
	}
	o := systems.Options{Arch: f.arch, Tell: func(text string) { fmt.Fprintln(l.err, text) }}
	for _, name := range names {
		if err := l.getSystem(name, from, f.image, o); err != nil {
			return err
		}
	}
	return nil
}

func (l *cli) getSystem(name string, from systems.Origin, image string, o systems.Options) error {
	began := time.Now()
	if !strings.Contains(name, "@") && !strings.HasSuffix(name, ".yaml") {
		return l.canBeHad(name, o)
	}
	s, fetched, err := systems.Fetch(l.context(), name, from, image, o)
	if err != nil {
		return l.getError(err)
	}
	word := "is at hand"
	if fetched {
		word = fmt.Sprintf("was fetched in %v", time.Since(began).Round(time.Second))
	}
	_, err = fmt.Fprintf(l.out, "%s@%s %s: %s\n", s.Name, s.Version, word, s.Folder)
	return err
}

// canBeHad says which versions there are; what is built where it is needed, as ours is, needs no get.
func (l *cli) canBeHad(name string, o systems.Options) error {
	d, err := systems.Describe(name, o)
	if err != nil {
		return usage("%v", err)
	}
	list, err := systems.Available(l.context(), d, o)
	if err != nil {
		return l.getError(err)
	}
	if len(list) == 0 {
		list = []string{"its description does not say from where a version can be fetched: the key get (docs/systems.md)"}
		if d.Build != nil {
			list = []string{"it is built where it is needed: run, gate and systems show do it"}
		}
	}
	for _, line := range list {
		if _, err := fmt.Fprintln(l.out, name+": "+line); err != nil {
			return err
		}
	}
	return nil
}

func (l *cli) getError(err error) error {
	if l.interrupted() {
		return &exit{runner.ExitInterrupted, "interrupted: nothing of it is kept"}
	}
	if _, ok := errors.AsType[*systems.Unavailable](err); ok {
		return &exit{runner.ExitLacking, err.Error()}
	}
	return usage("%v", err)
}
