// Package kube is a pure model of a Kubernetes API server with the controllers that make pods
// again and the scheduler that places them. It says what a node's kubelet hears, and what "the API
// server lists for this node" means, which several CNIs have taken for the truth about addresses.
//
//	c := kube.New(seed)
//	c.CreateWorkload(now, kube.Spec{Name: "web", Replicas: 17, Nodes: []int{0}})
//	for _, e := range c.Events() { … hand e to the kubelet of e.Node … }
//	c.PodStarted(now, uid, address)   // kubelet's status updates
//	c.DeletePod(now, "web-0", 0)      // an event for its kubelet; a Deployment replaces it at once
//	c.PodGone(now, uid)               // the object goes; a StatefulSet replaces it now
//
// Two facts of the API matter to a CNI. An object may go while its sandbox lives: ForceDelete takes
// it away at once, and kubelet kills in the background. And a StatefulSet's names come back:
// "etcd1-0" may be a sandbox that is still being deleted and one that has just been made.
//
// Nothing here waits, so there is no Step: every method acts at the instant it is given. Every
// method costs O(1), or O(what it returns); Scale costs O(replicas). No map's order shows.
package kube
