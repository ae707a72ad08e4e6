// Package virtual is world "sim": a cluster in virtual time. Its nodes are cores (impl/ipam) and pure models (fakes/kernel, fakes/cri,
// fakes/kube, fakes/ec2); everything that happens is an event of one heap, and the clock jumps from one to the next.
//
//	w, err := virtual.Open(cluster, seed, nil)      // a sim.World; the third argument is a mutant
//
// A World owns no goroutine, lock, file or wall clock. The same configuration and seed give the same events in the same order, which
// World.Hash sums up, and a World can be forked at any instant (World.Clone): so a daemon is killed at every event of a run, with each fate
// of what was in flight, and what settles is compared with the run without the crash (crash.go).
//
// daemon.go plays the daemon around the core: inputs go in, effects go to the models, and their outcomes come back as events. plugin.go
// plays the plugin's process, cloud.go the ways to EC2 and metadata and back, do.go carries out what a scenario does, snapshot.go collects
// what the auditor judges.
package virtual
