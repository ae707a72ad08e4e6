package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim/judge"
	"github.com/enilab/enilab/sim/runner"
)

func (l *cli) invariantsCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:     "invariants",
		Short:   "lists what must stay true, and is judged in every run",
		Long:    "invariants lists what is judged in every run. Scenarios quote the phrases, exactly, in always and against lines.",
		Example: "  enilab invariants",
		Args:    nothing,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return l.writeJSON(invariantsDocument(), 0)
			}
			return l.printInvariants()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `write {"invariants": [{id, phrase, when, bound (seconds), rule, doc}]}`)
	return c
}

type invariantJSON struct {
	ID     string  `json:"id"`
	Phrase string  `json:"phrase"`
	When   string  `json:"when"`
	Bound  float64 `json:"bound,omitempty"`
	Rule   string  `json:"rule"`
	Doc    string  `json:"doc"`
}

func invariantsDocument() any {
	var d struct {
		Invariants []invariantJSON `json:"invariants"`
	}
	for _, i := range judge.Catalogue() {
		d.Invariants = append(d.Invariants, invariantJSON{i.ID.String(), i.Phrase, i.When.String(), i.Bound.Seconds(), i.Rule, i.Doc})
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
		rows = append(rows, []string{i.ID.String(), fmt.Sprintf("%q", i.Phrase), when, i.Rule, i.Doc})
	}
	return table(l.out, []column{{"ID", 3}, {"PHRASE", 36}, {"WHEN", 15}, {"RULE", 5}, {"WHAT IT MEANS", 53}}, rows)
}
