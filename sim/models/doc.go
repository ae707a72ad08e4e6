// Package models hosts the models of a cluster once, for every world that has them: EC2, the API server, and each node's kubelet and
// runtime. It pumps what they say to whom it is about, is the nouns that verbs work on (sim/verb), springs death
// traps, counts who lives where, and reads metrics.
//
// A world embeds a Host and gives it, as a Machine per node, what only that world has: in virtual time a model of the kernel, records in
// memory and the core itself; in network namespaces a kernel, files and processes. World kind, whose API server, kubelets and runtimes are
// real, uses the parts that are about EC2: Traps, Socket and the bounds of patience.
//
// A Host is a value that is stepped: it has no goroutine, no clock and no lock. Clone forks it.
package models
