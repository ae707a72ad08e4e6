package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	netnsworld "github.com/enilab/enilab/sim/netns"
	"github.com/enilab/enilab/sim/netns/node"
	"github.com/enilab/enilab/sim/runner"
)

// nodeCommand is what the laboratory executes in a node's namespaces.
func (l *cli) nodeCommand() *cobra.Command {
	return &cobra.Command{Use: "node", Short: "is a node of the laboratory", Hidden: true, Args: nothing, RunE: func(*cobra.Command, []string) error {
		if err := node.Main(); err != nil {
			return &exit{runner.ExitLacking, fmt.Sprintf("node: %v", err)}
		}
		return nil
	}}
}

// playCommand is what the laboratory executes in the place of ipamd.
func (l *cli) playCommand() *cobra.Command {
	return &cobra.Command{Use: "play MUTANT [IPAMD-ARGUMENTS]", Short: "plays ipamd as a mutant", Hidden: true, DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error { return ended(netnsworld.PlayDaemon(args)) }}
}
