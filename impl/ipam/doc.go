// Package ipam decides what a node does about its addresses. It owns no clock, goroutine, lock, socket or file: a [Node]
// is a value that is stepped.
//
// A shell (the daemon, a simulator, a test) gives it one [Input] at a time and gets back [Effect]s to carry out; their
// outcomes come back as Inputs. Nothing else changes a Node, so the Inputs since a known state are a complete record of
// what it did and why: [Node.Encode], the Inputs, and any machine can step the incident again.
//
// # The contract with the shell
//
//  1. Every effect with an ID gets exactly one outcome with that ID while the daemon lives. IDs match outcomes, never state.
//  2. The effects of a step are in start order per lane; lanes run at once. Save is one lane per store, and Saved is cumulative.
//  3. ADD is Save, Saved, Apply, Applied, Reply. DEL is Save of a cooling row, Saved, Apply of the removal, Applied, Reply.
//     One operation runs per attachment; others queue behind it. One ADD never waits for another attachment's.
//  4. Nothing is cancelled: a deadline or Gone ends the Reply, the effect runs on and is then undone.
//  5. After a crash a Call may still land for two minutes, so open intents are in doubt that long.
//  6. A lost reply is resolved by repeating the client token (Create) or by looking first (everything else).
//  7. An outcome that is not awaited, or that came before, changes nothing.
//  8. An observation says nothing about a row that changed after the look was asked for.
//
// # The parts
//
// A Node routes inputs to its parts. Each has a type, its own state and files, and knows those below it:
//
//	recovery  the begin of a life: records, kernel, runtime and metadata become one
//	warm      the warm pool: how many addresses are wanted
//	pods      attachments: ADD, DEL, CHECK, GC, and what kernel and runtime show of them
//	survey    what EC2 and metadata say of ENIs, and what it means
//	driver    an ENI from stage to stage: intent, call, link, drain
//	host      the host's own rules and routes
//	pool      slots: addresses, which ENI carries each, whose it is, how long it cools
//	enis      the ENIs there are, and their stages
//	subnets   those in which ENIs may be made, and which has refused
//	evidence  looks, what was given back, ENIs that are not ours
//	requests  who waits for an answer
//	ledger    rows, intents, and effects whose outcome is awaited
//	life      phase, identity, settings, policy, the effects of the step
//
// # The decisions
//
// What outages got wrong is in [Policy], one small pure function each; [Sound] is production's. All else is machinery.
package ipam
