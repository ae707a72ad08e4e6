// Package verb is what a scenario can do: one file a verb.
//
// A [Verb] is a value. It says how a line is written (subjects, parameters), what it is for (document, source), what
// it does to a world (Strike), when it can never strike (Check), whether a CNI survives it, how a swarm draws it, and
// where it is skipped and why. The grammar, "enilab verbs", the checks of a file, the swarm's faults and the table of
// skips are read from these values; [All] has them in order.
//
// Strike works on four nouns of a world, which are interfaces: [Daemon], [Kernel], [Runtime] and [Network]; and on the
// API server and the model of EC2. A new verb is a copy of reboot.go, with its line in all.go.
package verb
