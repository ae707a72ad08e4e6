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
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(l.out, "enilab %s, records and protocol version %d, %s %s/%s\n", built(), ipam.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

// built is the module's version, or the commit that it was built from.
func built() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "of unknown origin"
	}
	version := info.Main.Version
	for _, s := range info.Settings {
		if s.Key == "vcs.revision" && version == "(devel)" {
			version = s.Value
		}
	}
	return version
}
