// Package verb is what a scenario can do: one file a verb.
//
// A [Verb] is a value. It says how a line is written (subjects, parameters), what it is for (document, source), what it
// does to a world (Strike), when it can never strike (Check), whether a CNI survives it, how a swarm draws it, and
// where it is skipped and why. The grammar, "enilab verbs", the checks of a file, the swarm's faults and the table of
// skips are read from these values; [All] has them in order.
//
// Strike works on four nouns of a world, which are interfaces: [Daemon], [Kernel], [Runtime] and [Network]; and on the
// API server ([API]) and the model of EC2 ([Cloud]). A new verb is a copy of reboot.go, with its name in all.go. What a
// stranger does to a kernel is data (kernel.Accident), so that a new one needs no method of a noun: a case in the
// model (fakes/kernel, Suffer) and one for a real kernel (sim/interference, Do).
//
// What no test finds:
//
//   - what a swarm may not draw together (sim/swarm/faults.go: apart, hinders);
//   - what the judge has to know of a verb that keeps a sound daemon from answering or repairing: deadlines in
//     sim/judge/requests.go, and Snapshot.Up, while which bounds count;
//   - what breaks something for ever is ended by EndFaults (sim/models, sim/kind);
//   - a seed of the swarm is the order of its draws: a verb that comes later than seeds says so (Draw.Last,
//
// Draw.Later).
//
// New state of a node in sim/virtual is cloned (TestCloneSharesNothing), and ended in crash and Reboot; a new kind of
// event has a name in crashtold.go and a fate in crash.
package verb
