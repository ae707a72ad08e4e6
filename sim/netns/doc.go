// Package netns is world "netns": the real daemon and the real plugin as processes, a real kernel, real packets. Only what a node cannot
// have in a laboratory is a model: EC2 and instance metadata, kubelet and the container runtime, the API server, each the very model
// that the simulator steps, behind HTTP and gRPC.
//
//	                    one process: the models, the clock, the auditors (this package)
//	                      |  EC2 and IMDS over HTTP, CRI over gRPC, Kubernetes over HTTP, clock and recording over unix sockets
//	     ┌────────────────┼─────────────────┐
//	node-1 (sim/netns/node)        ...      node-N        each in mount, network, PID, IPC and UTS namespaces of its own:
//	 ipamd, aws-cni through libcni, pods' namespaces      production's paths and addresses
//	     └────────────────┬─────────────────┘
//	             VPC router (sim/vpc)              ENIs are veth pairs; addresses are routes; sources are checked
//
// # Its parts
//
// A World is the models' host, a loop, an observer for the judge, and a fleet of nodes. A node is the four nouns of
// models.Machine, each a type with its own state: nodeDaemon, in one phase at a time; realKernel, which is held against
// a mirror; kubelet, which runs plugins; packets, by which pods are asked. endpoints are what listens in it, versions the
// systems that it has. A keeper starts and hears their daemons; a Handle is for who acts on a node beside a scenario.
//
// # Time
//
// The laboratory's clock is CLOCK_BOOTTIME plus an offset. It passes in real time while anything works, and jumps to the earliest
// instant that is waited for when nothing is busy: every daemon has said that it waits, has nothing under way but
// requests that the models hold back, and its recording has been read to its end; no plugin runs but those that wait
// for the daemon. A kernel event that is on its way gets the time to arrive (settleTime).
//
// With Parts.RealTime it passes with the machine's and never jumps. That is for machines whose own time leaps over
// idle spans: a virtual machine of sim/vm, in which the same seed gives the same run. There slowness is measured in
// the machine's time too, and repeats.
//
// # What is written down
//
// Parts.Record names a folder for each laboratory: its timeline, EC2's calls as the model saw them, and the packets of the router and of each node,
// the loopback left out, with the kernel's timestamps.
//
// # What the daemon knows
//
// The daemon streams its flight recorder. The laboratory steps a second Node with it: that Node is what the auditors read, and the
// fingerprint of every step proves that the daemon decided as the core does (the replay check). The plans that it applied are applied
// to fakes/kernel too, whose observation has to be the real kernel's (the kernel check).
//
// # A slow machine
//
// Bounds in real time (how long a daemon may take to start, a plugin to end, a ping to be answered) are made for a reference, and are as many
// times longer as this machine takes longer to start a child (slowness). A run in which something failed says by TooSlow whether the
// loop acted too late by then, or the machine has become much slower: such a failure counts for nothing, and is not green either.
//
// # Who ends a daemon
//
// A daemon that is killed beside the scenario (enilab netns exec node-1 -- pkill ipamd) is started again by kubelet, and judged like one that a
// line kills. One that ends by itself is a failure: Crashes says how it ended and what it said.
//
// # Whatever hangs
//
// Parts.Context ends a laboratory between two things that it does. A node that does not answer is killed a second later, and with it every
// call that waits for it.
//
// # What is left behind
//
// Nothing: namespaces are anonymous or a process's own, files are on file systems inside them, and all processes die with the
// laboratory's.
package netns
