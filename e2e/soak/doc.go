// Package soak kills: one node of a laboratory on which pods come and go all the time, while its daemon and its plugins are SIGKILLed
// at random instants. In the end everything that an auditor judges has to have held, the cluster settles, and the node is, file by file
// and rule by rule, as it was before the first kill.
//
//	report, err := soak.Run(parts, soak.Full(seed))
//	fmt.Println(report)
//	for _, p := range report.Problems { … }
//
// # A run
//
// First a calm round: workloads are made, scaled up and then to nothing, with no kill. What there is on the node then (node.Inventory) is
// what an idle node has. Then they come back and churn: pods are deleted, forced out and replaced, workloads are scaled up and down, so
// that ENIs come and go too. Kubelet starts a dead daemon again at once, and it is killed again a random while, 0.1 to 2 s, after the
// last kill: in the middle of its recovery as often as of its work. When all that was asked for has happened the workloads are scaled
// to nothing once more, faults end, and the world is judged as at the end of any scenario.
//
// A seed makes the choices of a run. The instants at which processes are hit are the machine's own, so no two runs are the same.
package soak
