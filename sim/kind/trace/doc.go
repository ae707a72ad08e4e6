// Package trace reads what sim/kind/recorder wrote, and tells it so that two recordings can be compared: which calls a runtime made
// for each pod, with what, and how they ended.
//
//	pod web-0
//	  sandbox-1 of pod-1
//	    ADD eth0 netns 1.1.0: ok
//	    DEL eth0 netns prev 1.1.0: ok
//	    DEL eth0 empty 1.1.0: ok
//	    DEL eth0 empty 1.1.0: ok
//	  sandbox-2 of pod-2, sandbox-1 still up
//	    ADD eth0 netns 1.1.0: error 11
//	    …
//
// A line is a call: verb, CNI_IFNAME, what was at CNI_NETNS (netns: a namespace; gone: a path, and nothing there; empty: no path),
// prev when there was a prevResult, the configuration's version, and the outcome (ok; error and its code; killed: it never answered).
//
// What differs between two runs of the same story is left out: a pod's UIDs and container IDs are ordinals by first appearance, addresses and
// times are not told, and neither is the order of calls for different sandboxes, which only chance and kubelet's minute decide. What
// matters of it is told with a sandbox's first call: which earlier sandboxes of that pod name were not down by then (down: a DEL ended in
// success). Within a sandbox calls are in the order in which they began; one that began before the call before it had ended says so.
package trace
