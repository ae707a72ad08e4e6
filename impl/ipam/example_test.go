package ipam_test

import (
	"fmt"
	"time"

	"github.com/enilab/enilab/impl/ipam"
)

// A shell steps a Node with what happened and carries out the effects. A Node that starts looks at the kernel, the
// runtime and instance metadata, and serves no pod before it knows its addresses.
func ExampleNode_Step() {
	n, err := ipam.New(ipam.Sound())
	if err != nil {
		fmt.Println(err)
		return
	}
	show := func(effects []ipam.Effect) {
		for _, e := range effects {
			switch e := e.(type) {
			case *ipam.Look:
				fmt.Println("look at", e.What)
			case *ipam.Reply:
				fmt.Printf("reply to request %d: %s\n", e.Req, e.Err)
			}
		}
	}
	show(n.Step(0, ipam.Start{Boot: "boot-1", Rebooted: true, Settings: ipam.Defaults()}))
	pod := ipam.Pod{Namespace: "default", Name: "web-0"}
	att := ipam.Attachment{Network: "aws-cni", ContainerID: "4f2a", IfName: "eth0"}
	show(n.Step(time.Second, ipam.Add{Req: 1, Att: att, Pod: pod, Netns: 4026532000, Deadline: 2 * time.Second}))
	show(n.Step(2*time.Second, nil)) // the tick that Next asked for: the deadline is over
	// Output:
	// look at kernel
	// look at runtime
	// look at imds
	// reply to request 1: cni ADD aws-cni/4f2a/eth0: ipamd is still recovering: instance metadata has not answered yet; try again
}
