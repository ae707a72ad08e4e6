// Package swarm invents scenarios and makes those that break small.
//
// [Draw] writes a scenario from a seed: a cluster, settings, a workload, and a subset of the faults that a correct CNI survives
// (swarm testing: what is left out of a seed changes what the rest can reach). Faults happen in a safety phase; then they end, and a
// liveness phase asks for what is owed: every pod ready, everything settled, nothing leaked. The same seed gives the same text, byte
// for byte.
//
// [Play] plays a scenario in virtual time with every invariant judged, and gives what broke first with its [Cause]: the violation's
// text without names, numbers, addresses and times, so that two runs that broke alike can be told from two that did not.
//
// [Shrink] takes lines and numbers out of a scenario for as long as the same invariant breaks by the same cause. It never makes less
// time for settling, and never leaves a fault open that was closed: [Owed] says whether a scenario asks for what is possible.
//
// A [CNI] draws for any CNI: shorter scenarios over faults that every CNI promises to survive. A [Player] plays them
// where that CNI can be; sim/swarm/process is one.
//
// [Known] is the list of violations that are known and not mended yet, each with a scenario that still shows it.
package swarm
