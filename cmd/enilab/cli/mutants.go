package cli

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/scenarios"
	"github.com/enilab/enilab/sim/mutants"
	"github.com/enilab/enilab/sim/scn"
)

func (l *cli) mutantsCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "mutants",
		Short: "lists the mutants that scenarios prove themselves against",
		Long: `mutants lists the daemons that scenarios prove themselves against: each is somebody's real daemon, or a line left out of
ours. A mutant that no scenario names shows a rule that nothing tests.`,
		Example: `  enilab mutants
  enilab run scenarios/socket-mismatch.scn --against recover-from-runtime-only`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error {
			named, err := namedBy(scenarios.Files)
			if err != nil {
				return err
			}
			if asJSON {
				return l.writeJSON(mutantsDocument(named), 0)
			}
			return l.printMutants(named)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `write {"mutants": [{name, kind, rule, doc, scenarios}]}`)
	return c
}

// namedBy says which scenarios name a mutant in an against line.
func namedBy(files fs.FS) (map[string][]string, error) {
	names, err := fs.Glob(files, "*.scn")
	if err != nil {
		return nil, err
	}
	by := map[string][]string{}
	for _, name := range names {
		data, err := fs.ReadFile(files, name)
		if err != nil {
			return nil, err
		}
		f, err := scn.Parse(name, data)
		if err != nil {
			return nil, err
		}
		short := strings.TrimSuffix(name, ".scn")
		for _, line := range f.Lines {
			if a, ok := line.Stmt.(*scn.Against); ok && !slices.Contains(by[a.Mutant], short) {
				by[a.Mutant] = append(by[a.Mutant], short)
			}
		}
	}
	return by, nil
}

type mutantEntry struct {
	Name      string   `json:"name"`
	Kind      string   `json:"kind"`
	Rule      string   `json:"rule"`
	Doc       string   `json:"doc"`
	Scenarios []string `json:"scenarios"`
}

func mutantsDocument(named map[string][]string) any {
	var d struct {
		Mutants []mutantEntry `json:"mutants"`
	}
	for _, m := range mutants.All() {
		d.Mutants = append(d.Mutants, mutantEntry{m.Name, m.Kind.String(), m.Rule, m.Doc, append([]string{}, named[m.Name]...)})
	}
	return d
}

func (l *cli) printMutants(named map[string][]string) error {
	var rows [][]string
	for _, m := range mutants.All() {
		by := strings.Join(named[m.Name], ", ")
		by = cmp.Or(by, "(none)")
		rows = append(rows, []string{m.Name, m.Kind.String(), m.Rule, m.Doc, by})
	}
	return table(l.out, []column{{"MUTANT", 29}, {"KIND", 6}, {"RULE", 8}, {"WHAT IT DOES WRONG", 45}, {"SCENARIOS", 24}}, rows)
}
