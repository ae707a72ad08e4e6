// Package draw is a scenario that is being drawn from a seed: its stream of random numbers ([Source]), its cluster
// ([Shape]), its workloads, and the lines so far ([Plan]). A verb says how it is drawn into one (sim/verb); sim/swarm
// draws whole ones. The order in which numbers are taken from the stream is what a seed means: whoever changes it
// changes every seed.
package draw
