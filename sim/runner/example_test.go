package runner_test

import (
	"fmt"

	"github.com/enilab/enilab/sim/runner"
)

// A scenario is a text. It holds when nothing breaks with the daemon as it is, and when the mutant that it names breaks what it says.
func Example() {
	const roll = `# A deployment of 12 is rolled at once on a node that has 18 addresses and may have no more.
cluster nodes=1 type=m5.large subnet=10.0.10.0/24
config  MAX_ENI=2
start   pods web 12 on node-1
always  "every live pod is reachable"
always  "no address is reused before its cool-down"
at 1m   kube roll web 12
at 1m   within 2m expect kube pods.ready == 12
finally converges within 5m
against no-cool-down breaks "no address is reused before its cool-down" by 5m
`
	c, err := runner.Load(runner.Sim(), "roll.scn", []byte(roll))
	if err != nil {
		fmt.Println(err) // every mistake in the text, with line and column
		return
	}
	r := c.Run(runner.Options{Seed: runner.DefaultSeed})
	fmt.Println(r.Status)
	for _, p := range r.Proofs() {
		fmt.Println(p.Mutant, "broke:", p.Invariant)
	}
	// Output:
	// held
	// no-cool-down broke: no address is reused before its cool-down
}
