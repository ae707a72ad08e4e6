package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/runner"
)

func (l *cli) invariantsCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "invariants",
		Short: "lists what must stay true, and is judged in every run",
		Long: `invariants lists what is judged in every run. Scenarios quote the phrases, exactly, in always and against lines.

What an invariant is judged from is a set of sources: the node's kernel, EC2's truth, the runtime (how it called the CNI, what it was told, and
what lives), packets, and books (what the daemon believes and does). A world that lacks one of them reports the invariant as not judged.`,
		Example: "  enilab invariants",
		Args:    nothing,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return l.writeJSON(invariantsDocument(), 0)
			}
			return l.printInvariants()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `write {"invariants": [{id, phrase, when, bound (seconds), rule, needs[], deeper, doc}]}`)
	return c
}

type invariantJSON struct {
	ID     string  `json:"id"`
	Phrase string  `json:"phrase"`
	When   string  `json:"when"`
	Bound  float64 `json:"bound,omitempty"`
	Rule   string  `json:"rule"`
	// Needs are the sources without which it is not judged, and Deeper what of it is judged with books only.
	Needs  []string `json:"needs"`
	Deeper string   `json:"deeper,omitempty"`
	Doc    string   `json:"doc"`
}

func invariantsDocument() any {
	var d struct {
		Invariants []invariantJSON `json:"invariants"`
	}
	for _, i := range judge.Catalogue() {
		d.Invariants = append(d.Invariants, invariantJSON{i.ID.String(), i.Phrase, i.When.String(), i.Bound.Seconds(), i.Rule, i.Needs.Names(), i.Deeper, i.Doc})
	}
	return d
}

func (l *cli) printInvariants() error {
	var rows [][]string
	for _, i := range judge.Catalogue() {
		when := i.When.String()
		if i.Bound > 0 {
			when = fmt.Sprintf("repaired within %s", runner.Short(i.Bound))
		}
		doc := i.Doc
		if i.Deeper != "" {
			doc += " Only with books: " + i.Deeper + "."
		}
		rows = append(rows, []string{i.ID.String(), fmt.Sprintf("%q", i.Phrase), when, i.Rule, i.Needs.String(), doc})
	}
	return table(l.out, []column{{"ID", 3}, {"PHRASE", 36}, {"WHEN", 15}, {"RULE", 5}, {"JUDGED FROM", 14}, {"WHAT IT MEANS", 37}}, rows)
}
