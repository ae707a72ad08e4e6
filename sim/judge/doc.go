// Package judge judges a world by the invariants of the catalogue. It never looks by itself: the world that sees
// an event says so, at the instant at which it happened. Nothing here decides anything for a node, and nothing here
// knows how a node decides: of impl/ipam it uses the types, and reads a Node or steps it with a recording, and of fakes/ec2 it reads the model.
//
// An invariant is judged in one of three ways.
//
// At an edge, when something happens that must never happen. These calls are cheap, so that a simulator can make a
// million of them in a second, and exact in every world:
//
//	Started, Died      a daemon's life: the effect contract (I13) begins anew
//	Input, Effects     I13, on every step; the node's cool-down length
//	Configured         I1, I7: a pod's plan was applied
//	Given              I2, I7: a successful ADD leaves
//	Released           the cool-down (I7) begins
//	ENIFreed           I4
//	AddressUnassigned  I4; an address that went back to EC2 has no cool-down here
//	EC2Call            I8
//	Makes              I15, on what a step wanted
//	Requested          I14 and I19, on what EC2 is asked for
//	Touched            I14
//	FlowCut            I17
//	DelResult          I6, as far as one answer can break it
//
// On a consistent snapshot, when something may be broken for a while. Judge takes a Snapshot of one node and remembers since when a
// row (I3) or a pod (I10) has been faulty; older than the bound is a violation. The bound counts while the daemon runs.
// What third parties have put on the node (I18) has no bound: a snapshot that lacks it is a violation, once for each thing.
// Watching says when a node that does not change has to be judged again.
//
// On the settled snapshot, when faults have ended and the world is quiet: Settle judges I5, I6, I11, I12 and I20; where something is still under
// way, I6 alone: "leaked" is only what is not acted on any more. Unsettled asks the same
// without recording, for a world that waits until a node converges. I9 compares two runs, so the caller that runs both
// judges it: the crash enumeration of package virtual.
//
// No snapshot means not judged, never held. A Snapshot without a View, or of a node whose daemon is down, is not judged by I11
// and I12; one whose Limits are unknown not by I11. An edge that a world cannot see is an invariant that it cannot judge,
// and it has to say so.
//
// # Sources
//
// What is judged is known from the node's kernel, EC2's truth, the runtime's calls and their answers, packets, and books; Invariant.Needs says
// from which. Three of them have files of their own:
//
//   - residue (residue.go): a node's kernel, what of it has no owner;
//   - EC2's truth (truth.go, whose.go): what its model did, whose an ENI is, orphans;
//   - books (books.go): what the daemon believes and what it answered.
//
// Of a daemon of which only the outside is known there are no books (Config.Without). What needs them is not judged then, and NotJudged names it;
// what else is judged is told by outside.go: from the answers that the runtime got (I1, I2, I6, I7, I14), and residue is found by asking who
// may have an address at all: a living sandbox, or the machine itself (Residue.Unclaimed).
//
// Books of a daemon in virtual time are its Node. Those of a daemon that is a process (worlds netns and kind) are its recording: it streams
// its flight recorder, the Node as it is, and then every input with a fingerprint of what the Node wanted. A Witness steps a second Node with
// it (Life). That Node is what auditors and expectations read, since one cannot look into a process; and the
// fingerprint of every step proves that the daemon decided as the core does.
//
// What follows from a step is judged as it is read: the effect contract, I1 when a pod's plan was applied, I2 and I7 when an ADD is
// answered, I6 when a DEL is. What a world has to see for that with eyes of its own, the kernel, it tells by Eyes. I4 is judged
// by what happened at EC2 (served.go), whose model every world has. A Witness has no lock: one goroutine at a time uses it and its Lives.
//
// # What is tolerated
//
// I7 begins at the first release after an address was taken, so that the DELs that a runtime repeats (at least two
// for each sandbox with containerd) do not extend it, and an attachment that gets its own address again reuses nothing.
// Of several lengths that were set since the release the shortest counts.
//
// I11 excuses a shortage when the subnet cannot grant the next step whole, when the node has as many addresses as it may have
// pods, and when it does not manage its pool (cordoned, or provisioning disabled). Too many are addresses from
// which upstream would give some back: with WARM_ENI_TARGET from one whole ENI above the target while an ENI is idle, with
// WARM_IP_TARGET from the first above it and above MINIMUM_IP_TARGET; Bounds.Band widens both.
//
// I15 judges what the daemon believes (its View), not EC2's truth: what a third party gave or took a moment ago it
// cannot know. Each ENI is judged once, when its client token is first heard of: the request is repeated until EC2 has
// answered, and the demand may go meanwhile. It counts places, and leaves out those of addresses that cool down or are
// set aside, of prefixes, and of ENIs that leave or that EC2 refuses to attach; and what EC2 refuses to assign where
// there are places is no reason for a further ENI: it would be in the same subnet.
//
// I16 counts while the daemon runs, over all its lives, as I10 does. What it is judged from differs: where the daemon's belief is known that is
// asked (View.Serving), else a world that started it and heard no answer says so (Unserved), with the bound of that daemon.
//
// # The effect contract
//
// Contract follows one life of a daemon from inputs and effects alone, and can be used without an Auditor. It checks that
//
//   - nothing is wanted before Start, and no two effects have one ID;
//   - Saves of a store are numbered from 1 without holes, intents go to lib and addresses to run, and no row gives an address
//     to an attachment while another one has it, or a second address to one;
//   - a Call has a durable intent with its token or its ENI, and for its action;
//   - a lane has one Apply at a time, an attachment one operation at a time (an Apply that only puts back what had been
//     applied is none);
//   - a successful ADD follows the Saved of a row that gives exactly the address to exactly the attachment, and the
//     Applied, without error, of a plan that was wanted after it; a row of an earlier life or a recovered one needs no
//     plan;
//   - a successful DEL leaves no assigned row; one that found a row or an operation also follows the Applied, without
//     error, of a plan that was wanted after the Saved of the cooling row, if any plan had touched the kernel for it;
//   - a request gets one Reply, by its deadline, with its verb and attachment; after Gone it may get one.
//
// Outcomes match by ID. One that is not awaited, or the second one, proves nothing and is not an error.
package judge
