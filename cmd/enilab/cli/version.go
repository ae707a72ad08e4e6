package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/impl/ipam"
)

func (l *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "says what this binary is",
		Example: "  enilab version",
		Args:    nothing,
		RunE:    func(*cobra.Command, []string) error { return l.printVersion() },
	}
}

func (l *cli) printVersion() error {
	_, err := fmt.Fprintf(l.out, "enilab %s, records and protocol version %d, %s %s/%s\n", built(), ipam.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// built is the module's version, or the commit that it was built from.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown origin"
	}
	if info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	commit, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			commit = s.Value
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", and changes since"
		}
	}
	if commit == "" {
		return "of an unknown commit (built without git, or with -buildvcs=false)"
	}
	return "of commit " + commit + changed
}
