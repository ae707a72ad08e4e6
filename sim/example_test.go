package sim_test

import (
	"fmt"

	"github.com/enilab/enilab/sim"
	"github.com/enilab/enilab/sim/scn"
	"github.com/enilab/enilab/sim/virtual"
)

// One run of a scenario in virtual time. Package sim/runner does the same for each variant and each mutant that a file names.
func Example() {
	file, err := scn.Parse("kill.scn", []byte(`# The daemon is killed under 12 pods.
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
start   pods web 12 on node-1
always  "every live pod is reachable"
at 10s  node-1 kill
at 1m   expect node-1 addresses.assigned == 12
finally converges within 5m
`))
	if err != nil {
		fmt.Println(err)
		return
	}
	cluster, err := sim.Check(file)
	if err != nil {
		fmt.Println(err)
		return
	}
	world, err := virtual.Open(cluster, 1, nil) // the seed; no mutant
	if err != nil {
		fmt.Println(err)
		return
	}
	defer world.Close()
	run, err := sim.NewRun(file, world, "sim")
	if err != nil {
		fmt.Println(err)
		return
	}
	v := run.Finish(nil)
	fmt.Println("held:", v.Held(), "settled:", v.Settled(), "expectations judged:", v.Judged)
	// Output: held: true settled: true expectations judged: 1
}
