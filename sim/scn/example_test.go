package scn_test

import (
	"fmt"

	"github.com/enilab/enilab/sim/scn"
)

// A file is read into data, and prints itself again byte for byte; what is unclear in it is an error with its place.
func ExampleParse() {
	text := `# A deployment is rolled on a full node. The CNI must not reuse addresses early.
# Source: amazon-vpc-cni-k8s #2945
cluster nodes=1 type=m5.large
start   pods web 18 on node-1
at 1m   kube roll web 12
finally converges within 5m
`
	f, err := scn.Parse("roll.scn", []byte(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(f.Headline())
	for _, i := range f.Statements() {
		fmt.Printf("line %d: %T\n", i, f.Lines[i-1].Stmt)
	}
	fmt.Println("unchanged:", f.String() == text)

	_, err = scn.Parse("wrong.scn", []byte("cluster nodes=1\nat 1 node-1 kill\n"))
	fmt.Println(err)
	// Output:
	// A deployment is rolled on a full node.
	// line 3: *scn.Cluster
	// line 4: *scn.Start
	// line 5: *scn.At
	// line 6: *scn.Finally
	// unchanged: true
	// wrong.scn:2:4: "1" is not a duration (such as 30s, 20m or 1h30m)
}
