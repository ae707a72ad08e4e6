// Package virtual is world "sim": a cluster in virtual time. Its nodes are cores (impl/ipam) and pure models (fakes/kernel, fakes/cri,
// fakes/kube, fakes/ec2); everything that happens is an event of one heap, and the clock jumps from one to the next.
//
//	w, err := virtual.Open(cluster, seed, nil)      // a sim.World; the third argument is a mutant
//
// A World owns no goroutine, lock, file or wall clock. The same configuration and seed give the same events in the same order, which
// World.Hash sums up, and a World can be forked at any instant (World.Clone): so a daemon is killed at every event of a run, with each fate
// of what was in flight, and what settles is compared with the run without the crash (crash.go).
//
// A World is a host of models (sim/models), a clock (clock.go, heap.go) and nodes (node.go). A node is the four nouns of
// models.Machine, each with its own state: daemon, the process around the core, whose effects go to the models and come
// back as events (daemon.go; cloud.go for EC2 and for looks); machine, the kernel and the disks (machine.go, records.go);
// runtime, the plugin's processes (runtime.go); network, who gets packets (network.go). snapshot.go collects what is judged.
package virtual
