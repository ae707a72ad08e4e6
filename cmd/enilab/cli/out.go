package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/enilab/enilab/sim/runner"
	"github.com/enilab/enilab/sim/vm"
)

const outManual = `--out DIR, with --on netns, keeps what came of every run:
  DIR/seed-N/console.txt                    with --in vm: what the machine's kernel said
  DIR/seed-N/runs.json                      with --in vm and --html or --junit: what these are made of
  DIR/seed-N/SCENARIO/report.txt, .json     the verdict
  DIR/seed-N/SCENARIO/RUN/timeline.txt      all that happened; RUN is its number, and its variant or mutant
  DIR/seed-N/SCENARIO/RUN/ec2.jsonl         EC2's calls as the model saw them: instant, node, request, answer
  DIR/seed-N/SCENARIO/RUN/router.pcap       packets of the VPC's router, and of each node: tcpdump -r reads them
  DIR/seed-N/pause/                         with --pause-at: what its shell had to look at`

// outputs is the folder of --out. One run after another writes there.
type outputs struct {
	folder string
	run    string // folder of the run that begins
	err    error  // the first that a report met
}

// begins takes which run comes next.
func (o *outputs) begins(p runner.Progress, seed uint64) {
	name := []string{strconv.Itoa(p.Run)}
	for _, s := range []string{p.Variant, p.Doing} {
		if s != "" {
			name = append(name, strings.NewReplacer(" ", "-", "/", "-").Replace(s))
		}
	}
	o.run = filepath.Join(o.folder, vm.SeedFolder(seed), p.Scenario, strings.Join(name, "-"))
}

// record is where the world that opens now writes.
func (o *outputs) record() string { return o.run }

// report writes a result's.
func (o *outputs) report(r *runner.Result) {
	folder := filepath.Join(o.folder, vm.SeedFolder(r.Seed), r.Case.Name())
	d := r.Document()
	d.Wall = 0 // so that two runs are the same
	data, err := json.MarshalIndent(d, "", "  ")
	err = errors.Join(err, os.MkdirAll(folder, 0o755), os.WriteFile(filepath.Join(folder, "report.json"), append(data, '\n'), 0o644),
		os.WriteFile(filepath.Join(folder, "report.txt"), []byte(r.Report()), 0o644))
	if o.err == nil && err != nil {
		o.err = fmt.Errorf("--out: %w", err)
	}
}

// checkOut judges --out beside the other flags and files.
func (f *runFlags) checkOut(cases []*runner.Case) error {
	if f.out == "" {
		return nil
	}
	seen := map[string]string{}
	for _, c := range cases {
		if other, twice := seen[c.Name()]; twice {
			return usage("--out: %s and %s would write into the same folder: run them one after another", other, c.File.Name)
		}
		seen[c.Name()] = c.File.Name
	}
	return nil
}
