// Package witness follows daemons that are processes by their recordings, for worlds with real processes (netns and kind).
//
// A daemon streams its flight recorder: the Node as it is, and then every input with a fingerprint of what the Node wanted. The
// witness steps a second Node with it (Life). That Node is what auditors and expectations read, since nobody can look into a process;
// and the fingerprint of every step proves that the daemon decided as the core does.
//
// What follows from a step is judged as it is read: the effect contract, I1 when a pod's plan was applied, I2 and I7 when an ADD is
// answered, I6 when a DEL is. What a world has to see for that with eyes of its own, the kernel, it tells by Eyes. I4 is judged
// by what happened at EC2 (Cloud), whose model every world has.
//
// A Witness has no lock: one goroutine at a time uses it and its Lives.
package witness
