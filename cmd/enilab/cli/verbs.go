package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/verb"
)

func (l *cli) verbsCommand() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use:   "verbs",
		Short: "lists what a scenario can do and expect",
		Long: `verbs lists the actions of scenarios, and below them the metrics that an expect line can compare.

SURVIVABLE says whether a correct CNI survives what a verb does: what is "no" never, and what is "partly" only as it says below the
verb's own words. enilab swarm draws nothing that no CNI survives.`,
		Example: `  enilab verbs
  enilab verbs --json | jq -r '.verbs[] | select(.subjects[] == "pod NAME") | .usage'`,
		Args: nothing,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				return l.writeJSON(verbsDocument(), 0)
			}
			return l.printVerbs()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, `write {"verbs": [{name, subjects, usage, doc, source, survivable ("yes", "partly", "no"), why}], "metrics": [{name, subjects, flag, doc}]}`)
	return c
}

type verbJSON struct {
	Name     string   `json:"name"`
	Subjects []string `json:"subjects"`
	Usage    string   `json:"usage"`
	Doc      string   `json:"doc"`
	Source   string   `json:"source,omitempty"`

	Survivable string `json:"survivable"`
	Why        string `json:"why,omitempty"` // it is not, or when it is not
}

type metricJSON struct {
	Name     string   `json:"name"`
	Subjects []string `json:"subjects"`
	Flag     bool     `json:"flag"`
	Doc      string   `json:"doc"`
}

func verbsDocument() any {
	var d struct {
		Verbs   []verbJSON   `json:"verbs"`
		Metrics []metricJSON `json:"metrics"`
	}
	for _, v := range verb.All() {
		survival := v.Survives
		d.Verbs = append(d.Verbs, verbJSON{v.Name, subjects(v.On), v.Usage(), v.Doc, v.Source, survival.Word(), survival.Why})
	}
	for _, m := range sim.Metrics() {
		d.Metrics = append(d.Metrics, metricJSON{m.Name, subjects(m.On), m.Flag, m.Doc})
	}
	return d
}

// subjects are the words that a line has before the verb or metric.
func subjects(kinds []scn.SubjectKind) []string {
	var out []string
	for _, k := range kinds {
		switch k {
		case scn.Node:
			out = append(out, "node-N")
		case scn.Pod:
			out = append(out, "pod NAME")
		default:
			out = append(out, scn.Subject{Kind: k}.String())
		}
	}
	return out
}

func (l *cli) printVerbs() error {
	var rows [][]string
	for _, v := range verb.All() {
		survival := v.Survives
		doc := v.Doc
		if survival.Why != "" {
			doc += "\n" + survival.Word() + ": " + survival.Why
		}
		rows = append(rows, []string{subjects(v.On)[0], v.Usage(), doc, survival.Word(), v.Source})
	}
	fmt.Fprintf(l.out, "Actions: at TIME [every TIME until TIME] SUBJECT VERB, where node-N may also be node-*\n\n")
	if err := table(l.out, []column{{"SUBJECT", 8}, {"VERB", 40}, {"WHAT IT DOES", 36}, {"SURVIVABLE", 10}, {"FROM", 18}}, rows); err != nil {
		return err
	}
	rows = nil
	for _, m := range sim.Metrics() {
		kind := "number"
		if m.Flag {
			kind = "true or false"
		}
		rows = append(rows, []string{subjects(m.On)[0], m.Name, kind, m.Doc})
	}
	fmt.Fprintf(l.out, "\nMetrics: at TIME [within TIME] expect SUBJECT METRIC [== != < <= > >= VALUE]\n\n")
	return table(l.out, []column{{"SUBJECT", 8}, {"METRIC", 38}, {"IS", 13}, {"WHAT IT IS", 55}}, rows)
}
