package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/scenarios"
)

func (l *cli) symptomsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "symptoms [WORDS]",
		Short: "finds the incidents behind what is seen of an outage",
		Long: `symptoms lists what is seen of outages, messages and states, and the scenarios that bring each about; with WORDS those in which all of them are. Case does
not matter, and a word that is nearly right is found. Each scenario comes with enilab: enilab run NAME plays it.

Exit codes: 0 something was found, 2 nothing.`,
		Example: `  enilab symptoms
  enilab symptoms failed to assign an IP address
  enilab symptoms "no route to host" restarted`,
		RunE: func(_ *cobra.Command, args []string) error {
			found := scenarios.FindSymptoms(args)
			if len(found) == 0 {
				return usage("no symptom has all of these words: %s (leave some out; enilab symptoms lists all)", strings.Join(args, " "))
			}
			rows := make([][]string, len(found))
			for i, s := range found {
				rows[i] = []string{s.Seen, strings.Join(s.Scenarios, ", ")}
			}
			if err := table(l.out, []column{{"WHAT IS SEEN", 64}, {"SCENARIOS", 40}}, rows); err != nil {
				return err
			}
			_, err := fmt.Fprintf(l.out, "\nto see the first one: enilab run %s\n", found[0].Scenarios[0])
			return err
		},
	}
}
