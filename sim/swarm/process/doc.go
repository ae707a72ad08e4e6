// Package process plays a swarm's scenarios in worlds that are not the simulator: each run is a process of `enilab run … --json`, and what it
// found is read from its document. So a run can need root, a kernel or a virtual machine of its own, and may hang or die without the swarm.
//
// The process begins a group of its own. It is asked to end (SIGINT) when the run is no longer wanted or when it has
// taken too long, then ended; and it ends with the process that plays.
package process
