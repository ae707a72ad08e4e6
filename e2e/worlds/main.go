// Command worlds plays the incidents that world kind has, in every world, each with the mutants that it names, and writes the
// verdicts side by side as the last section of docs/incidents.md.
//
//	make worlds                                  all, which takes hours on kind
//	make worlds INCIDENTS=upgrade WORLDS="sim vm"
//
// What is not asked for stays as it was played before: where bin/worlds has it, or else as the file says. A result stays there, and what rests on the same enilab and the same
// files is not played again; with -keep, nothing that ever was is. Interrupted, it goes on from there the next time.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/enilab/enilab/internal/campaign"
)

// incidents are those that the suite on kind plays from their files, see e2e/files_test.go.
const incidents = "socket-mismatch force-delete statefulset-name-reuse del-retries eni-leak upgrade subnet-exhausted forward-drop kill-loop reboot custom-networking subnets subnets-excluded"

// world is a column.
type world struct {
	name string
	args []string
	// limit is how long an incident may take there with all its variants and mutants, on a computer that does other things, too.
	limit time.Duration
}

var worlds = []world{
	{"sim", nil, 10 * time.Minute},
	{"netns", []string{"--on", "netns"}, 30 * time.Minute},
	{"vm", []string{"--on", "netns", "--in", "vm"}, time.Hour},
	{"kind", []string{"--on", "kind", "--mutants"}, 4 * time.Hour},
}

// target is the file whose last section the table is.
const target = "docs/incidents.md"

func main() {
	of := flag.String("incidents", "", "incidents to play, with spaces or commas between them")
	in := flag.String("worlds", "", "worlds to play them in: sim, netns, vm, kind")
	c := campaign.Declare("worlds", "play", "played", "ipamd, aws-cni and enilab-kind")
	c.Main(func(ctx context.Context) error { return run(ctx, c, campaign.Words(*of), campaign.Words(*in)) })
}

// run plays what has to be played and writes the section.
func run(ctx context.Context, command *campaign.Command, of, in []string) error {
	all := strings.Fields(incidents)
	for _, i := range of {
		if !slices.Contains(all, i) {
			return fmt.Errorf("-incidents %s: expected some of %s", i, incidents)
		}
	}
	for _, name := range in {
		if !slices.ContainsFunc(worlds, func(w world) bool { return w.name == name }) {
			return fmt.Errorf("-worlds %s: expected some of sim, netns, vm, kind", name)
		}
	}
	c, err := command.Open()
	if err != nil {
		return err
	}
	asked := func(list []string, name string) bool { return len(list) == 0 || slices.Contains(list, name) }
	t := table{incidents: all, cells: map[string]cell{}}
	for _, w := range worlds { // what is cheap first
		for _, i := range all {
			file := filepath.Join("scenarios", i+".scn")
			j := campaign.Job{Name: w.name + "/" + i, Limit: w.limit, Args: append([]string{"run", "--json", file}, w.args...)}
			if j.Stamp, err = c.Stamp(j.Args, file, filepath.Join(filepath.Dir(command.Program), "enilab-kind")); err != nil {
				return err
			}
			c.None = command.None || !asked(in, w.name) || !asked(of, i)
			c.Run(ctx, []campaign.Job{j}, 1, func(_ int, r *campaign.Result) {
				x := cellOf(r)
				t.cells[j.Name] = x
				if !c.None {
					fmt.Printf("%-32s %s\n", j.Name, x.brief())
				}
			})
		}
	}
	page, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	front, section, _ := strings.Cut(string(page), heading)
	before, builds := kept(section)
	for name, c := range before {
		if t.cells[name].why == campaign.NotYet {
			t.cells[name], t.builds = c, builds
		}
	}
	return errors.Join(campaign.Replace(target, strings.TrimRight(front, "\n")+"\n\n"+t.text()), ctx.Err())
}
